"""Predictions for all transitions of a batch of rollouts, each computed once.

A search meets the same states over and over (in Breakout some 8,000 states a move, of which 350 are distinct and 20 are
new since the last move), and a network does not change between two rounds of training. On a CPU its predictions are
therefore kept in a table, and only new states go through the network, a few at a time. The numbers are the same. On a
GPU one matrix product for everything is faster than lookups.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from uamcts.mcts.state_hash import Word, fingerprint
from uamcts.mcts.tree import FEW_ACTIONS
from uamcts.types import PyTree

SETS, WAYS = 2**15, 2
"""The table has 2 places for each of 32,768 values of a hash. Where both are taken, a newer state replaces one.

It is one array of words, so that a lookup is one read: for each way the two words of a state's fingerprint, and the
predictions for its actions. Two states share a fingerprint with probability 2^-63, so with a full table one lookup in
10^14 goes wrong.
"""
AT_ONCE = ((64, 33), (16, 1))
"""How many new states go through the network together, and how many there must be for it."""

Table: TypeAlias = UInt32[Array, "sets width"]
Predictions: TypeAlias = Float[Array, " batch"]
Filling: TypeAlias = tuple[Predictions, Bool[Array, " batch"], Table]
"""What is found so far, what is missing, and the table."""


@dataclass(frozen=True)
class PredictionCache:
    """A `BatchedUncertainty` that evaluates `predict` for many transitions at once.

    Predictions are cached for all `num_actions` actions of a state. `remember=None` caches on a CPU only.
    `predict_states` predicts for all actions of many states, where there is a faster way than `jax.vmap` of `predict`.
    """

    predict: Callable[[PyTree, Int[Array, ""]], Float[Array, ""]]
    num_actions: int
    remember: bool | None = None
    predict_states: Callable[[PyTree], Float[Array, "states actions"]] | None = None

    def __call__(self, state: PyTree, action: Int[Array, ""]) -> Float[Array, ""]:
        return self.predict(state, action)

    def empty_cache(self) -> Table | None:
        """An empty table; None if predictions are not cached."""
        if not (jax.default_backend() == "cpu" if self.remember is None else self.remember):
            return None
        return jnp.zeros((SETS, WAYS * (2 + self.num_actions)), jnp.uint32)

    def lookup(self, cache: Table, state: PyTree, action: Int[Array, ""]) -> tuple[Float[Array, ""], Bool[Array, ""]]:
        """The prediction in the table for one transition, and whether there is one."""
        first, second = fingerprint(state)
        row, width = cache[_set(first)], 2 + self.num_actions
        found, known = jnp.uint32(0), jnp.bool_(False)
        for way in range(0, WAYS * width, width):  # written out, the compiler merges it with the rollout's step
            here = (row[way] == first) & (row[way + 1] == second)
            answer = _word_of(row, way + 2, action, self.num_actions)
            found, known = jnp.where(here, answer, found), known | here
        return jax.lax.bitcast_convert_type(found, jnp.float32), known

    def predict_batch(
        self, cache: Table | None, states: PyTree, actions: Int[Array, " batch"], wanted: Bool[Array, " batch"]
    ) -> tuple[Predictions, Table | None]:
        """U-hat of a batch of transitions where it is `wanted`, and the table with the new ones."""
        if cache is None:
            return jax.vmap(self.predict)(states, actions), None
        first, second = jax.vmap(fingerprint)(states)
        found, known = jax.vmap(self.lookup, (None, 0, 0))(cache, states, actions)

        def fill(at_once: int, carry: Filling) -> Filling:
            found, missing, table = carry
            chosen = first_of(missing, at_once)
            rows = jax.tree.map(lambda leaf: leaf[chosen], states)
            answers = self._predict_states(rows, at_once)
            same = (first[:, None] == first[chosen]) & (second[:, None] == second[chosen])
            answered = missing & jnp.any(same, axis=1)
            found = jnp.where(answered, answers[jnp.argmax(same, axis=1), actions], found)
            table = insert(table, first[chosen], second[chosen], answers)
            return found, missing & ~answered, table

        carry = (found, wanted & ~known, cache)
        for at_once, least in AT_ONCE:
            if actions.size >= least:
                enough = functools.partial(lambda least, carry: jnp.sum(carry[1]) >= least, least)
                carry = jax.lax.while_loop(enough, functools.partial(fill, min(at_once, actions.size)), carry)
        return carry[0], carry[2]

    def map(self, change: Callable[[jax.Array], jax.Array]) -> PredictionCache:
        """The same uncertainty, with every prediction put through `change`."""
        states = self.predict_states
        return replace(
            self,
            predict=lambda state, action: change(self.predict(state, action)),
            predict_states=None if states is None else lambda rows: change(states(rows)),
        )

    def _predict_states(self, states: PyTree, count: int) -> Float[Array, "states actions"]:
        """Predictions for all actions of `count` states."""
        if self.predict_states is not None and count >= AT_ONCE[0][0]:
            return self.predict_states(states)
        return jax.vmap(jax.vmap(self.predict, (None, 0)), (0, None))(states, jnp.arange(self.num_actions))


def _word_of(row: UInt32[Array, " width"], start: int, action: Int[Array, ""], num_actions: int) -> Word:
    """The word of an action, of those that begin at `start`."""
    if num_actions > FEW_ACTIONS:
        return row[start + action]
    word = row[start]
    for other in range(1, num_actions):
        word = jnp.where(action == other, row[start + other], word)
    return word


def insert(
    table: Table,
    first: UInt32[Array, " states"],
    second: UInt32[Array, " states"],
    answers: Float[Array, "states actions"],
) -> Table:
    """Puts predictions for the states with these fingerprints into the table, one after the other."""
    words = jnp.column_stack([first, second, jax.lax.bitcast_convert_type(answers, jnp.uint32)])

    def put(index: jax.Array, table: jax.Array) -> jax.Array:
        row = table[_set(first[index])].reshape(WAYS, -1)
        same = (row[:, 0] == first[index]) & (row[:, 1] == second[index])
        free = row[:, 1] == 0
        way = jnp.where(jnp.any(free), jnp.argmax(free), (second[index] >> 1) % WAYS)
        way = jnp.where(jnp.any(same), jnp.argmax(same), way).astype(jnp.int32)
        place = (_set(first[index]), way * words.shape[1])
        return jax.lax.dynamic_update_slice(table, words[index][None], place)

    filled: jax.Array = jax.lax.fori_loop(0, first.size, put, table)
    return filled


def _set(first: Word) -> Int[Array, ""]:
    return (first & (SETS - 1)).astype(jnp.int32)


def first_of(conditions: Bool[Array, " batch"], count: int) -> Int[Array, " count"]:
    """The first `count` places where a condition holds; the very first again where there are fewer."""
    rank = jnp.cumsum(conditions)
    wanted = jnp.arange(1, count + 1)
    wanted = jnp.where(wanted <= rank[-1], wanted, 1)
    return jnp.argmax((rank == wanted[:, None]) & conditions, axis=1)
