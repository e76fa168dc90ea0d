"""Tables of a simulator: lists, tuples, dictionaries, arrays and objects with settings, element by element.

An element is named as it is written in Python: `values[17]`, `breaks['worn']`, `grid[2, 3]`, `streets['X0', 1][1]`,
`config.gravity`.
"""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from uamcts.corrections.settings import (
    NOT_PARAMETERS,
    Field,
    Value,
    attributes,
    is_named,
    is_number,
    is_settings,
    with_attributes,
)

DEEPEST, MOST_ELEMENTS = 3, 2000
"""How deep tables may be nested, and how many numbers a simulator's tables may hold; larger ones are left alone."""

Table: TypeAlias = Any
"""A list, a tuple, a dictionary, an array or an object with settings, which holds numbers or further tables."""
TABLES = (list, tuple, dict, np.ndarray)
Keys: TypeAlias = tuple[Any, ...]
"""The keys that lead from a table to one of its elements, outermost first; those of an object are `Field`."""


def is_table(value: object) -> bool:
    """Whether a value may hold numbers that can be named one by one."""
    return isinstance(value, TABLES) or is_settings(value)


def is_in_code(name: str) -> bool:
    """Whether a name is that of a number in the code of a simulator: `global G`, `0.5 in step()`."""
    return name.startswith("global ") or name.endswith("()")


def _split(name: str) -> tuple[str, str, str]:
    """What precedes the expression in a name, the expression, and where it is: `global `, `a[1]`, ` in f()`."""
    if name.startswith("global "):
        return "global ", name.removeprefix("global "), ""
    if name.endswith("()"):
        place = name.rindex(" in ")
        return "", name[:place], name[place:]
    return "", name, ""


def element_name(table: str, keys: Keys) -> str:
    """The name of an element of a table."""
    before, expression, where = _split(table)
    return before + expression + "".join(map(_key_name, keys)) + where


def _key_name(key: object) -> str:
    if isinstance(key, Field):
        return f".{key}"
    return f"[{repr(key)[1:-1] if type(key) is tuple and len(key) > 1 else repr(key)}]"


@functools.lru_cache(10 * MOST_ELEMENTS)
def parse_element(name: str) -> tuple[str, Keys]:
    """The table of an element, and its keys; without keys, it is a number that stands by itself."""
    before, expression, where = _split(name)
    found: Any = ast.parse(expression, mode="eval").body
    keys = []
    while isinstance(found, (ast.Subscript, ast.Attribute)):
        keys.append(ast.literal_eval(found.slice) if isinstance(found, ast.Subscript) else Field(found.attr))
        found = found.value
    return before + expression[: found.end_col_offset] + where, tuple(reversed(keys))


def is_entry(name: str) -> bool:
    """Whether a number is an entry of a dictionary, which only some steps read."""
    keys = parse_element(name)[1]
    return bool(keys) and type(keys[-1]) in (str, tuple)


def numbers_in(table: Table, deep: int = DEEPEST, inside: tuple[object, ...] = ()) -> Iterator[tuple[Keys, float]]:
    """All numbers in a table, by their keys. Objects that contain themselves are entered once."""
    if isinstance(table, np.ndarray):
        if table.dtype.kind in "iuf" and table.ndim:
            for place in np.ndindex(table.shape):
                yield (place if table.ndim > 1 else place[0],), float(table[place])
        return
    for key, value in _parts(table):
        if is_number(value):
            yield (key,), float(value)
        elif deep > 1 and is_table(value) and not any(value is one for one in inside):
            for keys, number in numbers_in(value, deep - 1, (*inside, table)):
                yield (key, *keys), number


def _parts(table: Table) -> Iterator[tuple[Any, Any]]:
    if isinstance(table, TABLES) and not is_named(table):
        pairs = table.items() if isinstance(table, dict) else enumerate(table)
        yield from ((key, value) for key, value in pairs if _is_literal(key))
    else:
        yield from ((Field(name), value) for name, value in attributes(table) if name not in NOT_PARAMETERS)


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
    if is_settings(table):
        fields = {key for key in below if isinstance(key, Field) and hasattr(table, key)}
        return with_attributes(table, {key: _with_element(getattr(table, key), below[key]) for key in fields})
    if not isinstance(table, TABLES):
        return table
    held: Any = table
    parts: Any = list(held) if isinstance(held, tuple) else copy.copy(held)
    for key, inner in below.items():
        if key in parts if isinstance(table, dict) else type(key) is int and key < len(parts):
            parts[key] = _with_element(parts[key], inner)
    # A subclass may be made of other arguments than its parts.
    return tuple.__new__(type(table), parts) if isinstance(table, tuple) else parts


def _with_element(before: Value, inner: Mapping[Keys, float]) -> Any:
    """The new value of an element, or a copy of a table in which some elements have other values."""
    if () in inner:
        return like_number(before, inner[()]) if is_number(before) else before
    return with_elements(before, inner) if is_table(before) else before


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


def like_number(before: object, value: float) -> Any:
    """A number in the form of the one before: a whole number that is still whole stays one, and an array an array.

    A value that is traced by JAX is returned as it is.
    """
    if not isinstance(value, (int, float)):
        return value
    if isinstance(before, np.ndarray):
        return np.asarray(value, before.dtype if before.dtype.kind == "f" else float)
    return int(value) if isinstance(before, (int, np.integer)) and float(value).is_integer() else float(value)
