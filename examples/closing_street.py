"""A street that closes half-way through the agent's life; its simulator goes on believing that it is open.

python examples/closing_street.py

    . . . . . . .       S  start of the van      #  houses
    . # # # # # .       G  its customer
    S . . x . . G       x  where the street is closed in the second half
    . # # # # # .
    . . . . . . .       The detour takes four steps more.

In the first half the simulator is right. An agent that has learned to rely on it must notice the change.
"""

from drawing import Plan
from worlds_apart import World, compare, options

TOWN = (".......", ".#####.", ".......", ".#####.", ".......")
START, GOAL, CLOSED = (2, 0), (2, 6), (2, 3)


class Streets:
    """A state is (row, column) of the van. Every step costs 0.2; arriving pays 5 and ends the episode."""

    num_actions = 4
    action_names = ("up", "right", "down", "left")

    def __init__(self, closed=()):
        cells = ((row, column) for row, cells in enumerate(TOWN) for column, cell in enumerate(cells) if cell == ".")
        self.free = frozenset(cells) - frozenset(closed)

    def step(self, state, action):
        place = state[0] + (-1, 0, 1, 0)[action], state[1] + (0, 1, 0, -1)[action]
        if place not in self.free:
            place = state
        return place, 5.0 if place == GOAL else -0.2, place == GOAL


def main(arguments=None):
    small = {"runs": 2, "episodes": 6}
    chosen = options(__doc__, arguments, quick=small, runs=10, episodes=12, iterations=50, longest=40)
    before, after, plan = Streets(), Streets({CLOSED}), Plan([*TOWN[:2], "S..x..G", *TOWN[3:]])
    return compare(
        chosen, [World(before, START), World(after, START)], Streets(), [before, after],
        cause="a street that closes half-way through", plan=plan, rollouts=2, depth=20, gamma=0.95,
    )  # fmt: skip


if __name__ == "__main__":
    main()
