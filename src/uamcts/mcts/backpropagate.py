"""Backpropagation: the leaf's value travels up to the root.

plain: N(v) += 1;  Q(v) += value;  value <- gamma value + r(v)
UA-Backpropagation lets less of a value pass where a transition is uncertain: see `Rules.pieces` and `Rules.credit`.
"""

from __future__ import annotations

import functools
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uamcts.mcts.batch import Arrays, Batch, add_rows, run_batch
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.rules import find_rules
from uamcts.mcts.select import Path
from uamcts.mcts.tree import Tree
from uamcts.types import Number, PyTree


def backpropagate(
    tree: Tree, path: Path, value: Float[Array, ""], revisited: Bool[Array, ""], config: SearchConfig
) -> Tree:
    """The tree after `value` was found at the end of `path`.

    `revisited`: the node of the leaf had been visited before and the leaf did not grow. A CPU goes up the paths of all
    searches together, level by level. A GPU, for which every round of a loop is a few kernels, scatters along the path.
    """
    if jax.default_backend() != "cpu":
        return _scatter(tree, path, value, revisited, config)
    counts = [] if tree.chance is None else [tree.chance.visits]
    given = (tree._replace(state=None), path, value.astype(tree.stats.dtype), revisited, config)
    stats, *counts = run_batch(_climb, given, [tree.stats, *counts])
    chance = None if tree.chance is None else tree.chance._replace(visits=counts[0])
    return tree._replace(stats=stats, chance=chance)


class _Step(NamedTuple):
    """A value on its way up: what it does at one node, and how it goes on."""

    place: Int[Array, ""]
    node: Int[Array, ""]
    amounts: Float[Array, " 3"]
    onward: tuple[Float[Array, ""], ...]
    keep: Float[Array, ""]


def _climb(batch: Batch, tables: Arrays) -> Arrays:
    """Adds to the statistics of all nodes of the paths of a batch of searches, from the leaves to the roots."""

    def begin(tree: Tree, path: Path, value: jax.Array, revisited: jax.Array, config: SearchConfig) -> PyTree:
        rules = find_rules(config.rules)
        # A leaf that was visited before and could not grow was visited for itself.
        values = (value,) * len(rules.pieces(0.0, 1.0, config))
        return path.length, values, jnp.where(revisited, 1.0, 0.0).astype(value.dtype)

    def step(
        tree: Tree, path: Path, value: jax.Array, revisited: jax.Array, config: SearchConfig,
        level: jax.Array, values: tuple[jax.Array, ...], below: jax.Array,
    ) -> _Step:  # fmt: skip
        del value, revisited
        rules, place = find_rules(config.rules), path.places[level]
        node = tree.node_of(place)
        reward, keep = tree.entry(tree.reward, place), tree.entry(tree.keep, node)
        # At most one transition of a path has pieces that differ: so the least of the pieces at each transition is the
        # least of the climbs.
        added = rules.credit(functools.reduce(jnp.minimum, values), keep)
        amounts = jnp.stack([jnp.ones_like(below), jnp.asarray(added, below.dtype), below])
        pieces = rules.pieces(reward, keep, config)
        onward = tuple(slope * one + offset for one, (slope, offset) in zip(values, pieces, strict=True))
        return _Step(place, node, amounts, onward, keep)

    length, values, below = batch.each(begin)

    def rise(carry: PyTree) -> PyTree:
        level, values, below, (stats, *counts) = carry
        active = level < length
        found = batch.each(step, jnp.broadcast_to(level, length.shape), values, below)
        stats = add_rows(stats, found.node, found.amounts, active)
        counts = [add_rows(table, found.place, jnp.ones_like(below), active) for table in counts]
        values, below = jax.tree.map(
            lambda new, old: jnp.where(active, new, old), (found.onward, found.keep), (values, below)
        )
        return level - 1, values, below, [stats, *counts]

    start = (jnp.max(length) - 1, values, below, tables)
    end: Arrays = jax.lax.while_loop(lambda carry: carry[0] >= 0, rise, start)[3]
    return end


def _scatter(tree: Tree, path: Path, value: Float[Array, ""], revisited: Bool[Array, ""], config: SearchConfig) -> Tree:
    """The same as one masked scatter along the path."""
    rules = find_rules(config.rules)
    nodes, levels = tree.node_of(path.places), jnp.arange(path.places.size)
    reward = tree.reward.reshape(-1).at[path.places].get(mode="fill", fill_value=0.0)
    keep = tree.keep.reshape(-1).at[nodes].get(mode="fill", fill_value=1.0)
    above = levels < path.length - 1
    added = cast(jax.Array, rules.credit(values_along(path, value, reward, keep, config), keep))

    # A visit of a child adds its keep to its parent's weight: the child is one further along the path. A leaf that was
    # visited before and could not grow was visited for itself.
    below = jnp.where(above, jnp.roll(keep, -1), 0.0)
    below = jnp.where((levels == path.length - 1) & revisited, 1.0, below)

    amounts = jnp.stack([jnp.ones_like(added), added, below], axis=-1)
    stats = tree.stats.reshape(-1, 3).at[nodes].add(amounts, mode="drop")
    tree = tree._replace(stats=stats.reshape(tree.stats.shape))
    if tree.chance is None:
        return tree
    visits = tree.chance.visits.reshape(-1).at[path.places].add(1.0, mode="drop")
    return tree._replace(chance=tree.chance._replace(visits=visits.reshape(tree.children.shape)))


def values_along(
    path: Path,
    value: Float[Array, ""],
    reward: Float[Array, " levels"],
    keep: Float[Array, " levels"],
    config: SearchConfig,
) -> Float[Array, " levels"]:
    """The value that reaches each place of a path, by the rewards of the transitions and what they `keep`."""
    above = jnp.arange(path.places.size) < path.length - 1
    # Slopes are at least 0, and at most one transition of a path has pieces that differ: so the least of the pieces at
    # each transition is the least of the climbs.
    pieces = find_rules(config.rules).pieces(reward, keep, config)
    return functools.reduce(jnp.minimum, [climb(value, above, *piece) for piece in pieces])


def climb(
    value: Float[Array, ""], above: Bool[Array, " levels"], slope: Number, offset: Number
) -> Float[Array, " levels"]:
    """The values along a path whose leaf has `value`: value_k = slope_(k+1) value_(k+1) + offset_(k+1).

    `above` holds for the places above the leaf. By doubling: in round j every place looks 2^j further down.
    """
    # value_k = times_k * value_(k+1) + plus_k; the leaf needs nobody below.
    times = jnp.where(above, jnp.roll(jnp.broadcast_to(slope, above.shape), -1), 0.0)
    plus = jnp.where(above, jnp.roll(offset, -1), value)
    for distance in (2**j for j in range((times.size - 1).bit_length())):
        further = jnp.arange(times.size) + distance < times.size
        below = jnp.where(further, jnp.roll(times, -distance), 0.0)
        times, plus = times * below, times * jnp.where(further, jnp.roll(plus, -distance), 0.0) + plus
    return plus
