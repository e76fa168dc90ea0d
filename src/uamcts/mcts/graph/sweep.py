"""Sweeps: Bellman backups of all expanded nodes until the values settle, or for a number of steps that is left.

A sweep starts from V = 0 at every expanded node, so that k sweeps look at least k steps ahead and nothing remains of
estimates that a cycle would keep alive. Nodes that are not expanded keep their first estimate.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar, cast

import jax
import jax.numpy as jnp

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.graph.equations import Equations, best, equations_of, qualities
from uamcts.mcts.graph.graph import Graph
from uamcts.mcts.graph.solve import solve
from uamcts.mcts.loops import masked_while
from uamcts.types import Number

Rows = TypeVar("Rows")
"""A pytree of arrays [rows, ...]."""
CHUNK = 128
"""Rows that a sweep works on at once. In a batch it takes longer to cut them out of a larger graph than to back them
up."""
MOST_SWEEPS = 1000
SWEEPS_PER_SOLUTION, MOST_SOLUTIONS = 100, 10
"""With gamma below 1: how many sweeps come before a policy is solved for its values, and how often that happens."""
TOLERANCE = 2e-7
"""A sweep that changes no value by more than this, relative to the largest value, is the last."""


class _Chunk(NamedTuple):
    """What the backup of some rows gives."""

    start: jax.Array
    quality: jax.Array
    value: jax.Array
    change: jax.Array
    """The largest change of a value."""
    size: jax.Array
    """The largest size of a value."""


def _back_up_chunk(
    equations: Equations, value: jax.Array, number: jax.Array, config: SearchConfig, frontier: jax.Array | bool = True
) -> _Chunk:
    """Backs up one chunk out of the values of all rows."""
    size = min(CHUNK, value.size)
    start = jnp.clip(number * size, 0, value.size - size)
    part, old = _cut((equations, value), start, size)
    quality = qualities(part, value, config, frontier)
    new = best(quality, part.exists)
    change = jnp.max(jnp.abs(new - old))
    return _Chunk(start, quality, new, change, jnp.max(jnp.abs(new)))


def _cut(arrays: Rows, start: jax.Array, size: int) -> Rows:
    """`size` rows of arrays [rows, ...]; the arrays themselves where these are all rows."""

    def cut(leaf: jax.Array) -> jax.Array:
        return leaf if leaf.shape[0] == size else jax.lax.dynamic_slice_in_dim(leaf, start, size)

    return cast(Rows, jax.tree.map(cut, arrays))


def _put(array: jax.Array, new: jax.Array, start: jax.Array, wanted: jax.Array) -> jax.Array:
    """An array [rows, ...] with some of its rows replaced, if that is `wanted`."""
    new = jnp.where(wanted, new, _cut(array, start, new.shape[0]))
    return new if new.shape == array.shape else jax.lax.dynamic_update_slice_in_dim(array, new, start, 0)


def _last_chunk(graph: Graph) -> jax.Array:
    return (jnp.maximum(graph.rows, 1) - 1) // min(CHUNK, graph.owner.size)


def _write(graph: Graph, value: jax.Array, wanted: jax.Array | bool = True) -> jax.Array:
    """The values of all nodes with those of rows, [rows], if that is `wanted`."""
    used = (jnp.arange(graph.owner.size) < graph.rows) & wanted
    return graph.value.at[jnp.where(used, graph.owner, graph.value.size)].set(value, mode="drop")


class _Sweep(NamedTuple):
    value: jax.Array
    quality: jax.Array
    chunk: jax.Array
    left: jax.Array
    """How many sweeps may follow, this one included."""
    change: jax.Array
    size: jax.Array


def _settle(graph: Graph, config: SearchConfig, wanted: jax.Array, most: int) -> Graph:
    equations, last, zero = equations_of(graph), _last_chunk(graph), jnp.zeros((), float)

    def step(sweep: _Sweep) -> _Sweep:
        going = sweep.left > 0
        chunk = _back_up_chunk(equations, sweep.value, sweep.chunk, config)
        change, size = jnp.maximum(sweep.change, chunk.change), jnp.maximum(sweep.size, chunk.size)
        ends = sweep.chunk == 0
        settled = ends & (change <= TOLERANCE * size)
        left = jnp.where(settled, 0, jnp.maximum(sweep.left - ends, 0))
        change, size = jnp.where(ends, zero, change), jnp.where(ends, zero, size)
        value = _put(sweep.value, chunk.value, chunk.start, going)
        quality = _put(sweep.quality, chunk.quality, chunk.start, going)
        return _Sweep(value, quality, jnp.where(ends, last, sweep.chunk - 1), left, change, size)

    value = jnp.zeros(graph.owner.size, float)
    begin = _Sweep(value, graph.quality, last, jnp.where(wanted, most, 0), zero, zero)
    end = masked_while(lambda sweep: sweep.left > 0, step, begin)
    return graph._replace(value=_write(graph, end.value, wanted), quality=end.quality)


class _Once(NamedTuple):
    wanted: jax.Array
    value: jax.Array
    quality: jax.Array


def settle(graph: Graph, config: SearchConfig, wanted: jax.Array | bool = True, most: int = MOST_SWEEPS) -> Graph:
    """The graph with the values of the fixed point, or after `most` sweeps; unchanged if it is not `wanted`.

    Within a sweep the later rows come first: they lie further down, so that a graph without cycles takes one sweep.
    """

    def run(once: _Once) -> _Once:
        after = _settle(graph._replace(value=once.value, quality=once.quality), config, once.wanted, most)
        return _Once(jnp.bool_(False), after.value, after.quality)

    # A loop of at most one round: where nothing is wanted, the equations are not put together either.
    end = masked_while(lambda once: once.wanted, run, _Once(jnp.asarray(wanted), graph.value, graph.quality))
    return graph._replace(value=end.value, quality=end.quality)


class _Ahead(NamedTuple):
    value: jax.Array
    """Of all rows."""
    frontier: jax.Array
    """Whether nodes that are not expanded have a value: with no steps left they have none."""
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


def _sweep_ahead(graph: Graph, equations: Equations, start: _Ahead, config: SearchConfig) -> _Ahead:
    """Sweeps in which every row is backed up out of the values before the sweep; two at least, if there is time."""
    last, zero = _last_chunk(graph), jnp.zeros((), float)

    def sweep(ahead: _Ahead) -> _Ahead:
        going = ahead.left > 0

        def step(inner: _Inner) -> _Inner:
            writes = (inner.chunk >= 0) & going
            chunk = _back_up_chunk(equations, ahead.value, inner.chunk, config, ahead.frontier)
            early = inner.early + jnp.where((inner.chunk == 0) & going, chunk.quality[0], 0.0)
            value = _put(inner.value, chunk.value, chunk.start, writes)
            change, size = jnp.maximum(inner.change, chunk.change), jnp.maximum(inner.size, chunk.size)
            return _Inner(value, early, inner.chunk - 1, change, size)

        begin = _Inner(ahead.value, ahead.early, last, zero, zero)
        end = masked_while(lambda inner: inner.chunk >= 0, step, begin)
        settled = going & (end.change <= TOLERANCE * end.size) & (ahead.left < start.left)
        left = jnp.where(settled, -1, ahead.left - going)
        return _Ahead(end.value, ahead.frontier | going, end.early, left)

    return masked_while(lambda ahead: ahead.left > 0, sweep, start)


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
    equations = equations_of(graph)

    def active(carry: _Rounds) -> jax.Array:
        return (carry.ahead.left >= 0) & (carry.number <= rounds)

    def step(carry: _Rounds) -> _Rounds:
        going, ahead = active(carry), carry.ahead
        if solves:
            ahead = ahead._replace(value=solve(equations, ahead.value, going & (carry.number > 0), config))
        ahead = _sweep_ahead(graph, equations, ahead._replace(left=jnp.where(going, sweeps, 0)), config)
        early = jnp.where(carry.number > 0, carry.ahead.early, ahead.early)
        left = jnp.where(going, ahead.left, carry.ahead.left)
        return _Rounds(_Ahead(ahead.value, ahead.frontier, early, left), carry.number + 1)

    nothing = jnp.zeros(graph.owner.size, float), jnp.bool_(horizon is None), jnp.zeros(graph.num_actions, float)
    start = _Rounds(_Ahead(*nothing, jnp.int32(0)), jnp.int32(0))
    end = (masked_while(active, step, start) if solves else step(start)).ahead
    quality = qualities(equations, end.value, config, end.frontier)
    return graph._replace(value=_write(graph, end.value), quality=quality), end.early + quality[0]
