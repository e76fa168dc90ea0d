"""`Facts`: a hash table of arrays, looked up by a state and an action."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from uamcts.mcts.state_hash import fingerprint, words_of
from uamcts.runtime.zeros import zero_rows
from uamcts.types import PyTree

CAPACITY = 1024
NOWHERE = -1
"""In `slots`: nothing lies here."""

Key: TypeAlias = UInt32[Array, " words"]
Slots: TypeAlias = Int[Array, "*runs slots"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Facts:
    """A hash table from (state, action) to a tree of arrays; a new value replaces the old one.

    States are compared in full, word for word: there are no false matches. (Where states hold floats, a state that was
    computed in another way and differs in the last bit is another state.) Rows are in order of arrival; `slots`, at
    least twice as many, point to them, by linear probing from a hash.
    """

    keys: UInt32[Array, "*runs rows words"]
    """The words of state and action in capacity + 1 rows; the last row takes what there is no room for."""
    values: PyTree
    """[capacity + 1, ...]."""
    slots: Slots
    """The row of a key, or NOWHERE; a power of two of them."""
    count: Int[Array, "*runs"]
    """Rows that are taken."""

    @classmethod
    def empty(cls, state: PyTree, value: PyTree, capacity: int = CAPACITY) -> Self:
        """Room for `capacity` different transitions from states like `state`, each with a value like `value`."""
        width = jax.eval_shape(lambda state: _key(state, jnp.int32(0)), state).size
        keys, values = zero_rows((np.zeros(width, np.uint32), value), capacity + 1)
        return cls(keys, values, _no_slots(capacity), jnp.int32(0))

    @property
    def capacity(self) -> int:
        return self.keys.shape[0] - 1

    def find(self, state: PyTree, action: Int[Array, ""]) -> tuple[PyTree, Bool[Array, ""]]:
        """The value of a transition, and whether there is one; where there is none the value means nothing."""
        row = self.slots[_probe(self.keys, self.slots, _key(state, action))]
        return jax.tree.map(lambda leaf: leaf[jnp.maximum(row, 0)], self.values), row != NOWHERE

    def put(self, state: PyTree, action: Int[Array, ""], value: PyTree, wanted: bool | Bool[Array, ""] = True) -> Self:
        """Stores a value for a transition, if it is `wanted`.

        Where there is no room left for a new transition, nothing is stored: call `reserve` first.
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
        """Makes room for this many more; a table that grows at least doubles.

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

        return type(self)(longer(self.keys), jax.tree.map(longer, self.values), self.slots, self.count).reindex()

    def reindex(self) -> Self:
        """Recomputes the slots. Not for use under `jit`; axes for runs may lead."""
        axis = jnp.ndim(self.count)
        place: Callable[..., jax.Array] = _fill_slots
        for _ in range(axis):
            place = jax.vmap(place, (0, 0, None))
        slots = jax.jit(place)(self.keys, self.count, _no_slots(self.keys.shape[axis] - 1))
        return type(self)(self.keys, self.values, slots, self.count)


def _no_slots(capacity: int) -> Slots:
    """Empty slots, so many that never more than half of them are taken."""
    return jnp.full(2 ** math.ceil(math.log2(2 * capacity + 2)), NOWHERE, jnp.int32)


def _key(state: PyTree, action: Int[Array, ""]) -> Key:
    """The words of a state and an action."""
    return jnp.stack(words_of((state, jnp.asarray(action, jnp.int32))))


def _probe(keys: UInt32[Array, "rows words"], slots: Slots, key: Key) -> Int[Array, ""]:
    """The slot of a key: where it is, or where it would go."""
    start = (fingerprint(key)[0] & jnp.uint32(slots.size - 1)).astype(jnp.int32)

    def elsewhere(slot: jax.Array) -> jax.Array:
        row = slots[slot]
        return (row != NOWHERE) & jnp.any(keys[jnp.maximum(row, 0)] != key)

    slot: jax.Array = jax.lax.while_loop(elsewhere, lambda slot: (slot + 1) & (slots.size - 1), start)
    return slot


def _fill_slots(keys: UInt32[Array, "rows words"], count: Int[Array, ""], slots: Slots) -> Slots:
    """Puts the first `count` of `keys` into empty `slots`."""

    def place(row: jax.Array, slots: jax.Array) -> jax.Array:
        return slots.at[_probe(keys, slots, keys[row])].set(row)

    filled: jax.Array = jax.lax.fori_loop(0, count, place, slots)
    return filled
