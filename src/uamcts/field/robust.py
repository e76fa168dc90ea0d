"""Robust UCT: a tree whose backups take the worst case in a set around the model's probabilities.

Dam, Panaganti, Driss and Wierman: Online Robust Reinforcement Learning Through Monte-Carlo Planning, ICML 2025
(Robust-Power-UCT); the duals are those of the literature on distributionally robust Markov decision processes
(Iyengar, 2005; Panaganti and Kalathil, 2022); CVaR as in Chow, Tamar, Mannor and Pavone, 2015.

Assumptions: the nominal probabilities are the model's own, not counts from the tree; a node is worth its best action
(power mean with an infinite power); rewards are not ambiguous.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from uamcts.field.planner import Memory, Place, Planner
from uamcts.field.tree import any_best, search
from uamcts.field.worlds import Grid
from uamcts.names import check_name

HALVINGS = 40
"""Steps of the search for the best multiplier of the chi-square dual."""


class RobustUct(Planner):
    """UCT with robust backups.

    Raises:
        ValueError: `measure` is unknown.
    """

    measure: str = eqx.field(default="total_variation", static=True)
    """One of `MEASURES`."""
    radius: float | jax.Array = 0.2
    """The size of the set; for `cvar`, the share of the best outcomes that is left out."""

    def __check_init__(self) -> None:
        check_name("measure", self.measure, MEASURES)

    def act(self, key: jax.Array, grid: Grid, believed: jax.Array, memory: Memory, place: Place) -> jax.Array:
        chances, expectation = grid.probabilities(believed), MEASURES[self.measure]

        def expect(values: jax.Array, chances: jax.Array, cells: jax.Array) -> jax.Array:
            return expectation(values, chances, grid.distance[cells][:, cells], self.radius)

        searching, choosing = jax.random.split(key)
        tree = search(searching, grid, place.cell, lambda _: chances, self.settings, expect)
        values = jnp.where(tree.visits[0] > 0, tree.values[0], -jnp.inf)
        return any_best(values, jax.random.uniform(choosing, values.shape))


def total_variation(values: jax.Array, chances: jax.Array, distance: jax.Array, radius: float | jax.Array) -> jax.Array:
    """The least expectation if a probability of `radius` may be moved: from the best outcomes to the worst."""
    del distance
    order = jnp.argsort(-values)
    given = chances[order]
    taken = jnp.clip(radius - (jnp.cumsum(given) - given), 0.0, given)
    moved = (given - taken).at[-1].add(taken.sum())
    return jnp.sum(moved * values[order])


def chi_square(values: jax.Array, chances: jax.Array, distance: jax.Array, radius: float | jax.Array) -> jax.Array:
    """The least expectation where sum (q - p)^2 / p is at most `radius`, by its concave dual in one variable."""
    del distance

    def dual(level: jax.Array) -> jax.Array:
        short = jnp.maximum(level - values, 0.0)
        return level - jnp.sqrt(1 + radius) * jnp.sqrt(jnp.sum(chances * short**2))

    low = jnp.min(values)
    spread = jnp.max(values) - low
    ends = (low, jnp.max(values) + spread / jnp.maximum(jnp.sqrt(1 + radius) - 1, 1e-3))

    def narrow(_: int, ends: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        left, right = ends
        first, second = left + (right - left) / 3, right - (right - left) / 3
        rises = dual(first) < dual(second)
        return jnp.where(rises, first, left), jnp.where(rises, right, second)

    left, right = jax.lax.fori_loop(0, HALVINGS, narrow, ends)
    return dual((left + right) / 2)


def wasserstein(values: jax.Array, chances: jax.Array, distance: jax.Array, radius: float | jax.Array) -> jax.Array:
    """The least expectation within a Wasserstein distance of `radius`, by its dual in the price of a move.

    The dual is linear between the prices at which two destinations j and k of some outcome i cost the same:
    v_j + price d_ij = v_k + price d_ik. One of these prices, or 0, is the best.
    """
    less = values[None, :, None] - values[None, None, :]
    farther = distance[:, None, :] - distance[:, :, None]
    prices = jnp.where(farther != 0, less / jnp.where(farther != 0, farther, 1.0), 0.0).reshape(-1)
    prices = jnp.append(jnp.maximum(prices, 0.0), 0.0)
    reached = jnp.min(values + prices[:, None, None] * distance, axis=-1)
    return jnp.max(reached @ chances - prices * radius)


def cvar(values: jax.Array, chances: jax.Array, distance: jax.Array, radius: float | jax.Array) -> jax.Array:
    """The expectation over the worst outcomes, whose probabilities sum to 1 - `radius`."""
    del distance
    order = jnp.argsort(values)
    given = chances[order]
    share = 1 - radius
    kept = jnp.clip(share - (jnp.cumsum(given) - given), 0.0, given)
    return jnp.sum(kept * values[order]) / jnp.maximum(kept.sum(), 1e-9)


MEASURES = {"total_variation": total_variation, "chi_square": chi_square, "wasserstein": wasserstein, "cvar": cvar}
"""How the worst case is bounded, by name: functions of values, chances, distances between outcomes, and the radius."""
