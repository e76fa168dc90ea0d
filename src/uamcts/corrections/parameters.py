"""Parameters of a Python simulator: the numbers in it that may be off, and copies of it with other values.

A simulator may say itself what its parameters are: `parameters`, a dictionary of names and believed values, and
`with_parameters(**values)`, which returns a simulator with other values. Any other object has its numeric attributes,
those of its class included, each number of a short list, tuple or vector (`wind[0]`), and those of a small dictionary
or object with settings (`config.gravity`). Derived attributes count in their own right: whoever keeps `total_mass`
beside `mass` has two parameters. Numbers in the code of a simulator come last (`uamcts.corrections.code_numbers`).
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from uamcts.arguments import short_repr
from uamcts.corrections.back_references import refer_back, refers_back
from uamcts.corrections.code_numbers import code_of
from uamcts.corrections.copies import full_copy, shallow_copy
from uamcts.corrections.elements import (
    MOST_ELEMENTS,
    Keys,
    element_name,
    is_in_code,
    is_table,
    like_number,
    numbers_in,
    parse_element,
    with_elements,
)
from uamcts.corrections.links import find_links
from uamcts.corrections.memories import Memory, forget
from uamcts.corrections.settings import (
    NOT_PARAMETERS,
    Field,
    Simulator,
    Value,
    attributes,
    is_named,
    is_number,
    set_attribute,
)
from uamcts.names import suggestion

LONGEST_VECTOR, LARGEST_TABLE = 6, 12
"""The largest vector, and the largest dictionary or object, whose numbers count as parameters."""
MOST = 40
"""Parameters that are looked at at most, in the order in which an object holds them."""
WIDEST = 100.0
"""How many times as large or as small as believed a parameter may be, unless the user gives bounds."""
ROUNDING = 1e-6
"""A value that differs from the believed one by a smaller share says nothing: numbers of 32 bits are off by as much."""

Bounds = tuple[float, float]


def _short_table(name: str, value: Value) -> dict[str, float]:
    """The numbers in a small table, by their names; nothing if there are too many."""
    if not is_table(value):
        return {}
    plain = isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1)
    if plain and not all(is_number(one) for one in value):
        return {}
    most = LONGEST_VECTOR if isinstance(value, (list, tuple, np.ndarray)) else LARGEST_TABLE
    found = list(itertools.islice(numbers_in(value), most + 1))
    return {element_name(name, keys): number for keys, number in found} if len(found) <= most else {}


def find_parameters(owner: Simulator) -> dict[str, float]:
    """The parameters of a simulator and their believed values, without those in its code."""
    declared = getattr(owner, "parameters", None)
    if callable(getattr(owner, "with_parameters", None)) and isinstance(declared, Mapping):
        return {name: float(value) for name, value in declared.items() if is_number(value)}
    found: dict[str, float] = {}
    for name, value in attributes(owner):
        if name not in NOT_PARAMETERS:
            found |= {name: float(value)} if is_number(value) else _short_table(name, value)
    return dict(list(found.items())[:MOST])


def find_code_parameters(owner: Simulator, entry: str = "step") -> dict[str, float]:
    """The numbers in the code of a simulator, those of small tables included, and their believed values.

    Args:
        owner: The simulator, or a function.
        entry: The name of the method that it is asked by; "" for a function.
    """
    if callable(getattr(owner, "with_parameters", None)):
        return {}
    found: dict[str, float] = {}
    for name, value in code_of(owner, entry).values().items():
        found |= {name: float(value)} if is_number(value) else _short_table(name, value)
    return dict(list(found.items())[:MOST])


def find_elements(owner: Simulator, entry: str = "step") -> dict[str, float]:
    """All numbers of a simulator, those in its tables included, and their believed values."""
    found: dict[str, float] = {}
    if owner is None or callable(getattr(owner, "with_parameters", None)):
        return found
    for name, value in itertools.chain(attributes(owner), code_of(owner, entry).values().items()):
        if name in NOT_PARAMETERS or not (is_number(value) or is_table(value)):
            continue
        one = is_number(value)
        table = [((), float(value))] if one else list(itertools.islice(numbers_in(value), MOST_ELEMENTS + 1))
        if len(found) + len(table) <= MOST_ELEMENTS:
            found |= {element_name(name, keys): number for keys, number in table}
    return found


def with_values(
    owner: Simulator, values: Mapping[str, float], memories: Mapping[str, Memory] | None = None, entry: str = "step"
) -> Any:
    """A copy of a simulator with other values of some of its parameters; the simulator itself does not change.

    Without its `memories` (`uamcts.corrections.memories`), which are those of the values before.
    """
    if not values:
        return owner
    if callable(getattr(owner, "with_parameters", None)):
        return owner.with_parameters(**values)
    if not entry:
        return code_of(owner, entry).function_with(values)
    if is_named(owner):
        places = {name: parse_element(name) for name in values}
        return with_elements(owner, {(Field(root), *keys): values[name] for name, (root, keys) in places.items()})
    twin = shallow_copy(owner)
    forget(twin, owner, memories or {})
    set_values(twin, owner, values, entry)
    return twin


def set_values(twin: object, owner: object, values: Mapping[str, float], entry: str = "step") -> None:
    """Sets parameters of a copy of a simulator, in the form in which the simulator has them."""
    tables: dict[str, dict[Keys, float]] = {}
    coded = {name: value for name, value in values.items() if is_in_code(name)}
    for name, value in values.items():
        if name not in coded:
            table, keys = parse_element(name)
            tables.setdefault(table, {})[keys] = value
    for table, elements in tables.items():
        held = getattr(owner if () in elements else twin, table)
        set_attribute(twin, table, like_number(held, elements[()]) if () in elements else with_elements(held, elements))
    if coded:
        code_of(owner, entry).set_on(twin, coded)


def laboratory(owner: Simulator) -> Any:
    """A copy of a simulator for trials: what its steps remember does not reach the simulator itself."""
    if callable(getattr(owner, "with_parameters", None)):
        return owner
    twin = full_copy(owner)
    for name, part in list(getattr(twin, "__dict__", {}).items()):
        if part is owner.__dict__.get(name) and refers_back(part, owner):  # functions are not copied
            twin.__dict__[name] = refer_back(part, owner, twin)
    return twin


class Choice:
    """Which parameters may be fitted, and within which bounds.

    Args:
        given: What the user said: None (any that the simulator has), names, or names with bounds.
        found: The parameters of the simulator.
        name: The name of the simulator, for messages.
        random: Whether the simulator is random: a value between 0 and 1 may then be a probability.
    """

    def __init__(self, given: Any, found: Mapping[str, float], name: str, random: bool = False):
        self.named, self.random = given is not None, random
        self.believed = dict(found) if given is None else {}
        self._bounds: dict[str, Bounds] = {}
        links = find_links(found)
        if given is None:
            self.believed |= {one: found[link.base] for one, link in links.items()}
            return
        for one in given:
            if one not in found:
                hint = suggestion(one, found)
                has = ", ".join(found) or "none: give it attributes, or `parameters` and with_parameters(**values)"
                raise ValueError(f"parameters names {short_repr(one)}, which {name} does not have; {hint}it has {has}")
            self.believed[one] = found[one]
        if isinstance(given, Mapping):
            self._bounds = {one: _check_bounds(one, bounds, found[one]) for one, bounds in given.items()}
        for one, link in links.items():
            if link.base in self.believed:
                self.believed[one] = found[link.base]
                self._bounds |= {one: self._bounds[link.base]} if link.base in self._bounds else {}

    def without(self, names: Iterable[str]) -> Choice:
        """The same without some of the parameters."""
        twin, dropped = copy.copy(self), frozenset(names)
        twin.believed = {name: value for name, value in self.believed.items() if name not in dropped}
        return twin

    def of_plain(self, fitted: Iterable[str] = ()) -> Choice:
        """The same without the numbers in code, unless the user has named them, or they are `fitted`."""
        kept = frozenset(fitted)
        return (
            self
            if self.named
            else self.without(name for name in self.believed if is_in_code(name) and name not in kept)
        )

    def of_amounts(self) -> Choice:
        """The same for numbers that are no probabilities, whatever their values."""
        twin = copy.copy(self)
        twin.random = False
        return twin

    def is_believed(self, name: str, value: float) -> bool:
        """Whether a value is the believed one but for rounding, whose errors a tiny change may happen to explain."""
        believed = self.believed.get(name, 0.0)
        return abs(value - believed) <= ROUNDING * abs(believed) > 0.0

    def bounds(self, name: str) -> Bounds:
        """The range of a parameter: the user's, or a wide one around its believed value."""
        if name in self._bounds:
            return self._bounds[name]
        value = self.believed[name]
        if value == 0.0:
            return -np.inf, np.inf
        ends = (value / WIDEST, value * WIDEST) if value > 0 else (value * WIDEST, value / WIDEST)
        return (0.0, 1.0) if self.random and 0.0 < value < 1.0 else ends

    def bounds_near(self, name: str, value: float) -> Bounds:
        """The same on the side of 0 on which a value lies: a motor may be wired the wrong way round."""
        low, high = self.bounds(name)
        if name in self._bounds or (low, high) == (0.0, 1.0) or value * self.believed[name] >= 0.0:
            return low, high
        return -high, -low

    def with_and_without(self, values: dict[str, float]) -> list[dict[str, float]]:
        """Values, and 0 in place of those that are as small as bounds allow, if there are any: a broken heater."""
        least = {name: 1.01 * abs(self.believed[name]) / WIDEST * (name not in self._bounds) for name in values}
        gone = {name: 0.0 if abs(value) <= least[name] else value for name, value in values.items()}
        return [values] if gone == values else [values, gone]

    def bounds_around(self, name: str, value: float) -> Bounds:
        """The range of a parameter that has drifted to a value: the user's, or one that is wide around it as well."""
        low, high = self.bounds(name)
        if name in self._bounds or (low, high) == (0.0, 1.0) or self.believed[name] == 0.0:
            return low, high
        return min(low, value / WIDEST, value * WIDEST), max(high, value / WIDEST, value * WIDEST)

    def grid(self, name: str) -> np.ndarray:
        """Values from which a fit starts, the believed one left out."""
        value, (low, high) = self.believed[name], self.bounds(name)
        if name in self._bounds and np.isfinite([low, high]).all():
            rough = np.linspace(low, high, 13)
        elif value == 0.0:
            rough = np.outer([0.01, 0.1, 0.3, 1.0, 3.0, 10.0], [-1.0, 1.0]).ravel()
        else:
            rough = value * np.array([0.125, 0.25, 0.5, 0.7, 0.85, 1.2, 1.5, 2.0, 3.0, 4.5, 7.0, 12.0])
            if 0.0 < value < 1.0:
                rough = np.concatenate([rough, np.linspace(0.05, 0.95, 7)])
        inside = rough[(rough >= low) & (rough <= high) & (rough != value)]
        return np.unique(inside)


def _check_bounds(name: str, bounds: Any, value: float) -> Bounds:
    remedy = f"give (low, high) with low < high (believed is {value:g}), or a list of names"
    if not isinstance(bounds, Sequence) or len(bounds) != 2 or not all(_is_real(end) for end in bounds):
        raise ValueError(f"parameters gives {name!r} the bounds {short_repr(bounds)}; {remedy}")
    low, high = float(bounds[0]), float(bounds[1])
    if not low < high:
        raise ValueError(f"parameters gives {name!r} the bounds {short_repr(bounds)}; {remedy}")
    return low, high


def _is_real(value: Value) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and not math.isnan(value)


def check_choice(given: Any) -> None:
    """Refuses what is neither None, a list of names, nor a dictionary of bounds."""
    if given is None:
        return
    names = list(given) if isinstance(given, (Mapping, list, tuple, set, frozenset)) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"parameters is {short_repr(given)}; give names, ['gravity'], or bounds, {{'gravity': (1, 100)}}; () fits "
            "none"
        )
