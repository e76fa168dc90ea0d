"""Random actions for the inner loops: a counter through a hash, far cheaper there than a full generator.

Keys stay arguments: a seed is drawn from a key once, outside the loop.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np


def seed_of(key: jax.Array) -> jax.Array:
    """One word drawn from `key`."""
    return jax.random.bits(key, dtype=jnp.uint32)


def hashed(number: jax.Array) -> jax.Array:
    """A word in which every bit of `number` matters: two rounds of multiply and xor-shift, a bijection.

    The constants are those of Wellons' search for low bias ("lowbias32", bias 0.17).
    """
    number = number ^ (number >> 16)
    number = number * np.uint32(0x7FEB352D)
    number = number ^ (number >> 15)
    number = number * np.uint32(0x846CA68B)
    return number ^ (number >> 16)


def below(bits: jax.Array, count: int) -> jax.Array:
    """A number 0 .. count - 1 out of a random word, by multiplication: its bias is below count / 65536."""
    return (((bits >> 16) * np.uint32(count)) >> 16).astype(jnp.int32)
