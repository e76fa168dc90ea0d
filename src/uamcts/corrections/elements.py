"""Tables of a simulator: lists, tuples, dictionaries and arrays of numbers, nested or not, element by element.

An element is named as it is written in Python: `values[17]`, `breaks['worn']`, `grid[2, 3]`, `streets['X0', 1][1]`.
"""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

DEEPEST, MOST_ELEMENTS = 3, 2000
"""How deep tables may be nested, and how many numbers a simulator's tables may hold; larger ones are left alone."""

Table: TypeAlias = Any
"""A list, a tuple, a dictionary or an array, which holds numbers or further tables."""
TABLES = (list, tuple, dict, np.ndarray)
Keys: TypeAlias = tuple[Any, ...]
"""The keys that lead from a table to one of its elements, outermost first."""


def element_name(table: str, keys: Keys) -> str:
    """The name of an element of a table."""
    return table + "".join(f"[{repr(key)[1:-1] if type(key) is tuple and len(key) > 1 else repr(key)}]" for key in keys)


@functools.lru_cache(10 * MOST_ELEMENTS)
def parse_element(name: str) -> tuple[str, Keys]:
    """The table of an element, and its keys."""
    found, keys = ast.parse(name, mode="eval").body, []
    while isinstance(found, ast.Subscript):
        keys.append(ast.literal_eval(found.slice))
        found = found.value
    return name[: name.index("[")], tuple(reversed(keys))


def numbers_in(table: Table, is_number: Callable[[Any], bool], deep: int = DEEPEST) -> Iterator[tuple[Keys, float]]:
    """All numbers in a table, by their keys."""
    if isinstance(table, np.ndarray):
        if table.dtype.kind in "iuf" and table.ndim:
            for place in np.ndindex(table.shape):
                yield (place if table.ndim > 1 else place[0],), float(table[place])
        return
    pairs = table.items() if isinstance(table, dict) else enumerate(table)
    for key, value in pairs:
        if not _is_literal(key):
            continue
        if is_number(value):
            yield (key,), float(value)
        elif deep > 1 and isinstance(value, TABLES):
            for keys, number in numbers_in(value, is_number, deep - 1):
                yield (key, *keys), number


def _is_literal(key: object) -> bool:
    return type(key) in (int, str) or (type(key) is tuple and bool(key) and all(map(_is_literal, key)))


def with_elements(table: Table, values: Mapping[Keys, float]) -> Table:
    """A copy of a table in which some elements have other values; parts without such elements are shared.

    Elements that are gone are left out: a simulator may have changed its tables since they were found.
    """
    if isinstance(table, np.ndarray):
        return _with_numbers(table, values)
    below: dict[Any, dict[Keys, float]] = {}
    for (key, *rest), value in values.items():
        below.setdefault(key, {})[tuple(rest)] = value
    parts: Any = list(table) if isinstance(table, tuple) else copy.copy(table)
    for key, inner in below.items():
        if not (key in parts if isinstance(table, dict) else type(key) is int and key < len(parts)):
            continue
        if isinstance(parts[key], TABLES):
            parts[key] = with_elements(parts[key], {keys: value for keys, value in inner.items() if keys})
        elif () in inner and isinstance(parts[key], (int, float, np.number)):
            parts[key] = like_number(parts[key], inner[()])
    # A subclass may be made of other arguments than its parts.
    return tuple.__new__(type(table), parts) if isinstance(table, tuple) else parts


def _with_numbers(table: np.ndarray, values: Mapping[Keys, float]) -> np.ndarray:
    """The same for an array; whole numbers that fit stay whole ones, so that places remain places."""
    keeps = table.dtype.kind == "f"
    if table.dtype.kind in "iu":
        limits = np.iinfo(table.dtype)
        keeps = all(limits.min <= value <= limits.max and float(value).is_integer() for value in values.values())
    found = table.copy() if keeps else table.astype(float)
    for (place, *_), value in values.items():
        if np.size(place) == table.ndim and np.all(np.less(place, table.shape)):
            found[place] = value
    return found


def like_number(before: object, value: float) -> float:
    """A number in the form of the one before: a whole number that is still whole stays one."""
    return int(value) if isinstance(before, (int, np.integer)) and float(value).is_integer() else float(value)
