"""Expansion: all outcomes of all actions of a node, each looked up in the graph, and first values for the new ones."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from uamcts.mcts.charge import Charged
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.expand import BAD_PROBABILITY_SUM
from uamcts.mcts.expand import evaluate as evaluate_uncertainty
from uamcts.mcts.graph.graph import END, FIRST, UNEXPANDED, UNUSED, Graph
from uamcts.mcts.graph.table import enter, look_up
from uamcts.mcts.loops import read_once
from uamcts.mcts.problem import Problem
from uamcts.mcts.rollout import Start
from uamcts.mcts.rules import find_rules
from uamcts.mcts.simulate import nan_if_invalid, simulate
from uamcts.types import PyTree


class Leaf(NamedTuple):
    """The node that a descent came to."""

    node: Int[Array, ""]
    state: PyTree
    doubted: Bool[Array, ""]
    grows: Bool[Array, ""]
    """Whether it is to be expanded."""


class Row(NamedTuple):
    """One row of a graph to be, as in `Graph`."""

    owner: Int[Array, ""]
    exists: Bool[Array, " actions"]
    uncertainty: Float[Array, " actions"]
    bias: Float[Array, " actions"]
    keep: Float[Array, " actions"]
    prior: Float[Array, " prior"]
    child: Int[Array, "actions slots"]
    probability: Float[Array, "actions slots"]
    reward: Float[Array, "actions slots"]


class Successors(NamedTuple):
    """The new nodes of a row, [actions * slots] each."""

    state: PyTree
    doubted: Bool[Array, " n"]
    value: Float[Array, " n"]
    is_new: Bool[Array, " n"]
    prints: UInt32[Array, "n 2"]


class Grown(NamedTuple):
    """What an expansion found."""

    number: jax.Array
    """Of the row. It comes out of the last read of the graph: what is written there is written after that."""
    row: Row
    successors: Successors
    faults: tuple[jax.Array, jax.Array, jax.Array]
    """Whether an uncertainty, a reward and a probability was bad."""
    cache: PyTree


def expand(
    graph: Graph, leaf: Leaf, seed: jax.Array, problem: Problem, config: SearchConfig, cache: PyTree = None
) -> Grown:
    """The outcomes of all actions at a leaf, looked up in the graph; the graph is only read."""
    rules, num_actions, slots = find_rules(config.rules), problem.num_actions, graph.slots
    actions = jnp.arange(num_actions, dtype=jnp.int32)
    counters = graph.rows * num_actions + actions
    after, probability = jax.vmap(problem.outcomes_of, (None, 0, None, 0))(leaf.state, actions, seed, counters)
    allowed = jnp.ones(num_actions, bool) if problem.legal is None else problem.legal(leaf.state)
    here = jax.tree.map(lambda part: jnp.broadcast_to(part, (num_actions, *jnp.shape(part))), leaf.state)
    doubt, cache = evaluate_uncertainty(problem.uncertainty, cache, here, actions, allowed & leaf.grows)
    doubt = jnp.where(allowed, doubt, 0.0)
    if isinstance(problem.uncertainty, Charged):
        after = after._replace(reward=problem.uncertainty.settle(after.reward, doubt))
        doubt = jnp.zeros_like(doubt)
    below = rules.below_doubt(config, leaf.doubted) if rules.follows_doubt else config
    bias, keep = rules.edges(doubt, allowed, below)

    possible = allowed[:, None] & (probability > 0)
    reward = jnp.where(possible, after.reward.astype(float), 0.0)
    bad_sum = jnp.abs(jnp.sum(probability, axis=1) - 1.0) > BAD_PROBABILITY_SUM
    bad = jnp.any(~(probability >= 0), axis=1) | bad_sum
    lives = (possible & ~after.terminal).reshape(-1) & leaf.grows
    states = jax.tree.map(lambda part: part.reshape(num_actions * slots, *part.shape[2:]), after.state)
    doubted = jnp.repeat(leaf.doubted | (keep < 1.0), slots)
    found, number = read_once(
        lambda: (look_up(graph.table, graph.state, graph.doubted, states, doubted, lives), graph.rows), graph.rows >= 0
    )
    first_node = FIRST + graph.rows * num_actions * slots
    child = jnp.where(found.known, found.node, first_node + found.first)
    is_new = lives & ~found.known & (found.first == jnp.arange(lives.size))
    value, bad_value, cache = evaluate(states, doubted, is_new, first_node, seed, problem, config, cache)
    prior = prior_of(leaf.state, allowed, problem)
    row = Row(
        owner=leaf.node,
        exists=allowed,
        uncertainty=doubt,
        bias=bias,
        keep=keep,
        prior=prior,
        child=jnp.where(lives, child, END).reshape(num_actions, slots),
        probability=jnp.where(possible, probability, 0.0),
        reward=reward,
    )
    faults = (
        jnp.any(jnp.isnan(nan_if_invalid(doubt))) | jnp.any(is_new & bad_value[0]),
        jnp.any(~jnp.isfinite(reward)) | jnp.any(is_new & bad_value[1]),
        jnp.any(allowed & bad) | jnp.any(jnp.isnan(prior)),
    )
    return Grown(number, row, Successors(states, doubted, value, is_new, found.prints), faults, cache)


def prior_of(state: PyTree, allowed: jax.Array, problem: Problem) -> jax.Array:
    """Prior probabilities of the legal actions, [actions]; [0] without a prior. Bad ones are NaN."""
    if problem.prior is None:
        return jnp.zeros(0, float)
    given = jnp.where(allowed, jnp.asarray(problem.prior(state), float), 0.0)
    total = jnp.sum(given)
    good = jnp.all(given >= 0) & (total > 0) & (total < jnp.inf)
    return jnp.where(good, given / jnp.where(good, total, 1.0), jnp.nan)


def evaluate(
    states: PyTree,
    doubted: jax.Array,
    is_new: jax.Array,
    first_node: jax.Array,
    seed: jax.Array,
    problem: Problem,
    config: SearchConfig,
    cache: PyTree,
) -> tuple[jax.Array, tuple[jax.Array, jax.Array], PyTree]:
    """First values of states [n] where they are new: by rollouts, by the `value` function, or by a mixture.

    Also whether the uncertainty and the value or reward of each was bad, and the prediction cache afterwards.
    """
    rules, count, weight = find_rules(config.rules), is_new.size, config.value_weight
    own = jnp.zeros(count, float) if problem.value is None else jnp.asarray(jax.vmap(problem.value)(states), float)
    if problem.value is not None and isinstance(weight, (int, float)) and weight == 1:
        return jnp.where(is_new, own, 0.0), (jnp.zeros(count, bool), ~jnp.isfinite(own)), cache

    each = max(1, config.rollouts // count)
    below = rules.below_doubt(config, jnp.repeat(doubted, each)) if rules.follows_doubt else config
    below = replace(below, rollouts=count * each)
    numbers = first_node * each + jnp.arange(count * each, dtype=jnp.int32)
    lanes, over = jax.tree.map(lambda leaf: jnp.repeat(leaf, each, axis=0), (states, ~is_new))
    rollouts = simulate(Start(seed, numbers, lanes, over), problem, below, cache)
    returns, sigma = (part.reshape(count, each) for part in (rollouts.returns, rollouts.uncertainty))
    value = jax.vmap(lambda returned, doubt: rules.leaf_value(returned, doubt, config))(returns, sigma)
    bad = (jnp.any(jnp.isnan(nan_if_invalid(sigma)), axis=1), ~jnp.isfinite(value))
    if problem.value is not None:
        value = weight * own + (1.0 - weight) * value
        bad = (bad[0], bad[1] | ~jnp.isfinite(own))
    return jnp.where(is_new, value, 0.0), bad, rollouts.cache


def grow(graph: Graph, grown: Grown, grows: jax.Array) -> Graph:
    """The graph with one more row, if it `grows`; else what is written lies where the next row will be."""
    row, new = grown.number, grown.successors
    first_node = FIRST + row * graph.num_actions * graph.slots

    def put(leaf: jax.Array, part: jax.Array) -> jax.Array:
        written: jax.Array = jax.lax.dynamic_update_index_in_dim(leaf, part.astype(leaf.dtype), row, 0)
        return written

    def put_nodes(leaf: jax.Array, part: jax.Array) -> jax.Array:
        return jax.lax.dynamic_update_slice_in_dim(leaf, part.astype(leaf.dtype), first_node, 0)

    fields = {name: put(getattr(graph, name), getattr(grown.row, name)) for name in Row._fields}
    nodes = first_node + jnp.arange(new.is_new.size, dtype=jnp.int32)
    place = jnp.where(grows, grown.row.owner, graph.row.size)
    return graph._replace(
        state=jax.tree.map(put_nodes, graph.state, new.state),
        doubted=put_nodes(graph.doubted, new.doubted),
        value=put_nodes(graph.value, new.value),
        row=put_nodes(graph.row, jnp.where(new.is_new, UNEXPANDED, UNUSED)).at[place].set(row, mode="drop"),
        table=enter(graph.table, new.prints, nodes, new.is_new),
        rows=row + grows,
        open=graph.open - grows + jnp.sum(new.is_new),
        **fields,
    )
