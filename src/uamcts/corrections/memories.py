"""Finds what steps of a simulator remember: answers in a dictionary, a table that is computed when it is first read.

A copy with other values must neither read what the simulator remembers nor write to it. Otherwise the copy would repeat
the answers for the old values, and your own simulator would give those of the copy.

An attribute is a memory if it has changed since before the first step, and the simulator answers alike without it.
Parts of the simulator that refer back to it, such as bound methods in a table, must refer to the copy instead.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import itertools
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from uamcts.corrections.back_references import Part, refer_back, refers_back
from uamcts.corrections.copies import shallow_copy

KINDS = (dict, collections.OrderedDict, collections.defaultdict)
DEEPEST, MOST_PARTS, LARGEST = 3, 200, 2_000
"""How deep parts are searched, how many of them, and how many numbers of one are compared at most."""
WHOLE, OWN, BACK = "whole", "own", "back"
"""How to forget: remove the attribute, which is computed when it is read again; give a method a cache of its own; let
a part that refers back to the simulator refer to the copy."""


class First(NamedTuple):
    """What an attribute was before any step."""

    value: Any


Memory = int | str | First
"""How to forget: how many entries of a dictionary to keep, a word from above, or the first value of an attribute."""


def _parts(owner: object) -> dict[str, Any]:
    """The attributes of an object and of those that it holds, by their paths: `engine.cache`."""
    found: dict[str, Any] = {}
    waiting, known = collections.deque([("", owner, DEEPEST)]), {id(owner)}
    while waiting:
        path, holder, deep = waiting.popleft()
        for name, value in [*getattr(holder, "__dict__", {}).items(), *(_of_class(owner) if holder is owner else ())]:
            if "." in name or len(found) >= MOST_PARTS:
                continue
            found[path + name] = value
            shut = isinstance(value, (type, types.ModuleType)) or callable(value) or id(value) in known
            if deep > 1 and not shut and type(getattr(value, "__dict__", None)) is dict:
                known.add(id(value))
                waiting.append((f"{path}{name}.", value, deep - 1))
    return found


def _of_class(owner: object) -> Iterator[tuple[str, Any]]:
    """The dictionaries that all objects of a class share."""
    held: dict[str, Any] = getattr(owner, "__dict__", {})
    for kind in type(owner).__mro__ if hasattr(owner, "__dict__") else ():
        for name, value in vars(kind).items():
            if type(value) in KINDS and name not in held and getattr(type(owner), name) is value:
                yield name, value


def before_steps(owner: object) -> dict[str, Memory]:
    """Records attributes, so that one can see later which of them steps have changed."""
    found: dict[str, Memory] = {}
    for path, value in _parts(owner).items():
        if type(value) in KINDS:
            found[path] = len(value)
        elif _is_data(value):
            found[path] = First(copy.deepcopy(value))
    return found


def _is_data(value: Part) -> bool:
    """Whether a value consists of a moderate number of numbers and strings, so that it can be compared and kept."""
    count, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        count += one.size if isinstance(one, np.ndarray) else 1
        if count > LARGEST:
            return False
        if type(one) in (list, tuple):
            if len(one) > LARGEST:
                return False
            waiting += one
        elif isinstance(one, np.ndarray):
            if one.dtype.kind not in "biufcSU":
                return False
        elif not isinstance(one, (int, float, complex, str, bytes, np.generic, type(None))):
            return False
    return True


def find_memories(
    owner: object, before: Mapping[str, Memory], same: Callable[[Any, Any], bool]
) -> Mapping[str, Memory]:
    """What a copy of a simulator must forget, and how, by the paths of attributes.

    Args:
        owner: The simulator.
        before: What it was `before_steps`.
        same: Whether two copies answer alike. What a simulator needs in order to answer is no memory.
    """
    first = before_steps(owner)
    try:
        same(owner, owner)  # a simulator that was just loaded has not been asked yet
    except Exception:
        return {}
    bound = {name: BACK for name, value in getattr(owner, "__dict__", {}).items() if refers_back(value, owner)}
    bound |= dict.fromkeys(_cached_methods(owner), OWN)
    now = {path: First(value) for path, value in _parts(owner).items()} | before_steps(owner)
    changed: dict[str, Memory] = {
        path: then for path, then in before.items()
        if path in now and (_differs(now[path], then) or _differs(now[path], first.get(path, now[path])))
    }  # fmt: skip
    changed |= dict.fromkeys(_computed(owner), WHOLE)
    # All or none: a part that is needed may seem not to be, if it is left out alone.
    for found in ({**bound, **changed}, bound):
        if found and _answers_without(owner, found, same):
            return found
    return {}


def _answers_without(owner: object, found: Mapping[str, Memory], same: Callable[[Any, Any], bool]) -> bool:
    try:
        twin = shallow_copy(owner)
        forget(twin, owner, found)
        return same(owner, twin)
    except Exception:  # whatever a step lacks that has lost its memory
        return False


def _differs(now: Memory, then: Memory) -> bool:
    if not isinstance(now, First) or not isinstance(then, First):
        return now != then
    one, other = now.value, then.value
    if type(one) is not type(other):
        return True
    if isinstance(one, np.ndarray):
        return not (one.shape == other.shape and one.tobytes() == other.tobytes())
    with contextlib.suppress(Exception):  # whatever comparing elements means
        return bool(one != other)
    return False


def _computed(owner: object) -> Iterator[str]:
    """The attributes that are computed when they are first read."""
    for path, holder in [("", owner), *((f"{path}.", value) for path, value in _parts(owner).items())]:
        for name in list(getattr(holder, "__dict__", {})):
            if isinstance(getattr(type(holder), name, None), functools.cached_property):
                yield path + name


def _cached_methods(owner: object) -> Iterator[str]:
    """Methods with a `functools.lru_cache` that all objects of the class share."""
    if not hasattr(owner, "__dict__"):
        return
    for kind in type(owner).__mro__:
        for name, value in vars(kind).items():
            if hasattr(value, "cache_parameters") and getattr(type(owner), name, None) is value:
                yield name


def forget(twin: object, owner: object, memories: Mapping[str, Memory]) -> None:
    """Gives a copy of a simulator memories of its own, as they were before any step."""
    for path, how in memories.items():
        *holders, name = path.split(".")
        mine, theirs = twin, owner
        for one in holders:
            theirs = theirs.__dict__[one]
            if mine.__dict__.get(one) is theirs:
                mine.__dict__[one] = shallow_copy(theirs)
            mine = mine.__dict__[one]
        _forget(mine, theirs, name, how, twin, owner)


def _forget(mine: object, theirs: object, name: str, how: Memory, twin: object, owner: object) -> None:
    if how == OWN:
        cached = getattr(type(mine), name)
        method = cached.__wrapped__.__get__(mine, type(mine))
        mine.__dict__[name] = functools.lru_cache(**cached.cache_parameters())(method)
    elif how == BACK:
        mine.__dict__[name] = refer_back(theirs.__dict__[name], owner, twin)
    elif isinstance(how, First):
        mine.__dict__[name] = copy.deepcopy(how.value)
    elif how == WHOLE:
        mine.__dict__.pop(name, None)
    elif isinstance(how, int) and isinstance(held := getattr(mine, name, None), dict):
        mine.__dict__[name] = first_entries(held, how)


def first_entries(held: dict[Any, Any], count: int) -> dict[Any, Any]:
    """A dictionary like another one, with its first entries."""
    kept = itertools.islice(held.items(), count)
    made = getattr(held, "default_factory", None)
    return type(held)(kept) if made is None else collections.defaultdict(made, kept)
