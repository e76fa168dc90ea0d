"""A frozen lake that is more slippery, or less, than the simulator believes.

python examples/slippery_lake.py
python examples/slippery_lake.py --percent 90

    S . . .     S  start    O  hole: pays -1 and ends the episode
    . O . O     G  goal: pays 1 and ends the episode
    . . . O     A step goes where it should with probability p, and to either side with (1 - p) / 2 each.
    O . . G     The simulator believes p = 0.7.

Each agent lives for one episode of at most 100 steps and has to learn p on the way: `parameters=["p"]` names what may
be off. Slipping alone is no error: only the frequency of slips tells that the simulator is wrong.
"""

from drawing import Plan
from worlds_apart import World, compare, options

LAKE = ("SFFF", "FHFH", "FFFH", "HFFG")
MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))


class Lake:
    """A state is (row, column); p is the probability that a step goes where it should."""

    num_actions = 4
    action_names = ("left", "down", "right", "up")

    def __init__(self, p=0.7, rows=LAKE):
        self.p, self.rows = p, rows

    def outcomes(self, state, action):
        slip = (1 - self.p) / 2
        return [
            (chance, self.enter(state, MOVES[(action + turn) % 4]))
            for turn, chance in ((0, self.p), (1, slip), (-1, slip))
            if chance > 0
        ]

    def enter(self, state, move):
        """Where a move leads, what it pays, and whether the episode is over."""
        row = min(max(state[0] + move[0], 0), len(self.rows) - 1)
        column = min(max(state[1] + move[1], 0), len(self.rows[0]) - 1)
        cell = self.rows[row][column]
        return (row, column), {"G": 1.0, "H": -1.0}.get(cell, 0.0), cell in "GH"


def main(arguments=None):
    chosen = options(
        __doc__, arguments, quick={"runs": 8}, runs=100, episodes=1, iterations=100, longest=100, percent=40
    )
    p, plan = chosen.percent / 100, Plan([row.replace("F", ".").replace("H", "O") for row in LAKE])
    return compare(
        chosen, World(Lake(p), (0, 0)), Lake(), Lake(p), cause=f"believing p = 0.7 where it is {p:g}",
        plan=plan, told=True, parameters=["p"], rollouts=1, depth=50, gamma=0.998,
    )  # fmt: skip


if __name__ == "__main__":
    main()
