"""Numbers in the code of a simulator: module constants, closures, default arguments and literals.

Engineers write `GRAVITY = 9.81` at the top of a file, and `0.5 * dt**2` in a step. Such numbers are named by where they
stand: `global GRAVITY`, `global config.mass`, `drag in step()`, `0.5 in step()`. A copy of the simulator with other
values consists of the same functions with other constants; the user's own functions and modules do not change.
"""

from __future__ import annotations

import functools
import types
from abc import ABCMeta
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from uamcts.corrections.code_reading import Read, read_function, unwrap
from uamcts.corrections.elements import Keys, is_in_code, is_table, like_number, parse_element, with_elements
from uamcts.corrections.settings import is_number, is_users

MOST_FUNCTIONS = 60
"""Functions that are read at most, those first that a step calls itself."""
GLOBAL = "global "

__all__ = ["Code", "code_of", "is_in_code"]


class Place(NamedTuple):
    """Where a number, or a table of numbers, stands in the code."""

    kind: str
    """`global`, `closure`, `default` or `constant`."""
    holder: Any
    """The dictionary of a module, a cell of a closure, or a function."""
    key: Any
    """The name, or the constant itself."""


class Code:
    """The functions that a step of a simulator may call, and the numbers in them.

    Args:
        kind: The class of the simulator; None if it is a function.
        entry: The function that it is asked by.
    """

    def __init__(self, kind: type | None, entry: types.FunctionType | None):
        self.kind, self.entry = kind, entry
        self.functions: list[types.FunctionType] = []
        self.places: dict[str, Place] = {}
        if entry is not None and is_users(entry.__module__ or "", entry.__module__ or ""):
            self._collect(entry)

    def _collect(self, entry: types.FunctionType) -> None:
        waiting, own = [entry], entry.__module__ or ""
        while waiting and len(self.functions) < MOST_FUNCTIONS:
            function = waiting.pop(0)
            if any(function is one for one in self.functions):
                continue
            self.functions.append(function)
            found = read_function(function, own)
            waiting += found.called + [one for name in found.attributes for one in self._methods(name, own)]
            self._add(function, found)

    def _methods(self, name: str, own: str) -> Iterator[types.FunctionType]:
        """The user's methods of a name, those that `super()` reaches included."""
        for kind in () if self.kind is None else self.kind.__mro__:
            function = unwrap(vars(kind).get(name))
            if function is not None and is_users(function.__module__ or "", own):
                yield function

    def _add(self, function: types.FunctionType, found: Read) -> None:
        where = f" in {function.__name__}()"
        if any(one.__name__ == function.__name__ for one in self.functions[:-1]):
            where = f" in {function.__qualname__.replace('<locals>.', '')}()"
        for holder, name in found.globals:
            self.places.setdefault(GLOBAL + name, Place("global", holder, name))
        for name, cell in found.cells.items():
            self.places.setdefault(name + where, Place("closure", cell, name))
        for name in found.defaults:
            self.places.setdefault(name + where, Place("default", function, name))
        for constant in found.constants:
            self.places.setdefault(f"{constant!r}{where}", Place("constant", function, constant))

    def values(self) -> dict[str, Any]:
        """The numbers in the code and the tables of numbers, by their names."""
        found = {}
        for name, place in self.places.items():
            value = _value(place)
            if isinstance(value, (types.ModuleType, type)):
                found |= {f"{name}.{key}": one for key, one in vars(value).items() if key in self._read_of(place)}
            elif is_number(value) or is_table(value):
                found[name] = value
        return found

    def _read_of(self, place: Place) -> frozenset[str]:
        """The names that steps read of a module or a class."""
        return frozenset().union(*(_members(function, place.key) for function in self.functions))

    def function_with(self, values: Mapping[str, float]) -> Callable[..., Any]:
        """The function that the simulator is asked by, with other numbers."""
        assert self.entry is not None  # noqa: S101 (there are no values otherwise)
        return self._rebuild(values)[id(self.entry)]

    def set_on(self, twin: object, values: Mapping[str, float]) -> None:
        """Makes a copy of the simulator use other numbers."""
        assert self.kind is not None  # noqa: S101 (there are no values otherwise)
        shadow = _shadow(self.kind, self._rebuild(values))
        object.__setattr__(twin, "__class__", shadow or self.kind)

    def _rebuild(self, values: Mapping[str, float]) -> dict[int, types.FunctionType]:
        """All functions with other numbers, by the identity of those before."""
        changed = [(self.places[root], new) for root, new in self._changes(values).items()]
        constants: dict[int, dict[Any, Any]] = {}
        defaults: dict[int, dict[str, Any]] = {}
        cells: dict[int, types.CellType] = {}
        modules: dict[int, dict[str, Any]] = {id(one.__globals__): dict(one.__globals__) for one in self.functions}
        for place, new in changed:
            if place.kind == "constant":
                constants.setdefault(id(place.holder), {})[_constant_key(place.key)] = new
            elif place.kind == "default":
                defaults.setdefault(id(place.holder), {})[place.key] = new
            elif place.kind == "closure":
                cells[id(place.holder)] = types.CellType(new)
            else:
                modules[id(place.holder)][place.key] = new
        return _build(self.functions, constants, defaults, cells, modules)

    def _changes(self, values: Mapping[str, float]) -> dict[str, Any]:
        """The new numbers and tables, by the names of their places."""
        grouped: dict[str, dict[Keys, float]] = {}
        for name, value in values.items():
            root, keys = parse_element(name)
            grouped.setdefault(root, {})[keys] = value
        return {root: _changed(_value(self.places[root]), inner) for root, inner in grouped.items()}


