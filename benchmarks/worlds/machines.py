"""Machines that are not what their simulator believes: wear, delay, play, friction, bias, and two of these at once."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
from worlds_apart import World

from worlds.kinds import LINE, Cart, start
from worlds.zoo import Setting, delayed, setting, world


class Rubbed(Cart):
    """Friction that grows with the square of the speed, and a push to the right costs 1."""

    def step(self, state: Any, action: int) -> Any:
        x, v = state
        return super().step((x, v - 0.3 * v * abs(v)), action)

    def pay(self, x: float, action: int) -> float:
        return super().pay(x, action) - 1.0 * (action == 2)


class Saturated(Cart):
    """The motor does not push a cart that is faster than 0.5 any faster."""

    def step(self, state: Any, action: int) -> Any:
        v = state[1]
        return super().step(state, action if v * (action - 1) < 0.5 else 1)


class Stuck(Cart):
    """A cart that is slower than 0.3 does not start to move by a single push."""

    def step(self, state: Any, action: int) -> Any:
        (x, v), reward, over = super().step(state, action)
        if abs(state[1]) < 0.05 and abs(v) < 0.15 and abs(state[0]) > 1.0:
            return (state[0], 0.0), self.pay(state[0], action), False
        return (x, v), reward, over


class Biased(Cart):
    """Every push is off by the same."""

    def push(self, x: float, action: int) -> float:
        return super().push(x, action) + 0.6


class Loose(World):
    """A gear with play: the first push in another direction than the last one does nothing."""

    def reset(self, seed: int) -> Any:
        self.side = 0
        return super().reset(seed)

    def step(self, action: int) -> Any:
        if action == 1 or action - 1 == self.side:
            return super().step(action)
        self.side = action - 1
        return super().step(1)


class House:
    """A dictionary of the temperatures of a room and of its heater, to be kept at 20 degrees."""

    num_actions = 3
    action_names = ("off", "low", "high")

    def __init__(self, loss: float = 0.1, outside: float = 10.0) -> None:
        self.loss, self.outside, self.gain = loss, outside, 0.2

    def step(self, state: Any, action: int) -> Any:
        heater = 0.5 * state["heater"] + 15.0 * action
        room = state["room"] + self.gain * heater / 2 - self.loss * (state["room"] - self.outside)
        return {"room": room, "heater": heater}, -abs(room - 20.0) / 5 - 0.1 * action, False


class Tanks:
    """An array of the levels of two tanks, one above the other. A pump fills the upper one; neither may flow over."""

    num_actions = 4

    def flow(self, level: float) -> float:
        return 0.3 * math.sqrt(max(level, 0.0))

    def step(self, state: Any, action: int) -> Any:
        upper, lower = state.tolist()
        through = self.flow(upper)
        after = np.array([max(upper + 0.1 * action - through, 0.0), max(lower + through - self.flow(lower), 0.0)])
        over = bool(after.max() > 2.0)
        return after, -10.0 if over else -abs(after[1] - 1.2), over


class Clogged(Tanks):
    """Valves that let little through where much would flow."""

    def flow(self, level: float) -> float:
        return min(super().flow(level), 0.2) * 0.9


class Lander:
    """(x, y, vx, vy) above a pad at 0, to be put down slowly."""

    num_actions = 4
    action_names = ("fall", "left", "right", "lift")

    def __init__(self, mass: float = 1.0) -> None:
        self.mass, self.gravity, self.thrust = mass, 0.5, 1.2

    def wind(self, y: float) -> float:
        return 0.0

    def step(self, state: Any, action: int) -> Any:
        x, y, vx, vy = state
        push = self.thrust / self.mass
        vx += 0.3 * (0.4 * push * ((action == 2) - (action == 1)) + self.wind(y))
        vy += 0.3 * (push * (action == 3) - self.gravity)
        x, y = x + 0.3 * vx, y + 0.3 * vy
        if y <= 0.0:
            return (x, 0.0, vx, vy), 10.0 - 5.0 * abs(x) - 5.0 * max(0.0, -vy - 0.3), True
        if abs(x) > 4.0 or y > 6.0:
            return (x, y, vx, vy), -20.0, True
        return (x, y, vx, vy), -0.1 - 0.05 * abs(x), False


class Blown(Lander):
    """A side wind that is stronger high up, and a heavier lander."""

    def __init__(self) -> None:
        super().__init__(1.3)

    def wind(self, y: float) -> float:
        return 0.06 * y


class Valley:
    """(x, v) of a car that is too weak to drive straight up the hill at 0.5."""

    num_actions = 3

    def engine(self, v: float) -> float:
        return 0.0015

    def step(self, state: Any, action: int) -> Any:
        x, v = state
        for _ in range(5):
            v = min(max(v + (action - 1) * self.engine(v) - 0.0025 * math.cos(3 * x), -0.07), 0.07)
            x = max(x + v, -1.2)
            v = 0.0 if x <= -1.2 and v < 0.0 else v
            if x >= 0.5:
                return (x, v), 20.0, True
        return (x, v), -1.0 + 10.0 * abs(v), False


class Weak(Valley):
    """An engine of two thirds of the power."""

    def engine(self, v: float) -> float:
        return 0.001


def rest(rng: random.Random) -> Any:
    return {"room": rng.uniform(8.0, 14.0), "heater": 0.0}


def levels(rng: random.Random) -> Any:
    return np.array([rng.uniform(0.0, 1.0), rng.uniform(0.0, 0.5)])


def high(rng: random.Random) -> Any:
    return rng.uniform(-1.5, 1.5), 4.0, 0.0, 0.0


def bottom(rng: random.Random) -> Any:
    return rng.uniform(-0.6, -0.4), 0.0


def shifted(state: Any, rng: random.Random) -> Any:
    return state[0] + 0.7, state[1]


def trembling(state: Any, rng: random.Random) -> Any:
    return rng.gauss(state[0], 0.03), rng.gauss(state[1], 0.03)


@world("friction_and_cost", "a cart with friction and an action that costs more, which the simulator lacks", **LINE)
def friction_and_cost() -> Setting:
    return setting(Cart(), Rubbed(), start)


@world("saturated", "a motor that does not push a cart that is fast already", **LINE)
def saturated() -> Setting:
    return setting(Cart(), Saturated(), start)


@world("stuck", "a cart that one push does not start, far from the middle", **LINE)
def stuck() -> Setting:
    return setting(Cart(), Stuck(), start)


@world("biased_actuator", "every push is off by the same", **LINE)
def biased_actuator() -> Setting:
    return setting(Cart(), Biased(), start)


@world("noise_and_bias", "the same with a noisy sensor", **LINE)
def noise_and_bias() -> Setting:
    return setting(Cart(), Biased(), start, trembling)


@world("biased_sensor", "a sensor that shows the place of a cart 0.7 too far to the right", **LINE)
def biased_sensor() -> Setting:
    return setting(Cart(), Cart(), start, shifted)


@world("late", "actions take effect one step later; the true planner is told", **LINE)
def late() -> Setting:
    return delayed(Cart(), Cart(), start, (1,))


@world("loose", "a gear with play; no simulator of states knows that", **LINE)
def loose() -> Setting:
    return Setting(Cart(), [Cart()], [Loose(Cart(), start)])


@world("house", "a house that loses twice the heat, to colder air", **LINE)
def house() -> Setting:
    return setting(House(), House(0.2, 5.0), rest)


@world("tanks", "two tanks with clogged valves", **LINE)
def tanks() -> Setting:
    return setting(Tanks(), Clogged(), levels)


@world(
    "lander", "a lander that is heavier, in a side wind", iterations=60, rollouts=1, depth=20, gamma=0.98, longest=60
)
def lander() -> Setting:
    return setting(Lander(), Blown(), high)


@world("valley", "a car with a weaker engine", iterations=80, rollouts=1, depth=25, gamma=0.98, longest=50)
def valley() -> Setting:
    return setting(Valley(), Weak(), bottom)
