"""A boat in a current that its simulator believes to be 0.

python examples/boat.py

    y = 6   ------------ bank -------------
            .  .  .  .  .  .  .  .  D  .  .      D  dock
            .  .  .  .  .  .  .  .  .  .  .      *  rock
            .  .  .  .  *  .  .  .  .  .  .      B  start
            .  .  .  .  .  .  *  .  .  .  .
            .  .  .  .  .  .  .  .  .  .  .      current: to the left and upwards
    y = 0   B  .  .  .  .  .  .  .  .  .  .
            ------------ bank -------------
            x = 0                    x = 10

The simulator has the attributes `current_x` and `current_y`, both 0. The agent is not told that they are wrong: it
finds out by itself which attributes explain where the boat really goes.
"""

import math

from drawing import Plan
from worlds_apart import World, compare, options

DOCK, ROCKS = (8.0, 5.0), ((4.0, 3.2), (6.5, 2.6))
RIVER = ("...........", "........D..", "...........", "....*.*....", "...........", "...........", "B..........")
PLAN = Plan(RIVER, lambda features: (6 - features[1], features[0]))


class Boat:
    """A state is (x, y). Actions are eight headings; running into a rock or a bank ends the episode."""

    num_actions = 8
    action_names = ("E", "NE", "N", "NW", "W", "SW", "S", "SE")

    def __init__(self, current_x=0.0, current_y=0.0):
        self.speed, self.current_x, self.current_y = 0.5, current_x, current_y

    def step(self, state, action):
        angle = action * math.pi / 4
        x = state[0] + self.speed * math.cos(angle) + self.current_x
        y = state[1] + self.speed * math.sin(angle) + self.current_y
        return (x, y), *judge(state, (x, y))


def judge(before, after):
    """The reward of a move, and whether it ends the episode."""
    x, y = after
    if math.dist(after, DOCK) < 0.6:
        return 5.0, True
    if any(math.dist(after, rock) < 0.9 for rock in ROCKS) or not (-1.5 <= x <= 11 and -1 <= y <= 6):
        return -5.0, True
    return 0.5 * (math.dist(before, DOCK) - math.dist(after, DOCK)) - 0.1, False


def main(arguments=None):
    chosen = options(__doc__, arguments, runs=20, episodes=6, iterations=60, longest=50)
    true = Boat(current_x=-0.2, current_y=0.25)
    world = World(true, lambda rng: (rng.uniform(0, 1), rng.uniform(0, 1)))
    return compare(
        chosen, world, Boat(), true, cause="a current that the simulator does not know of", plan=PLAN,
        rollouts=1, depth=25, gamma=0.97,
    )  # fmt: skip


if __name__ == "__main__":
    main()
