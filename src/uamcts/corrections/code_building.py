"""Builds functions and classes like those of a user, with other numbers in them."""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from typing import Any

from uamcts.corrections.code_reading import constant_key, contents_of, defaults_of, unwrap
from uamcts.corrections.settings import Value


class StandIn(type):
    """A class that takes the place of a user's class, with other numbers; in all else it is that class.

    What it makes are objects of the user's class, and those count as its own: a step may read `Point.limit` and return
    a `Point`, which is a state. It is no subclass, of which the user's class would know.
    """

    __wrapped__: Value

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.__wrapped__, name)

    def __call__(cls, *given: Value, **named: Value) -> Any:
        return cls.__wrapped__(*given, **named)

    def __instancecheck__(cls, instance: Value) -> bool:
        return isinstance(instance, cls.__wrapped__)

    def __subclasscheck__(cls, subclass: Value) -> bool:
        return issubclass(subclass, cls.__wrapped__)


def build(
    functions: list[types.FunctionType],
    constants: Mapping[int, dict[Any, Any]],
    defaults: Mapping[int, dict[str, Any]],
    cells: dict[int, types.CellType],
    modules: Mapping[int, dict[str, Any]],
) -> dict[int, types.FunctionType]:
    """Copies of functions with other constants, defaults, closures and modules, which call each other."""
    built: dict[int, types.FunctionType] = {}
    inner = {id(one) for one in functions}
    for function in functions:
        for cell in function.__closure__ or ():
            if id(cell) not in cells and id(unwrap(contents_of(cell))) in inner:
                cells[id(cell)] = types.CellType()
    for function in functions:
        code = _with_constants(function.__code__, constants.get(id(function), {}))
        closure = tuple(cells.get(id(cell), cell) for cell in function.__closure__ or ())
        new = types.FunctionType(code, modules[id(function.__globals__)], function.__name__, None, closure or None)
        given = {**defaults_of(function), **defaults.get(id(function), {})}
        keywords = function.__kwdefaults__ or {}
        new.__defaults__ = tuple(value for name, value in given.items() if name not in keywords) or None
        new.__kwdefaults__ = {name: given[name] for name in keywords} or None
        new.__dict__.update(function.__dict__)
        new.__qualname__, new.__doc__, new.__module__ = function.__qualname__, function.__doc__, function.__module__
        built[id(function)] = new
    for function in functions:
        for cell in function.__closure__ or ():
            own = unwrap(contents_of(cell))
            if id(own) in built and cells.get(id(cell)) is not None:
                cells[id(cell)].cell_contents = built[id(own)]
        space = modules[id(function.__globals__)]
        for name in function.__code__.co_names:
            own = unwrap(space.get(name))
            if id(own) in built:
                space[name] = built[id(own)]
    return built


def _with_constants(code: types.CodeType, new: Mapping[Any, Any]) -> types.CodeType:
    """Code with other constants, also in the functions defined inside it."""
    if not new:
        return code
    constants = tuple(
        _with_constants(one, new) if isinstance(one, types.CodeType) else new.get(constant_key(one), one)
        for one in code.co_consts
    )
    return code.replace(co_consts=constants)


def shadow(kind: type, built: Mapping[int, types.FunctionType]) -> Any:
    """A class like `kind` with the new methods, also those that `super()` reaches; None if it has none of them."""
    own = {name: new for name, value in vars(kind).items() if (new := _wrapped_anew(value, built)) is not None}
    parents = [one for base in kind.__bases__ if (one := shadow(base, built)) is not None]
    if not own and not parents:
        return None
    space = {"__slots__": (), "__module__": kind.__module__, "__qualname__": kind.__qualname__, **own}
    return type(kind)(kind.__name__, (kind, *parents), space)


def _wrapped_anew(value: Value, built: Mapping[int, types.FunctionType]) -> Any:
    """The new function in place of an old one, wrapped in the same way; None if there is no new one."""
    if isinstance(value, property):
        parts = [value.fget, value.fset, value.fdel]
        new: list[Any] = [built.get(id(one), one) for one in parts]
        return property(*new) if any(one is not two for one, two in zip(parts, new, strict=True)) else None
    found = built.get(id(unwrap(value)))
    if found is None:
        return None
    if isinstance(value, (staticmethod, classmethod)):
        return type(value)(found)
    if isinstance(value, functools.cached_property):
        return property(found)
    return found
