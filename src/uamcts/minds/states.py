"""States of Python simulators as JSON, where they are made of what JSON can hold; nothing is ever pickled."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np


def as_json(state: Any) -> Any:
    """A state as something that `json` writes and `from_json` reads back; None if that cannot be done."""
    try:
        return _encoded(state)
    except TypeError:
        return None


def _encoded(state: Any) -> Any:
    if isinstance(state, (bool, int, float, str)) and type(state) in (bool, int, float, str):
        return {"is": state}
    if type(state) in (tuple, list):
        return {type(state).__name__: [_encoded(part) for part in state]}
    if type(state) is bytes:
        return {"bytes": base64.b64encode(state).decode()}
    if isinstance(state, (np.ndarray, np.generic)) and state.dtype.kind in "biuf":
        kind = "array" if isinstance(state, np.ndarray) else "number"
        return {kind: np.asarray(state).tolist(), "dtype": state.dtype.str}
    if type(state) is dict and all(type(key) is str for key in state):
        return {"dict": {key: _encoded(part) for key, part in state.items()}}
    raise TypeError(f"JSON cannot hold {state!r}")


def from_json(found: Any) -> Any:
    """The state that `as_json` was given."""
    kind = next(iter(found))
    content = found[kind]
    if kind == "is":
        return content
    if kind in ("tuple", "list"):
        parts = [from_json(part) for part in content]
        return tuple(parts) if kind == "tuple" else parts
    if kind == "bytes":
        return base64.b64decode(content)
    if kind == "dict":
        return {key: from_json(part) for key, part in content.items()}
    array = np.array(content, np.dtype(found["dtype"]))
    return array if kind == "array" else array[()]
