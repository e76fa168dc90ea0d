"""Worlds of trade and service: stock that perishes, a lift, advertisements, shelves, lessons, orders in JAX."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from worlds.zoo import Setting, setting, world

DAYS = {"iterations": 60, "rollouts": 1, "depth": 10, "gamma": 0.9, "longest": 30}


class Stock(NamedTuple):
    """What is in a bakery."""

    fresh: int
    old: int
    coming: int


class Bakery:
    """Bread that is ordered today comes tomorrow and is thrown away two days later. Demand can only be drawn."""

    num_actions = 7

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def sample(self, state: Stock, order: int, rng: Any) -> Any:
        return self.sell(state, order, int(rng.poisson(self.rate)))

    def sell(self, state: Stock, order: int, wanted: int) -> Any:
        old = min(state.old, wanted)
        fresh = min(state.fresh, wanted - old)
        paid = 3.0 * (old + fresh) - order - 0.5 * (wanted - old - fresh) - 0.5 * (state.old - old)
        return Stock(state.coming, state.fresh - fresh, order), paid, False


@dataclass(frozen=True)
class Cabin:
    """A lift: its floor, where somebody waits (None: nowhere), and whether somebody is in it, bound for floor 0."""

    floor: int
    call: int | None
    full: bool


class Lift:
    """Brings people from the floors where they call to floor 0, for 12. Calls come from floors with these weights."""

    num_actions = 3
    action_names = ("down", "stay", "up")

    def __init__(self, weights: tuple[float, ...]) -> None:
        self.weights = weights

    def outcomes(self, state: Cabin, action: int) -> Any:
        weights = self.weights
        floor = min(max(state.floor + action - 1, 0), 7)
        call, full, paid = state.call, state.full, -0.1 - (state.call is not None) - 0.1 * (action != 1)
        if not full and call == floor:
            call, full = None, True
        elif full and floor == 0:
            full, paid = False, paid + 12.0
        if call is not None or full:
            return [(1.0, (Cabin(floor, call, full), paid, False))]
        total = 2 * sum(weights)
        nobody = (0.5, (Cabin(floor, None, False), paid, False))
        return [nobody] + [
            (weight / total, (Cabin(floor, at, False), paid, False)) for at, weight in enumerate(weights) if weight
        ]


class Adverts:
    """A state is the kind of visitor. Each of six advertisements is clicked with a probability for each kind."""

    num_actions = 6

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)  # noqa: S311 (a world, not secrets)
        rates = {(kind, shown): rng.choice((0.05, 0.1, 0.2, 0.7)) for kind in "ABCD" for shown in range(6)}
        self.outcomes = lambda kind, shown: [
            (chance / 4, (visitor, float(clicked), False))
            for visitor in "ABCD"
            for chance, clicked in ((rates[kind, shown], 1), (1 - rates[kind, shown], 0))
        ]


class Shelves:
    """(shelf, what is left): 36 shelves in six rows; a trip costs by its length, and each pays once."""

    num_actions = 36

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)  # noqa: S311
        values = [rng.choice((0.0, 0.0, 1.0, 3.0)) for _ in range(36)]
        self.values = values

    def step(self, state: Any, action: int) -> Any:
        (place, left), values = state, self.values
        trip = abs(place // 6 - action // 6) + abs(place % 6 - action % 6)
        return (action, left - {action}), (values[action] if action in left else 0.0) - 0.2 * trip - 0.1, False


class Lessons:
    """Eight lessons of four subjects; nothing is paid before the exam, which weighs the subjects and likes variety."""

    num_actions = 4

    def __init__(self, weights: tuple[float, ...]) -> None:
        self.step = lambda state, action: self.learn(state, action, weights)

    def learn(self, state: tuple[int, ...], action: int, weights: tuple[float, ...]) -> Any:
        after = tuple(count + (subject == action) for subject, count in enumerate(state))
        over = sum(after) == 8
        return after, sum(w * math.sqrt(n) for w, n in zip(weights, after, strict=True)) if over else 0.0, over


def jax_orders(rate: float) -> Any:
    """A state is the stock, up to 15; 0 to 4 units are ordered a day. Demand can only be drawn. In JAX."""
    import jax
    import jax.numpy as jnp

    import uamcts

    def sample(stock: Any, order: Any, key: Any) -> Any:
        have = jnp.minimum(stock + order, 15)
        sold = jnp.minimum(have, jax.random.poisson(key, rate).astype(jnp.int32))
        left = have - sold
        return uamcts.Transition(left, 3.0 * sold - 1.0 * order - 0.4 * left, jnp.bool_(False))

    return uamcts.JaxSimulator(None, num_actions=5, example=jnp.int32(0), sample=sample)


class Sampled:
    """A real world that follows the draws of a simulator."""

    def __init__(self, simulator: Any, start: Any, jax: bool = False) -> None:
        self.simulator, self.start, self.jax = simulator, start, jax

    def reset(self, seed: int) -> Any:
        self.rng, self.state = np.random.default_rng(seed), self.start
        if self.jax:
            import jax.numpy as jnp

            self.state = jnp.int32(self.start)
        return self.state

    def step(self, action: int) -> Any:
        if self.jax:
            import jax

            found = self.simulator.sample(self.state, action, jax.random.key(int(self.rng.integers(2**31))))
            self.state, reward, over = found.state, float(found.reward), bool(found.terminal)
        else:
            self.state, reward, over = self.simulator.sample(self.state, action, self.rng)
        return self.state, reward, over


@world("bakery", "bread that perishes and comes a day late, with twice the demand; it can only be drawn", **DAYS)
def bakery() -> Setting:
    return Setting(Bakery(2.0), [Bakery(4.0)], [Sampled(Bakery(4.0), Stock(2, 0, 2))])


@world("lift", "a lift that is called from other floors than believed; states are dataclasses", **DAYS)
def lift() -> Setting:
    return setting(Lift((0, 1, 1, 1, 0, 0, 0, 0)), Lift((0, 0, 0, 0, 0, 0, 1, 9)), Cabin(0, None, False))


@world("adverts", "six advertisements that please four kinds of visitors otherwise than believed", **DAYS)
def adverts() -> Setting:
    return setting(Adverts(1), Adverts(2), "A")


@world("shelves", "36 actions: shelves that hold something else than believed; states hold sets", **DAYS)
def shelves() -> Setting:
    return setting(Shelves(1), Shelves(2), (0, frozenset(range(36))))


@world("lessons", "an exam at the end that weighs four subjects otherwise", **{**DAYS, "gamma": 1.0, "episodes": 15})
def lessons() -> Setting:
    return setting(Lessons((4.0, 1.0, 1.0, 0.5)), Lessons((0.5, 1.0, 2.0, 4.0)), (0, 0, 0, 0))


@world("jax_orders", "a stock in JAX with three times the demand; it can only be drawn", **DAYS)
def orders() -> Setting:
    return Setting(jax_orders(1.0), [jax_orders(3.0)], [Sampled(jax_orders(3.0), 3, jax=True)])
