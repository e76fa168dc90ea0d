"""Predictions for all transitions of a batch of rollouts, each computed once.

A search meets the same states over and over (in Breakout some 8,000 states a move, of which 350 are distinct and 20 are
new since the last move), and a network does not change between two rounds of training. On a CPU its predictions are
therefore kept in a table, and only new transitions go through the network, always the same few at a time: a prediction
does not depend on what else is asked for, or on how many searches run side by side. On a GPU one matrix product for
everything is faster than lookups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from uamcts.mcts.loops import one_by_one
from uamcts.mcts.state_hash import Word, fingerprint
from uamcts.types import PyTree

SETS, WAYS = 2**17, 2
"""The table has 2 places for each of 131,072 hash values. Where both are taken, a newer transition replaces one.

It is one array of words, so that a lookup is one read: for each place, the two words of a transition's fingerprint and
its prediction. Two transitions share a fingerprint with probability 2^-63, so with a full table one lookup in 10^14
goes wrong.
"""
WORDS = 3
"""Words of one place."""
AT_ONCE = 8
"""How many transitions go through the network together."""

Table: TypeAlias = UInt32[Array, "sets width"]
Prints: TypeAlias = UInt32[Array, " batch"]
Predictions: TypeAlias = Float[Array, " batch"]
Predict: TypeAlias = Callable[[PyTree, Int[Array, ""]], Float[Array, ""]]
PredictRows: TypeAlias = Callable[[Any, PyTree, Int[Array, " rows"]], Float[Array, " rows"]]


_Filling: TypeAlias = tuple[Predictions, Bool[Array, " batch"], Table]
"""What is found so far, what is missing, and the table."""
_Taken: TypeAlias = tuple[Int[Array, " places"], Int[Array, ""], Table]


class Cache(NamedTuple):
    """What is cached between two rounds of training."""

    table: Table
    prepared: Any
    """What `PredictionCache.prepare` returned; new arrays, because a cache may be donated."""


@dataclass(frozen=True)
class PredictionCache:
    """A `BatchedUncertainty` that evaluates `predict` for many transitions at once.

    `remember=None` caches on a CPU only. `predict_rows(prepared, states, actions)` predicts for a few transitions,
    if there is a faster way than `jax.vmap` of `predict`; `prepared` is what `prepare()` returned for an empty cache.
    """

    predict: Predict
    remember: bool | None = None
    predict_rows: PredictRows | None = None
    prepare: Callable[[], Any] = tuple

    def __call__(self, state: PyTree, action: Int[Array, ""]) -> Float[Array, ""]:
        return self.predict(state, action)

    def empty_cache(self) -> Cache | None:
        """An empty cache; None if predictions are not cached."""
        if not (jax.default_backend() == "cpu" if self.remember is None else self.remember):
            return None
        return Cache(jnp.zeros((SETS, WAYS * WORDS), jnp.uint32), self.prepare())

    def lookup(self, cache: Cache, state: PyTree, action: Int[Array, ""]) -> tuple[Float[Array, ""], Bool[Array, ""]]:
        """The cached prediction for one transition, and whether there is one."""
        return _find(cache.table, *fingerprint_of(state, action))

    def predict_batch(
        self, cache: Cache | None, states: PyTree, actions: Int[Array, " batch"], wanted: Bool[Array, " batch"]
    ) -> tuple[Predictions, Cache | None]:
        """U-hat of a batch of transitions where it is `wanted`, and the cache with the new ones."""
        if cache is None:
            return jax.vmap(self.predict)(states, actions), None
        found, table = one_by_one(self._fill, cache, states, actions, wanted)
        return found, cache._replace(table=table)

    def _fill(
        self, cache: Cache, states: PyTree, actions: Int[Array, " batch"], wanted: Bool[Array, " batch"]
    ) -> tuple[Predictions, Table]:
        """The predictions that are `wanted`, and the table with the new ones."""
        prints = jax.vmap(fingerprint_of)(states, actions)

        def answer(number: Int[Array, ""], carry: _Taken) -> _Taken:
            places, count, table = carry
            start = number * AT_ONCE
            rows = jax.lax.dynamic_slice(places, (start,), (AT_ONCE,))
            some = self._predict_rows(cache.prepared, jax.tree.map(lambda leaf: leaf[rows], states), actions[rows])
            here = (prints[0][rows], prints[1][rows])
            return places, count, insert(table, here, some, jnp.minimum(count - start, AT_ONCE))

        def fill(carry: _Filling) -> _Filling:
            found, missing, table = carry
            listed, many = list_places(missing)
            taken = reserve(table, prints, listed, many)
            table = jax.lax.fori_loop(0, -(-taken[1] // AT_ONCE), answer, taken)[2]

            def read(number: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
                found, missing = carry
                index = listed[number]
                answer, known = _find(table, prints[0][index], prints[1][index])
                found = jax.lax.dynamic_update_slice(found, answer[None], (index,))
                return found, jax.lax.dynamic_update_slice(missing, ~known[None], (index,))

            return *jax.lax.fori_loop(0, many, read, (found, missing)), table

        found, known = jax.vmap(_find, (None, 0, 0))(cache.table, *prints)
        # A second round is needed only where a set of the table has no room for all of its transitions.
        begin = (found, wanted & ~known, cache.table)
        found, _, table = jax.lax.while_loop(lambda carry: jnp.any(carry[1]), fill, begin)
        return found, table

    def map(self, change: Callable[[jax.Array], jax.Array]) -> PredictionCache:
        """The same uncertainty, with every prediction put through `change`."""
        rows = self.predict_rows
        return replace(
            self,
            predict=lambda state, action: change(self.predict(state, action)),
            predict_rows=None if rows is None else lambda *given: change(rows(*given)),
        )

    def _predict_rows(self, prepared: PyTree, states: PyTree, actions: Int[Array, " rows"]) -> Float[Array, " rows"]:
        if self.predict_rows is not None:
            return self.predict_rows(prepared, states, actions)
        return jax.vmap(self.predict)(states, actions)


def _find(table: Table, first: Word, second: Word) -> tuple[Float[Array, ""], Bool[Array, ""]]:
    """The prediction in the table for the transition with this fingerprint, and whether there is one."""
    row, found, known = table[_set(first)], jnp.uint32(0), jnp.bool_(False)
    for way in range(0, WAYS * WORDS, WORDS):  # unrolled, so that the compiler fuses it with the step of the rollout
        here = (row[way] == first) & (row[way + 1] == second)
        found, known = jnp.where(here, row[way + 2], found), known | here
    return jax.lax.bitcast_convert_type(found, jnp.float32), known


def reserve(
    table: Table, prints: tuple[Prints, Prints], listed: Int[Array, " batch"], many: Int[Array, ""]
) -> tuple[Int[Array, " places"], Int[Array, ""], Table]:
    """Finds the distinct ones among the first `many` listed transitions, and reserves places for them.

    Returns:
        Where in the batch they are, how many there are, and the table, with no predictions in their places yet.
    """

    def take(number: jax.Array, carry: _Taken) -> _Taken:
        places, count, table = carry
        index = listed[number]
        first, second = prints[0][index], prints[1][index]
        here, same = _place(table, first, second)
        places = jax.lax.dynamic_update_slice(places, index[None], (count,))
        words = jnp.stack([first, second, jnp.uint32(0)])[None]
        return places, count + ~same, jax.lax.dynamic_update_slice(table, words, here)

    # One more place, which the last repetition is written to.
    places = jnp.zeros(-(-(listed.size + 1) // AT_ONCE) * AT_ONCE, jnp.int32)
    taken: _Taken = jax.lax.fori_loop(0, many, take, (places, jnp.int32(0), table))
    return taken


def list_places(conditions: Bool[Array, " batch"]) -> tuple[Int[Array, " batch"], Int[Array, ""]]:
    """A list that begins with the places where a condition holds, and how many there are."""

    def look(index: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        places, count = carry
        places = jax.lax.dynamic_update_slice(places, index.astype(jnp.int32)[None], (count,))
        return places, count + conditions[index]

    begin = (jnp.zeros(conditions.size, jnp.int32), jnp.int32(0))
    listed: tuple[jax.Array, jax.Array] = jax.lax.fori_loop(0, conditions.size, look, begin)
    return listed


def fingerprint_of(state: PyTree, action: Int[Array, ""]) -> tuple[Word, Word]:
    """Two words for a transition: actions of a state are next to each other in the table."""
    first, second = fingerprint(state)
    return first + action.astype(jnp.uint32), second


def insert(table: Table, prints: tuple[Prints, Prints], answers: Predictions, count: Int[Array, ""] | int) -> Table:
    """Puts the first `count` predictions into the table, one after the other."""
    first, second = prints
    words = jnp.column_stack([first, second, jax.lax.bitcast_convert_type(answers, jnp.uint32)])

    def put(index: jax.Array, table: jax.Array) -> jax.Array:
        here, _ = _place(table, first[index], second[index])
        return jax.lax.dynamic_update_slice(table, words[index][None], here)

    filled: jax.Array = jax.lax.fori_loop(0, count, put, table)
    return filled


def _place(table: Table, first: Word, second: Word) -> tuple[tuple[jax.Array, jax.Array], Bool[Array, ""]]:
    """Where in the table a transition is or should go, and whether it is there."""
    row = table[_set(first)].reshape(WAYS, WORDS)
    same = (row[:, 0] == first) & (row[:, 1] == second)
    free = row[:, 1] == 0
    way = jnp.where(jnp.any(free), jnp.argmax(free), (second >> 1) % WAYS)
    way = jnp.where(jnp.any(same), jnp.argmax(same), way).astype(jnp.int32)
    return (_set(first), way * WORDS), jnp.any(same)


def _set(first: Word) -> Int[Array, ""]:
    return (first & (SETS - 1)).astype(jnp.int32)
