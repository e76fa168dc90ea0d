"""Errors that mislead: a motor that is reversed midway, a magnet beside the way, a compass that is off, friction."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

from worlds.zoo import Setting, setting, world

LINE = {"iterations": 40, "rollouts": 1, "depth": 15, "longest": 30}


class Glider:
    """(x, v) with friction, to be kept at 0. While one action alone is taken, its gain and a wind explain the same."""

    num_actions = 3

    def __init__(self, gain: float = 0.3) -> None:
        self.gain, self.wind = gain, 0.0

    def step(self, state: Any, action: int) -> Any:
        v = 0.8 * state[1] + self.gain * (action - 1) + self.wind
        x = state[0] + v
        return (x, v), -abs(x), False


class Track:
    """(x, v) with friction, to be kept at 1. It has no attributes."""

    num_actions = 3

    def pull(self, x: float) -> float:
        return 0.0

    def step(self, state: Any, action: int) -> Any:
        v = 0.8 * state[1] + 0.3 * (action - 1) + self.pull(state[0])
        x = state[0] + v
        return (x, v), -abs(x - 1.0), False


class Magnetic(Track):
    """A magnet at -1.5 pulls to the left, near it alone."""

    def pull(self, x: float) -> float:
        return -0.6 * math.exp(-((x + 1.5) ** 2) / 0.3)


class Car:
    """An array of place and heading, to be driven to the middle."""

    num_actions = 3

    def __init__(self) -> None:
        self.speed, self.turn = 0.4, 0.3

    def step(self, state: Any, action: int) -> Any:
        x, y, heading = state.tolist()
        heading = wrap(heading + self.turn * (action - 1))
        x, y = x + self.speed * math.cos(heading), y + self.speed * math.sin(heading)
        far = math.hypot(x, y)
        return np.array([x, y, heading]), -far, far < 0.3


class Joint:
    """(angle, turn) of a pendulum, to be swung up; the angle is between -pi and pi. It has no attributes."""

    num_actions = 3

    def step(self, state: Any, action: int) -> Any:
        turn = state[1] + 0.1 * (14.7 * math.sin(state[0]) + 6.0 * (action - 1))
        turn = min(max(turn, -8.0), 8.0)
        angle = wrap(state[0] + 0.1 * turn)
        return (angle, turn), -(angle**2 + 0.05 * turn**2), False


class Stiff(Joint):
    """Friction: a part that grows with the turn, and one that hardly depends on it."""

    def step(self, state: Any, action: int) -> Any:
        return super().step((state[0], 0.8 * state[1] - 0.3 * math.tanh(5.0 * state[1])), action)


def wrap(angle: float) -> float:
    return (angle + math.pi) % (2 * math.pi) - math.pi


def on_the_line(rng: random.Random) -> Any:
    return rng.uniform(-4.0, 4.0), 0.0


def on_the_plane(rng: random.Random) -> Any:
    return np.array([rng.uniform(-3.0, 3.0) for _ in range(3)])


def hanging(rng: random.Random) -> Any:
    return rng.uniform(-math.pi, math.pi), 0.0


def by_compass(state: Any, rng: random.Random) -> Any:
    return np.array([state[0], state[1], wrap(state[2] + 0.9)])


@world("reversed_midway", "a motor that is weaker and turns the other way after the first half", **LINE)
def reversed_midway() -> Setting:
    return setting(Glider(), [Glider(), Glider(-0.2)], on_the_line)


@world("magnet_beside", "a magnet beside the way, which the simulator lacks", **LINE)
def magnet_beside() -> Setting:
    return setting(Track(), Magnetic(), on_the_line)


@world("compass", "a compass that is off by 50 degrees; the true simulator does not know that", **LINE)
def compass() -> Setting:
    return setting(Car(), Car(), on_the_plane, by_compass)


@world("stiff_joint", "a pendulum with friction, which the simulator lacks", **{**LINE, "depth": 20})
def stiff_joint() -> Setting:
    return setting(Joint(), Stiff(), hanging)
