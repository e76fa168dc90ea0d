"""Tables of a simulator: lists, tuples, dictionaries and arrays of numbers, nested or not, element by element.

An element is named as it is written in Python: `values[17]`, `breaks['worn']`, `grid[2, 3]`, `streets['X0', 1][1]`.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

DEEPEST, MOST_ELEMENTS = 3, 2000
"""How deep tables may be nested, and how many numbers a simulator's tables may hold; larger ones are left alone."""

Table: TypeAlias = Any
"""A list, a tuple, a dictionary or an array, which holds numbers or further tables."""
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
        elif deep > 1 and isinstance(value, (list, tuple, dict, np.ndarray)):
            for keys, number in numbers_in(value, is_number, deep - 1):
                yield (key, *keys), number


def _is_literal(key: object) -> bool:
    return type(key) in (int, str) or (type(key) is tuple and bool(key) and all(map(_is_literal, key)))


def with_elements(table: Table, values: Mapping[Keys, float]) -> Table:
    """A copy of a table in which some elements have other values; parts without such elements are shared.

    Elements that are gone are left out: a simulator may have changed its tables since they were found.
    """
    if isinstance(table, np.ndarray):
        keeps = table.dtype.kind == "f" or all(float(value).is_integer() for value in values.values())
        found = table.copy() if keeps else table.astype(float)
        for (place,), value in values.items():
            if np.size(place) == table.ndim and np.all(np.less(place, table.shape)):
                found[place] = value
        return found
    below: dict[Any, dict[Keys, float]] = {}
    for (key, *rest), value in values.items():
        below.setdefault(key, {})[tuple(rest)] = value
    parts: Any = dict(table) if isinstance(table, dict) else list(table)
    for key, inner in below.items():
        if not (key in parts if isinstance(table, dict) else key < len(parts)):
            continue
        parts[key] = like_number(parts[key], inner[()]) if () in inner else with_elements(parts[key], inner)
    if isinstance(table, dict):
        if type(table) is not dict:  # one with a default, say
            twin = table.copy()
            twin.update(parts)
            return twin
        return parts
    return type(table)(*parts) if hasattr(table, "_fields") else type(table)(parts)


def like_number(before: object, value: float) -> float:
    """A number in the form of the one before: a whole number that is still whole stays one."""
    return int(value) if isinstance(before, (int, np.integer)) and float(value).is_integer() else float(value)
