"""Continuous actions: sampled and widened beside a grid of actions, at equal time per move.

    python benchmarks/continuous_actions.py [--milliseconds 15] [--episodes 16]

Gymnasium's pendulum (one torque; 100 steps from random starts, rewards between -16 and 0) and a point robot in the
plane (two forces; it should come to rest at the origin; 40 steps), both in plain Python for all variants. The planner
knows them. Each variant gets as many iterations as fit into the time. That number is looked for first, in time that
counts only while the process has a core, so that other programs do not disturb the comparison. All variants play the
same starts. Intervals are those of 95%.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np

import uamcts
from uamcts import reference

SEARCHES = 5
"""Searches that are timed to find how many iterations fit."""


class PointRobot:
    """A point with a position and a speed, pushed by a force of at most 1 along each axis; continuous actions."""

    num_actions: int | None = None
    action_space = (np.array([-1.0, -1.0]), np.array([1.0, 1.0]))
    steps = 40

    def start(self, rng: np.random.Generator) -> tuple:
        return (*rng.uniform(-2.0, 2.0, 2).tolist(), *rng.uniform(-0.5, 0.5, 2).tolist())

    def force(self, action: Any) -> tuple[float, float]:
        return float(action[0]), float(action[1])

    def step(self, state: tuple, action: Any) -> tuple:
        x, y, u, v = state
        right, up = self.force(action)
        u, v = 0.95 * u + 0.1 * right, 0.95 * v + 0.1 * up
        x, y = x + 0.5 * u, y + 0.5 * v
        cost = x * x + y * y + 0.1 * (u * u + v * v) + 0.01 * (right * right + up * up)
        return (x, y, u, v), -cost, False


class GridRobot(PointRobot):
    """The same with `points` forces along each axis."""

    def __init__(self, points: int):
        ends = np.linspace(-1.0, 1.0, points).tolist()
        self.forces = [(right, up) for right in ends for up in ends]
        self.num_actions = len(self.forces)

    def force(self, action: int) -> tuple[float, float]:
        return self.forces[action]


class Pendulum:
    """Gymnasium's pendulum with its own equations in plain Python: a torque of at most 2; continuous actions."""

    num_actions: int | None = None
    action_space = (-2.0, 2.0)
    steps = 100

    def start(self, rng: np.random.Generator) -> tuple:
        return tuple(rng.uniform([-math.pi, -1.0], [math.pi, 1.0]).tolist())

    def torque(self, action: Any) -> float:
        return action

    def step(self, state: tuple, action: Any) -> tuple:
        angle, speed = state
        torque = self.torque(action)
        cost = ((angle + math.pi) % (2 * math.pi) - math.pi) ** 2 + 0.1 * speed**2 + 0.001 * torque**2
        speed = min(max(speed + (15.0 * math.sin(angle) + 3.0 * torque) * 0.05, -8.0), 8.0)
        return (angle + speed * 0.05, speed), -cost, False


class GridPendulum(Pendulum):
    """The same with `points` torques."""

    def __init__(self, points: int):
        self.torques = np.linspace(-2.0, 2.0, points).tolist()
        self.num_actions = points

    def torque(self, action: int) -> float:
        return self.torques[action]


VARIANTS = {
    "pendulum": {
        "sampled and widened": Pendulum,
        "grid of 3": lambda: GridPendulum(3),
        "grid of 5": lambda: GridPendulum(5),
        "grid of 11": lambda: GridPendulum(11),
    },
    "point robot": {
        "sampled and widened": PointRobot,
        "grid of 3 x 3": lambda: GridRobot(3),
        "grid of 5 x 5": lambda: GridRobot(5),
        "grid of 11 x 11": lambda: GridRobot(11),
    },
}


def settings(iterations: int) -> uamcts.SearchConfig:
    return uamcts.SearchConfig(iterations=iterations, rollouts=1, depth=15, gamma=0.97, rules="trust")


def seconds_of(world: Any, iterations: int) -> float:
    """How long a search takes, while the process has a core."""
    states = [world.start(np.random.default_rng(number)) for number in range(SEARCHES)]
    began = time.process_time()
    for state in states:
        reference.search(0, state, world, None, settings(iterations))
    return (time.process_time() - began) / SEARCHES


def fitting(world: Any, seconds: float) -> int:
    """How many iterations fit into a search of so many seconds, by bisection.

    Time is not proportional to iterations: a node is expanded with all its actions once each sibling is visited.
    """
    low, high = 1, 2
    while seconds_of(world, high) < seconds:
        low, high = high, 2 * high
    while high > 1.05 * low + 1:
        middle = (low + high) // 2
        low, high = (middle, high) if seconds_of(world, middle) < seconds else (low, middle)
    return low


def play(world: Any, iterations: int, seed: int) -> float:
    """The mean reward per step of an episode."""
    config = settings(iterations)
    state, total = world.start(np.random.default_rng(seed)), 0.0
    for step in range(world.steps):
        action = reference.search(1000 * seed + step, state, world, None, config).action
        state, reward, _ = world.step(state, action)
        total += reward
    return total / world.steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="*", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--milliseconds", type=float, default=15.0, help="per move")
    parser.add_argument("--episodes", type=int, default=16)
    given = parser.parse_args()
    for name in given.worlds:
        print(f"{name}, {given.milliseconds:g} ms a move, {given.episodes} episodes: mean reward per step")
        first: np.ndarray | None = None
        for variant, make in VARIANTS[name].items():
            world = make()
            iterations = fitting(world, given.milliseconds / 1000)
            found = np.array([play(world, iterations, seed) for seed in range(given.episodes)])
            first = found if first is None else first
            less = found - first
            width = [1.96 * one.std(ddof=1) / math.sqrt(len(one)) for one in (found, less)]
            beside = "" if found is first else f"   to the first {less.mean():+.3f} ± {width[1]:.3f}"
            print(f"  {variant:22}{iterations:6} iterations  {found.mean():8.3f} ± {width[0]:.3f}{beside}", flush=True)


if __name__ == "__main__":
    main()
