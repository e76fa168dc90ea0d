"""`Facts`: a hash table of arrays, looked up by a state and an action."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from uamcts.mcts.state_hash import Word, fingerprint, quick_word, words_of
from uamcts.runtime.zeros import zero_rows
from uamcts.types import PyTree

CAPACITY = 1024
NOWHERE = -1
"""In `slots`: nothing lies here."""

SLOTS_PER_WORD = 4
"""A filter has a word of 32 bits for so many slots: at least 16 bits a key."""
MARKED, ALL = 0, 1
"""The filters."""

Key: TypeAlias = UInt32[Array, " words"]
Slots: TypeAlias = Int[Array, "*runs slots"]
Filter: TypeAlias = UInt32[Array, " filter_words"]
Filters: TypeAlias = tuple[UInt32[Array, "*runs filter_words"], UInt32[Array, "*runs filter_words"]]


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Facts:
    """A hash table from (state, action) to a tree of arrays; a new value replaces the old one.

    States are compared in full, word for word: there are no false matches. (Where states hold floats, a state that was
    computed in another way and differs in the last bit is another state.) Rows are in order of arrival; `slots`, at
    least twice as many, point to them, by linear probing from a hash.

    Most lookups of a search are about transitions that are not in the table, or about which it says nothing new. A
    filter (Bloom, 1970) tells that from a single word: every key sets two of its bits, and only where both are set are
    the slots looked at. There is one filter for all keys, and one for those that were marked when they were put.
    """

    keys: UInt32[Array, "*runs rows words"]
    """The words of state and action in capacity + 1 rows; the last row takes what there is no room for."""
    values: PyTree
    """[capacity + 1, ...]."""
    slots: Slots
    """The row of a key, or NOWHERE; a power of two of them."""
    filters: Filters
    """The filters of the marked keys, and of all; the number of words is a power of two."""
    marks: Bool[Array, "*runs rows"]
    """Which rows are marked."""
    count: Int[Array, "*runs"]
    """Rows that are taken."""

    @classmethod
    def empty(cls, state: PyTree, value: PyTree, capacity: int = CAPACITY) -> Self:
        """Room for `capacity` different transitions from states like `state`, each with a value like `value`."""
        width = jax.eval_shape(lambda state: _key(state, jnp.int32(0)), state).size
        keys, values = zero_rows((np.zeros(width, np.uint32), value), capacity + 1)
        return cls(keys, values, *_empty_index(capacity), jnp.zeros(capacity + 1, bool), jnp.int32(0))

    @property
    def capacity(self) -> int:
        return self.keys.shape[0] - 1

    def find(
        self, state: PyTree, action: Int[Array, ""], part: Callable[[PyTree], PyTree] = lambda value: value,
        marked: bool = False,
    ) -> tuple[PyTree, Bool[Array, ""]]:  # fmt: skip
        """The value of a transition, and whether there is one; where there is none the value means nothing.

        Args:
            state: the state of the transition.
            action: its action.
            part: what is needed of a value; nothing else is read.
            marked: look for marked transitions only. Others may be found, too.
        """
        key = _key(state, action)
        values = part(self.values)

        def look(carry: _Lookup) -> _Lookup:
            _, slot, known, value = carry
            slot = jnp.where(slot == NOWHERE, _first_slot(self.slots, key), slot)
            row = self.slots[slot]
            known = (row != NOWHERE) & jnp.all(self.keys[row] == key)
            found = jax.tree.map(lambda rows, leaf: jnp.where(known, rows[row], leaf), values, value)
            return (row != NOWHERE) & ~known, _next(slot, self.slots), known, found

        # A loop, which makes no round where the filter excludes the key: unlike `cond`, it does not copy its results.
        nothing = jax.tree.map(lambda rows: jnp.zeros(rows.shape[1:], rows.dtype), values)
        maybe = _passes(self.filters[MARKED if marked else ALL], key)
        start = (maybe, jnp.int32(NOWHERE), jnp.bool_(False), nothing)
        _, _, known, value = jax.lax.while_loop(lambda carry: carry[0], look, start)
        return value, known

    def put(
        self, state: PyTree, action: Int[Array, ""], value: PyTree, wanted: bool | Bool[Array, ""] = True,
        marked: bool | Bool[Array, ""] = True,
    ) -> Self:  # fmt: skip
        """Stores a value for a transition, if it is `wanted`.

        Where there is no room left for a new transition, nothing is stored: call `reserve` first. A marked transition
        stays marked.
        """
        key = _key(state, action)
        slot = _probe(self.keys, self.slots, key)
        known = self.slots[slot] != NOWHERE
        new = wanted & ~known & (self.count < self.capacity)
        stored = new | (wanted & known)
        row = jnp.where(wanted & known, self.slots[slot], jnp.where(new, self.count, self.capacity))
        return replace(
            self,
            keys=self.keys.at[row].set(key),
            values=jax.tree.map(lambda rows, leaf: rows.at[row].set(jnp.asarray(leaf, rows.dtype)), self.values, value),
            slots=self.slots.at[slot].set(jnp.where(new, row, self.slots[slot])),
            filters=_admit(self.filters, key, stored, stored & marked),
            marks=self.marks.at[row].set((self.marks[row] & known) | marked),
            count=self.count + new,
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

        grown = [longer(self.keys), jax.tree.map(longer, self.values), longer(self.marks)]
        return replace(self, **dict(zip(("keys", "values", "marks"), grown, strict=True))).reindex()

    def reindex(self) -> Self:
        """Recomputes slots and filters. Not for use under `jit`; axes for runs may lead."""
        axis = jnp.ndim(self.count)
        place: Callable[..., _Index] = _fill_index
        for _ in range(axis):
            place = jax.vmap(place, (0, 0, 0, None))
        slots, filters = jax.jit(place)(self.keys, self.marks, self.count, _empty_index(self.keys.shape[axis] - 1))
        return replace(self, slots=slots, filters=filters)


_Index: TypeAlias = tuple[Slots, Filters]
_Lookup: TypeAlias = tuple[Bool[Array, ""], Int[Array, ""], Bool[Array, ""], PyTree]
"""Whether to go on, the slot to look at, whether the key was found, and its value."""


def _empty_index(capacity: int) -> _Index:
    """Empty slots, at least twice as many as rows, and empty filters."""
    slots = 2 ** math.ceil(math.log2(2 * capacity + 2))
    marked, every = (jnp.zeros(-(-slots // SLOTS_PER_WORD), jnp.uint32) for _ in range(2))
    return jnp.full(slots, NOWHERE, jnp.int32), (marked, every)


def _key(state: PyTree, action: Int[Array, ""]) -> Key:
    """The words of a state and an action."""
    return jnp.stack(words_of((state, jnp.asarray(action, jnp.int32))))


def _place_in_filter(words: int, key: Key) -> tuple[Int[Array, ""], Word]:
    """The word of a filter that has the bits of a key, and these bits."""
    drawn = quick_word(key)
    both = jnp.uint32(1) << (drawn >> 22 & 31) | jnp.uint32(1) << (drawn >> 27)
    return (drawn & jnp.uint32(words - 1)).astype(jnp.int32), both


def _passes(words: Filter, key: Key) -> Bool[Array, ""]:
    """Whether a key may be in the table."""
    place, both = _place_in_filter(words.size, key)
    return words[place] & both == both


def _admit(filters: Filters, key: Key, stored: Bool[Array, ""], marked: Bool[Array, ""]) -> Filters:
    """The filters with the bits of a key."""

    def add(words: Filter, wanted: Bool[Array, ""]) -> Filter:
        place, both = _place_in_filter(words.size, key)
        return words.at[place].set(words[place] | jnp.where(wanted, both, 0))

    return add(filters[MARKED], marked), add(filters[ALL], stored)


def _first_slot(slots: Slots, key: Key) -> Int[Array, ""]:
    slot: jax.Array = (fingerprint(key)[0] & jnp.uint32(slots.size - 1)).astype(jnp.int32)
    return slot


def _next(slot: Int[Array, ""], slots: Slots) -> Int[Array, ""]:
    return (slot + 1) & (slots.size - 1)


def _probe(keys: UInt32[Array, "rows words"], slots: Slots, key: Key) -> Int[Array, ""]:
    """The slot of a key: where it is, or where it would go."""

    def elsewhere(slot: jax.Array) -> jax.Array:
        row = slots[slot]
        return (row != NOWHERE) & jnp.any(keys[jnp.maximum(row, 0)] != key)

    start = _first_slot(slots, key)
    slot: jax.Array = jax.lax.while_loop(elsewhere, lambda slot: _next(slot, slots), start)
    return slot


def _fill_index(
    keys: UInt32[Array, "rows words"], marks: Bool[Array, " rows"], count: Int[Array, ""], index: _Index
) -> _Index:
    """Puts the first `count` of `keys` into an empty index."""

    def place(row: jax.Array, index: _Index) -> _Index:
        slots, filters = index
        key = keys[row]
        slots = slots.at[_probe(keys, slots, key)].set(row)
        return slots, _admit(filters, key, jnp.bool_(True), marks[row])

    filled: _Index = jax.lax.fori_loop(0, count, place, index)
    return filled
