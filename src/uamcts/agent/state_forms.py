"""Reads and makes states that hold nothing but numbers, quickly.

`state_vectors` takes any state apart. A search with a residual does that in every step, so the usual kinds of states
have shortcuts: tuples, lists, dictionaries, arrays, dataclasses and other objects, and such states within states.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import make_dataclass
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np

from uamcts.agent.identity import fields
from uamcts.agent.state_vectors import State, reader, takes_all

NUMBERS = (float, int, np.integer, np.bool_)
"""Numbers that count exactly as they are; an enum counts as its place among others."""
COPYING = ("__copy__", "__setstate__", "__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__")
"""What classes define whose objects are copied in another way than by copying what they hold."""


class Form(NamedTuple):
    """How states like one of them are read and made, number by number.

    Functions raise a TypeError or ValueError, an AttributeError or a KeyError for a state that is not like it. What is
    read may still hold something else than floats, and `make` puts it where it was.
    """

    read: Callable[[Any], Sequence[Any]]
    make: Callable[[Iterable[Any]], Any]


UNLIKE = (TypeError, ValueError, AttributeError, KeyError)
"""Errors where a state is unlike the one that a form was made for."""


def form_of(state: State) -> Form | None:
    """The form of states like this one; None if there is none."""
    if type(state) is np.ndarray:
        return _form_of_array(state) if state.dtype.kind in "biuf" else None
    form = _form_of_parts(state)
    if form is None:
        return None
    parts = form.read(state)
    flat = [isinstance(part, NUMBERS) and not isinstance(part, enum.Enum) for part in parts]
    if all(flat):
        return form
    inner = [None if number else form_of(part) for number, part in zip(flat, parts, strict=True)]
    return None if inner.count(None) > sum(flat) else _nested(form, inner, parts)


def _form_of_parts(state: State) -> Form | None:
    """How the parts of a state are read, and a state is made of them; None if there is no quick way."""
    kind: Any = type(state)
    if kind is tuple or kind is list:
        return Form(_unchanged, kind)
    if isinstance(state, tuple) and hasattr(kind, "_make"):
        return Form(_unchanged, kind._make)
    if kind is dict and state:
        return _form_of_dictionary(state)
    if hasattr(kind, "__dataclass_fields__"):
        return Form(reader(kind), _maker(kind)) if takes_all(kind) and kind.__dataclass_fields__ else None
    return _form_of_object(state)


def _nested(form: Form, inner: Sequence[Form | None], parts: Sequence[Any]) -> Form:
    """States that hold other states: `inner` has the forms of these."""
    kinds = [type(part) for part in parts]
    counts = [1 if one is None else len(one.read(part)) for part, one in zip(parts, inner, strict=True)]
    known = [*zip(inner, kinds, counts, strict=True)]

    def read(state: State) -> list[Any]:
        numbers: list[Any] = []
        for part, (one, kind, count) in zip(form.read(state), known, strict=True):
            if one is None:
                numbers.append(part)
                continue
            found = one.read(part)
            if type(part) is not kind or len(found) != count:
                raise TypeError
            numbers += found
        return numbers

    def make(numbers: Iterable[Any]) -> State:
        left = iter(numbers)
        return form.make([next(left) if one is None else one.make([*islice(left, count)]) for one, _, count in known])

    return Form(read, make)


def _unchanged(state: State) -> State:
    return state


def _form_of_array(state: np.ndarray) -> Form:
    """Arrays of one shape and type; whole numbers in them are Python's while they are looked at."""
    dtype, shape, flat = state.dtype, state.shape, state.ndim == 1

    def read(other: np.ndarray) -> list[Any]:
        if other.dtype != dtype or other.shape != shape:
            raise TypeError
        numbers: list[Any] = other.tolist() if flat else other.ravel().tolist()
        return numbers

    def make(numbers: Iterable[Any]) -> np.ndarray:
        made = np.array([*numbers], dtype)
        return made if flat else made.reshape(shape)

    return Form(read, make)


def _form_of_dictionary(state: dict[Any, Any]) -> Form | None:
    """Parts are in the order of the sorted keys, as everywhere; dictionaries keep the order that they have."""
    try:
        keys, count = sorted(state), len(state)
    except TypeError:
        return None
    values, last = itemgetter(*keys), keys[-1]

    def read(other: dict[Any, Any]) -> Sequence[Any]:
        if len(other) != count:
            raise TypeError
        return values(other) if count > 1 else (other[last],)

    def make(numbers: Iterable[Any]) -> dict[Any, Any]:
        return {**state, **dict(zip(keys, numbers, strict=False))}

    return Form(read, make)


def _form_of_object(state: State) -> Form | None:
    """Objects of the user's own classes, by what they hold, in the order of the sorted names."""
    kind: Any = type(state)
    try:
        names = tuple(fields(state))
    except TypeError:
        return None
    own = any(getattr(kind, name, None) is not getattr(object, name, None) for name in COPYING)
    if own or kind.__new__ is not object.__new__ or kind.__setattr__ is not object.__setattr__:
        return None
    held, values = getattr(state, "__dict__", None), attrgetter(*names)
    if held is not None and set(held) != set(names):  # slots as well
        return None

    def read(other: State) -> Sequence[Any]:
        return values(other) if len(names) > 1 else (values(other),)

    def make(numbers: Iterable[Any]) -> State:
        made = object.__new__(kind)
        if held is not None:
            made.__dict__ = {**held, **dict(zip(names, numbers, strict=False))}
        else:
            for name, number in zip(names, numbers, strict=False):
                setattr(made, name, number)
        return made

    return Form(read, make)


def _maker(kind: Any) -> Callable[[Iterable[Any]], Any]:
    """A function that makes a dataclass; it fills all fields at once where the constructor would do that slowly.

    A frozen one sets its fields one by one.
    """
    slots = any("__slots__" in vars(one) for one in kind.__mro__[:-1])
    own = hasattr(kind, "__post_init__") or kind.__new__ is not object.__new__
    if slots or own or not kind.__dataclass_params__.frozen:
        return lambda numbers: kind(*numbers)
    twin: Any = make_dataclass(kind.__name__, tuple(kind.__dataclass_fields__))

    def make(numbers: Iterable[Any]) -> Any:
        state = twin(*numbers)  # not frozen
        state.__class__ = kind
        return state

    return make
