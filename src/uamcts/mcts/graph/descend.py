"""Descent: from the root along the best scores to a node that is not expanded.

score_a = x_a + c sqrt(ln N / n_a)               x_a is Q(s, a) scaled to [0, 1] among the actions
score_a = x_a + c P(a) sqrt(N) / (1 + n_a)       with prior probabilities P
UA-Selection corrects the score by what is uncertain about the action: see `Rules.score`. Among the outcomes of an
action the descent follows the one with the largest p / (visits + 1). Outcomes that end the episode, and those already
on the path, have nothing new to find: the descent leaves them out.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.graph.graph import END, ROOT, Graph
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
    stuck: jax.Array
    """Whether nothing but END and the path itself can be reached from the node in one step."""
    visits: jax.Array
    """The graph's."""
    seen: jax.Array
    """The graph's."""


def descend(graph: Graph, number: jax.Array, config: SearchConfig, longest: int, limit: jax.Array | int) -> Descent:
    """Follows a path to a node without a row, to one where it is stuck, or until it has `limit` steps.

    A path never comes to a node twice: through cycles it would run for long without finding anything new. `number`,
    which is at least 1, tells the descents of a search apart.
    """

    def active(path: Descent) -> jax.Array:
        return (graph.row[path.node] >= 0) & (path.length < limit) & ~path.stuck

    def step(path: Descent) -> Descent:
        going, row = active(path), jnp.maximum(graph.row[path.node], 0)
        child, visits = graph.child[row], path.visits[row]
        worthwhile = (child != END) & (path.seen[child] != number)
        action = best_action(graph, jnp.sum(visits, axis=1), jnp.any(worthwhile, axis=1), row, config)
        slot = next_outcome(graph.probability[row, action], visits[action], worthwhile[action])
        moves = worthwhile[action, slot]
        node = jnp.where(moves, child[action, slot], path.node)
        counted = path.visits.at[row, action, slot].add(jnp.where(going & moves, 1.0, 0.0))
        seen = path.seen.at[jnp.where(going, node, path.seen.size)].set(number, mode="drop")
        rows, length = put(path.rows, path.length, row), path.length + 1
        small = jax.tree.map(lambda new, old: jnp.where(going, new, old), (node, rows, length, ~moves), tuple(path[:4]))
        return Descent(small[0], small[1], small[2], small[3], counted, seen)

    root, none = jnp.int32(ROOT), jnp.int32(0)
    seen = graph.seen.at[ROOT].set(number)
    start = Descent(root, jnp.zeros(longest, jnp.int32), none, jnp.bool_(False), graph.visits, seen)
    return masked_while(active, step, start)


def best_action(
    graph: Graph, tried: jax.Array, worthwhile: jax.Array, row: jax.Array, config: SearchConfig
) -> jax.Array:
    """The action with the best score among those that are `worthwhile`; ties go to the first."""
    rules = find_rules(config.rules)
    exists, bias, quality = graph.exists[row], graph.bias[row], graph.quality[row]
    total = unrolled_reduce(jnp.add, tried) + 1.0
    scaled = normalize(quality, exists) if rules.normalizes else quality
    if graph.prior.shape[1]:
        exploration = config.c * graph.prior[row] * jnp.sqrt(total) / (1.0 + tried)
    else:
        exploration = config.c * jnp.sqrt(jnp.log(total) / (1.0 + tried))
    score = rules.score(scaled, exploration, bias)
    allowed = rules.candidates(exists & worthwhile, quality, bias)
    return unrolled_argmax(jnp.where(allowed, score, -jnp.inf))


def next_outcome(probability: jax.Array, visits: jax.Array, worthwhile: jax.Array) -> jax.Array:
    """The outcome slot to follow: the most likely one in proportion to how often it was followed."""
    return unrolled_argmax(jnp.where(worthwhile, probability / (visits + 1.0), -1.0))
