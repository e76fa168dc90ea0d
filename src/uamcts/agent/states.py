"""States of Python simulators as JSON. Nothing is ever pickled, and no class is imported because a file names it."""

from __future__ import annotations

import base64
import enum
from typing import Any

import numpy as np

from uamcts.agent.identity import attributes

KINDS = "biufc"
"""The kinds of numbers that arrays may hold."""


class UnknownType(ValueError):
    """A saved state has a class that this program has not met yet."""


def as_json(state: Any) -> Any:
    """A state as something that `json` writes and `from_json` reads back; a TypeError if that cannot be done."""
    try:
        return _encode(state)
    except RecursionError:
        raise TypeError(f"a {type(state).__name__} holds itself") from None


def _encode(state: Any) -> Any:
    kind = type(state)
    if kind in (bool, int, float, str, type(None)):
        return {"is": state}
    if kind in (tuple, list, set, frozenset):
        return {kind.__name__: [_encode(part) for part in state]}
    if kind is bytes:
        return {"bytes": base64.b64encode(state).decode()}
    if kind is dict:
        return {"dict": [[_encode(key), _encode(part)] for key, part in state.items()]}
    if isinstance(state, (np.ndarray, np.generic)) and state.dtype.kind in KINDS:
        content = base64.b64encode(np.ascontiguousarray(state).tobytes()).decode()
        name = "array" if isinstance(state, np.ndarray) else "number"
        return {name: content, "dtype": state.dtype.str, "shape": list(state.shape)}
    if isinstance(state, enum.Enum):
        return {"enum": state.name, "of": kind.__qualname__}
    if isinstance(state, tuple) and hasattr(kind, "_fields"):
        return {"named": _fields(dict(zip(kind._fields, state, strict=True))), "of": kind.__qualname__}
    if hasattr(kind, "__dataclass_fields__"):
        return {
            "data": _fields({name: getattr(state, name) for name in kind.__dataclass_fields__}),
            "of": kind.__qualname__,
        }
    if isinstance(state, (tuple, list, dict, set, frozenset, str, bytes, int, float)) or callable(state):
        raise TypeError(f"a {kind.__name__} cannot be saved")
    return {"object": _fields(attributes(state)), "of": kind.__qualname__}


def _fields(held: dict[str, Any]) -> dict[str, Any]:
    return {name: _encode(value) for name, value in held.items()}


def from_json(found: Any, types: dict[str, type] | None = None) -> Any:
    """The state that `as_json` was given; classes come from `types` alone.

    Raises `UnknownType` for a class that is not there, and a ValueError for what `as_json` never writes.
    """
    try:
        return _decode(found, types or {})
    except UnknownType:
        raise
    except (TypeError, KeyError, ValueError, AttributeError, StopIteration, RecursionError) as error:
        raise ValueError(f"not a saved state ({type(error).__name__}: {error})") from None


def _decode(found: Any, types: dict[str, type]) -> Any:
    name = next(iter(found))
    content = found[name]
    if name == "is" and type(content) in (bool, int, float, str, type(None)):
        return content
    if name in ("tuple", "list", "set", "frozenset"):
        parts = [_decode(part, types) for part in content]
        return {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}[name](parts)
    if name == "bytes":
        return base64.b64decode(content, validate=True)
    if name == "dict":
        return {_decode(key, types): _decode(part, types) for key, part in content}
    if name in ("array", "number"):
        return _array(name, content, found)
    if name not in ("enum", "named", "data", "object"):
        raise ValueError(f"there is no kind {name!r}")
    if found["of"] not in types:
        raise UnknownType(f"the class {found['of']} is not known here")
    return _rebuild(name, types[found["of"]], content, types)


def _array(name: str, content: str, found: dict[str, Any]) -> Any:
    dtype = np.dtype(found["dtype"])
    if dtype.kind not in KINDS:
        raise ValueError(f"an array of {dtype}")
    array = np.frombuffer(base64.b64decode(content, validate=True), dtype).reshape(found["shape"]).copy()
    return array if name == "array" else array[()]


def _rebuild(name: str, kind: Any, content: Any, types: dict[str, type]) -> Any:
    """An object of a class that is known, without calling its constructor."""
    if name == "enum":
        return kind[content]
    held = {field: _decode(value, types) for field, value in content.items()}
    fields = {"named": "_fields", "data": "__dataclass_fields__"}.get(name)
    if fields is not None and set(getattr(kind, fields)) != set(held):
        raise UnknownType(f"the class {kind.__qualname__} has other fields here")
    if name == "named":
        return kind._make(held[field] for field in kind._fields)
    thing = object.__new__(kind)
    for field, value in held.items():
        object.__setattr__(thing, field, value)
    return thing