def _value(place: Place) -> Any:
    if place.kind == "global":
        return place.holder.get(place.key)
    if place.kind == "closure":
        return place.holder.cell_contents
    if place.kind == "default":
        return _defaults(place.holder)[place.key]
    return place.key


def _changed(before: Any, inner: Mapping[Keys, float]) -> Any:
    """A number, a table, a module or a class in which some numbers are others."""
    if not isinstance(before, (types.ModuleType, type)):
        return like_number(before, inner[()]) if () in inner else with_elements(before, inner)
    names = {key for key, *_ in inner}
    below = {key: {tuple(rest): value for (one, *rest), value in inner.items() if one == key} for key in names}
    new = {str(key): _changed(getattr(before, key), one) for key, one in below.items()}
    if isinstance(before, type):
        return type(before)(before.__name__, (before,), {"__slots__": (), **new})
    module = types.ModuleType(before.__name__)
    module.__dict__.update({**vars(before), **new})
    return module


def _defaults(function: types.FunctionType) -> dict[str, Any]:
    """The default arguments of a function."""
    code, plain = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(plain) : code.co_argcount]
    return {**dict(zip(names, plain, strict=True)), **(function.__kwdefaults__ or {})}


def _constant_key(value: Any) -> tuple[type, str]:
    """What tells a constant from others: 1 and 1.0 are equal, and so are 0.0 and -0.0."""
    return type(value), repr(value)


def _members(function: types.FunctionType, name: str) -> frozenset[str]:
    return read_function(function, function.__module__ or "").members.get(name, frozenset())


