"""Selection: from the root down to a leaf, along the best scores.

x_i     = r_i + gamma value(v_i)               the reward of the transition into a child is not in its value
score_i = x_i + c sqrt(ln N(v) / N(v_i))       UCT (Kocsis and Szepesvari, 2006)
score_i = x_i + c P_i sqrt(N(v)) / (1 + N(v_i))    with prior probabilities P
UA-Selection corrects the score by what is uncertain about the child: see `rules/`. Among the outcomes of an action the
descent follows the one with the largest p / (visits + 1), so that each is visited as often as it is likely.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uamcts.mcts.batch import Arrays, Batch, run_batch
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.rules import find_rules
from uamcts.mcts.tree import ROOT, TOTAL, UNEXPANDED, VISITS, WEIGHT, Tree, argmax_actions, reduce_actions
from uamcts.types import Number


class Path(NamedTuple):
    """The places from the root to a leaf: the first `length` of `places`."""

    places: Int[Array, " levels"]
    length: Int[Array, ""]
    leaf: Int[Array, ""]


def select(tree: Tree, config: SearchConfig, longest: int, limit: Number) -> Path:
    """Descends to a place without children, by at most `limit` transitions; `longest` is the most of any path.

    The tree is only read: it is not part of what the loop carries. All searches of a batch take a step at a time
    together, so that the next place of all paths is one column of an array.
    """
    outside = tree.children.size

    def descend(batch: Batch, lanes: Arrays) -> Arrays:
        def step(descent: _Descent) -> _Descent:
            place, length, active, path, level = descent
            child = jnp.where(active, batch.each(_next_place, place), place)
            path = jax.lax.dynamic_update_slice(path, jnp.where(active, child, outside)[:, None], (jnp.int32(0), level))
            length = length + active
            return _Descent(child, length, batch.each(_goes_on, child, length), path, level + 1)

        root, length = lanes[0], jnp.ones(lanes[0].size, jnp.int32)
        path = jnp.full((root.size, longest + 2), outside, jnp.int32).at[:, 0].set(root)
        start = _Descent(root, length, batch.each(_goes_on, root, length), path, jnp.int32(1))
        end = jax.lax.while_loop(lambda descent: jnp.any(descent.active), step, start)
        return [end.path, end.length, end.place]

    return Path(*run_batch(descend, (tree, config, limit), [jnp.int32(ROOT)]))


def extend(path: Path, child: Int[Array, ""], grows: Bool[Array, ""]) -> Path:
    """The path with one more place at its end, if the tree grew there."""
    places = jnp.where(grows & (jnp.arange(path.places.size) == path.length), child, path.places)
    return Path(places, path.length + grows, jnp.where(grows, child, path.leaf))


class _Descent(NamedTuple):
    """Where the descents of all searches of a batch have arrived."""

    place: Int[Array, " searches"]
    length: Int[Array, " searches"]
    active: Bool[Array, " searches"]
    """Whether a descent goes on."""
    path: Int[Array, "searches levels"]
    level: Int[Array, ""]


def _next_place(tree: Tree, config: SearchConfig, limit: Number, place: Int[Array, ""]) -> Int[Array, ""]:
    del limit
    return next_outcome(tree, best_child(tree, place, config))


def _goes_on(
    tree: Tree, config: SearchConfig, limit: Number, place: Int[Array, ""], length: Int[Array, ""]
) -> Bool[Array, ""]:
    del config
    goes_on: jax.Array = (tree.entry(tree.children, place) != UNEXPANDED) & (length <= limit)
    return goes_on


class Family(NamedTuple):
    """The children of a place: their rows of the tree, with the meaning they have there."""

    exists: Bool[Array, " actions"]
    stats: Float[Array, "actions 3"]
    reward: Float[Array, " actions"]
    bias: Float[Array, " actions"]
    keep: Float[Array, " actions"]
    prior: Float[Array, " actions"] | None = None


def best_child(tree: Tree, place: Int[Array, ""], config: SearchConfig) -> Int[Array, ""]:
    """The child with the best score, or the first one never visited; ties go to the first in action order."""
    block = tree.entry(tree.children, place)
    prior = None if tree.prior is None else tree.prior[block]
    family = Family(
        tree.exists[block], tree.stats[block], tree.rewards(block), tree.bias[block], tree.keep[block], prior
    )
    return block * tree.num_actions + choose_child(family, visits_of(tree, place), config)


def choose_child(family: Family, parent_visits: Float[Array, ""], config: SearchConfig) -> Int[Array, ""]:
    """The action of that child."""
    rules = find_rules(config.rules)
    exists, stats, reward, bias, keep, prior = family
    values = child_values(stats, reward, keep, config)
    visits = stats[:, VISITS]
    score = scores(Siblings(exists, parent_visits, visits, values, bias, prior), config)
    if prior is not None:
        return argmax_actions(jnp.where(exists, score, -jnp.inf))
    unvisited = rules.first_choice(exists & (visits == 0), bias)
    allowed = unvisited | rules.candidates(exists, values, bias)
    best = argmax_actions(jnp.where(allowed, jnp.where(unvisited, jnp.inf, score), -jnp.inf))
    if config.first is None:
        return best
    return jnp.where(reduce_actions(jnp.logical_or, unvisited), first_of(unvisited, config), best)


def first_of(children: Bool[Array, " actions"], config: SearchConfig) -> Int[Array, ""]:
    """Which of these children is tried first."""
    if config.first is None:
        return jnp.argmax(children).astype(jnp.int32)
    actions = jnp.arange(children.size, dtype=jnp.int32)
    order = actions - config.first + jnp.where(actions < config.first, children.size, 0)
    return argmax_actions(jnp.where(children, -order.astype(float), -jnp.inf))


def visits_of(tree: Tree, place: Int[Array, ""]) -> Float[Array, ""]:
    """N of a place."""
    if tree.chance is not None:
        return tree.entry(tree.chance.visits, place)
    return tree.entry(tree.stats, place)[VISITS]


def next_outcome(tree: Tree, node: Int[Array, ""]) -> Int[Array, ""]:
    """The place of a node that is visited next; ties go to the first."""
    if tree.chance is None:
        return node
    probability, visits = (leaf.reshape(-1, tree.slots)[node] for leaf in tree.chance)
    return node * tree.slots + jnp.argmax(probability / (visits + 1.0)).astype(jnp.int32)


def child_values(
    stats: Float[Array, "actions 3"],
    reward: Float[Array, " actions"],
    keep: Float[Array, " actions"],
    config: SearchConfig,
) -> Float[Array, " actions"]:
    """x_i of each child of a block; only those of visited children mean anything."""
    rules = find_rules(config.rules)
    value = rules.value(jnp.maximum(stats[:, VISITS], 1.0), stats[:, TOTAL], stats[:, WEIGHT])
    return cast(jax.Array, rules.child_value(value, reward, keep, config))


class Siblings(NamedTuple):
    """The children of a place, as far as their scores depend on them."""

    exists: Bool[Array, " actions"]
    parent_visits: Float[Array, ""]
    visits: Float[Array, " actions"]
    values: Float[Array, " actions"]
    """x_i: see `child_values`."""
    bias: Float[Array, " actions"]
    prior: Float[Array, " actions"] | None = None


def scores(siblings: Siblings, config: SearchConfig) -> Float[Array, " actions"]:
    """The scores of siblings that exist.

    Without a prior, only those of visited children mean anything. With one, a child that was never visited has the mean
    value of those that were.
    """
    rules = find_rules(config.rules)
    exists, parent_visits, visits, values, bias, prior = siblings
    if prior is None:
        exploration = config.c * jnp.sqrt(jnp.log(jnp.maximum(parent_visits, 1.0)) / jnp.maximum(visits, 1.0))
        scaled = normalize(values, exists) if rules.normalizes else values
        return cast(jax.Array, rules.score(scaled, exploration, bias))
    visited = exists & (visits > 0)
    scaled, count = normalize(values, visited) if rules.normalizes else values, jnp.sum(visited)
    mean = jnp.where(count > 0, jnp.sum(jnp.where(visited, scaled, 0.0)) / jnp.maximum(count, 1), 0.5)
    exploration = config.c * prior * jnp.sqrt(parent_visits) / (1.0 + visits)
    return cast(jax.Array, rules.score(jnp.where(visited, scaled, mean), exploration, bias))


def normalize(values: Float[Array, " actions"], exists: Bool[Array, " actions"]) -> Float[Array, " actions"]:
    """Values scaled to [0, 1] among the siblings that exist; 0.5 where all are equal."""
    low = reduce_actions(jnp.minimum, jnp.where(exists, values, jnp.inf))
    high = reduce_actions(jnp.maximum, jnp.where(exists, values, -jnp.inf))
    spread = high - low
    return jnp.where(spread > 0, (values - low) / jnp.where(spread > 0, spread, 1.0), 0.5)
