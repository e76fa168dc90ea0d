"""A frozen lake with holes that have opened since the map was drawn.

python examples/frozen_lake.py

    S . . . . . . .     S  start
    . . . . . . . .     G  goal
    . . . . . . . .     O  a hole on the map
    . . . O x x x .     x  a hole that has opened since
    . . . . . . . .
    . . . . . . . .
    . . . . . . . .
    . . . . . . . G
"""

import gymnasium
from drawing import Plan
from worlds_apart import GymWorld, compare, options

import uamcts.gym

MAP = ["SFFFFFFF", "FFFFFFFF", "FFFFFFFF", "FFFHFFFF", "FFFFFFFF", "FFFFFFFF", "FFFFFFFF", "FFFFFFFG"]
REALLY = [*MAP[:3], "FFFHHHHF", *MAP[4:]]
CAUSE = "a row of holes that the map does not show"


def lake(rows):
    return gymnasium.make("FrozenLake-v1", desc=rows, is_slippery=False)


def main(arguments=None):
    chosen = options(__doc__, arguments, runs=8, episodes=12, iterations=100, longest=50)
    wrong, true = uamcts.gym.Simulator(lake(MAP)), uamcts.gym.Simulator(lake(REALLY))
    world, plan = GymWorld(lake(REALLY), wrong), Plan([row.replace("F", ".").replace("H", "O") for row in REALLY])
    return compare(chosen, world, wrong, true, cause=CAUSE, plan=plan, rollouts=5, depth=80, gamma=0.95)


if __name__ == "__main__":
    main()
