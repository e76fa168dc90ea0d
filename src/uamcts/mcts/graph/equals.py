"""Which of the successors of a node are equal: by comparing all pairs if there are few, through buckets if not.

All pairs of 1,000 successors took nine tenths of an iteration. With buckets, every round settles the first successor
of each bucket and those equal to it; there are four buckets for each successor, and so a handful of rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt32

from uamcts.mcts.loops import masked_while

FEW = 128
"""Up to so many successors are compared pair by pair."""


class _Rounds(NamedTuple):
    number: Int[Array, ""]
    left: Bool[Array, " n"]
    """Which ones are not settled yet."""
    found: Int[Array, " n"]


def first_equals(
    words: UInt32[Array, "n words"], prints: UInt32[Array, "n 2"], wanted: Bool[Array, " n"]
) -> Int[Array, " n"]:
    """The first of those that are `wanted` which is equal to each of them. int32.

    Equal ones have equal fingerprints.
    """
    if wanted.size <= FEW:
        twins = wanted[None] & jnp.all(words[:, None] == words[None], axis=2)
        return jnp.argmax(twins, axis=1).astype(jnp.int32)

    def settle(rounds: _Rounds) -> _Rounds:
        # Another step of double hashing in every round, so that different ones soon part.
        leader = _leaders(prints[:, 0] + rounds.number.astype(jnp.uint32) * prints[:, 1], rounds.left)
        equal = rounds.left & jnp.all(words[leader] == words, axis=1)
        return _Rounds(rounds.number + 1, rounds.left & ~equal, jnp.where(equal, leader, rounds.found))

    return _run(settle, wanted)


def count_before(rows: Int[Array, " n"], wanted: Bool[Array, " n"]) -> Int[Array, " n"]:
    """How many of those that are `wanted` lie before each of them and have the same row. int32."""
    if wanted.size <= FEW:
        earlier = jnp.arange(rows.size)[None] < jnp.arange(rows.size)[:, None]
        return jnp.sum(earlier & (rows[None] == rows[:, None]) & wanted[None], axis=1)

    def settle(rounds: _Rounds) -> _Rounds:
        leader = _leaders(rows.astype(jnp.uint32), rounds.left)
        first = leader == jnp.arange(rows.size)
        behind = rounds.left & ~first & (rows[leader] == rows)
        return _Rounds(rounds.number + 1, rounds.left & ~first, rounds.found + behind)

    return _run(settle, wanted)


def _run(settle: Callable[[_Rounds], _Rounds], wanted: Bool[Array, " n"]) -> Int[Array, " n"]:
    """Rounds until all are settled."""
    start = _Rounds(jnp.int32(0), wanted, jnp.zeros(wanted.size, jnp.int32))
    return masked_while(lambda rounds: jnp.any(rounds.left), settle, start).found


def _leaders(hashes: UInt32[Array, " n"], left: Bool[Array, " n"]) -> Int[Array, " n"]:
    """The first one that is left in the bucket of each that is left."""
    buckets = 1 << (4 * left.size - 1).bit_length()
    place = (hashes & jnp.uint32(buckets - 1)).astype(jnp.int32)
    own = jnp.arange(left.size, dtype=jnp.int32)
    first = jnp.full(buckets, left.size - 1, jnp.int32).at[jnp.where(left, place, buckets)].min(own, mode="drop")
    return first[place]
