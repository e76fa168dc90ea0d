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
from uamcts.mcts.graph.graph import Graph
from uamcts.mcts.graph.solve import solve
from uamcts.mcts.loops import masked_while, read_once
from uamcts.types import Number

CHUNK = 64
"""Rows that a sweep works on at once."""
MOST_SWEEPS = 1000
SWEEPS_PER_SOLUTION, MOST_SOLUTIONS = 100, 10
"""With gamma below 1: how many sweeps come before a policy is solved for its values, and how often that happens."""
TOLERANCE = 2e-7
"""A sweep that changes no value by more than this, relative to the largest value, is the last."""


class _Chunk(NamedTuple):
    """What the backup of some rows gives."""

    start: jax.Array
    owner: jax.Array
    """The nodes of the rows; out of bounds for rows that are not in use."""
    quality: jax.Array
    value: jax.Array
    change: jax.Array
    """The largest change of a value."""
    size: jax.Array
    """The largest size of a value."""


def _back_up_chunk(graph: Graph, value: jax.Array, number: jax.Array, config: SearchConfig) -> _Chunk:
    """Backs up the rows of one chunk, out of the values of all nodes."""
    size = min(CHUNK, graph.owner.size)
    start = jnp.clip(number * size, 0, graph.owner.size - size)

    def cut(leaf: jax.Array) -> jax.Array:
        return jax.lax.dynamic_slice_in_dim(leaf, start, size)

    def look() -> _Chunk:
        found = qualities(value, cut(graph.child), cut(graph.probability), cut(graph.reward), cut(graph.keep), config)
        new, used = best(found, cut(graph.exists)), start + jnp.arange(size) < graph.rows
        owner = cut(graph.owner)
        change = jnp.max(jnp.where(used, jnp.abs(new - value[owner]), 0.0))
        largest = jnp.max(jnp.where(used, jnp.abs(new), 0.0))
        return _Chunk(start, jnp.where(used, owner, value.size), found, new, change, largest)

    return read_once(look, start >= 0)


def _last_chunk(graph: Graph) -> jax.Array:
    return (jnp.maximum(graph.rows, 1) - 1) // min(CHUNK, graph.owner.size)


class _Sweep(NamedTuple):
    value: jax.Array
    quality: jax.Array
    chunk: jax.Array
    left: jax.Array
    """How many sweeps may follow, this one included."""
    change: jax.Array
    size: jax.Array


def settle(graph: Graph, config: SearchConfig, wanted: jax.Array | bool = True, most: int = MOST_SWEEPS) -> Graph:
    """The graph with the values of the fixed point, or after `most` sweeps; unchanged if it is not `wanted`.

    Within a sweep the later rows come first: they lie further down, so that a graph without cycles takes one sweep.
    """
    last = _last_chunk(graph)

    def step(sweep: _Sweep) -> _Sweep:
        going, clears = sweep.left > 0, sweep.left > most
        chunk = _back_up_chunk(graph, sweep.value, sweep.chunk, config)
        owner = jnp.where(going, chunk.owner, sweep.value.size)
        value = sweep.value.at[owner].set(jnp.where(clears, 0.0, chunk.value), mode="drop")
        rows = jnp.where(going, chunk.quality, jax.lax.dynamic_slice_in_dim(sweep.quality, chunk.start, owner.size))
        quality = jax.lax.dynamic_update_slice_in_dim(sweep.quality, rows, chunk.start, 0)
        change, size = jnp.maximum(sweep.change, chunk.change), jnp.maximum(sweep.size, chunk.size)
        ends = sweep.chunk == 0
        settled = ends & ~clears & (change <= TOLERANCE * size)
        left = jnp.where(settled, 0, jnp.maximum(sweep.left - ends, 0))
        zero = jnp.zeros((), float)
        change, size = jnp.where(ends, zero, change), jnp.where(ends, zero, size)
        return _Sweep(value, quality, jnp.where(ends, last, sweep.chunk - 1), left, change, size)

    zero = jnp.zeros((), float)
    begin = _Sweep(graph.value, graph.quality, last, jnp.where(wanted, most + 1, 0), zero, zero)
    end = masked_while(lambda sweep: sweep.left > 0, step, begin)
    return graph._replace(value=end.value, quality=end.quality)


class _Ahead(NamedTuple):
    value: jax.Array
    early: jax.Array
    """The sum over sweeps of the root's Q, [actions]."""
    left: jax.Array
    """How many more sweeps; -1 once the values stand still."""


