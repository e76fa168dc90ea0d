"""Empty arrays, made by one program: outside of `jax.jit`, each `jnp.zeros` of another shape is compiled by itself."""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from uamcts.types import PyTree

_Kinds: TypeAlias = tuple[tuple[tuple[int, ...], Any], ...]


def zeros(forms: PyTree) -> PyTree:
    """Arrays of zeros in the place of a tree's `jax.ShapeDtypeStruct`s."""
    leaves, structure = jax.tree.flatten(forms)
    return jax.tree.unflatten(structure, _zeros(tuple((tuple(leaf.shape), leaf.dtype) for leaf in leaves)))


def zero_rows(tree: PyTree, rows: int) -> PyTree:
    """Arrays [rows, ...] of zeros for the leaves of a tree, which are arrays or numbers."""
    return zeros(jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((rows, *jnp.shape(leaf)), jnp.result_type(leaf)), tree))


@functools.partial(jax.jit, static_argnums=0)
def _zeros(kinds: _Kinds) -> list[jax.Array]:
    return [jnp.zeros(shape, dtype) for shape, dtype in kinds]
