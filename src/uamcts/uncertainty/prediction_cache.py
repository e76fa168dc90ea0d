"""Predictions for everything that a batch of rollouts met, each computed once.

A search meets the same states over and over (in Breakout some 8,000 times a move, of which 350 are different and 20
were not met in an earlier move), and a network does not change between two rounds of training. So on a CPU its answers
are kept in a table, and only states that are new go through the network, a few at a time. The numbers are the same. On
a GPU one matrix product for everything is faster than looking up.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from uamcts.mcts.state_hash import fingerprint
from uamcts.types import PyTree

SETS, WAYS = 2**15, 2
"""The table has 2 places for each of 32,768 values of a hash. Where both are taken, a newer state replaces one.

It is one array of words [sets, ways * (2 + actions)], so that looking something up is one read: for each way two words
that tell a state from others, and the answers for its actions. These words are the state's fingerprint and stand for
the state: two states share them with probability 2^-63, so with a full table one lookup in 10^14 goes wrong.
"""
AT_ONCE = ((64, 33), (16, 1))
"""New states that go through the network together, and how many there must be for it."""


@dataclass(frozen=True)
class PredictionCache:
    """Asks `predict` (state, action) -> U for many transitions at once; a `BatchedUncertainty`.

    An answer is kept for all `num_actions` actions of a state. `remember` None: on a CPU.
    """

    predict: Callable[[PyTree, jax.Array], jax.Array]
    num_actions: int
    remember: bool | None = None

    def __call__(self, state: PyTree, action: jax.Array) -> jax.Array:
        return self.predict(state, action)

    def memory(self) -> jax.Array | None:
        """An empty table, None where nothing is remembered."""
        if not (jax.default_backend() == "cpu" if self.remember is None else self.remember):
            return None
        return jnp.zeros((SETS, WAYS * (2 + self.num_actions)), jnp.uint32)

    def glance(self, memory: jax.Array, state: PyTree, action: jax.Array) -> tuple[jax.Array, jax.Array]:
        """What the table says about one transition, and whether it says anything."""
        first, second = fingerprint(state)
        row, width = memory[_set(first)], 2 + self.num_actions
        found, known = jnp.uint32(0), jnp.bool_(False)
        for way in range(0, WAYS * width, width):  # written out, the compiler merges it with the rollout's step
            here = (row[way] == first) & (row[way + 1] == second)
            answer = row[way + 2]
            for other in range(1, self.num_actions):
                answer = jnp.where(action == other, row[way + 2 + other], answer)
            found, known = jnp.where(here, answer, found), known | here
        return jax.lax.bitcast_convert_type(found, jnp.float32), known

    def many(
        self, memory: jax.Array | None, states: PyTree, actions: jax.Array, wanted: jax.Array
    ) -> tuple[jax.Array, jax.Array | None]:
        """U of `actions` [n] in `states` [n, ...] where `wanted` [n], and the table with what is new in it."""
        if memory is None:
            return jax.vmap(self.predict)(states, actions), None
        first, second = jax.vmap(fingerprint)(states)
        found, known = jax.vmap(self.glance, (None, 0, 0))(memory, states, actions)
        every_action = jnp.arange(self.num_actions)

        def fill(at_once: int, carry: tuple) -> tuple:
            found, missing, table = carry
            chosen = first_of(missing, at_once)
            rows = jax.tree.map(lambda leaf: leaf[chosen], states)
            answers = jax.vmap(jax.vmap(self.predict, (None, 0)), (0, None))(rows, every_action)
            same = (first[:, None] == first[chosen]) & (second[:, None] == second[chosen])
            answered = missing & jnp.any(same, axis=1)
            found = jnp.where(answered, answers[jnp.argmax(same, axis=1), actions], found)
            table = kept(table, first[chosen], second[chosen], answers)
            return found, missing & ~answered, table

        carry = (found, wanted & ~known, memory)
        for at_once, least in AT_ONCE:
            if actions.size >= least:
                enough = functools.partial(lambda least, carry: jnp.sum(carry[1]) >= least, least)
                carry = jax.lax.while_loop(enough, functools.partial(fill, min(at_once, actions.size)), carry)
        return carry[0], carry[2]


def kept(table: jax.Array, first: jax.Array, second: jax.Array, answers: jax.Array) -> jax.Array:
    """The table with `answers` [n, actions] to the states with these words, one after the other."""
    words = jnp.column_stack([first, second, jax.lax.bitcast_convert_type(answers, jnp.uint32)])

    def put(index: jax.Array, table: jax.Array) -> jax.Array:
        row = table[_set(first[index])].reshape(WAYS, -1)
        same = (row[:, 0] == first[index]) & (row[:, 1] == second[index])
        free = row[:, 1] == 0
        way = jnp.where(jnp.any(free), jnp.argmax(free), (second[index] >> 1) % WAYS)
        way = jnp.where(jnp.any(same), jnp.argmax(same), way).astype(jnp.int32)
        place = (_set(first[index]), way * words.shape[1])
        return jax.lax.dynamic_update_slice(table, words[index][None], place)

    return jax.lax.fori_loop(0, first.size, put, table)


def _set(first: jax.Array) -> jax.Array:
    return (first & (SETS - 1)).astype(jnp.int32)


def first_of(conditions: jax.Array, count: int) -> jax.Array:
    """Where the first `count` of `conditions` [n] hold; the first of all again where fewer do."""
    rank = jnp.cumsum(conditions)
    wanted = jnp.arange(1, count + 1)
    wanted = jnp.where(wanted <= rank[-1], wanted, 1)
    return jnp.argmax((rank == wanted[:, None]) & conditions, axis=1)
