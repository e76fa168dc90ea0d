"""What the numbers of a state are called in reports: as the user would write them, "x" or "state[0]"."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from uamcts.agent.identity import fields
from uamcts.agent.state_vectors import MARKS, UNNUMBERED
from uamcts.runtime.lazy_jax import is_array, jax
from uamcts.types import PyTree


def number_names(state: Any) -> list[str]:
    """Names of all numbers of a state, in the order of `state_vectors.flatten`."""
    return _names(state, "")


def holds_names(state: PyTree) -> bool:
    """Whether a state holds anything that is no number: strings, sets, or None."""
    names = _names(state, "")
    return len(set(names)) < len(names)


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
    if isinstance(part, (bool, int, float, np.ndarray, np.generic)) or is_array(part):
        return _elements(name or "state", np.shape(part))
    named = getattr(part, "_fields", None) or list(getattr(part, "__dataclass_fields__", ()))
    if named:
        return [one for field in named for one in _names(getattr(part, field), f"{name}.{field}" if name else field)]
    here = name or "state"
    if part is None or isinstance(part, UNNUMBERED):
        return [here] * MARKS
    if isinstance(part, enum.Enum):
        return [here]
    if isinstance(part, dict):
        return [one for key in sorted(part) for one in _names(part[key], f"{here}[{key!r}]")]
    if isinstance(part, (list, tuple)):
        return [one for place, inner in enumerate(part) for one in _names(inner, f"{here}[{place}]")]
    held = fields(part)
    return [one for field, inner in held.items() for one in _names(inner, f"{name}.{field}" if name else field)]


def _elements(name: str, shape: tuple[int, ...]) -> list[str]:
    return [name + "".join(f"[{place}]" for place in index) for index in np.ndindex(shape)]
