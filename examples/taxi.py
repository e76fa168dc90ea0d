"""A taxi in a town where a street is closed; the driver's map still shows it open.

python examples/taxi.py

    R . | . . G     R, G, Y, B  where passengers wait and want to go
    . . | . . .     |           a wall
    . . x . . .     x           the closed street, between the second and the third column
    . | . . | .
    Y | . . B .

Uses Gymnasium's Taxi. Destinations differ between episodes, so what the agent learns at the closed street must
generalise: `inputs` makes U depend on where the taxi is, not on its passenger.
"""

import numpy as np
from drawing import Plan
from gymnasium.envs.toy_text.taxi import TaxiEnv
from worlds_apart import GymWorld, compare, options

import uamcts.gym

CAUSE = "a closed street that the map shows open"
CLOSED = {((2, 1), 2), ((2, 2), 3)}
"""Between the cells (2, 1) and (2, 2), going east (2) and going west (3). The detour takes two more steps."""


class Town(TaxiEnv):
    """Picking up a passenger pays 10 at once; otherwise random rollouts would see no reward at all."""

    action_names = ("south", "north", "east", "west", "pick up", "drop off")

    def __init__(self, closed=()):
        super().__init__()
        for state, actions in self.P.items():
            row, column, passenger, _ = self.decode(state)
            for action, [(_, after, reward, over)] in actions.items():
                if ((row, column), action) in closed:
                    after = state
                if action == 4 and passenger < 4 and reward == -1:
                    reward = 10
                if action == 5 and not over:
                    after, reward = state, -10
                actions[action] = [(1.0, after, reward, over)]


class Map(uamcts.gym.Simulator):
    """The driver's map. Useless pick-ups and drop-offs are not legal."""

    def __init__(self, town):
        super().__init__(town)
        self.allowed = {state: [a for a in range(6) if self.step(state, a)[1] > -10] for state in town.P}

    def legal_actions(self, state):
        return self.allowed[state]

    def inputs(self, state):
        """The inputs of U: the taxi's cell, one-hot."""
        return np.eye(25)[state // 20]


def main(arguments=None):
    chosen = options(__doc__, arguments, runs=6, episodes=6, iterations=100, longest=40)
    wrong, true = Map(Town()), Map(Town(CLOSED))
    world, plan = GymWorld(Town(CLOSED), wrong), Plan(["R...G", ".....", ".....", ".....", "Y..B."])
    return compare(chosen, world, wrong, true, cause=CAUSE, plan=plan, rollouts=5, depth=30, gamma=0.95)


if __name__ == "__main__":
    main()
