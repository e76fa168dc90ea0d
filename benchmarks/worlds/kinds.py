"""Further kinds of errors: swapped and weak actions, wrong rewards, chance that depends on the past, many actions."""

from __future__ import annotations

import math
import random
from typing import Any

from worlds_apart import World

from worlds.grids import BUDGET, START, Grid
from worlds.zoo import Setting, setting, world

LINE = {"iterations": 50, "rollouts": 1, "depth": 15, "gamma": 0.97, "longest": 30}
SHOP = {"iterations": 60, "rollouts": 1, "depth": 8, "gamma": 0.9, "longest": 40, "episodes": 6}
MANY = {"iterations": 150, "rollouts": 1, "depth": 5, "gamma": 0.9, "longest": 12, "episodes": 6}


class Cart:
    """(x, v) on a line, to be kept near 0. Beyond 3 it is lost. It has no attributes."""

    num_actions = 3
    action_names = ("left", "coast", "right")

    def push(self, x: float, action: int) -> float:
        return float(action - 1)

    def pay(self, x: float, action: int) -> float:
        return -abs(x)

    def step(self, state: Any, action: int) -> Any:
        v = state[1] + 0.2 * self.push(state[0], action)
        x = state[0] + 0.2 * v
        return (x, v), -10.0 if abs(x) > 3 else self.pay(x, action), abs(x) > 3


class Inverted(Cart):
    """Left is right."""

    def push(self, x: float, action: int) -> float:
        return -super().push(x, action)


class Windy(Cart):
    """A wind that depends on the place."""

    def push(self, x: float, action: int) -> float:
        return super().push(x, action) + 0.8 * math.sin(2 * x)


class OtherMark(Cart):
    """The place to be is 1."""

    def pay(self, x: float, action: int) -> float:
        return -abs(x - 1.0)


class Costly(Cart):
    """A push to the right costs 2."""

    def pay(self, x: float, action: int) -> float:
        return super().pay(x, action) - 2.0 * (action == 2)


class Sticky(World):
    """A world in which a quarter of the actions repeat the last one."""

    def reset(self, seed: int) -> Any:
        self.before = 1
        return super().reset(seed)

    def step(self, action: int) -> Any:
        self.before = self.before if self.random.random() < 0.25 else action
        return super().step(self.before)


class Swapped(Grid):
    """Left is right in a grid."""

    def step(self, state: Any, action: int) -> Any:
        return super().step(state, (0, 3, 2, 1)[action])


class OneWay(Grid):
    """Two doors that cannot be passed downwards."""

    def step(self, state: Any, action: int) -> Any:
        if state[0] == 2 and action == 2 and state[1] in (2, 5):
            return state, -self.step_cost, False
        return super().step(state, action)


class Lure(Grid):
    """A near goal that pays 2, and a far one."""

    def __init__(self, far: float) -> None:
        super().__init__(near=(2, 0))
        self.pay = (far, 2.0, 0.0)


class Shop:
    """A state is the stock. A unit costs 1, sells for 3, and 0.15 to keep. Demand is a table of probabilities."""

    num_actions = 6

    def __init__(self, table: tuple[float, ...]) -> None:
        self.table = table

    def outcomes(self, stock: int, order: int) -> Any:
        have = min(12, stock + order)
        found: dict[int, tuple[float, float]] = {}
        for demand, chance in enumerate(self.table):
            sold = min(have, demand)
            before, paid = found.get(have - sold, (0.0, 0.0))
            found[have - sold] = before + chance, paid + chance * (3.0 * sold - order - 0.15 * (have - sold))
        return [(chance, (left, paid / chance, False)) for left, (chance, paid) in found.items() if chance > 0]


class Many:
    """A point in the plane that can move by any of 100 vectors."""

    num_actions = 100

    def __init__(self, wind: tuple[float, float] = (0.0, 0.0)) -> None:
        self.step = lambda state, action: move(state, action, wind)


def move(state: Any, action: int, wind: tuple[float, float]) -> Any:
    x = state[0] + 0.1 * (action % 10 - 4.5) + wind[0]
    y = state[1] + 0.1 * (action // 10 - 4.5) + wind[1]
    return (x, y), -abs(x) - abs(y), False


def start(rng: random.Random) -> Any:
    return rng.choice([-1, 1]) * rng.uniform(1.0, 2.0), rng.uniform(-0.5, 0.5)


def corner(rng: random.Random) -> Any:
    return rng.uniform(1, 2), rng.uniform(-2, -1)


@world("inverted", "a cart that goes left where it should go right", **LINE)
def inverted() -> Setting:
    return setting(Cart(), Inverted(), start)


@world("sine_wind", "a wind that depends on the place", **LINE)
def sine_wind() -> Setting:
    return setting(Cart(), Windy(), start)


@world("other_mark", "the reward is for being at another place", **LINE)
def other_mark() -> Setting:
    return setting(Cart(), OtherMark(), start)


@world("action_cost", "one action costs 2 more than believed", **LINE)
def action_cost() -> Setting:
    return setting(Cart(), Costly(), start)


@world("sticky_cart", "a quarter of the actions repeat the last one; no simulator of states knows that", **LINE)
def sticky_cart() -> Setting:
    return Setting(Cart(), [Cart()], [Sticky(Cart(), start)])


@world("swapped_grid", "left and right are swapped in a grid", **BUDGET)
def swapped_grid() -> Setting:
    return setting(Grid(), Swapped(), START)


@world("one_way", "two doors that can be passed in one direction only", **BUDGET)
def one_way() -> Setting:
    return setting(Grid(), OneWay(), START)


@world("goal_costs", "the far goal, believed to pay 5, costs 3", **BUDGET)
def goal_costs() -> Setting:
    return setting(Lure(5.0), Lure(-3.0), START)


@world("demand", "a shop with another demand", **SHOP)
def demand() -> Setting:
    return setting(Shop((0.5, 0.3, 0.2, 0.0, 0.0, 0.0)), Shop((0.0, 0.05, 0.1, 0.2, 0.3, 0.35)), 3)


@world("hundred_actions", "100 actions, and a wind", **MANY)
def hundred_actions() -> Setting:
    return setting(Many(), Many((0.15, -0.1)), corner)
