"""Reuse: the part of an earlier tree below the outcome that became real.

Its blocks move into a tree of fixed size, with their visits and values. Blocks that find no room, the last made first,
are dropped: the places that they belonged to keep their visits and may be expanded again.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from uamcts.mcts.state_hash import word_vector
from uamcts.mcts.tree import UNEXPANDED, VISITS, Tree
from uamcts.types import Number, PyTree


def move_root(previous: Tree, fresh: Tree, state: PyTree, keep: int, follows_doubt: bool) -> Tree:
    """`fresh`, a tree of the root and its children, with at most `keep` blocks of `previous` from below `state`.

    A state that is no outcome of the previous root's actions leaves `fresh` as it is. So does one behind a doubtful
    transition: there the search was less careful, and now that the outcome is known it need not be.
    """
    block = previous.children[0, 0]
    outcomes = jax.tree.map(lambda leaf: leaf[block], previous.state)
    equal = jnp.all(jax.vmap(word_vector)(outcomes) == word_vector(state), axis=1)
    usable = previous.exists[block]
    if follows_doubt:
        usable = usable & (previous.keep[block] >= 1.0)
    usable = jnp.repeat(usable, previous.slots) & equal & ~previous.terminal[block] & (block != UNEXPANDED)
    usable = usable & (previous.children[block] != UNEXPANDED)
    visits = previous.stats[block, :, VISITS] if previous.chance is None else previous.chance.visits[block]
    place = jnp.argmax(jnp.where(usable, visits, -1.0))
    moved = _compact(previous, fresh, previous.children[block, place], min(keep, previous.children.shape[0]))
    moved = set_root_visits(moved, visits[place])
    chosen: Tree = jax.tree.map(lambda new, old: jnp.where(jnp.any(usable), new, old), moved, fresh)
    return chosen


def set_root_visits(tree: Tree, visits: Number) -> Tree:
    """The tree with another N of the root."""
    tree = tree._replace(stats=tree.stats.at[0, 0, VISITS].set(visits))
    if tree.chance is None:
        return tree
    return tree._replace(chance=tree.chance._replace(visits=tree.chance.visits.at[0, 0].set(visits)))


def below(tree: Tree, top: jax.Array) -> jax.Array:
    """Which blocks are `top` or descend from it, conditions [blocks]."""
    numbers = jnp.arange(tree.children.shape[0], dtype=jnp.int32)
    parents = jnp.broadcast_to(numbers[:, None], tree.children.shape)
    ancestor = jnp.zeros_like(numbers).at[tree.children.reshape(-1)].set(parents.reshape(-1))
    ancestor = ancestor.at[0].set(0).at[top].set(top)
    for _ in range(numbers.size.bit_length()):  # every round looks twice as far up
        ancestor = ancestor[ancestor]
    return (ancestor == top) & (top != UNEXPANDED)


def _compact(previous: Tree, fresh: Tree, top: jax.Array, keep: int) -> Tree:
    """The tree whose root has the children `top`: the kept blocks, in their order, are blocks 1 and following."""
    numbers = jnp.arange(previous.children.shape[0], dtype=jnp.int32)
    kept = below(previous, top)
    old = jnp.argsort(jnp.where(kept, numbers, numbers.size))[:keep]
    places = jnp.where(kept[old], old, numbers.size)
    new = jnp.full(numbers.size, UNEXPANDED, jnp.int32)
    new = new.at[places].set(1 + jnp.arange(keep, dtype=jnp.int32), mode="drop")

    def fill(empty: jax.Array, part: jax.Array) -> jax.Array:
        filled: jax.Array = jax.lax.dynamic_update_slice_in_dim(empty, part[old].astype(empty.dtype), 1, 0)
        return filled

    linked = previous._replace(children=new[previous.children])
    moved: Tree = jax.tree.map(fill, fresh, linked)
    return moved._replace(children=moved.children.at[0, 0].set(1))
