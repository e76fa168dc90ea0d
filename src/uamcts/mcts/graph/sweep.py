"""Sweeps: Bellman backups of all expanded nodes until the values settle, or for a number of steps that is left.

A sweep starts from V = 0 at every expanded node, so that k sweeps look at least k steps ahead and nothing remains of
estimates that a cycle would keep alive. Nodes that are not expanded keep their first estimate.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.graph.backup import best, qualities
from uamcts.mcts.graph.graph import UNEXPANDED, Graph
from uamcts.mcts.graph.loops import masked_while

CHUNK = 64
"""Rows that a sweep works on at once."""
MOST_SWEEPS = 1000
TOLERANCE = 1e-6
"""A sweep that changes no value by more than this, relative to the largest value, is the last."""


class _Chunk(NamedTuple):
    """What a sweep needs of some rows."""

    owner: jax.Array
    """The nodes of the rows; out of bounds for rows that are not in use."""
    value: jax.Array
    """Their new values."""
    change: jax.Array
    """The largest change of a value."""


def _back_up_chunk(graph: Graph, value: jax.Array, number: jax.Array, config: SearchConfig) -> _Chunk:
    """Backs up the rows of one chunk, out of the values of all nodes."""
    size = min(CHUNK, graph.owner.size)
    start = jnp.minimum(number * size, graph.owner.size - size)

    def cut(leaf: jax.Array) -> jax.Array:
        return jax.lax.dynamic_slice_in_dim(leaf, start, size)

    found = qualities(value, cut(graph.child), cut(graph.probability), cut(graph.reward), cut(graph.keep), config)
    new, used = best(found, cut(graph.exists)), start + jnp.arange(size) < graph.rows
    owner = cut(graph.owner)
    change = jnp.max(jnp.where(used, jnp.abs(new - value[owner]), 0.0))
    return _Chunk(jnp.where(used, owner, value.size), new, change)


def _last_chunk(graph: Graph) -> jax.Array:
    return (jnp.maximum(graph.rows, 1) - 1) // min(CHUNK, graph.owner.size)


def _from_zero(graph: Graph) -> jax.Array:
    return jnp.where(graph.row == UNEXPANDED, graph.value, 0.0)


class _Sweep(NamedTuple):
    value: jax.Array
    chunk: jax.Array
    left: jax.Array
    """How many sweeps may follow, this one included."""
    change: jax.Array


def settle(graph: Graph, config: SearchConfig, wanted: jax.Array | bool = True, most: int = MOST_SWEEPS) -> Graph:
    """The graph with the values of the fixed point, or after `most` sweeps; unchanged if it is not `wanted`.

    Within a sweep the later rows come first: they lie further down, so that a graph without cycles takes one sweep.
    """
    start = _from_zero(graph)
    last, scale = _last_chunk(graph), TOLERANCE * jnp.maximum(1e-30, jnp.max(jnp.abs(graph.value)))

    def step(sweep: _Sweep) -> _Sweep:
        going = sweep.left > 0
        chunk = _back_up_chunk(graph, sweep.value, sweep.chunk, config)
        owner = jnp.where(going, chunk.owner, sweep.value.size)
        value = sweep.value.at[owner].set(chunk.value, mode="drop")
        change = jnp.maximum(sweep.change, chunk.change)
        ends = sweep.chunk == 0
        settled = ends & (change <= scale)
        left = jnp.where(settled, 0, jnp.maximum(sweep.left - ends, 0))
        return _Sweep(value, jnp.where(ends, last, sweep.chunk - 1), left, jnp.where(ends, 0.0, change))

    begin = _Sweep(jnp.where(wanted, start, graph.value), last, jnp.where(wanted, most, 0), jnp.zeros((), float))
    return _with_values(graph, masked_while(lambda sweep: sweep.left > 0, step, begin).value, config)


def look_ahead(graph: Graph, horizon: jax.Array | int, config: SearchConfig) -> Graph:
    """The graph with Q of `horizon` steps to go: Q_h out of V_(h-1), V_0 = 0."""
    last = _last_chunk(graph)

    def sweep(carry: tuple) -> tuple:
        old, left = carry

        def step(inner: tuple) -> tuple:
            new, number = inner
            chunk = _back_up_chunk(graph, old, number, config)
            owner = jnp.where((number >= 0) & (left > 0), chunk.owner, old.size)
            return new.at[owner].set(chunk.value, mode="drop"), number - 1

        return masked_while(lambda inner: inner[1] >= 0, step, (old, last))[0], jnp.maximum(left - 1, 0)

    begin = (_from_zero(graph), jnp.asarray(horizon, jnp.int32) - 1)
    return _with_values(graph, masked_while(lambda carry: carry[1] > 0, sweep, begin)[0], config)


def _with_values(graph: Graph, value: jax.Array, config: SearchConfig) -> Graph:
    quality = qualities(value, graph.child, graph.probability, graph.reward, graph.keep, config)
    return graph._replace(value=value, quality=quality)
