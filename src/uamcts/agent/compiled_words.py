"""Trees of arrays as one array of words, on the way from a device: each array that is fetched takes its time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.types import PyTree


class Fetched:
    """A compiled function whose result comes back as NumPy's arrays, in one piece.

    Args:
        function: A function of trees of arrays. Its results have the same form for all arguments.
    """

    def __init__(self, function: Callable[..., PyTree]):
        self._function = function
        self._program = jax.jit(lambda *arguments: _pack(function(*arguments)))
        self._leaves: list[Any] = []
        self._structure: Any = None

    def __call__(self, *arguments: PyTree) -> PyTree:
        words = np.asarray(self._program(*arguments))
        if self._structure is None:
            self._leaves, self._structure = jax.tree.flatten(jax.eval_shape(self._function, *arguments))
        found, start = [], 0
        for leaf in self._leaves:
            size = leaf.size * max(leaf.dtype.itemsize // 4, 1)
            found.append(_unpack(words[start : start + size], leaf.dtype).reshape(leaf.shape))
            start += size
        return jax.tree.unflatten(self._structure, found)


def _pack(tree: PyTree) -> jax.Array:
    """All numbers of a tree as words of 32 bits."""
    parts = [jnp.zeros(0, jnp.uint32)]
    for leaf in map(jnp.asarray, jax.tree.leaves(tree)):
        if leaf.dtype.itemsize < 4:
            leaf = leaf.astype(jnp.float32 if jnp.issubdtype(leaf.dtype, jnp.floating) else jnp.int32)
        parts.append(jax.lax.bitcast_convert_type(leaf, jnp.uint32).ravel())
    return jnp.concatenate(parts)


def _unpack(words: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype.itemsize >= 4:
        return words.view(dtype)
    return words.view(np.float32 if jnp.issubdtype(dtype, jnp.floating) else np.int32).astype(dtype)
