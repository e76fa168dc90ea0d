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
from jaxtyping import Array, Int

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.graph.graph import END, ROOT, Graph
from uamcts.mcts.loops import masked_while
from uamcts.mcts.rules import find_rules
from uamcts.mcts.select import normalize
from uamcts.mcts.tree import FEW_ACTIONS, argmax_actions, put, reduce_actions

UNROLLED = 8
"""Up to so many outcomes of a row are written out one by one."""
ARRIVED, STUCK = -1, -2
"""The last step of a path: to a node without a row or as far as the path may go, or to where it cannot go on."""


class Descent(NamedTuple):
    """A path through the graph on its way.

    The steps of the path are numbers row * (outcomes + 1) + outcome, with actions * slots outcomes in a row; one
    that follows no outcome has the outcome actions * slots.
    """

    step: Int[Array, ""]
    """The next step, ARRIVED or STUCK."""
    node: Int[Array, ""]
    length: Int[Array, ""]
    """How many steps were taken, less than 0 before the path has come to the root."""
    steps: Int[Array, " steps"]
    """The steps taken, [longest + 2], of which the first `length` count."""
    seen: Int[Array, " nodes"]
    """The graph's."""


def descend(graph: Graph, number: jax.Array, config: SearchConfig, longest: int, limit: jax.Array | int) -> Descent:
    """Follows a path to a node without a row, to one where it is stuck, or until it has `limit` steps.

    A path never comes to a node twice: through cycles it would run for long without finding anything new. `number`,
    which is at least 1, tells the descents of a search apart. A round of the loop takes the step that the round before
    chose: so what chooses it is computed once.
    """
    outcomes = graph.num_actions * graph.slots
    child = graph.child.reshape(-1)

    def advance(path: Descent) -> Descent:
        going, step = path.step >= 0, jnp.maximum(path.step, 0)
        onward = child[step // (outcomes + 1) * outcomes + step % (outcomes + 1)]
        node = jnp.where(path.length < 0, ROOT, jnp.where(going, onward, path.node))
        seen = put(path.seen, jnp.where(going, node, END), number)
        row, length = graph.row[node], path.length + going
        chosen = next_step(graph, jnp.maximum(row, 0), seen, number, config)
        chosen = jnp.where((row >= 0) & (length < limit), chosen, ARRIVED)
        # What a path that has ended writes lies beyond its length.
        steps = put(path.steps, jnp.maximum(path.length, 0), step)
        return Descent(jnp.where(going, chosen, path.step), node, length, steps, seen)

    none = jnp.zeros(longest + 2, jnp.int32)
    start = Descent(jnp.int32(0), jnp.int32(ROOT), jnp.int32(-1), none, graph.seen)
    return masked_while(lambda path: path.step >= 0, advance, start)


def append(path: Descent, row: jax.Array, wanted: jax.Array, outcomes: int) -> Descent:
    """The path with a row at its end from which it follows no outcome, if that is `wanted`."""
    steps = put(path.steps, path.length, row * (outcomes + 1) + outcomes)
    return path._replace(steps=steps, length=path.length + wanted)


def look(numbers: jax.Array, places: jax.Array) -> jax.Array:
    """`numbers[places]`, one by one if there are few: see `reduce_actions`."""
    if places.size > UNROLLED:
        return numbers[places]
    return jnp.stack([numbers[place] for place in places.reshape(-1)]).reshape(places.shape)


def next_step(graph: Graph, row: jax.Array, seen: jax.Array, number: jax.Array, config: SearchConfig) -> jax.Array:
    """The step from a row, or STUCK if all of its outcomes end the episode or are on the path."""
    child, visits = graph.child[row], graph.visits[row]
    worthwhile = (child != END) & (look(seen, child) != number)
    useful, tried = worthwhile[:, 0], visits[:, 0]
    for slot in range(1, graph.slots):
        useful, tried = useful | worthwhile[:, slot], tried + visits[:, slot]
    outcome = jnp.arange(graph.num_actions, dtype=jnp.int32) * graph.slots
    if graph.slots > 1:
        outcome = outcome + next_outcomes(graph.probability[row], visits, worthwhile)
    outcome = best_outcome(score_actions(graph, tried, useful, row, config), outcome)
    moves = reduce_actions(jnp.logical_or, useful)
    return jnp.where(moves, row * (graph.num_actions * graph.slots + 1) + outcome, STUCK)


def score_actions(
    graph: Graph, tried: jax.Array, worthwhile: jax.Array, row: jax.Array, config: SearchConfig
) -> jax.Array:
    """The scores of the actions that are `worthwhile`, -infinity for others."""
    rules = find_rules(config.rules)
    exists, bias, quality = graph.exists[row], graph.bias[row], graph.quality[row]
    total = reduce_actions(jnp.add, tried) + 1.0
    scaled = normalize(quality, exists) if rules.normalizes else quality
    if graph.prior.shape[1]:
        exploration = config.c * graph.prior[row] * jnp.sqrt(total) / (1.0 + tried)
    else:
        exploration = config.c * jnp.sqrt(jnp.log(total) / (1.0 + tried))
    score = rules.score(scaled, exploration, bias)
    allowed = rules.candidates(exists & worthwhile, quality, bias)
    return jnp.where(allowed, score, -jnp.inf)


def next_outcomes(probability: jax.Array, visits: jax.Array, worthwhile: jax.Array) -> jax.Array:
    """The outcome slot to follow after each action: the most likely one in proportion to how often it was followed."""
    share = jnp.where(worthwhile, probability / (visits + 1.0), -1.0)
    best, slot = share[:, 0], jnp.zeros(share.shape[0], jnp.int32)
    for other in range(1, share.shape[1]):
        better = share[:, other] > best
        best, slot = jnp.where(better, share[:, other], best), jnp.where(better, jnp.int32(other), slot)
    return slot


def best_outcome(scores: jax.Array, outcome: jax.Array) -> jax.Array:
    """The outcome of the action with the best score; ties go to the first.

    What is chosen is carried along instead of looked up by the action: the compiler would compute the scores anew for
    everything that is looked up.
    """
    if scores.shape[0] > FEW_ACTIONS:
        return outcome[argmax_actions(scores)]
    best, chosen = scores[0], outcome[0]
    for other in range(1, scores.shape[0]):
        better = scores[other] > best
        best, chosen = jnp.where(better, scores[other], best), jnp.where(better, outcome[other], chosen)
    return chosen
