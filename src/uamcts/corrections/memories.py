"""What steps of a simulator remember: answers in a dictionary, a table that is computed when it is first read.

A copy with other values must neither read what the simulator remembers nor write to it. Else nothing that was asked
before would depend on any value, and the user's own simulator would give the answers of another one.
"""

from __future__ import annotations

import collections
import copy
import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any

KINDS = (dict, collections.OrderedDict)
WHOLE = -1
"""In place of a size: an attribute that is gone until it is read again."""


def sizes(owner: object) -> dict[str, int]:
    """How many entries the dictionaries of an object have."""
    held = getattr(owner, "__dict__", {})
    return {name: len(value) for name, value in held.items() if type(value) in KINDS}


def find_memories(owner: object, before: Mapping[str, int], same: Callable[[Any, Any], bool]) -> dict[str, int]:
    """The dictionaries in which steps remember answers, and how many entries of each are none.

    Args:
        owner: The simulator.
        before: Its `sizes` before any step.
        same: Whether two copies answer alike. What a simulator needs in order to answer is no memory.
    """
    try:
        same(owner, owner)  # a simulator that was just loaded has not been asked yet
    except Exception:
        return {}
    found = {name: before[name] for name, size in sizes(owner).items() if before.get(name, size) < size}
    for name in getattr(owner, "__dict__", {}):
        if isinstance(getattr(type(owner), name, None), functools.cached_property):
            found[name] = WHOLE
    if not found:
        return {}
    twin = copy.copy(owner)
    forget(twin, found)
    try:
        return found if same(owner, twin) else {}
    except Exception:  # whatever a step lacks that has lost its memory
        return {}


def forget(twin: object, memories: Mapping[str, int]) -> None:
    """Gives a copy of a simulator memories of its own, as they were before any step."""
    for name, size in memories.items():
        held = twin.__dict__.pop(name, None)
        if size != WHOLE and type(held) in KINDS:
            twin.__dict__[name] = type(held)(itertools.islice(held.items(), size))
