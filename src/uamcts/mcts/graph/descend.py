"""Descent: from the root along the best scores to a node that is not expanded.

score_a = x_a + c sqrt(ln N / n_a)               x_a is Q(s, a) scaled to [0, 1] among the actions
score_a = x_a + c P(a) sqrt(N) / (1 + n_a)       with prior probabilities P
UA-Selection corrects the score by what is uncertain about the action: see `Rules.score`. Among the outcomes of an
action the descent follows the one with the largest p / (visits + 1); those that end the episode have nothing to find.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.graph.graph import END, ROOT, UNEXPANDED, Graph
from uamcts.mcts.graph.loops import masked_while
from uamcts.mcts.rules import find_rules
from uamcts.mcts.select import normalize
from uamcts.mcts.tree import put, unrolled_argmax, unrolled_reduce


class Descent(NamedTuple):
    """A path through the graph on its way."""

    node: jax.Array
    rows: jax.Array
    """The rows of the nodes left behind, [longest], of which the first `length` count."""
    length: jax.Array
    visits: jax.Array
    """The graph's visits: counted on the way, so that a path through a cycle does not run in circles."""


def descend(graph: Graph, config: SearchConfig, longest: int, limit: jax.Array | int) -> Descent:
    """Follows a path to a node without a row, to END, to a dead end, or until it has `limit` steps."""

    def active(path: Descent) -> jax.Array:
        return (graph.row[path.node] != UNEXPANDED) & (path.length < limit)

    def step(path: Descent) -> Descent:
        going = active(path)
        row = jnp.maximum(graph.row[path.node], 0)
        action = best_action(graph, path.visits, row, config)
        slot = next_outcome(graph, path.visits, row, action)
        counted = path.visits.at[row, action, slot].add(jnp.where(going, 1.0, 0.0))
        onward = Descent(graph.child[row, action, slot], put(path.rows, path.length, row), path.length + 1, counted)
        node, rows, length = jax.tree.map(lambda new, old: jnp.where(going, new, old), onward[:3], path[:3])
        return Descent(node, rows, length, counted)

    start = Descent(jnp.int32(ROOT), jnp.zeros(longest, jnp.int32), jnp.int32(0), graph.visits)
    return masked_while(active, step, start)


def best_action(graph: Graph, visits: jax.Array, row: jax.Array, config: SearchConfig) -> jax.Array:
    """The action with the best score; ties go to the first."""
    rules = find_rules(config.rules)
    exists, bias, quality = graph.exists[row], graph.bias[row], graph.quality[row]
    tried = jnp.sum(visits[row], axis=1)
    total = unrolled_reduce(jnp.add, tried) + 1.0
    scaled = normalize(quality, exists) if rules.normalizes else quality
    if graph.prior.shape[1]:
        exploration = config.c * graph.prior[row] * jnp.sqrt(total) / (1.0 + tried)
    else:
        exploration = config.c * jnp.sqrt(jnp.log(total) / (1.0 + tried))
    score = rules.score(scaled, exploration, bias)
    allowed = rules.candidates(exists, quality, bias)
    return unrolled_argmax(jnp.where(allowed, score, -jnp.inf))


def next_outcome(graph: Graph, visits: jax.Array, row: jax.Array, action: jax.Array) -> jax.Array:
    """The outcome slot to follow: the most likely one in proportion to how often it was followed."""
    weight = graph.probability[row, action] / (visits[row, action] + 1.0)
    return unrolled_argmax(jnp.where(graph.child[row, action] == END, 0.0, weight))
