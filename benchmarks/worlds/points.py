"""A point robot and a boat: nothing wrong, a noisy sensor, a current, drag."""

from __future__ import annotations

import math
import random
from typing import Any

from boat import Boat, judge

from worlds.zoo import Setting, setting, world

BUDGET = {"iterations": 60, "rollouts": 1, "depth": 15, "gamma": 0.97}
PIT = (1.0, 0.9)
"""The middle of a pit of radius 0.4 on the straight way."""


class Point:
    """A robot (x, y, vx, vy) that is to reach (2, 2) past a pit. A thrust costs 0.05; a fall or leaving costs 5."""

    num_actions = 5
    action_names = ("coast", "east", "north", "west", "south")

    def __init__(self) -> None:
        self.thrust, self.dt = 2.0, 0.2

    def force(self, vx: float, vy: float, action: int) -> tuple[float, float]:
        east, north = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1))[action]
        return self.thrust * east, self.thrust * north

    def step(self, state: Any, action: int) -> Any:
        x, y, vx, vy = state
        fx, fy = self.force(vx, vy, action)
        vx, vy = vx + self.dt * fx, vy + self.dt * fy
        after = x + self.dt * vx, y + self.dt * vy
        if math.dist(after, (2, 2)) < 0.3:
            return (*after, vx, vy), 5.0, True
        if math.dist(after, PIT) < 0.4 or not all(-0.5 < place < 2.7 for place in after):
            return (*after, vx, vy), -5.0, True
        gain = math.dist((x, y), (2, 2)) - math.dist(after, (2, 2))
        return (*after, vx, vy), gain - 0.05 - 0.05 * (action > 0), False


class Dragged(Point):
    """Drag grows with the square of the speed."""

    def force(self, vx: float, vy: float, action: int) -> tuple[float, float]:
        fx, fy = super().force(vx, vy, action)
        return fx - 1.2 * vx * abs(vx) - 0.5 * vx, fy - 1.2 * vy * abs(vy) - 0.5 * vy


class Drawn(Point):
    """A magnet in the pit draws the robot, the more the nearer it is."""

    def step(self, state: Any, action: int) -> Any:
        x, y, vx, vy = state
        away = max(0.5, math.dist((x, y), PIT)) ** 3
        pulled = vx + self.dt * (PIT[0] - x) / away, vy + self.dt * (PIT[1] - y) / away
        return super().step((x, y, *pulled), action)


class Carried(Boat):
    """A boat in a current that its simulator has no attribute for."""

    def step(self, state: Any, action: int) -> Any:
        (x, y), _, _ = super().step(state, action)
        after = x - 0.2, y + 0.25
        return after, *judge(state, after)


def start(rng: random.Random) -> Any:
    return rng.uniform(-0.1, 0.1), rng.uniform(-0.1, 0.1), 0.0, 0.0


def quay(rng: random.Random) -> Any:
    return rng.uniform(0, 1), rng.uniform(0, 1)


def blur(state: Any, rng: random.Random) -> Any:
    """Positions with sensor noise; velocities are exact."""
    return rng.gauss(state[0], 0.02), rng.gauss(state[1], 0.02), *state[2:]


@world("right_point", "a point robot; nothing is wrong", **BUDGET)
def right_point() -> Setting:
    return setting(Point(), Point(), start)


@world("noise_point", "the same with sensor noise of 0.02 on positions", **BUDGET)
def noise_point() -> Setting:
    return setting(Point(), Point(), start, blur)


@world(
    "noise_boat", "a boat without a current, with sensor noise of 0.02", iterations=60, depth=25, gamma=0.97, longest=50
)
def noise_boat() -> Setting:
    return setting(Boat(), Boat(), quay, blur)


@world("drag", "a point robot with drag that the simulator lacks", **BUDGET)
def drag() -> Setting:
    return setting(Point(), Dragged(), start)


@world("magnet", "a point robot drawn to the pit by a magnet that the simulator lacks", **BUDGET)
def magnet() -> Setting:
    return setting(Point(), Drawn(), start)


@world("boat", "a constant current, believed to be 0", iterations=60, rollouts=1, depth=25, gamma=0.97, longest=50)
def boat() -> Setting:
    return setting(Boat(), Boat(-0.2, 0.25), quay)


@world(
    "boat_no_attribute", "a current that is no attribute", iterations=60, rollouts=1, depth=25, gamma=0.97, longest=50
)
def boat_no_attribute() -> Setting:
    return setting(Boat(), Carried(), quay)
