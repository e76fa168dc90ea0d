"""Finds parts of a simulator that refer back to it: a table of its methods, an engine that knows its world.

A shallow copy shares these parts. They would still ask the original simulator, whatever values the copy has.
"""

from __future__ import annotations

import copy
import functools
import types
from typing import Any, TypeAlias

from uamcts.corrections.code_reading import contents_of

Part: TypeAlias = Any
"""What an attribute of a simulator may be."""
LARGEST = 2_000
"""How many objects a part may consist of, as it is copied for every value."""
PLAIN = (int, float, complex, str, bytes, type(None), type)


class _Memo(dict[int, Any]):
    """The memory of a deep copy in which one object has its copy already; notes whether it was asked for."""

    def __init__(self, owner: object, twin: object):
        super().__init__()
        self.place, self.twin, self.asked = id(owner), twin, False

    def get(self, key: int, default: object = None) -> Any:
        if key == self.place:
            self.asked = True
            return self.twin
        return super().get(key, default)


def refers_back(part: Part, owner: object) -> bool:
    """Whether a part of an object refers to the object, and is small enough to be copied quickly."""
    if isinstance(part, PLAIN):
        return False
    if _bound_anew(part, owner, owner) is not None:
        return True
    memo = _Memo(owner, owner)
    try:
        copy.deepcopy(part, memo)
    except Exception:  # files, locks, handles: whatever cannot be copied is shared
        return False
    return memo.asked and len(memo) <= LARGEST


def refer_back(part: Part, owner: object, twin: object) -> Any:
    """A copy of a part that refers to a copy of the object instead."""
    bound = _bound_anew(part, owner, twin)
    return copy.deepcopy(part, _Memo(owner, twin)) if bound is None else bound


def _bound_anew(part: Part, owner: object, twin: object) -> Any:
    """A function that refers to an object, which deep copies leave as it is, with another one; None if it does not."""
    if hasattr(part, "cache_parameters"):
        inner = part.__wrapped__
        found = inner.__func__.__get__(twin) if getattr(inner, "__self__", None) is owner else None
        found = _bound_anew(inner, owner, twin) if found is None else found
        return None if found is None else functools.lru_cache(**part.cache_parameters())(found)
    if not isinstance(part, types.FunctionType) or not part.__closure__:
        return None
    if not any(contents_of(cell) is owner for cell in part.__closure__):
        return None
    cells = [types.CellType(twin) if contents_of(cell) is owner else cell for cell in part.__closure__]
    found = types.FunctionType(part.__code__, part.__globals__, part.__name__, part.__defaults__, tuple(cells))
    found.__kwdefaults__ = part.__kwdefaults__
    return found
