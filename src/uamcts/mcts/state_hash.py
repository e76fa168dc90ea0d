"""States as words of 32 bits, and fingerprints of them, for tables that are looked up by a state."""

from __future__ import annotations

from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Shaped, UInt32

from uamcts.randomness import GOLDEN, hash_word
from uamcts.types import PyTree

Word: TypeAlias = UInt32[Array, ""]
Words: TypeAlias = UInt32[Array, " words"]
Constants: TypeAlias = UInt32[np.ndarray, " words"]

UNROLLED = 32
"""Up to this many words of an array are mixed one by one, which the compiler fuses with the code around them; the words
of a larger array are mixed as a vector, so that programs stay small. The fingerprint is the same either way."""


def words_of(tree: PyTree) -> list[Word]:
    """The contents of a tree of arrays as words. Two trees of one form have equal words exactly where they are equal.

    Floats are compared by value: -0.0 is 0.0. All NaNs count as one value that equals itself, because a table must find
    what was put into it.
    """
    return [word for leaf in jax.tree.leaves(tree) for word in _words(leaf)]


def word_vector(tree: PyTree) -> Words:
    """The words of `words_of` as one vector."""
    return jnp.concatenate([jnp.zeros(0, jnp.uint32), *(_words(leaf) for leaf in jax.tree.leaves(tree))])


def fingerprint(tree: PyTree) -> tuple[Word, Word]:
    """Two words for a state, the second never 0; equal states have equal fingerprints.

    Every word of the state is mixed with its position before the words are added up, so that states which differ in few
    bits, such as one-hot vectors, do not cancel out. Two different states share a fingerprint with probability 2^-63:
    among a million states some two do with probability 5e-8.
    """
    first, second = jnp.uint32(0), jnp.uint32(GOLDEN)
    position = 0
    for leaf in jax.tree.leaves(tree):
        words = _words(leaf)
        salts, odd = _constants(position, words.size)
        position += words.size
        if words.size <= UNROLLED:
            for word, salt, factor in zip(words, salts, odd, strict=True):
                one, other = _mix(word, salt, factor)
                first, second = first + one, second + other
        else:
            ones, others = _mix(words, salts, odd)
            first = first + jnp.sum(ones, dtype=jnp.uint32)
            second = second + jnp.sum(others, dtype=jnp.uint32)
    return hash_word(first), hash_word(second) | 1


def quick_word(words: Words) -> Word:
    """A quick hash, one multiplication a word. It collides more often than a fingerprint."""
    _, odd = _constants(0, words.size)
    return hash_word(jnp.sum(words * odd, dtype=jnp.uint32))


def _mix(
    word: Word | Words, salt: np.uint32 | Constants, factor: np.uint32 | Constants
) -> tuple[Word | Words, Word | Words]:
    """Two words in which every bit of `word` matters; no sum of the first kind determines a sum of the second."""
    mixed = hash_word(word ^ salt)
    return mixed, (mixed ^ (mixed >> 15)) * factor


def _constants(start: int, count: int) -> tuple[Constants, Constants]:
    """Numbers without pattern, and odd ones, for `count` positions from `start` on."""
    places = np.arange(start, start + count, dtype=np.uint64)
    with np.errstate(over="ignore"):  # splitmix64
        number = (places + 1) * np.uint64(0x9E3779B97F4A7C15)
        number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        number = number ^ (number >> np.uint64(31))
    return number.astype(np.uint32), (number >> np.uint64(32)).astype(np.uint32) | np.uint32(1)


def _words(leaf: PyTree) -> Words:
    """The words of an array."""
    leaf = jnp.asarray(leaf)
    if jnp.issubdtype(leaf.dtype, jnp.floating):
        return _float_words(leaf.astype(jnp.promote_types(leaf.dtype, jnp.float32)))
    if leaf.dtype == jnp.bool_ or leaf.dtype.itemsize < 4:
        leaf = leaf.astype(jnp.int32)
    return jax.lax.bitcast_convert_type(leaf, jnp.uint32).reshape(-1)


def _float_words(leaf: Shaped[Array, "*shape"]) -> Words:
    """The words of floats: their bits, with one pattern for both zeros and one for all NaNs.

    The bits are compared as integers because processors may take tiny numbers for 0.
    """
    unsigned = jnp.dtype(f"uint{8 * leaf.dtype.itemsize}")
    zero, infinity, nan = (np.array(number, leaf.dtype).view(unsigned)[()] for number in (0.0, np.inf, np.nan))
    bits = jax.lax.bitcast_convert_type(leaf, unsigned)
    size = bits & unsigned.type(np.iinfo(unsigned).max >> 1)  # without the sign
    bits = jnp.where(size == zero, zero, jnp.where(size > infinity, nan, bits))
    return jax.lax.bitcast_convert_type(bits, jnp.uint32).reshape(-1)
