"""A walk along a cliff in the wind; the model assumes calm air.

python examples/cliff_walking.py

    . . . . . . . . . . . .     S  start    G  goal    ~  windy: a step ends one cell further down
    . . . . . ~ ~ . . . . .
    . . . . . ~ ~ . . . . .
    S = = = = = = = = = = G     =  the cliff

Uses Gymnasium's CliffWalking with different rewards: a step pays for the distance it gains, and a fall ends the
episode. With -1 for every step and -100 for a fall, random rollouts would never see the goal and would only avoid the
cliff.
"""

from drawing import Plan
from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv
from worlds_apart import GymWorld, compare, options

import uamcts.gym

COLUMNS, CLIFF, GOAL = 12, range(37, 47), 47
FALL = -3
CAUSE = "a wind in four cells that the simulator does not know of"
WINDY = (17, 18, 29, 30)
"""States: columns 5 and 6 of the two rows next to the cliff. The upper row is sheltered."""


def nearness(state):
    """Progress towards the goal: columns, and in the last column also rows."""
    row, column = divmod(state, COLUMNS)
    return column + (row if column == COLUMNS - 1 else 0)


class Cliff(CliffWalkingEnv):
    """In windy cells every step ends one cell further down."""

    action_names = ("up", "right", "down", "left")

    def __init__(self, windy=()):
        super().__init__()
        for state, actions in self.P.items():
            for action, [(_, after, reward, _)] in actions.items():
                after = int(after) + COLUMNS * (state in windy and reward != -100)
                fell = reward == -100 or after in CLIFF
                actions[action] = [
                    (1.0, after, FALL if fell else nearness(after) - nearness(state), fell or after == GOAL)
                ]


def main(arguments=None):
    chosen = options(__doc__, arguments, runs=10, episodes=9, iterations=100, longest=60)
    wrong, true = uamcts.gym.Simulator(Cliff()), uamcts.gym.Simulator(Cliff(WINDY))
    world, plan = GymWorld(Cliff(WINDY), wrong), Plan(["............", ".....~~.....", ".....~~.....", "S==========G"])
    return compare(chosen, world, wrong, true, cause=CAUSE, plan=plan, rollouts=5, depth=10, gamma=0.95)


if __name__ == "__main__":
    main()
