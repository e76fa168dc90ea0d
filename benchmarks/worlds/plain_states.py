"""Worlds as people write them: several errors at once, states with names, parcels, and a slippery grid in JAX."""

from __future__ import annotations

import random
from typing import Any

from worlds.zoo import Setting, setting, world

PLAIN = {"iterations": 60, "rollouts": 1, "depth": 25, "gamma": 0.97, "longest": 50}
GAPS = [(3, column) for column in range(7) if column not in (0, 3, 6)]


class Yard:
    """Seven by seven cells with a wall that has three gaps; the far corner pays 8. Some cells cost, or end it all."""

    num_actions = 4
    action_names = ("north", "east", "south", "west")

    def __init__(self, walls: Any = GAPS, tolls: Any = (), ends: Any = (), step_cost: float = 0.1) -> None:
        self.walls, self.tolls, self.ends, self.step_cost = frozenset(walls), dict(tolls), frozenset(ends), step_cost

    def step(self, state: Any, action: int) -> Any:
        row, column = state[0] + (-1, 0, 1, 0)[action], state[1] + (0, 1, 0, -1)[action]
        inside = 0 <= row < 7 and 0 <= column < 7 and (row, column) not in self.walls
        place = (row, column) if inside else state
        if place == (6, 6):
            return place, 8.0, True
        return place, -self.step_cost - self.tolls.get(place, 0.0), place in self.ends


class Rooms:
    """Rooms in a row with names of their own, and portals between some of them."""

    num_actions = 3
    action_names = ("back", "on", "portal")

    def __init__(self, portals: dict[int, int]) -> None:
        self.portals = portals

    def step(self, room: str, action: int) -> Any:
        number = int(room.removeprefix("room "))
        after = (max(number - 1, 0), min(number + 1, 14), self.portals.get(number, number))[action]
        return f"room {after}", 10.0 if after == 14 else -0.3, after == 14


class Courier:
    """(place, what it carries): goods from either end of the street are paid for in its middle, by their kind."""

    num_actions = 4
    action_names = ("left", "right", "take", "drop")

    def __init__(self, pays: tuple[float, float]) -> None:
        self.step = lambda state, action: carry(state, action, pays)


def carry(state: Any, action: int, pays: tuple[float, float]) -> Any:
    place, load = state
    if action < 2:
        place = min(max(place + (-1, 1)[action], -3), 3)
    elif action == 2 and abs(place) == 3 and len(load) < 3:
        load = (*load, int(place > 0))
    elif action == 3 and place == 0 and load:
        return (0, ()), float(sum(pays[kind] for kind in load)), False
    return (place, load), -0.05, False


def icy_terrace(straight: float) -> Any:
    """A terrace of five by seven cells above an abyss, in JAX; steps go straight with this probability."""
    import jax
    import jax.numpy as jnp

    import uamcts

    moves = jnp.array([[-1, 0], [0, 1], [1, 0], [0, -1]])

    def move(place: Any, action: Any) -> Any:
        over = (place[0] == 4) & (place[1] > 0)
        after = jnp.where(over, place, jnp.clip(place + moves[action], 0, jnp.array([4, 6])))
        goal, fallen = jnp.all(after == jnp.array([4, 6])), (after[0] == 4) & (after[1] > 0) & (after[1] < 6)
        paid = jnp.where(goal, 5.0, jnp.where(fallen, -5.0, -0.1))
        return uamcts.Transition(after, jnp.where(over, 0.0, paid), goal | fallen)

    def outcomes(place: Any, action: Any) -> Any:
        taken = (action + jnp.array([0, 1, 3])) % 4
        aside = (1 - straight) / 2
        return jax.vmap(lambda one: move(place, one))(taken), jnp.array([straight, aside, aside])

    return uamcts.JaxSimulator(None, num_actions=4, example=jnp.zeros(2, jnp.int32), outcomes=outcomes)


class JaxWorld:
    """A real world that follows the outcomes of a JAX simulator."""

    def __init__(self, simulator: Any, start: tuple[int, ...]) -> None:
        import jax

        self.outcomes, self.start = jax.jit(simulator.outcomes), start

    def reset(self, seed: int) -> Any:
        import jax.numpy as jnp

        self.random, self.state = random.Random(seed), jnp.array(self.start, jnp.int32)  # noqa: S311
        return self.state

    def step(self, action: int) -> Any:
        after, chances = self.outcomes(self.state, action)
        (place,) = self.random.choices(range(len(chances)), [float(chance) for chance in chances])
        self.state = after.state[place]
        return self.state, float(after.reward[place]), bool(after.terminal[place])


@world("all_at_once", "a closed gap, three tolls, two ends, and steps that cost more", **PLAIN, episodes=12)
def all_at_once() -> Setting:
    tolls = {(1, 1): 1.0, (5, 4): 1.0, (4, 5): 2.0}
    return setting(Yard(), Yard([*GAPS, (3, 3)], tolls, {(5, 1), (6, 3)}, 0.2), (0, 0))


@world("portals", "portals that lead elsewhere; states are strings", **PLAIN)
def portals() -> Setting:
    return setting(Rooms({2: 13, 5: 9}), Rooms({2: 0, 5: 12}), "room 1")


@world("courier", "goods that pay otherwise; states hold tuples of several lengths", **PLAIN)
def courier() -> Setting:
    return setting(Courier((1.0, 5.0)), Courier((5.0, 1.0)), (0, ()))


@world("jax_slips", "a terrace in JAX that is more slippery than believed, without a parameter", **PLAIN)
def jax_slips() -> Setting:
    return Setting(icy_terrace(0.98), [icy_terrace(0.6)], [JaxWorld(icy_terrace(0.6), (3, 0))])
