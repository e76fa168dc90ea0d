"""A frozen lake with holes that have opened since the map was drawn.

python examples/frozen_lake.py
"""

import gymnasium
from worlds_apart import GymWorld, compare, options

import uamcts.gym

MAP = ["SFFFFFFF", "FFFFFFFF", "FFFFFFFF", "FFFHFFFF", "FFFFFFFF", "FFFFFFFF", "FFFFFFFF", "FFFFFFFG"]
REALLY = [*MAP[:3], "FFFHHHHF", *MAP[4:]]


def lake(rows):
    return gymnasium.make("FrozenLake-v1", desc=rows, is_slippery=False)


def main(arguments=None):
    chosen = options(__doc__, arguments, runs=8, episodes=6, iterations=100, longest=50)
    wrong, true = uamcts.gym.Simulator(lake(MAP)), uamcts.gym.Simulator(lake(REALLY))
    return compare(chosen, GymWorld(lake(REALLY), wrong), wrong, true, rollouts=5, depth=80, gamma=0.95)


if __name__ == "__main__":
    main()
