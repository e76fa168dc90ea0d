"""States as words of 32 bits, and fingerprints of them: for tables that are looked up by a state."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.randomness import GOLDEN, hashed
from uamcts.types import PyTree


def words_of(tree: PyTree) -> list[jax.Array]:
    """All that a tree of arrays holds, bit for bit, as words. Two trees of one form are equal where their words are."""
    return [word for leaf in jax.tree.leaves(tree) for word in _words(leaf)]


def fingerprint(tree: PyTree) -> tuple[jax.Array, jax.Array]:
    """Two words for a state, the second never 0. Two states share both once in 2^63 pairs."""
    first, second = jnp.uint32(0), jnp.uint32(GOLDEN)
    for index, word in enumerate(words_of(tree)):
        first = first + word * _odd(2 * index)
        second = second + word * _odd(2 * index + 1)
    return hashed(first), hashed(second) | 1


def _odd(index: int) -> np.uint32:
    """One of a row of odd numbers without pattern."""
    return np.uint32(pow(0x9E3779B97F4A7C15, index + 1, 2**64) >> 32 | 1)


def _words(leaf: jax.Array) -> list[jax.Array]:
    """An array as words."""
    leaf = jnp.asarray(leaf)
    if leaf.dtype == jnp.bool_ or leaf.dtype.itemsize < 4:
        leaf = leaf.astype(jnp.float32 if jnp.issubdtype(leaf.dtype, jnp.floating) else jnp.int32)
    return list(jax.lax.bitcast_convert_type(leaf, jnp.uint32).reshape(-1))
