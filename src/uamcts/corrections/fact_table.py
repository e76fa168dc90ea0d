"""`Facts`: a hash table of arrays, looked up by a state and an action."""

from __future__ import annotations

import math
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp

from uamcts.mcts.state_hash import fingerprint, words_of
from uamcts.types import PyTree

CAPACITY = 1024
NOWHERE = -1
"""In `slots`: nothing lies here."""


class Facts(eqx.Module):
    """A hash table from (state, action) to a tree of arrays; the last value that was put there is the one that counts.

    States are compared in full, word for word: there are no false matches. (Where states hold floats, a state that was
    computed in another way and differs in the last bit is another state.) Rows lie in the order they came; `slots`, at
    least twice as many, say where, by linear probing from a hash.
    """

    keys: jax.Array
    """The words of state and action. uint32 [capacity + 1, words]; the last row takes what there is no room for."""
    values: PyTree
    """[capacity + 1, ...]."""
    slots: jax.Array
    """The row of a key, or NOWHERE. int32, a power of two of them."""
    count: jax.Array
    """Rows that are taken. int32."""

    @classmethod
    def empty(cls, state: PyTree, value: PyTree, capacity: int = CAPACITY) -> Self:
        """Room for `capacity` different transitions from states like `state`, each with a value like `value`."""
        width = jax.eval_shape(lambda state: _key(state, jnp.int32(0)), state).size

        def rows(leaf: Any) -> jax.Array:
            return jnp.zeros((capacity + 1, *jnp.shape(leaf)), jnp.asarray(leaf).dtype)

        keys = jnp.zeros((capacity + 1, width), jnp.uint32)
        return cls(keys, jax.tree.map(rows, value), _no_slots(capacity), jnp.int32(0))

    @property
    def capacity(self) -> int:
        return self.keys.shape[0] - 1

    def find(self, state: PyTree, action: jax.Array) -> tuple[PyTree, jax.Array]:
        """The value of a transition, and whether there is one; where there is none the value means nothing."""
        row = self.slots[_probe(self.keys, self.slots, _key(state, action))]
        return jax.tree.map(lambda leaf: leaf[jnp.maximum(row, 0)], self.values), row != NOWHERE

    def put(self, state: PyTree, action: jax.Array, value: PyTree, wanted: Any = True) -> Self:
        """With this value for a transition, if it is `wanted`.

        Where there is no room left for a new transition, nothing is kept: call `reserve` before.
        """
        key = _key(state, action)
        slot = _probe(self.keys, self.slots, key)
        known = self.slots[slot] != NOWHERE
        new = wanted & ~known & (self.count < self.capacity)
        row = jnp.where(wanted & known, self.slots[slot], jnp.where(new, self.count, self.capacity))
        return type(self)(
            self.keys.at[row].set(key),
            jax.tree.map(lambda rows, leaf: rows.at[row].set(jnp.asarray(leaf, rows.dtype)), self.values, value),
            self.slots.at[slot].set(jnp.where(new, row, self.slots[slot])),
            self.count + new,
        )

    def reserve(self, transitions: int) -> Self:
        """The same with room for this many more; at least twice as large if larger.

        Not for use under `jit`. The arrays may have leading axes for runs.
        """
        axis = jnp.ndim(self.count)
        have = self.keys.shape[axis] - 1
        needed = int(jnp.max(self.count)) + transitions
        if needed <= have:
            return self
        capacity = max(needed, 2 * have)

        def longer(rows: jax.Array) -> jax.Array:
            return jnp.pad(rows, [(0, capacity - have if place == axis else 0) for place in range(rows.ndim)])

        return type(self)(longer(self.keys), jax.tree.map(longer, self.values), self.slots, self.count).reindexed()

    def reindexed(self) -> Self:
        """The same rows with slots that were computed anew. Not for use under `jit`; axes for runs may lead."""
        axis = jnp.ndim(self.count)
        place = _placed
        for _ in range(axis):
            place = jax.vmap(place, (0, 0, None))
        slots = jax.jit(place)(self.keys, self.count, _no_slots(self.keys.shape[axis] - 1))
        return type(self)(self.keys, self.values, slots, self.count)


def _no_slots(capacity: int) -> jax.Array:
    """Empty slots, so many that never more than half of them are taken."""
    return jnp.full(2 ** math.ceil(math.log2(2 * capacity + 2)), NOWHERE, jnp.int32)


def _key(state: PyTree, action: jax.Array) -> jax.Array:
    """The words of a state and an action, [words]."""
    return jnp.stack(words_of((state, jnp.asarray(action, jnp.int32))))


def _probe(keys: jax.Array, slots: jax.Array, key: jax.Array) -> jax.Array:
    """The slot of a key: where it is, or where it would go."""
    start = (fingerprint(key)[0] & jnp.uint32(slots.size - 1)).astype(jnp.int32)

    def elsewhere(slot: jax.Array) -> jax.Array:
        row = slots[slot]
        return (row != NOWHERE) & jnp.any(keys[jnp.maximum(row, 0)] != key)

    return jax.lax.while_loop(elsewhere, lambda slot: (slot + 1) & (slots.size - 1), start)


def _placed(keys: jax.Array, count: jax.Array, slots: jax.Array) -> jax.Array:
    """Empty `slots` with the first `count` of `keys` in them."""

    def place(row: jax.Array, slots: jax.Array) -> jax.Array:
        return slots.at[_probe(keys, slots, keys[row])].set(row)

    return jax.lax.fori_loop(0, count, place, slots)
