"""Random numbers for inner loops: a hashed counter, far cheaper there than a full generator.

A seed of two words is drawn from a key once, outside the loops. Every draw of a search is a function of (seed, purpose,
index) alone, so another engine that is given the same seed makes the same draws.
"""

from __future__ import annotations

from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt32

Seed: TypeAlias = UInt32[Array, " 2"]
"""The seed of a search."""

GOLDEN = np.uint32(0x9E3779B9)
"""2^32 over the golden ratio, odd: multiples of it spread evenly over the words."""

ROLLOUT, DELETION, CHILD, TIE = range(4)
"""The purposes of draws in a search."""


def seed_of(key: PRNGKeyArray) -> Seed:
    """Two words drawn from `key`."""
    return jax.random.bits(key, (2,), dtype=jnp.uint32)


def hash_word(number: UInt32[Array, "*n"]) -> UInt32[Array, "*n"]:
    """Hashes a word: two rounds of multiply and xor-shift, a bijection in which every bit of `number` matters.

    The constants are those of Wellons' search for low bias ("lowbias32", bias 0.17).
    """
    number = number ^ (number >> 16)
    number = number * np.uint32(0x7FEB352D)
    number = number ^ (number >> 15)
    number = number * np.uint32(0x846CA68B)
    return number ^ (number >> 16)


def draw(seed: Seed, purpose: int, index: Int[Array, "*n"]) -> UInt32[Array, "*n"]:
    """A random word for the `index`-th draw of a purpose."""
    return hash_word(hash_word(seed[0] + index.astype(jnp.uint32) * GOLDEN) ^ (seed[1] + np.uint32(purpose)))


def stream_word(start: UInt32[Array, "*n"], step: Int[Array, ""]) -> UInt32[Array, "*n"]:
    """The `step`-th word of the stream that begins with the word `start`."""
    return hash_word(start + step.astype(jnp.uint32) * GOLDEN)


def randint(bits: UInt32[Array, "*n"], count: int | Int[Array, ""]) -> Int[Array, "*n"]:
    """Maps a random word to 0 .. count - 1 by multiplication; the bias is below count / 65536."""
    return (((bits >> 16) * jnp.asarray(count).astype(jnp.uint32)) >> 16).astype(jnp.int32)


def uniform(bits: UInt32[Array, "*n"]) -> Float[Array, "*n"]:
    """Maps a random word to a float in [0, 1) with 24 random bits."""
    return (bits >> 8).astype(jnp.float32) * np.float32(2.0**-24)


def pick(bits: UInt32[Array, ""], allowed: Bool[Array, " n"]) -> Int[Array, ""]:
    """Chooses one of the places where `allowed` holds, all equally likely; 0 if there is none."""
    rank = randint(bits, jnp.sum(allowed))
    return jnp.argmax(allowed & (jnp.cumsum(allowed) == rank + 1)).astype(jnp.int32)
