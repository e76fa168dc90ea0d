"""Random numbers for the inner loops: a counter through a hash, far cheaper there than a full generator.

Keys stay arguments: a seed of two words is drawn from a key once, outside the loops. Every draw of a search is a
function of (seed, purpose, index) alone, so that another engine given the same seed makes the same draws.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

GOLDEN = np.uint32(0x9E3779B9)
"""2^32 over the golden ratio, odd: multiples of it spread evenly over the words."""

ROLLOUT, DELETION, CHILD, TIE = range(4)
"""The purposes of draws in a search."""


def seed_of(key: jax.Array) -> jax.Array:
    """Two words drawn from `key`, [2]."""
    return jax.random.bits(key, (2,), dtype=jnp.uint32)


def hashed(number: jax.Array) -> jax.Array:
    """A word in which every bit of `number` matters: two rounds of multiply and xor-shift, a bijection.

    The constants are those of Wellons' search for low bias ("lowbias32", bias 0.17).
    """
    number = number ^ (number >> 16)
    number = number * np.uint32(0x7FEB352D)
    number = number ^ (number >> 15)
    number = number * np.uint32(0x846CA68B)
    return number ^ (number >> 16)


def draw(seed: jax.Array, purpose: int, index: jax.Array) -> jax.Array:
    """A random word for the `index`-th draw of a purpose."""
    return hashed(hashed(seed[0] + index.astype(jnp.uint32) * GOLDEN) ^ (seed[1] + np.uint32(purpose)))


def following(word: jax.Array, step: jax.Array) -> jax.Array:
    """The `step`-th word of the stream that starts with `word`."""
    return hashed(word + step.astype(jnp.uint32) * GOLDEN)


def below(bits: jax.Array, count: int | jax.Array) -> jax.Array:
    """A number 0 .. count - 1 out of a random word, by multiplication: its bias is below count / 65536."""
    return (((bits >> 16) * jnp.asarray(count).astype(jnp.uint32)) >> 16).astype(jnp.int32)


def uniform(bits: jax.Array) -> jax.Array:
    """A float in [0, 1) out of a random word, 24 bits of it."""
    return (bits >> 8).astype(jnp.float32) * np.float32(2.0**-24)


def pick(bits: jax.Array, allowed: jax.Array) -> jax.Array:
    """One of the places where `allowed` [n] holds, each as likely; 0 where none is."""
    rank = below(bits, jnp.sum(allowed))
    return jnp.argmax(allowed & (jnp.cumsum(allowed) == rank + 1)).astype(jnp.int32)
