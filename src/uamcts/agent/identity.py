"""What tells one state of a Python simulator from another: the whole of it, as something hashable."""

from __future__ import annotations

import collections
import contextlib
import copy
import enum
import functools
import random
import types
from collections.abc import Hashable
from typing import Any

import numpy as np

PLAIN = frozenset((bool, int, float, complex, str, bytes, type(None)))
NAN = "not a number"
"""In place of NaN, which is not equal to itself."""


class Identity:
    """Makes keys of states. Two states have equal keys where all that they hold is equal.

    Objects that define their own `__hash__` and `__eq__` stand for themselves; the others are compared by what is in
    them. `types` collects the classes that were met, by name, so that saved states can be rebuilt without importing.
    """

    def __init__(self) -> None:
        self.types: dict[str, type] = {}

    def __call__(self, state: Any) -> Hashable:
        """The key of a state; a TypeError if something in it cannot be compared."""
        try:
            return self._key(state)
        except RecursionError:
            raise TypeError(f"a {type(state).__name__} holds itself") from None

    def _key(self, thing: Any) -> Hashable:
        kind = type(thing)
        if kind in PLAIN:
            return thing if thing == thing else NAN
        if kind is np.ndarray:
            return self._array(thing)
        if kind is tuple or isinstance(thing, (tuple, list, collections.deque)):
            if kind is not tuple and hasattr(kind, "_fields"):
                self.types[kind.__qualname__] = kind
            return tuple(
                [part if type(part) in PLAIN and part == part else self._key(part) for part in thing]  # the usual case
            )
        if isinstance(thing, (np.ndarray, np.generic)) or hasattr(kind, "__array__"):
            return self._array(_plain_array(thing))
        if isinstance(thing, dict):
            return "dict", frozenset((self._key(key), self._key(value)) for key, value in thing.items())
        if isinstance(thing, (set, frozenset)):
            return "set", frozenset(self._key(part) for part in thing)
        return self._object(thing, kind)

    def _array(self, array: np.ndarray) -> Hashable:
        if array.dtype == object:
            return "array", array.shape, tuple(self._key(part) for part in array.ravel())
        if array.ndim == 0 and array.dtype.kind in "biufc":
            number: float | complex = array.item()
            return self._key(number) if type(number) in PLAIN else number
        if array.dtype.kind in "bi" or (array.dtype.kind == "u" and array.dtype.itemsize < 8):
            array = array.astype(np.int64)
        elif array.dtype.kind in "f" and array.dtype.itemsize <= 8:
            array = array.astype(np.float64) + 0.0  # -0 is 0
        return "array", array.dtype.str, array.shape, array.tobytes()

    def _object(self, thing: Any, kind: type) -> Hashable:
        if isinstance(thing, (type, types.ModuleType)) or callable(thing):
            key: Hashable = thing
            return key
        if isinstance(thing, random.Random):
            return "random", thing.getstate()
        if isinstance(thing, np.random.Generator):
            return "random", self._key(thing.bit_generator.state)
        new = self.types.get(kind.__qualname__) is not kind
        self.types[kind.__qualname__] = kind
        if isinstance(thing, enum.Enum):
            return kind, thing.name
        if hasattr(kind, "__dataclass_fields__"):
            parts = [getattr(thing, name) for name in _compared(kind)]
            return kind, tuple([part if type(part) in PLAIN and part == part else self._key(part) for part in parts])
        own_hash: Any = kind.__hash__
        if own_hash not in (None, object.__hash__):
            if new:
                with contextlib.suppress(TypeError):
                    self._key(attributes(thing))  # for the classes inside
            return kind, thing
        return kind, self._key(attributes(thing))


def _plain_array(thing: Any) -> np.ndarray:
    """An array of any library as a NumPy array."""
    if str(getattr(thing, "dtype", "")).startswith("key<"):  # JAX keys
        import jax

        thing = jax.random.key_data(thing)
    return np.asarray(thing)


@functools.cache
def _compared(kind: Any) -> tuple[str, ...]:
    """The fields of a dataclass that tell its objects apart."""
    return tuple(field.name for field in kind.__dataclass_fields__.values() if field.compare)


def attributes(thing: Any) -> dict[str, Any]:
    """What an object holds, by name; a TypeError if it does not show."""
    slots = [name for kind in type(thing).__mro__ for name in _slots(kind)]
    if not hasattr(thing, "__dict__") and not slots:
        raise TypeError(f"a {type(thing).__name__} does not show what it holds")
    held = {name: getattr(thing, name) for name in slots if hasattr(thing, name)}
    return held | getattr(thing, "__dict__", {})


def own_copy(state: Any) -> Any:
    """A state that stays as it is when its owner changes it in place; the state itself where nobody can change it."""
    kind = type(state)
    if kind in PLAIN or isinstance(state, (enum.Enum, np.generic)):
        return state
    if kind is tuple:
        parts = tuple([part if type(part) in PLAIN else own_copy(part) for part in state])
        return state if all(one is other for one, other in zip(parts, state, strict=True)) else parts
    if kind is np.ndarray and state.dtype != object:
        return state.copy()
    try:
        return copy.deepcopy(state)
    except Exception:  # whatever a class of the user's own raises: it cannot be copied, and is kept as it is
        return state


def fields(thing: object) -> dict[str, Any]:
    """What an object of a class of the user's own holds, by name; a TypeError for what is not one."""
    opaque = (str, bytes, set, frozenset, type, types.ModuleType)
    held = {} if isinstance(thing, opaque) or callable(thing) or thing is None else attributes(thing)
    if not held:
        raise TypeError(f"a {type(thing).__name__} is not a number and holds none")
    return dict(sorted(held.items()))


def place(member: enum.Enum) -> float:
    """An enum as a number: its place among the members of its class."""
    return float(list(type(member)).index(member))


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))
