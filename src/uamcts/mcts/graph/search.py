"""Graph search: the loop.

An iteration descends to a node that is not expanded, expands it with all outcomes of all actions, gives each new state
a first value, and backs up the path. The search ends with sweeps over all expanded nodes. It ends early when nothing is
left to expand: the sweeps then give the optimum of the model.

A horizon does not multiply the nodes: as many sweeps from V_0 = 0 as there are steps left give the values of a finite
horizon on the same graph, exact on what it covers.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.graph.backup import back_up
from uamcts.mcts.graph.descend import STUCK, Descent, append, descend
from uamcts.mcts.graph.expand import Leaf, expand, grow
from uamcts.mcts.graph.graph import ROOT, UNEXPANDED, Graph, empty_graph
from uamcts.mcts.graph.reuse import move_root, same_settings
from uamcts.mcts.graph.sweep import look_ahead, settle
from uamcts.mcts.graph.table import enter, key_words
from uamcts.mcts.growth import BAD_PROBABILITY, BAD_REWARD, BAD_UNCERTAINTY, NO_ACTION
from uamcts.mcts.loops import masked_while, read_once
from uamcts.mcts.problem import Problem
from uamcts.mcts.search import SearchResult
from uamcts.mcts.worst_case import fill_in
from uamcts.randomness import TIE, draw, pick, seed_of
from uamcts.types import Number, PyTree

OTHER_SETTINGS = 16
"""A flag of a result: `previous` is the graph of a search with other settings. It was not used."""
FIRST_SWEEP = 8
"""Sweeps in between begin once so many nodes are expanded, and follow whenever that number has doubled."""
SWEEPS_BETWEEN = 100
ROUNDING = 1e-6
"""Values that differ by less than this, relative to the greatest, are equal."""


class _Carry(NamedTuple):
    """What an iteration passes on."""

    number: jax.Array
    """Of the next iteration, from 1 on."""
    graph: Graph
    flags: jax.Array
    cache: PyTree
    """The prediction cache."""


def graph_search(
    key: jax.Array,
    state: PyTree,
    problem: Problem,
    config: SearchConfig,
    cache: PyTree = None,
    horizon: Number = None,
    previous: PyTree = None,
) -> SearchResult:
    """One search from `state` on a graph of states: pure and unbatched.

    `horizon` is the number of steps left. `previous` is the graph of an earlier search in the same model: at most
    `iterations` of its expanded nodes are kept, with visits and values, if `state` is one of its states.
    """
    seed = seed_of(key)
    longest = min(config.tree_depth, config.iterations + 1)
    config, cache = fill_in(seed, state, problem, config, longest, cache)
    limit = longest if horizon is None else jnp.minimum(longest, horizon)
    outcomes = problem.num_actions * problem.slots(state)

    def active(carry: _Carry) -> jax.Array:
        return (carry.number <= config.iterations) & (carry.graph.open > 0)

    def iteration(carry: _Carry) -> _Carry:
        number, graph, flags, cache = carry
        path = descend(graph, number, config, longest, jnp.where(graph.open > 0, limit, 0))
        graph = graph._replace(seen=path.seen)
        leaf = _read(graph, path)
        grown = expand(graph, leaf, seed, problem, config, cache)
        graph = grow(graph, grown, leaf.grows)
        path = append(path, graph.row[path.node], path.step == STUCK, outcomes)
        path = append(path, grown.number, leaf.grows, outcomes)
        graph = back_up(graph, path, config)
        doubled = leaf.grows & (graph.rows >= FIRST_SWEEP) & (graph.rows & (graph.rows - 1) == 0)
        graph = settle(graph, config, doubled, SWEEPS_BETWEEN)
        flags = flags | jnp.where(leaf.grows, _flags(grown.faults), 0)
        return _Carry(number + 1, graph, flags, grown.cache)

    graph = _plant(state, problem, config, config.iterations * (1 if previous is None else 2))
    if previous is not None:
        graph = move_root(previous, graph, state, config.iterations)
    start = _Carry(jnp.int32(1), graph, jnp.int32(0), cache)
    _, graph, flags, cache = masked_while(active, iteration, start)
    graph, early = look_ahead(graph, horizon, config)
    if previous is not None:
        flags = flags | jnp.where(same_settings(previous, graph), 0, OTHER_SETTINGS)
    return _result(seed, graph, early, flags)._replace(cache=cache)


def _plant(state: PyTree, problem: Problem, config: SearchConfig, rows: int) -> Graph:
    """A graph of the root alone."""
    state = jax.tree.map(jnp.asarray, state)
    graph = empty_graph(state, config, rows, problem.num_actions, problem.slots(state), problem.prior is not None)
    prints, _ = key_words(state, jnp.bool_(False))
    table = enter(graph.table, prints[None], jnp.array([ROOT]), jnp.array([True]))
    return graph._replace(table=table)


def _read(graph: Graph, path: Descent) -> Leaf:
    """The node at the end of a path, or, where the path was stuck, the first one that is not expanded.

    So every iteration expands a node until none is left, and as many iterations as there are states cover them all.
    """

    def look() -> Leaf:
        row = graph.row[path.node]
        node = jnp.where((path.step == STUCK), jnp.argmax(graph.row == UNEXPANDED).astype(jnp.int32), path.node)
        state = jax.tree.map(lambda leaf: leaf[node], graph.state)
        grows = (graph.open > 0) & ((row == UNEXPANDED) | (path.step == STUCK))
        return Leaf(node, state, graph.doubted[node], grows)

    return read_once(look, path.node >= 0)


def _flags(faults: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
    uncertainty, reward, probability = (fault.astype(jnp.int32) for fault in faults)
    flags: jax.Array = BAD_UNCERTAINTY * uncertainty + BAD_REWARD * reward + BAD_PROBABILITY * probability
    return flags


def _best(values: jax.Array, exists: jax.Array) -> jax.Array:
    """Where the greatest value is, up to rounding: conditions [actions]."""
    greatest = jnp.max(jnp.where(exists, values, -jnp.inf))
    return exists & ~(values < greatest - ROUNDING * jnp.abs(greatest))


def _result(seed: jax.Array, graph: Graph, early: jax.Array, flags: jax.Array) -> SearchResult:
    """The move with the best value; of equal ones the one that pays earlier, which gamma = 1 would put off forever."""
    expanded = graph.row[ROOT] == 0  # the root's is always the first
    exists = graph.exists[0] & expanded
    best = _best(early, _best(graph.quality[0], exists))
    return SearchResult(
        action=pick(draw(seed, TIE, jnp.int32(0)), best),
        visits=jnp.sum(graph.visits[0], axis=1).astype(jnp.int32),
        values=jnp.where(exists, graph.quality[0], jnp.nan),
        uncertainty=jnp.where(expanded, graph.uncertainty[0], 0.0),
        exists=exists,
        tree=graph,
        flags=flags | jnp.where(jnp.any(exists), 0, NO_ACTION),
    )
