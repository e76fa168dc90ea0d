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
from typing import Any, NamedTuple, Protocol

from uamcts.corrections.code_building import StandIn, build, shadow
from uamcts.corrections.code_memories import CodeMemory, memories_of
from uamcts.corrections.code_reading import Read, constant_key, contents_of, defaults_of, read_function, unwrap
from uamcts.corrections.elements import Keys, is_table, like_number, parse_element, with_elements
from uamcts.corrections.settings import Simulator, Value, is_number, is_users

MOST_FUNCTIONS = 60
"""How many functions are read at most; those that a step calls itself come first."""
GLOBAL = "global "


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
        entry: The function that is called for a step.
        held: Functions that are attributes of the simulator itself.
    """

    def __init__(
        self, kind: type | None, entry: types.FunctionType | None, held: tuple[tuple[str, types.FunctionType], ...] = ()
    ):
        self.kind, self.entry, self.held = kind, entry, dict(held)
        self.functions: list[types.FunctionType] = []
        self.places: dict[str, Place] = {}
        self._members: dict[str, frozenset[str]] = {}
        """What steps read of modules and classes, by their names."""
        self._memories: dict[int, CodeMemory] = {}
        if entry is not None and is_users(entry.__module__):
            self._collect(entry)

    def _collect(self, entry: types.FunctionType) -> None:
        waiting = [entry]
        while waiting and len(self.functions) < MOST_FUNCTIONS:
            function = waiting.pop(0)
            if any(function is one for one in self.functions):
                continue
            self.functions.append(function)
            found = read_function(function)
            waiting += found.called + [one for name in found.attributes for one in self._methods(name)]
            self._add(function, found)
            for memory in memories_of(function):
                self._memories.setdefault(id(memory.held), memory)

    def _methods(self, name: str) -> Iterator[types.FunctionType]:
        """The user's methods of a name, those that `super()` reaches included."""
        spaces = [self.held, *map(vars, () if self.kind is None else self.kind.__mro__)]
        for space in spaces:
            function = unwrap(space.get(name))
            if function is not None and is_users(function.__module__):
                yield function

    def _add(self, function: types.FunctionType, found: Read) -> None:
        where = f" in {function.__name__}()"
        if any(one.__name__ == function.__name__ for one in self.functions[:-1]):
            where = f" in {function.__qualname__.replace('<locals>.', '')}()"
        for holder, name in found.globals:
            self.places.setdefault(GLOBAL + name, Place("global", holder, name))
        for name, members in found.members.items():
            self._members[name] = self._members.get(name, frozenset()) | members
        for name, cell in found.cells.items():
            self.places.setdefault(name + where, Place("closure", cell, name))
        for name in found.defaults:
            self.places.setdefault(name + where, Place("default", function, name))
        for constant in found.constants:
            self.places.setdefault(f"{constant!r}{where}", Place("constant", function, constant))

    def values(self) -> dict[str, Any]:
        """The numbers in the code and the tables of numbers, by their names."""
        found: dict[str, Any] = {}
        for name, place in self.places.items():
            value = _value(place)
            if isinstance(value, (types.ModuleType, type)):
                read = self._members.get(place.key, frozenset())
                found |= {f"{name}.{key}": one for key, one in vars(value).items() if key in read}
            elif is_number(value) or is_table(value):
                found[name] = value
        return found

    def is_literal(self, name: str) -> bool:
        """Whether the number of this name is a literal."""
        place = self.places.get(name)
        return place is not None and place.kind == "constant"

    def function_with(self, values: Mapping[str, float]) -> Callable[..., Any]:
        """The function that is called for a step, with other numbers."""
        assert self.entry is not None  # noqa: S101 (there are no values otherwise)
        return self._rebuild(values)[id(self.entry)]

    def set_on(self, twin: object, values: Mapping[str, float]) -> None:
        """Makes a copy of the simulator use other numbers."""
        assert self.kind is not None  # noqa: S101 (there are no values otherwise)
        built = self._rebuild(values, twin)
        object.__setattr__(twin, "__class__", shadow(self.kind, built) or self.kind)
        for name, function in self.held.items():
            if id(function) in built:
                twin.__dict__[name] = built[id(function)]

    def _rebuild(self, values: Mapping[str, float], twin: object = None) -> dict[int, types.FunctionType]:
        """All functions with other numbers, by the `id` of the original ones."""
        changed = [(self.places[root], new) for root, new in self._changes(values).items()]
        constants: dict[int, dict[Any, Any]] = {}
        defaults: dict[int, dict[str, Any]] = {}
        cells: dict[int, types.CellType] = {}
        modules: dict[int, dict[str, Any]] = {id(one.__globals__): dict(one.__globals__) for one in self.functions}
        for cell in [cell for one in self.held.values() for cell in one.__closure__ or ()]:
            if self._is_self(cell):
                cells[id(cell)] = types.CellType(twin)
        self._forget(defaults, cells, modules)
        for place, new in changed:
            if place.kind == "constant":
                constants.setdefault(id(place.holder), {})[constant_key(place.key)] = new
            elif place.kind == "default":
                defaults.setdefault(id(place.holder), {})[place.key] = new
            elif place.kind == "closure":
                cells[id(place.holder)] = types.CellType(new)
            else:
                modules[id(place.holder)][place.key] = new
        return build(self.functions, constants, defaults, cells, modules)

    def _forget(
        self, defaults: dict[int, dict[str, Any]], cells: dict[int, types.CellType], modules: dict[int, dict[str, Any]]
    ) -> None:
        """Gives functions memories of their own."""
        anew = {key: memory.anew() for key, memory in self._memories.items()}
        for function in self.functions if anew else ():
            space = modules[id(function.__globals__)]
            space.update(
                {name: anew[id(space[name])] for name in function.__code__.co_names if id(space.get(name)) in anew}
            )
            given = {name: anew[id(value)] for name, value in defaults_of(function).items() if id(value) in anew}
            defaults.setdefault(id(function), {}).update(given)
            for cell in function.__closure__ or ():
                if id(contents_of(cell)) in anew:
                    cells[id(cell)] = types.CellType(anew[id(contents_of(cell))])

    def _is_self(self, cell: types.CellType) -> bool:
        """Whether a closure holds the simulator itself, or one that it is a copy of."""
        held = getattr(contents_of(cell), "__dict__", {})
        return any(held.get(name) is function for name, function in self.held.items())

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
        return defaults_of(place.holder)[place.key]
    return place.key


