"""What the numbers of a state are called in reports: as the user would write them, "x" or "state[0]"."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np


def number_names(state: Any) -> list[str]:
    """Names of all numbers of a state, in the order of `state_vectors.flatten`."""
    return _names(state, "")


def leaf_names(state: Any) -> list[str]:
    """Names of all numbers of a pytree of arrays, in the order of `state_vectors.flatten_jax`."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(state)
    found = []
    for path, leaf in leaves:
        words = jax.tree_util.keystr(path)
        found += _elements(words.removeprefix(".") if words.startswith(".") else f"state{words}", np.shape(leaf))
    return found


def _names(part: Any, name: str) -> list[str]:
    """Names of the numbers in a part of a state; the whole state has an empty name."""
    if isinstance(part, (bool, int, float, np.ndarray, np.generic, jax.Array)):
        return _elements(name or "state", np.shape(part))
    fields = getattr(part, "_fields", None) or list(getattr(part, "__dataclass_fields__", ()))
    if fields:
        return [one for field in fields for one in _names(getattr(part, field), f"{name}.{field}" if name else field)]
    here = name or "state"
    if isinstance(part, dict):
        return [one for key in sorted(part) for one in _names(part[key], f"{here}[{key!r}]")]
    return [one for place, inner in enumerate(part) for one in _names(inner, f"{here}[{place}]")]


def _elements(name: str, shape: tuple[int, ...]) -> list[str]:
    return [name + "".join(f"[{place}]" for place in index) for index in np.ndindex(shape)]
