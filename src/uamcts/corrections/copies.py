"""Copies simulators and their parts, even if a class returns the object itself as its copy, or allows only one object.

What is set on a copy must not be set on the simulator as well.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from typing import Any, NamedTuple, TypeAlias

Class: TypeAlias = Any
"""A class; mypy does not know that classes can be looked up."""
HEAP = 1 << 9
"""Set in the flags of a class that was made in Python."""
OWN_WAYS = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")
"""Methods by which a class may define how its objects are copied."""


class _Kind(NamedTuple):
    """How objects of a class are copied."""

    ordinary: bool
    """Whether they consist of their attributes alone, and the class defines no other way to copy them."""
    slots: tuple[str, ...]


def shallow_copy(owner: object) -> Any:
    """A copy that shares its attributes.

    Raises:
        TypeError: It cannot be copied, as a module cannot.
    """
    known: Class = type(owner)
    kind = _kind_of(known)
    if not kind.ordinary or hasattr(known, "__copy__"):
        twin = copy.copy(owner)
        if twin is not owner:
            return twin
    twin = object.__new__(type(owner))
    if hasattr(owner, "__dict__"):
        twin.__dict__.update(owner.__dict__)
    for name in kind.slots:
        if hasattr(owner, name):
            object.__setattr__(twin, name, getattr(owner, name))
    return twin


def full_copy(owner: object) -> Any:
    """A copy that shares only what cannot be copied, such as files and locks; the object itself if it cannot be."""
    known: Class = type(owner)
    try:
        if hasattr(known, "__deepcopy__") or not _kind_of(known).ordinary:
            twin = copy.deepcopy(owner)
            if twin is not owner:
                return twin
    except Exception:  # whatever cannot be copied is shared
        twin = owner
    try:
        twin = shallow_copy(owner)
    except Exception:
        return owner
    memo: dict[int, Any] = {id(owner): twin}
    held = {**getattr(twin, "__dict__", {})}
    held |= {name: getattr(twin, name) for name in _kind_of(known).slots if hasattr(twin, name)}
    for name, value in held.items():
        with contextlib.suppress(Exception):  # else it is shared
            object.__setattr__(twin, name, copy.deepcopy(value, memo))
    return twin


@functools.lru_cache(256)
def _kind_of(kind: Class) -> _Kind:
    own_ways = any(getattr(kind, name, None) is not getattr(object, name, None) for name in OWN_WAYS)
    made_in_python = all(base.__flags__ & HEAP for base in kind.__mro__[:-1])
    slots = []
    for base in kind.__mro__:
        given = base.__dict__.get("__slots__", ())
        for name in [given] if isinstance(given, str) else given:
            private = name.startswith("__") and not name.endswith("__")
            slots.append(f"_{base.__name__.lstrip('_')}{name}" if private else name)
    return _Kind(made_in_python and not own_ways, tuple(one for one in slots if one not in ("__dict__", "__weakref__")))
