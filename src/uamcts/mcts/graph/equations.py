"""The Bellman equations of the expanded nodes, over rows instead of nodes.

Q(s, a) = sum over outcomes of p [r + gamma P(V(s'))]. V(s') is that of a row if s' is expanded, else a fixed estimate.
Over rows, a sweep reads and writes contiguous arrays, except for one lookup per outcome.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, Int, Shaped

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.graph.graph import Graph
from uamcts.mcts.rules import find_rules

UNROLLED = 32
"""Up to so many entries of a short axis are joined one by one."""


class Equations(NamedTuple):
    """Arrays over [rows, actions, slots] and [rows, actions]; rows that are not in use have no actions."""

    onward: Int[Array, "rows actions slots"]
    """The row that an outcome leads to; 0 if it leads to none."""
    inside: Bool[Array, "rows actions slots"]
    """Whether it leads to a row."""
    estimate: Float[Array, "rows actions slots"]
    """The value of where it leads to, if that is not a row."""
    probability: Float[Array, "rows actions slots"]
    reward: Float[Array, "rows actions slots"]
    keep: Float[Array, "rows actions"]
    exists: Bool[Array, "rows actions"]


def equations_of(graph: Graph) -> Equations:
    """The equations of all rows; nodes that are not expanded keep the value that they have now."""
    row, used = graph.row[graph.child], (jnp.arange(graph.owner.size) < graph.rows)[:, None]
    return Equations(
        onward=jnp.maximum(row, 0),
        inside=row >= 0,
        estimate=graph.value[graph.child],
        probability=jnp.where(used[..., None], graph.probability, 0.0),
        reward=graph.reward,
        keep=graph.keep,
        exists=graph.exists & used,
    )


def worths(equations: Equations, below: jax.Array, config: SearchConfig) -> jax.Array:
    """What each outcome is worth, [rows, actions, slots], out of the values of where it leads to."""
    child_value = find_rules(config.rules).child_value
    return cast(jax.Array, child_value(below, equations.reward, equations.keep[..., None], config))


def values_below(equations: Equations, value: jax.Array, frontier: jax.Array | bool = True) -> jax.Array:
    """The values of where outcomes lead to, [rows, actions, slots], out of those of all rows.

    Without the `frontier`, nodes that are not expanded count as 0.
    """
    beyond = jnp.where(frontier, equations.estimate, 0.0)
    return jnp.where(equations.inside, take(value, equations.onward), beyond)


def qualities(
    equations: Equations, value: jax.Array, config: SearchConfig, frontier: jax.Array | bool = True
) -> jax.Array:
    """Q, [rows, actions], out of the values of all rows."""
    worth = worths(equations, values_below(equations, value, frontier), config)
    return add_up(equations.probability * worth)


def best(quality: jax.Array, exists: jax.Array) -> jax.Array:
    """V out of Q, over the last axis: the greatest Q of an action that exists, 0 if there is none."""
    found = join(jnp.maximum, jnp.max, jnp.where(exists, quality, -jnp.inf))
    return jnp.where(join(jnp.logical_or, jnp.any, exists), found, 0.0)


def add_up(numbers: jax.Array) -> jax.Array:
    """The sum over the last axis.

    Not written out one by one, which would be faster: multiplications and additions would then be merged differently in
    graphs of different sizes, and a search that continues a graph would differ from a fresh one by rounding.
    """
    return jnp.sum(numbers, axis=-1)


def join(
    operation: Callable[[jax.Array, jax.Array], jax.Array], reduction: Callable[..., jax.Array], numbers: jax.Array
) -> jax.Array:
    """`reduction` over the last axis, by `operation` one after the other if it is short.

    The compiler merges what is written out with its surroundings, and a sweep takes a fraction of the time.
    """
    if numbers.shape[-1] > UNROLLED:
        return reduction(numbers, axis=-1)
    return functools.reduce(operation, [numbers[..., place] for place in range(numbers.shape[-1])])


@custom_vmap
def _take(numbers: Shaped[Array, " n"], places: Int[Array, "*shape"]) -> Shaped[Array, "*shape"]:
    return numbers.at[places].get(mode="promise_in_bounds")


@_take.def_vmap
def _take_in_batch(size: int, batched: list[bool], numbers: jax.Array, places: jax.Array) -> tuple[jax.Array, bool]:
    """A batch of lookups as one lookup in one long vector: four times as fast as the one that JAX makes of it."""
    if not batched[0]:
        return take(numbers, places), True
    if not batched[1]:
        places = jnp.broadcast_to(places, (size, *places.shape))
    first = numbers.shape[1] * jnp.arange(size, dtype=places.dtype)
    return take(numbers.reshape(-1), places + first.reshape(size, *[1] * (places.ndim - 1))), True


def take(numbers: jax.Array, places: jax.Array) -> jax.Array:
    """`numbers[places]` for a vector `numbers`; all places must be within it."""
    return cast(jax.Array, _take(numbers, places))
