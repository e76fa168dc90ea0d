"""A pendulum that is twice as heavy as its simulator believes, to be swung up by a weak motor.

python examples/heavy_pendulum.py

                 upright: angle 0, pays most
                    (m)
                     |
                     | l
          torque --> o  hinge, torques of -2, 0 and 2
                     .
                     .  hangs down: the motor cannot lift it without a swing
                    (m)

The agent is not told which of m, l, g and dt is wrong. Mass and length act on the pendulum in the same way in part, so
that several of them may explain what it sees; it plans with whatever explains it best.
"""

import math

from drawing import plane
from worlds_apart import World, compare, options


class Pendulum:
    """Gymnasium's pendulum with a list of torques. A state is (angle, angular velocity)."""

    torques = (-2.0, 0.0, 2.0)
    num_actions = 3
    action_names = tuple(f"torque {torque:+.1f}" for torque in torques)

    def __init__(self, m=1.0, l=1.0, g=10.0, dt=0.2):  # noqa: E741 (the usual name)
        self.m, self.l, self.g, self.dt = m, l, g, dt

    def step(self, state, action):
        angle, speed = state
        torque = self.torques[action]
        pull = 1.5 * self.g / self.l * math.sin(angle) + 3.0 / (self.m * self.l**2) * torque
        after = min(8.0, max(-8.0, speed + pull * self.dt))
        cost = angle**2 + 0.1 * speed**2 + 0.001 * torque**2
        return (wrap(angle + after * self.dt), after), -self.dt * cost, False


def wrap(angle):
    """The same angle between -pi and pi."""
    return (angle + math.pi) % (2 * math.pi) - math.pi


def main(arguments=None):
    chosen = options(
        __doc__, arguments, quick={"runs": 3, "episodes": 2}, runs=20, episodes=6, iterations=60, longest=30
    )
    true = Pendulum(m=2.0)
    world = World(true, lambda rng: (wrap(math.pi + rng.uniform(-0.2, 0.2)), rng.uniform(-0.2, 0.2)))
    return compare(
        chosen, world, Pendulum(), true, cause="a mass that is twice what the simulator believes",
        plan=plane((0, -math.pi, math.pi), (1, -8.0, 8.0)), rollouts=1, depth=10, gamma=0.98,
    )  # fmt: skip


if __name__ == "__main__":
    main()