def _changed(before: Value, inner: Mapping[Keys, float]) -> Any:
    """A number, a table, a module or a class in which some numbers are others."""
    if not isinstance(before, (types.ModuleType, type)):
        return like_number(before, inner[()]) if () in inner else with_elements(before, inner)
    names = {key for key, *_ in inner}
    below = {key: {tuple(rest): value for (one, *rest), value in inner.items() if one == key} for key in names}
    new = {str(key): _changed(getattr(before, key), one) for key, one in below.items()}
    if isinstance(before, type):
        return StandIn(before.__name__, (), {"__slots__": (), **new, "__wrapped__": before})
    module = types.ModuleType(before.__name__)
    module.__dict__.update({**vars(before), **new})
    return module


def _can_be_shadowed(kind: type) -> bool:
    """Whether a class may have a subclass that the user knows nothing of, and its objects may become objects of it."""
    return type(kind) in (type, ABCMeta, type(Protocol)) and not issubclass(kind, tuple) and not any(
        "__init_subclass__" in vars(one) for one in kind.__mro__ if is_users(one.__module__)
    )  # fmt: skip


@functools.lru_cache(256)
def _code_of_class(kind: Value, entry: str, held: tuple[tuple[str, types.FunctionType], ...]) -> Code:
    if not _can_be_shadowed(kind):
        return Code(kind, None)
    spaces = [dict(held), *map(vars, kind.__mro__)]
    return Code(kind, next((unwrap(one[entry]) for one in spaces if entry in one), None), held)


@functools.lru_cache(256)
def _code_of_function(function: types.FunctionType) -> Code:
    return Code(None, function)


def code_of(owner: Simulator, entry: str) -> Code:
    """The code of a simulator, which is asked by its method `entry`, or of a function, where `entry` is empty."""
    if entry:
        inner = getattr(owner, "__dict__", {}).items()
        held = tuple((name, value) for name, value in inner if isinstance(value, types.FunctionType))
        kind: Any = type(owner)
        return _code_of_class(kind, entry, held)
    return _code_of_function(owner) if isinstance(owner, types.FunctionType) else Code(None, None)
