"""Vehicles: thrusters that are turned, wind in one region, actions that come late, a drone of six numbers."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

from worlds.kinds import LINE, Cart
from worlds.kinds import start as on_the_line
from worlds.points import BUDGET, Point, start
from worlds.zoo import Setting, delayed, setting, world


class Turned(Point):
    """Every thrust is turned by 40 degrees to the left."""

    def force(self, vx: float, vy: float, action: int) -> tuple[float, float]:
        fx, fy = super().force(vx, vy, action)
        cosine, sine = math.cos(math.radians(40)), math.sin(math.radians(40))
        return cosine * fx - sine * fy, sine * fx + cosine * fy


class Gusty(Point):
    """A wind to the south between x = 0.4 and 1.2."""

    def step(self, state: Any, action: int) -> Any:
        x, y, vx, vy = state
        return super().step((x, y, vx, vy - 0.25 * (0.4 < x < 1.2)), action)


@dataclass(frozen=True)
class Pose:
    x: float
    y: float
    tilt: float
    vx: float
    vy: float
    turning: float


class Drone:
    """Two rotors, to hover at (0, 0) in a plane."""

    num_actions = 4
    action_names = ("sink", "rise", "right", "left")

    def __init__(self, mass: float = 1.0, arm: float = 0.5) -> None:
        self.mass, self.arm, self.gravity, self.dt = mass, arm, 3.0, 0.15

    def drag(self, speed: float) -> float:
        return 0.0

    def step(self, state: Pose, action: int) -> Any:
        left, right = ((0.5, 0.5), (2.5, 2.5), (1.9, 1.5), (1.5, 1.9))[action]
        thrust = (left + right) / self.mass
        turning = state.turning + self.dt * 4 * (right - left) * self.arm / self.mass
        vx = state.vx + self.dt * (self.drag(state.vx) - math.sin(state.tilt) * thrust)
        vy = state.vy + self.dt * (self.drag(state.vy) + math.cos(state.tilt) * thrust - self.gravity)
        x, y, tilt = state.x + self.dt * vx, state.y + self.dt * vy, state.tilt + self.dt * turning
        over = abs(tilt) > 1.2 or max(abs(x), abs(y)) > 4
        return Pose(x, y, tilt, vx, vy, turning), -10.0 if over else 0.5 - 0.3 * math.hypot(x, y), over


class HeavyDrone(Drone):
    """Heavier, with shorter arms, and with drag."""

    def __init__(self) -> None:
        super().__init__(1.25, 0.4)

    def drag(self, speed: float) -> float:
        return -0.3 * speed * abs(speed)


def in_the_air(rng: random.Random) -> Pose:
    return Pose(rng.uniform(-1, 1), rng.uniform(-1, 1), 0.0, 0.0, 0.0, 0.0)


@world("turned_thrusters", "a point robot whose thrusters are turned by 40 degrees", **BUDGET)
def turned_thrusters() -> Setting:
    return setting(Point(), Turned(), start)


@world("gusty", "a point robot in a wind that blows in one region", **BUDGET)
def gusty() -> Setting:
    return setting(Point(), Gusty(), start)


@world("late_by_two", "actions take effect two steps later; the true planner is told", **LINE)
def late_by_two() -> Setting:
    return delayed(Cart(), Cart(), on_the_line, (1, 1))


@world("drone", "a drone that is heavier, has shorter arms, and drag", iterations=60, depth=12, gamma=0.97, longest=50)
def drone() -> Setting:
    return setting(Drone(), HeavyDrone(), in_the_air)
