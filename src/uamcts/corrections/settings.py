"""Finds and changes settings inside a simulator: in a dataclass, a namespace, a part such as an engine.

Numbers are named as they are written in Python: `config.gravity`, `zones[1].loss`.
"""

from __future__ import annotations

import enum
import functools
import inspect
import sys
import sysconfig
import types
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from uamcts.corrections.copies import shallow_copy

NOT_PARAMETERS = frozenset({
    "num_actions", "reward_range", "np_random_seed", "_np_random_seed", "seed", "_seed", "render_fps",
    "screen_width", "screen_height", "screen_dim", "state", "last_u", "s", "lastaction"})  # fmt: skip
"""Attributes that say nothing about what happens in a step."""
PLAIN = (int, float, np.generic, np.ndarray, list, tuple, dict)

Value: TypeAlias = Any
"""What an attribute, a table or a place in code holds."""
Simulator: TypeAlias = Any
"""The user's own simulator: any object or function."""


class Field(str):
    """The name of an attribute, used like the key of a table."""


def is_number(value: Value) -> bool:
    """Whether a value is a finite real number, and not a condition or a member of an enumeration."""
    if isinstance(value, (bool, np.bool_, enum.Enum)):
        return False
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "iuf" and bool(np.isfinite(value))
    return isinstance(value, (int, float, np.integer, np.floating)) and abs(float(value)) < 1e15


@functools.lru_cache(1)
def _installed() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(found for name in names if (found := sysconfig.get_paths().get(name)))


@functools.lru_cache(512)
def is_users(module: str | None) -> bool:
    """Whether a module is the user's own: neither installed nor part of Python."""
    top = (module or "builtins").partition(".")[0]
    if top in sys.stdlib_module_names:
        return top == "__main__"
    if top in ("builtins", "uamcts"):
        return False
    file = getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return not file.startswith(_installed())


def is_settings(value: object) -> bool:
    """Whether a value is an object of one of the user's classes that may hold settings."""
    kind = type(value)
    if isinstance(value, types.SimpleNamespace):
        return True
    if isinstance(value, (type, types.ModuleType, enum.Enum, BaseException, *PLAIN)) and not is_named(value):
        return False
    return is_users(kind.__module__) and not inspect.isroutine(value)


def is_named(value: object) -> bool:
    """Whether a value is a named tuple."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


def attributes(owner: Simulator) -> Iterator[tuple[str, Any]]:
    """The attributes of an object, its own first, then those of its classes."""
    if is_named(owner):
        yield from zip(owner._fields, owner, strict=True)
        return
    seen = set()
    held = dict(getattr(owner, "__dict__", {}))
    for kind in type(owner).__mro__[:-1]:
        names = list(held) if kind is type(owner) else []
        slots = kind.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
        if hasattr(owner, "__dict__"):  # else what the class holds cannot differ between objects
            names += [name for name, value in vars(kind).items() if isinstance(value, PLAIN)]
        for name in names:
            if name not in seen and not name.startswith("__") and hasattr(owner, name):
                seen.add(name)
                yield name, held[name] if name in held else getattr(owner, name)


def set_attribute(owner: object, name: str, value: Value) -> None:
    """Sets an attribute, also of a frozen dataclass."""
    try:
        setattr(owner, name, value)
    except AttributeError:  # frozen dataclasses refuse
        object.__setattr__(owner, name, value)


def with_attributes(owner: Simulator, values: Mapping[str, Any]) -> Any:
    """A copy of an object with other values of some attributes."""
    if is_named(owner):
        parts = [values.get(name, part) for name, part in zip(owner._fields, owner, strict=True)]
        return tuple.__new__(type(owner), parts)
    twin = shallow_copy(owner)
    for name, value in values.items():
        set_attribute(twin, name, value)
    return twin
