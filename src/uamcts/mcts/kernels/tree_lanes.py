"""What one thread does to its tree: down to a leaf and new children, or up again with a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.mcts.kernels.scalarize import Value, any_lane, evaluate
from uamcts.mcts.kernels.table import Entries, Entry, Table, fill
from uamcts.mcts.select import Family
from uamcts.mcts.tree import ROOT, UNEXPANDED, VISITS
from uamcts.types import PyTree

TreeTables: TypeAlias = Any
"""A `Tree` whose leaves are tables."""
Lanes: TypeAlias = jax.Array
"""A vector over lanes."""


class Function(NamedTuple):
    """An unbatched function as a jaxpr, and the arrays that it closes over."""

    jaxpr: Any
    constants: list[Any]
    """As arrays, or inside a kernel as its values."""

    def __call__(self, *arguments: PyTree) -> list[Entries]:
        """The leaves of what it returns, in every lane."""
        leaves = jax.tree.leaves(arguments, is_leaf=lambda leaf: isinstance(leaf, Table))
        found = evaluate(self.jaxpr, self.constants, leaves)
        return [value.load() if isinstance(value, Table) else value for value in found]


def trace(function: Callable[..., Any], *shapes: PyTree) -> Function:
    """An unbatched function of arguments with these shapes."""
    closed = jax.make_jaxpr(function)(*shapes)
    return Function(closed.jaxpr, [jnp.asarray(constant) for constant in closed.consts])


def deal(values: Sequence[Value], functions: Sequence[Function]) -> list[Function]:
    """The functions with the constants that a kernel was given for all of them."""
    ends = np.cumsum([len(function.constants) for function in functions])
    return [
        function._replace(constants=list(values[end - len(function.constants) : end]))
        for end, function in zip(ends, functions, strict=True)
    ]


class Descent(NamedTuple):
    """Where a descent has arrived."""

    place: Lanes
    length: Lanes
    below: Lanes
    """The block of the children of the place."""
    active: Lanes
    """Whether it goes on."""
    doubted: Lanes


def descend(tree: TreeTables, places: Table, choose: Function, limit: Entry, follows_doubt: bool) -> Descent:
    """Walks down to a place without children and notes the way in `places`."""
    shape, actions = tree.children.lanes, tree.exists.shape[1]

    def look(place: Lanes, length: Lanes, doubted: Lanes) -> Descent:
        below = tree.children.get(place)
        return Descent(place, length, below, (below != UNEXPANDED) & (length <= limit), doubted)

    def step(here: Descent) -> Descent:
        rows = (tree.exists, tree.stats, tree.reward, tree.bias, tree.keep)
        family = Family(*(table.row(here.below) for table in rows))
        (action,) = choose(family, fill((), tree.stats.get(here.place * 3 + VISITS)))
        child = jnp.where(here.active, here.below * actions + action[()], here.place)
        places.put(here.length, child, here.active)
        doubted = here.doubted
        if follows_doubt:
            doubted = doubted | (here.active & (tree.keep.get(child) < 1.0))
        return look(child, here.length + here.active.astype(jnp.int32), doubted)

    zero = jnp.zeros(shape, jnp.int32)
    places.put(0, zero + ROOT)
    start = look(zero + ROOT, zero + 1, jnp.zeros(shape, jnp.bool_))
    return Descent(*jax.lax.while_loop(lambda here: any_lane(here.active), step, start))


def write_children(tree: TreeTables, block: Entry, children: PyTree) -> None:
    """Writes a new block, not yet linked to a parent."""
    for name in ("exists", "terminal", "reward", "uncertainty", "bias", "keep"):
        getattr(tree, name).put_row(block, getattr(children, name))
    tables = jax.tree.leaves(tree.state, is_leaf=lambda leaf: isinstance(leaf, Table))
    for table, row in zip(tables, jax.tree.leaves(children.state), strict=True):
        table.put_row(block, row)


class PathTables(NamedTuple):
    """What backpropagation reads."""

    reward: Table
    keep: Table
    places: Table
    length: Entries
    value: Entries
    revisited: Entries


def climb(path: PathTables, stats: Table, pieces: int, onward: Function, credit: Function) -> None:
    """Adds a value to the nodes of a path, from the leaf up to the root."""
    shape = stats.lanes

    def step(carry: PyTree) -> PyTree:
        level, values, below = carry
        active = level >= 0
        node = jnp.where(active, path.places.get(jnp.maximum(level, 0)), 0)
        keep, reward = fill((), path.keep.get(node)), fill((), path.reward.get(node))
        entries = [fill((), value) for value in values]
        (added,) = credit(entries, keep)
        for number, amount in enumerate((1.0, added[()], below)):
            place = node * 3 + number
            stats.put(place, stats.get(place) + amount, active)
        above = onward(entries, reward, keep)
        return level - 1, [jnp.broadcast_to(value[()], shape) for value in above], keep[()]

    last = jnp.broadcast_to(path.length[()], shape) - 1
    values = [jnp.broadcast_to(path.value[()], shape)] * pieces
    # A leaf that was visited before and could not grow was visited for itself.
    below = jnp.broadcast_to(jnp.where(path.revisited[()], 1.0, 0.0).astype(stats.dtype), shape)
    jax.lax.while_loop(lambda carry: any_lane(carry[0] >= 0), step, (last, values, below))