class _Inner(NamedTuple):
    value: jax.Array
    early: jax.Array
    chunk: jax.Array
    change: jax.Array
    size: jax.Array


def _sweep_ahead(graph: Graph, start: _Ahead, config: SearchConfig) -> _Ahead:
    """Sweeps in which every row is backed up out of the values before the sweep; two at least, if there is time."""
    last, zero = _last_chunk(graph), jnp.zeros((), float)
    estimates = _estimates(graph)

    def sweep(ahead: _Ahead) -> _Ahead:
        going = ahead.left > 0

        def step(inner: _Inner) -> _Inner:
            chunk = _back_up_chunk(graph, ahead.value, inner.chunk, config)
            owner = jnp.where((inner.chunk >= 0) & going, chunk.owner, ahead.value.size)
            early = inner.early + jnp.where((inner.chunk == 0) & going, chunk.quality[0], 0.0)
            value = inner.value.at[owner].set(chunk.value, mode="drop")
            change, size = jnp.maximum(inner.change, chunk.change), jnp.maximum(inner.size, chunk.size)
            return _Inner(value, early, inner.chunk - 1, change, size)

        begin = _Inner(jnp.where(going, estimates, ahead.value), ahead.early, last, zero, zero)
        end = masked_while(lambda inner: inner.chunk >= 0, step, begin)
        settled = going & (end.change <= TOLERANCE * end.size) & (ahead.left < start.left)
        return _Ahead(end.value, end.early, jnp.where(settled, -1, ahead.left - going))

    return masked_while(lambda ahead: ahead.left > 0, sweep, start)


def _estimates(graph: Graph) -> jax.Array:
    """The values of nodes that are not expanded, 0 for the others."""
    return jnp.where(graph.row < 0, graph.value, 0.0)


class _Rounds(NamedTuple):
    ahead: _Ahead
    number: jax.Array


def look_ahead(graph: Graph, horizon: Number, config: SearchConfig) -> tuple[Graph, jax.Array]:
    """The graph with Q of `horizon` steps to go, Q_h out of V_(h-1) with V_0 = 0; fewer if the values stand still.

    V_0 is 0 for nodes that are not expanded too; with steps left they have their first estimate.

    Without a horizon the values of the fixed point. With gamma = 1 these are `MOST_SWEEPS` steps at most. With a
    smaller gamma a few sweeps find out a good policy, whose values are then solved for (`solve`): sweeps alone would
    take about 14 / (1 - gamma) steps where rewards never end.

    Also the sum of the root's Q over all steps, [actions]: of two actions with the same Q at the end, the one that pays
    earlier has the larger sum. The row of the root must be the first.
    """
    solves = horizon is None and not (isinstance(config.gamma, (int, float)) and config.gamma == 1)
    if horizon is None:
        sweeps = jnp.where(jnp.asarray(config.gamma) < 1, SWEEPS_PER_SOLUTION, MOST_SWEEPS)
        rounds = jnp.where(jnp.asarray(config.gamma) < 1, MOST_SOLUTIONS, 0)
    else:
        sweeps, rounds = jnp.asarray(horizon) - 1, jnp.int32(0)

    def active(carry: _Rounds) -> jax.Array:
        return (carry.ahead.left >= 0) & (carry.number <= rounds)

    def step(carry: _Rounds) -> _Rounds:
        going, ahead = active(carry), carry.ahead
        if solves:
            ahead = ahead._replace(value=solve(graph, ahead.value, going & (carry.number > 0), config))
        ahead = _sweep_ahead(graph, ahead._replace(left=jnp.where(going, sweeps, 0)), config)
        early = jnp.where(carry.number > 0, carry.ahead.early, ahead.early)
        left = jnp.where(going, ahead.left, carry.ahead.left)
        return _Rounds(_Ahead(ahead.value, early, left), carry.number + 1)

    value = _estimates(graph) if horizon is None else jnp.zeros_like(graph.value)
    start = _Rounds(_Ahead(value, jnp.zeros(graph.num_actions, float), jnp.int32(0)), jnp.int32(0))
    end = (masked_while(active, step, start) if solves else step(start)).ahead
    quality = qualities(end.value, graph.child, graph.probability, graph.reward, graph.keep, config)
    return graph._replace(value=end.value, quality=quality), end.early + quality[0]
