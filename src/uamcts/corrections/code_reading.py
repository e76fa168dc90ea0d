"""Reads which numbers a function uses, and which functions it calls, from its bytecode."""

from __future__ import annotations

import dis
import functools
import itertools
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from uamcts.corrections.elements import is_table
from uamcts.corrections.settings import Value, is_number, is_users

LEAST = 1e-5
"""Literals closer to 0 than this guard against divisions by 0; they say nothing about the world."""
LONGEST = 24
"""The longest literal tuple that is read."""
GLOBALS, ATTRIBUTES = ("LOAD_GLOBAL", "LOAD_NAME"), ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR")
PLACES = ("BINARY_SUBSCR", "STORE_SUBSCR", "DELETE_SUBSCR", "BUILD_SLICE", "BINARY_SLICE", "CONTAINS_OP", "IMPORT_NAME")
"""Instructions whose last argument is not an amount."""


class Read(NamedTuple):
    """What a function reads."""

    called: list[types.FunctionType]
    """The user's functions that it may call, by name."""
    attributes: list[str]
    """The names of attributes, which may be methods."""
    globals: list[tuple[dict[str, Any], str]]
    """Names in its module that are numbers, tables, modules or classes, each with the dictionary of that module."""
    members: dict[str, frozenset[str]]
    """What it reads of modules and classes, by their names."""
    cells: dict[str, types.CellType]
    """Numbers and tables of the functions around it."""
    defaults: list[str]
    constants: list[Any]
    """Literal numbers, and tuples of them."""


def unwrap(value: Value) -> types.FunctionType | None:
    """The function in a method, a property or a cache; None if there is none."""
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    elif isinstance(value, property):
        value = value.fget
    elif isinstance(value, functools.cached_property):
        value = value.func
    if isinstance(value, functools._lru_cache_wrapper):
        value = value.__wrapped__
    return value if isinstance(value, types.FunctionType) else None


def read_function(function: types.FunctionType) -> Read:
    """What a function reads."""
    steps = [one for code in _codes(function.__code__) for one in itertools.pairwise(_instructions(code))]
    space, called, found = function.__globals__, [], []
    members: dict[str, set[str]] = {}
    for this, following in steps:
        value = space.get(this.argval) if this.opname in GLOBALS else None
        if isinstance(value, (types.ModuleType, type)):
            if following.opname in ATTRIBUTES and _is_open(value):
                inner = vars(value).get(following.argval)
                if (helper := unwrap(inner)) is not None and is_users(helper.__module__):
                    called.append(helper)
                elif is_number(inner) or is_table(inner):
                    members.setdefault(this.argval, set()).add(following.argval)
        elif (helper := unwrap(value)) is not None and is_users(helper.__module__):
            called.append(helper)
        elif value is not None and (is_number(value) or is_table(value)):
            found.append((space, this.argval))
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    held = {name: contents_of(cell) for name, cell in cells.items()}
    called += [one for value in held.values() if (one := unwrap(value)) and is_users(one.__module__)]
    numbers = {name: cells[name] for name, value in held.items() if is_number(value) or is_table(value)}
    found += [(space, name) for name in members]
    attributes = list(dict.fromkeys(this.argval for this, _ in steps if this.opname in ATTRIBUTES))
    frozen = {name: frozenset(names) for name, names in members.items()}
    defaults = [name for name, value in defaults_of(function).items() if is_number(value) or is_table(value)]
    return Read(called, attributes, found, frozen, numbers, defaults, _constants(steps))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code, and that of what is defined inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _instructions(code: types.CodeType) -> list[dis.Instruction]:
    found = [one for one in dis.get_instructions(code) if one.opname not in ("CACHE", "PRECALL", "EXTENDED_ARG")]
    return [*found, found[-1]]


def _is_open(value: types.ModuleType | type) -> bool:
    """Whether a module or a class is the user's, so that a copy may hold other numbers."""
    if isinstance(value, types.ModuleType):
        return is_users(value.__name__)
    return type(value) is type and is_users(value.__module__)


def contents_of(cell: types.CellType) -> Any:
    """What a cell of a closure holds; None if it is not filled yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def defaults_of(function: types.FunctionType) -> dict[str, Any]:
    """The default arguments of a function."""
    code, plain = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(plain) : code.co_argcount]
    return {**dict(zip(names, plain, strict=True)), **(function.__kwdefaults__ or {})}


def constant_key(value: Value) -> tuple[type, str]:
    """Distinguishes constants that compare equal, such as 1 and 1.0, or 0.0 and -0.0."""
    return type(value), repr(value)


def _constants(steps: list[tuple[dis.Instruction, dis.Instruction]]) -> list[Any]:
    """Literal numbers, and tuples of them, that are used as amounts and never as an index or in a comparison."""
    found: dict[tuple[type, str], Any] = {}
    places = set()
    for this, following in steps:
        if this.opname not in ("LOAD_CONST", "RETURN_CONST") or not _is_amount(this.argval):
            continue
        key = constant_key(this.argval)
        found.setdefault(key, this.argval)
        if this.opname == "LOAD_CONST" and _finds(following, type(this.argval)):
            places.add(key)
    return [value for key, value in found.items() if key not in places]


def _is_amount(value: Value) -> bool:
    if isinstance(value, tuple):
        flat = [one for part in value for one in (part if isinstance(part, tuple) else (part,))]
        return 0 < len(flat) <= LONGEST and all(is_number(one) for one in flat)
    return is_number(value) and (value == 0.0 or abs(value) >= LEAST)


def _finds(following: dis.Instruction, kind: type) -> bool:
    """Whether an instruction uses a constant as an index, as a name, or as a number of times."""
    if following.opname in PLACES or (following.opname == "BINARY_OP" and following.argrepr == "[]"):
        return True
    if kind is not int:
        return False
    if following.opname == "COMPARE_OP":
        return any(sign in following.argrepr for sign in ("==", "!="))
    return following.opname == "BINARY_OP" and following.argrepr.startswith(("**", "//", "%", "<<", ">>", "&", "|"))
