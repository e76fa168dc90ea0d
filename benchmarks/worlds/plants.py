"""Plants, vehicles and maps that an engineer may bring: broken parts, late actions, sensors that are off, ice."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from worlds_apart import World

from worlds.kinds import LINE
from worlds.poles import BUDGET as POLE
from worlds.poles import CartPole
from worlds.poles import start as upright
from worlds.zoo import Setting, delayed, setting, world

HOVER = {"iterations": 80, "rollouts": 1, "depth": 12, "gamma": 0.97, "longest": 50, "episodes": 8}
PLANT = {"iterations": 60, "rollouts": 1, "depth": 15, "gamma": 0.98, "longest": 50, "episodes": 6}
QUEUE = {"iterations": 60, "rollouts": 1, "depth": 10, "gamma": 0.95, "longest": 30, "episodes": 6}
ICE = {"iterations": 80, "rollouts": 2, "depth": 20, "gamma": 0.97, "longest": 50, "episodes": 12}


class Slide:
    """(x, v) to be kept at 0, with half a second between steps."""

    num_actions = 3

    def __init__(self) -> None:
        self.dt, self.mass = 0.5, 1.0

    def step(self, state: Any, action: int) -> Any:
        v = state[1] + self.dt * (action - 1) / self.mass
        x = state[0] + self.dt * v
        return (x, v), -(x * x + 0.1 * v * v), False


class Rooms:
    """The temperatures of two rooms, each with a heater, to be kept 5 degrees above those outside."""

    num_actions = 4

    def __init__(self, second: float = 1.0) -> None:
        self.first, self.second, self.loss = 1.0, second, 0.03

    def step(self, state: Any, action: int) -> Any:
        on, through = (action & 1, action >> 1), 0.15 * (state[1] - state[0])
        one = state[0] + self.first * on[0] + through - self.loss * state[0]
        two = state[1] + self.second * on[1] - through - self.loss * state[1]
        return (one, two), -abs(one - 5.0) - abs(two - 5.0) - 0.1 * sum(on), False


class Copter:
    """(x, z, vx, vz) to hover at (0, 2): less lift, more lift, left, right, nothing."""

    num_actions = 5

    def __init__(self) -> None:
        self.lift, self.dt = 0.6, 0.25

    def step(self, state: Any, action: int) -> Any:
        x, z, vx, vz = state
        vx = 0.9 * vx + self.dt * ((action == 3) - (action == 2))
        vz = 0.9 * vz + self.dt * self.lift * ((action == 1) - (action == 0))
        x, z = x + self.dt * vx, z + self.dt * vz
        if z <= 0.0:
            return (x, 0.0, vx, vz), -20.0, True
        return (x, z, vx, vz), 1.0 - min(abs(x) + abs(z - 2.0), 3.0), False


class Servers:
    """Two queues of up to six: an order goes to the one or to the other, or is refused."""

    num_actions = 3
    action_names = ("first", "second", "refuse")

    def __init__(self, first: float = 0.7, second: float = 0.4) -> None:
        self.first, self.second = first, second

    def outcomes(self, state: Any, action: int) -> Any:
        one, two = state[0] + (action == 0), state[1] + (action == 1)
        if max(one, two) > 6:
            return [(1.0, ((min(one, 6), min(two, 6)), -5.0, False))]
        found = []
        for done, chance in ((1, self.first), (0, 1.0 - self.first)):
            for other, also in ((1, self.second), (0, 1.0 - self.second)):
                left = max(one - done, 0), max(two - other, 0)
                found.append((chance * also, (left, float(action < 2) - 0.3 * sum(left), False)))
        return found


class Field:
    """(row, column) on an open field with pits in its middle. The goal is in the corner."""

    num_actions = 4
    action_names = ("up", "right", "down", "left")

    def step(self, state: Any, action: int) -> Any:
        row = min(max(state[0] + (-1, 0, 1, 0)[action], 0), 7)
        column = min(max(state[1] + (0, 1, 0, -1)[action], 0), 7)
        if (row, column) == (7, 7):
            return (row, column), 10.0, True
        if row == 4 and column in (2, 3, 5, 6):
            return (row, column), -5.0, True
        return (row, column), -0.2, False


class Ice(Field):
    """Most steps slip to either side where there is ice, and none elsewhere."""

    def outcomes(self, state: Any, action: int) -> Any:
        if state[1] < 2 or not 3 <= state[0] <= 5:
            return [(1.0, self.step(state, action))]
        slips = [(0.3, self.step(state, (action + turn) % 4)) for turn in (1, -1)]
        return [(0.4, self.step(state, action)), *slips]


class Machine:
    """(wear, hour, product): run slowly, run fast, or rest. A machine that is worn much is paid less."""

    num_actions = 3

    def step(self, state: Any, action: int) -> Any:
        wear = max(min(state[0] + (1, 2, -4)[action], 19), 0)
        after = wear, (state[1] + 1) % 12, (state[0] + state[1] + state[2]) % 4
        return after, (1.0, 2.2, 0.0)[action] - 2.5 * (wear >= 14), False


class Night(Machine):
    """It wears more at night, and running fast at noon costs more."""

    def step(self, state: Any, action: int) -> Any:
        (wear, hour, product), reward, over = super().step(state, action)
        wear = min(wear + 3 * (state[1] >= 8 and action < 2), 19)
        return (wear, hour, product), reward - 2.5 * (state[1] in (3, 4, 5) and action == 1), over


def sliding(rng: random.Random) -> Any:
    return rng.uniform(-2.0, 2.0), rng.uniform(-1.0, 1.0)


def cold(rng: random.Random) -> Any:
    return rng.uniform(0.0, 8.0), rng.uniform(0.0, 8.0)


def aloft(rng: random.Random) -> Any:
    return rng.uniform(-1.0, 1.0), 1.5, 0.0, 0.0


def shifted(state: Any, rng: random.Random) -> Any:
    return state[0], state[1] + 0.6, *state[2:]


def at_work(rng: random.Random) -> Any:
    return rng.randrange(12), rng.randrange(12), rng.randrange(4)


@world("slide_late", "a slide whose pushes take effect two steps later; the true planner is told", **LINE)
def slide_late() -> Setting:
    return delayed(Slide(), Slide(), sliding, (1, 1))


@world("pole_late", "a cart pole with gravity x 3 whose pushes take effect three steps later", **POLE)
def pole_late() -> Setting:
    return delayed(CartPole(), CartPole(gravity=29.4), upright, (0, 1, 0))


@world("broken_heater", "the second of two heaters is broken", **LINE)
def broken_heater() -> Setting:
    return setting(Rooms(), Rooms(0.0), cold)


@world("height_sensor", "a sensor that shows a height 0.6 too large; the true simulator does not know that", **HOVER)
def height_sensor() -> Setting:
    return setting(Copter(), Copter(), aloft, shifted)


@world("servers", "of two servers the other one is the fast one", **QUEUE)
def servers() -> Setting:
    return setting(Servers(), Servers(0.3, 0.8), (0, 0))


@world("ice", "ice in the middle of a field, believed not to be slippery anywhere", **ICE)
def ice() -> Setting:
    return setting(Field(), Ice(), (0, 4))


@world("night_shifts", "wear and pay depend on the hour, which the simulator does not know", **PLANT)
def night_shifts() -> Setting:
    return setting(Machine(), Night(), at_work)


@world("reactor", "a reactor in JAX with another rate and heat of reaction", **PLANT)
def reactor() -> Setting:
    import jax.numpy as jnp

    import uamcts

    def step(state: Any, action: Any, params: Any) -> Any:
        heat, stuff = state
        rate = params["rate"] * stuff * jnp.exp(heat - 1.0)
        after = jnp.stack([
            heat + 0.1 * (params["heat"] * rate - 0.8 * heat + action - 1.0), stuff + 0.1 * (1.0 - stuff - rate),
        ])  # fmt: skip
        over = after[0] > 2.5
        return uamcts.Transition(after, jnp.where(over, -20.0, 2.0 * rate - 0.5 * jnp.abs(after[0] - 1.2)), over)

    def simulator(rate: float, heat: float) -> Any:
        params = {"rate": rate, "heat": heat}
        return uamcts.JaxSimulator(step=step, num_actions=3, example=jnp.zeros(2, jnp.float32), params=params)

    true = simulator(1.1, 1.6)

    class Plant(World):
        def step(self, action: int) -> Any:
            state, reward, over = true.step(self.state, action, true.params)
            self.state = np.asarray(state)
            return self.state, float(reward), bool(over)

    def warm(rng: random.Random) -> Any:
        return np.array([rng.uniform(0.2, 1.0), rng.uniform(0.3, 1.0)], np.float32)

    return Setting(simulator(0.6, 1.0), [true], [Plant(true, warm)])
