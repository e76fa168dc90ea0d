"""The hash table that finds the node of a state.

A row of the table holds `WAYS` entries of three words: the two words of a fingerprint and a node. A state whose row is
full is not entered: it gets a node of its own wherever it is met, which costs sharing but is not wrong. There are at
most half as many entries as nodes would need at two per row, so this happens to about one state in 10,000 at most.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from uamcts.mcts.graph.equals import count_before, first_equals
from uamcts.mcts.state_hash import fingerprint, word_vector
from uamcts.types import PyTree

WAYS = 8
_DOUBTED = np.uint32(0xA5A5F00D)


class Found(NamedTuple):
    """Where successors [n] are in a graph."""

    known: Bool[Array, " n"]
    """Whether a node holds the state. bool."""
    node: Int[Array, " n"]
    """That node. int32."""
    first: Int[Array, " n"]
    """The first of the successors that is equal to this one. int32."""
    prints: UInt32[Array, "n 2"]
    """Fingerprints, [n, 2]."""


def empty_table(nodes: int) -> jax.Array:
    """A table for up to `nodes` states, [rows, 3 * WAYS]."""
    rows = 1 << max(0, (2 * nodes // WAYS - 1)).bit_length()
    return jnp.zeros((rows, 3 * WAYS), jnp.uint32)


def key_words(state: PyTree, doubted: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The fingerprint [2] of what tells nodes apart, and all of it as words."""
    first, second = fingerprint(state)
    print_ = jnp.stack([first ^ jnp.where(doubted, _DOUBTED, np.uint32(0)), second])
    return print_, jnp.append(word_vector(state), doubted.astype(jnp.uint32))


def look_up(
    table: jax.Array, states: PyTree, doubted: jax.Array, sought: PyTree, sought_doubted: jax.Array, wanted: jax.Array
) -> Found:
    """Finds the nodes of the states `sought` [n] where `wanted` [n].

    `states` and `doubted` are those of the graph's nodes. Fingerprints lead to a node, the whole state decides.
    """
    prints, words = jax.vmap(key_words)(sought, sought_doubted)
    entries = table[row_of(table, prints)].reshape(-1, WAYS, 3)
    same = jnp.all(entries[:, :, :2] == prints[:, None], axis=2)
    node = jnp.max(jnp.where(same, entries[:, :, 2], 0), axis=1).astype(jnp.int32)
    there = jax.tree.map(lambda leaf: leaf[node], states)
    equal = jnp.all(jax.vmap(key_words)(there, doubted[node])[1] == words, axis=1)
    known = wanted & jnp.any(same, axis=1) & equal
    return Found(known, node, first_equals(words, prints, wanted), prints)


def row_of(table: jax.Array, prints: jax.Array) -> jax.Array:
    """The rows of fingerprints [n, 2]."""
    return (prints[:, 0] & np.uint32(table.shape[0] - 1)).astype(jnp.int32)


def enter(table: jax.Array, prints: jax.Array, nodes: jax.Array, wanted: jax.Array) -> jax.Array:
    """The table with `nodes` [n] under their fingerprints where `wanted` [n], which must be new and different."""
    rows = row_of(table, prints)
    taken = jnp.sum(table[rows].reshape(-1, WAYS, 3)[:, :, 1] != 0, axis=1)
    way = taken + count_before(rows, wanted)
    place = jnp.where(wanted & (way < WAYS), rows, table.shape[0])
    entry = jnp.concatenate([prints, nodes[:, None].astype(jnp.uint32)], axis=1)
    columns = 3 * jnp.minimum(way, WAYS - 1)[:, None] + jnp.arange(3)
    return table.at[place[:, None], columns].set(entry, mode="drop")


def enter_many(table: jax.Array, prints: jax.Array, nodes: jax.Array, wanted: jax.Array) -> jax.Array:
    """The same for an empty table and many nodes: sorted by row, a node's rank within its row is its way."""
    rows = jnp.where(wanted, row_of(table, prints), table.shape[0])
    order = jnp.argsort(rows)
    rows = rows[order]
    way = jnp.arange(rows.size) - jnp.searchsorted(rows, rows)
    place = jnp.where(way < WAYS, rows, table.shape[0])
    entry = jnp.concatenate([prints, nodes[:, None].astype(jnp.uint32)], axis=1)[order]
    columns = 3 * jnp.minimum(way, WAYS - 1)[:, None] + jnp.arange(3)
    return table.at[place[:, None], columns].set(entry, mode="drop")