def _build(
    functions: list[types.FunctionType],
    constants: Mapping[int, dict[Any, Any]],
    defaults: Mapping[int, dict[str, Any]],
    cells: dict[int, types.CellType],
    modules: Mapping[int, dict[str, Any]],
) -> dict[int, types.FunctionType]:
    """Functions with other constants, defaults, closures and modules, which call each other."""
    built: dict[int, types.FunctionType] = {}
    inner = {id(one) for one in functions}
    for function in functions:
        for cell in function.__closure__ or ():
            if id(cell) not in cells and _filled(cell) and id(unwrap(cell.cell_contents)) in inner:
                cells[id(cell)] = types.CellType()
    for function in functions:
        code = _with_constants(function.__code__, constants.get(id(function), {}))
        closure = tuple(cells.get(id(cell), cell) for cell in function.__closure__ or ())
        new = types.FunctionType(code, modules[id(function.__globals__)], function.__name__, None, closure or None)
        given = {**_defaults(function), **defaults.get(id(function), {})}
        keywords = function.__kwdefaults__ or {}
        new.__defaults__ = tuple(value for name, value in given.items() if name not in keywords) or None
        new.__kwdefaults__ = {name: given[name] for name in keywords} or None
        new.__dict__.update(function.__dict__)
        new.__qualname__, new.__doc__, new.__module__ = function.__qualname__, function.__doc__, function.__module__
        built[id(function)] = new
    for function in functions:
        for cell in function.__closure__ or ():
            own = unwrap(cell.cell_contents) if _filled(cell) else None
            if id(own) in built and cells.get(id(cell)) is not None:
                cells[id(cell)].cell_contents = built[id(own)]
        space = modules[id(function.__globals__)]
        for name in function.__code__.co_names:
            own = unwrap(space.get(name))
            if id(own) in built:
                space[name] = built[id(own)]
    return built


def _filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # it is filled later
        return False


def _with_constants(code: types.CodeType, new: Mapping[Any, Any]) -> types.CodeType:
    """Code with other constants, also in what is defined inside it."""
    if not new:
        return code
    constants = tuple(
        _with_constants(one, new) if isinstance(one, types.CodeType) else new.get(_constant_key(one), one)
        for one in code.co_consts
    )
    return code.replace(co_consts=constants)


def _shadow(kind: type, built: Mapping[int, types.FunctionType]) -> Any:
    """A class like `kind` whose methods are the new ones, also those that `super()` reaches; None if it has none."""
    own = {name: new for name, value in vars(kind).items() if (new := _wrapped_anew(value, built)) is not None}
    parents = [one for base in kind.__bases__ if (one := _shadow(base, built)) is not None]
    if not own and not parents:
        return None
    space = {"__slots__": (), "__module__": kind.__module__, "__qualname__": kind.__qualname__, **own}
    return type(kind)(kind.__name__, (kind, *parents), space)


def _wrapped_anew(value: Any, built: Mapping[int, types.FunctionType]) -> Any:
    """The new function in place of one before, in the same wrapping; None if it is none of them."""
    if isinstance(value, property):
        parts = [value.fget, value.fset, value.fdel]
        new = [built.get(id(one), one) for one in parts]
        return property(*new) if any(one is not two for one, two in zip(parts, new, strict=True)) else None
    found = built.get(id(unwrap(value)))
    if found is None:
        return None
    if isinstance(value, (staticmethod, classmethod)):
        return type(value)(found)
    if isinstance(value, functools.cached_property):
        return property(found)
    return found


def _can_be_shadowed(kind: type) -> bool:
    """Whether a class may have a subclass that the user knows nothing of, and its objects may become objects of it."""
    return type(kind) in (type, ABCMeta) and not issubclass(kind, tuple) and not any(
        "__init_subclass__" in vars(one) for one in kind.__mro__ if is_users(one.__module__)
    )  # fmt: skip


@functools.lru_cache(256)
def _code_of_class(kind: type, entry: str) -> Code:
    if not _can_be_shadowed(kind):
        return Code(kind, None)
    return Code(kind, next((unwrap(vars(one)[entry]) for one in kind.__mro__ if entry in vars(one)), None))


@functools.lru_cache(256)
def _code_of_function(function: types.FunctionType) -> Code:
    return Code(None, function)


def code_of(owner: Any, entry: str) -> Code:
    """The code of a simulator, which is asked by its method `entry`, or of a function, where `entry` is empty."""
    if entry:
        return _code_of_class(type(owner), entry)
    return _code_of_function(owner) if isinstance(owner, types.FunctionType) else Code(None, None)
