"""Backpropagation: the leaf's value travels up to the root.

plain: N(v) += 1;  Q(v) += value;  value <- gamma value + r(v)
UA-Backpropagation lets less of a value pass where a transition is uncertain: see `Rules.pieces` and `Rules.credit`.
"""

from __future__ import annotations

import functools
import operator
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uamcts.mcts.batch import Arrays, Batch, change_rows, run_batch
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.rules import Rules, find_rules
from uamcts.mcts.select import Path
from uamcts.mcts.tree import TALLY, TOTAL, VISITS, Tree
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
    stats, *counts = run_batch(functools.partial(_climb, find_rules(config.rules)), given, [tree.stats, *counts])
    chance = None if tree.chance is None else tree.chance._replace(visits=counts[0])
    return tree._replace(stats=stats, chance=chance)


class _Step(NamedTuple):
    """A value on its way up: what it does at one node, and how it goes on."""

    place: Int[Array, ""]
    node: Int[Array, ""]
    amounts: Float[Array, " 3"]
    onward: tuple[Float[Array, ""], ...]
    keep: Float[Array, ""]


def _climb(rules: Rules, batch: Batch, tables: Arrays) -> Arrays:
    """Changes the statistics of all nodes of the paths of a batch of searches, from the leaves to the roots."""

    def begin(tree: Tree, path: Path, value: jax.Array, revisited: jax.Array, config: SearchConfig) -> PyTree:
        # A leaf that was visited before and could not grow was visited for itself.
        values = (value,) * len(rules.pieces(0.0, 1.0, config))
        return path.length, values, jnp.where(revisited, 1.0, 0.0).astype(value.dtype)

    def step(
        tree: Tree, path: Path, value: jax.Array, revisited: jax.Array, config: SearchConfig,
        level: jax.Array, values: tuple[jax.Array, ...], below: jax.Array,
    ) -> _Step:  # fmt: skip
        del value, revisited
        place = path.places[level]
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
    visit = functools.partial(count_visit, rules)

    def rise(carry: PyTree) -> PyTree:
        level, values, below, (stats, *counts) = carry
        active = level < length
        found = batch.each(step, jnp.broadcast_to(level, length.shape), values, below)
        stats = change_rows(visit, stats, found.node, found.amounts, active)
        counts = [change_rows(operator.add, table, found.place, jnp.ones_like(below), active) for table in counts]
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
    # Slopes are at least 0, and at most one transition of a path has pieces that differ: so the least of the pieces at
    # each transition is the least of the climbs.
    climbs = [climb(value, above, slope, offset) for slope, offset in rules.pieces(reward, keep, config)]
    added = cast(jax.Array, rules.credit(functools.reduce(jnp.minimum, climbs), keep))

    # A visit of a child adds its keep to its parent's weight: the child is one further along the path. A leaf that was
    # visited before and could not grow was visited for itself.
    below = jnp.where(above, jnp.roll(keep, -1), 0.0)
    below = jnp.where((levels == path.length - 1) & revisited, 1.0, below)

    amounts = jnp.stack([jnp.ones_like(added), added, below], axis=-1)
    rows = tree.stats.reshape(-1, 3).at[nodes]
    changed = jax.vmap(functools.partial(count_visit, rules))(rows.get(mode="clip"), amounts)
    tree = tree._replace(stats=rows.set(changed, mode="drop").reshape(tree.stats.shape))
    if tree.chance is None:
        return tree
    visits = tree.chance.visits.reshape(-1).at[path.places].add(1.0, mode="drop")
    return tree._replace(chance=tree.chance._replace(visits=visits.reshape(tree.children.shape)))


def count_visit(rules: Rules, stats: Float[Array, " 3"], amounts: Float[Array, " 3"]) -> Float[Array, " 3"]:
    """The statistics of a node after one more visit: `amounts` are 1, what is added to Q, and what went on below."""
    tally = rules.tally(stats[TALLY], stats[VISITS], amounts[TOTAL], amounts[TALLY])
    return jnp.stack([stats[VISITS] + amounts[VISITS], stats[TOTAL] + amounts[TOTAL], jnp.asarray(tally)])


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
