"""Processes that an engineer may control: heat, tanks, cells, batteries."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
from worlds_apart import World

from worlds.zoo import Setting, setting, world

SHORT = {"iterations": 50, "rollouts": 1, "depth": 12, "gamma": 0.97, "longest": 30, "episodes": 6}
MORNING = [2, 2, 2, 2, 3, 5, 8, 9, 8, 5, 4, 4, 4, 4, 4, 4, 5, 5, 4, 4, 3, 3, 2, 2]
EVENING = [3, 2, 2, 1, 2, 2, 3, 4, 4, 3, 2, 2, 2, 2, 3, 4, 6, 8, 9, 9, 7, 5, 4, 3]


class Broth:
    """(cells, sugar) of a bioreactor: five flows of fresh sugar, which wash the cells out. Cells in the outflow pay."""

    num_actions = 5

    def __init__(self, growth: float = 0.5, half: float = 1.0, share: float = 0.5) -> None:
        self.growth, self.half, self.share, self.feed = growth, half, share, 8.0

    def step(self, state: Any, action: int) -> Any:
        cells, sugar = state
        flow, paid = 0.08 * action, 0.0
        for _ in range(4):
            made = self.growth * sugar / (self.half + sugar) * cells
            cells, sugar = (
                cells + 0.25 * (made - flow * cells),
                sugar + 0.25 * (flow * (self.feed - sugar) - made / self.share),
            )
            sugar, paid = max(sugar, 0.0), paid + 0.25 * flow * cells
        return (cells, sugar), paid, False


class Battery:
    """(hour, charge): buy, hold or sell a unit. What the hours cost is a list that is longer than what is fitted."""

    num_actions = 3
    action_names = ("buy", "hold", "sell")

    def __init__(self, prices: list[int], efficiency: float = 0.95) -> None:
        self.prices, self.efficiency, self.capacity = prices, efficiency, 4.0

    def step(self, state: Any, action: int) -> Any:
        hour, charge = state
        bought = min(1.0, (self.capacity - charge) / self.efficiency) if action == 0 else 0.0
        sold = min(1.0, charge) if action == 2 else 0.0
        after = charge + self.efficiency * bought - sold
        return ((hour + 1) % 24, after), self.prices[hour] * (0.9 * sold - bought), False


class Zones:
    """An array of the temperatures of two zones and outside. Each heater is off, low or high; 21 degrees are wanted."""

    num_actions = 9

    def __init__(self, coupling: float = 0.0, loss: float = 0.05, power: float = 1.0) -> None:
        self.coupling, self.loss, self.power = coupling, loss, power

    def step(self, state: Any, action: int) -> Any:
        one, two, outside = state.tolist()
        heat, through = (action % 3, action // 3), self.coupling * (two - one)
        after = np.array([
            one + self.power * heat[0] + through - self.loss * (one - outside),
            two + 0.6 * self.power * heat[1] - through - self.loss * (two - outside),
            outside,
        ])  # fmt: skip
        return after, -float(np.abs(after[:2] - 21.0).sum()) - 0.05 * sum(heat), False


class Vessel:
    """{"level": ..., "inflow": ...}: six positions of a valve, believed to let through in proportion."""

    num_actions = 6

    def valve(self, position: int) -> float:
        return position / 5

    def step(self, state: Any, action: int) -> Any:
        level = state["level"] + 0.25 * state["inflow"] - 0.5 * self.valve(action) * math.sqrt(max(state["level"], 0.0))
        level = max(level, 0.0)
        after = {"level": level, "inflow": 0.9 * state["inflow"] + 0.06}
        return after, -10.0 if level > 2.0 else -2.0 * abs(level - 1.0), level > 2.0


class EqualPercentage(Vessel):
    """Real valves open late: little at first, much at the end."""

    def valve(self, position: int) -> float:
        return 0.0 if position == 0 else 20.0 ** (position / 5 - 1)


class Kiln:
    """(temperature, setting of the burner) of a kiln, to be kept at 900; too much heat breaks what is in it."""

    num_actions = 3
    action_names = ("less", "same", "more")

    def __init__(self, capacity: float = 50.0, weight: float = 0.2, limit: float = 1000.0) -> None:
        self.capacity, self.weight, self.limit = capacity, weight, limit

    def step(self, state: Any, action: int) -> Any:
        heat, burner = state
        burner = min(max(burner + action - 1, 0), 5)
        heat += (40.0 * burner - 0.1 * (heat - 20.0)) * 20.0 / self.capacity
        broken = heat > self.limit
        return (heat, burner), -50.0 if broken else -abs(heat - 900.0) / 100 - self.weight * burner, broken


class Noisy(World):
    """A world in which something unknown is added to every next state."""

    def __init__(self, simulator: Any, start: Any, spread: float) -> None:
        super().__init__(simulator, start)
        self.spread = spread

    def step(self, action: int) -> Any:
        state, reward, over = super().step(action)
        self.state = tuple(self.random.gauss(one, self.spread) for one in state)
        return self.state, reward, over


def inoculated(rng: random.Random) -> Any:
    return rng.uniform(0.5, 1.5), rng.uniform(1.0, 4.0)


def any_hour(rng: random.Random) -> Any:
    return rng.randrange(24), rng.uniform(0.0, 2.0)


def winter(rng: random.Random) -> Any:
    return np.array([rng.uniform(12.0, 24.0), rng.uniform(12.0, 24.0), rng.uniform(-5.0, 10.0)])


def filled(rng: random.Random) -> Any:
    return {"level": rng.uniform(0.3, 1.7), "inflow": rng.uniform(0.4, 0.8)}


def glowing(rng: random.Random) -> Any:
    return rng.uniform(500.0, 900.0), 2


@world("broth", "a bioreactor whose cells grow slower, at less sugar: two errors that partly cancel", **SHORT)
def broth() -> Setting:
    return setting(Broth(), Broth(0.3, 0.2, 0.4), inoculated)


@world("storage", "prices of another day, and a worse battery", **{**SHORT, "depth": 20, "longest": 48})
def storage() -> Setting:
    return setting(Battery(MORNING), Battery(EVENING, 0.7), any_hour)


@world("zones", "heat that flows between two zones, and heaters of other power", **SHORT)
def zones() -> Setting:
    return setting(Zones(), Zones(0.3, 0.02, 1.8), winter)


@world("valve_curve", "a valve that opens late, in each of its positions otherwise", **SHORT)
def valve_curve() -> Setting:
    return setting(Vessel(), EqualPercentage(), filled)


@world("kiln_minutes", "a kiln that is 60 times as slow as believed: minutes for seconds", **SHORT)
def kiln_minutes() -> Setting:
    return setting(Kiln(50.0 / 60), Kiln(50.0), glowing)


@world("kiln_fuel", "a kiln in which fuel costs, believed to be paid for", **SHORT)
def kiln_fuel() -> Setting:
    return setting(Kiln(weight=-0.2), Kiln(weight=1.5), glowing)
