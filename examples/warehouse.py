"""A warehouse in which pallets block two aisles; the picker's floor plan does not show them.

python examples/warehouse.py

The simulator is plain Python: a floor plan, what a step does and what it pays. The real world has pallets as well.
"""

from drawing import Plan
from worlds_apart import compare, options

PLAN = [
    "D........",
    ".#.#.#.#.",
    ".#.#1#.#.",
    ".#.#.#2#.",
    ".#.#.#.#.",
    ".........",
]
"""D is the dock, # is a shelf; 1 and 2 are the two items to bring to the dock."""
CAUSE = "a floor plan that does not show two pallets"
PALLETS = {(1, 4), (1, 6)}
"""In the real world, both items can only be reached from below."""


class Warehouse:
    """A state is (row, column, first, second): where the picker stands, and whether each item is still on its shelf."""

    num_actions = 4
    action_names = ("up", "right", "down", "left")
    items = ((2, 4), (3, 6))

    def __init__(self, pallets=()):
        cells = ((row, column) for row, cells in enumerate(PLAN) for column, cell in enumerate(cells) if cell != "#")
        self.free = frozenset(cells) - frozenset(pallets)

    def step(self, state, action):
        row, column, *waiting = state
        place = row + (-1, 0, 1, 0)[action], column + (0, 1, 0, -1)[action]
        if place not in self.free:
            place = row, column
        reward = -0.1
        for number, item in enumerate(self.items):
            if waiting[number] and place == item:
                waiting[number], reward = False, 5.0
        done = place == (0, 0) and not any(waiting)
        return (*place, *waiting), 10.0 if done else reward, done


class Reality:
    """The real warehouse; every episode starts at the dock."""

    def __init__(self):
        self.floor = Warehouse(PALLETS)

    def reset(self, seed):
        self.state = (0, 0, True, True)
        return self.state

    def step(self, action):
        self.state, reward, over = self.floor.step(self.state, action)
        return self.state, reward, over


def main(arguments=None):
    chosen = options(__doc__, arguments, runs=6, episodes=6, iterations=100, longest=70)
    wrong, true, plan = (
        Warehouse(),
        Warehouse(PALLETS),
        Plan([PLAN[0], ".#.#x#x#.", ".#.#a#.#.", ".#.#.#b#.", *PLAN[4:]]),
    )
    return compare(chosen, Reality(), wrong, true, cause=CAUSE, plan=plan, rollouts=3, depth=30, gamma=0.95)


if __name__ == "__main__":
    main()
