"""Quick ways to read and to make states that are flat and hold nothing but floats.

`state_vectors` takes any state apart. A search with a residual does that in every step, so the usual kinds of states
have shortcuts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import make_dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from uamcts.agent.state_vectors import State, reader, takes_all

NO_FLOATS = (None,)
"""What is read from a state that is not like the one that a form was made for."""


class Form(NamedTuple):
    """How states of one class are read and made. What is read may still hold something else than floats."""

    read: Callable[[Any], Sequence[Any]]
    make: Callable[[Iterable[float]], Any]


def form_of(state: State) -> Form | None:
    """The form of states like this one; None if there is none."""
    kind: Any = type(state)
    if kind is tuple or kind is list:
        return Form(_unchanged, kind)
    if isinstance(state, tuple) and hasattr(kind, "_make"):
        return Form(_unchanged, kind._make)
    if kind is np.ndarray and state.ndim == 1 and state.dtype == np.float64:
        return Form(_read_array, _make_array)
    if kind is dict and len(state) > 1:
        return _form_of_dictionary(state)
    if hasattr(kind, "__dataclass_fields__") and takes_all(kind):
        return Form(reader(kind), _maker(kind))
    return None


def _unchanged(state: State) -> State:
    return state


def _read_array(state: np.ndarray) -> Sequence[Any]:
    return state.tolist() if state.dtype == np.float64 and state.ndim == 1 else NO_FLOATS


def _make_array(numbers: Iterable[float]) -> np.ndarray:
    return np.array([*numbers])


def _form_of_dictionary(state: dict[str, float]) -> Form:
    """Numbers are in the order of the sorted keys, as everywhere; dictionaries keep the order that they have."""
    keys, count = sorted(state), len(state)
    values = itemgetter(*keys)

    def read(other: dict[str, float]) -> Sequence[Any]:
        return values(other) if len(other) == count and other.keys() == state.keys() else NO_FLOATS

    def make(numbers: Iterable[float]) -> dict[str, float]:
        return {**state, **dict(zip(keys, numbers, strict=False))}

    return Form(read, make)


def _maker(kind: Any) -> Callable[[Iterable[float]], Any]:
    """A function that makes a dataclass; it fills all fields at once where its constructor does nothing else."""
    slots = any("__slots__" in vars(one) for one in kind.__mro__[:-1])
    if slots or hasattr(kind, "__post_init__") or kind.__new__ is not object.__new__:
        return lambda numbers: kind(*numbers)
    twin: Any = make_dataclass(kind.__name__, tuple(kind.__dataclass_fields__))

    def make(numbers: Iterable[float]) -> Any:
        state = twin(*numbers)  # not frozen, whatever the dataclass is
        state.__class__ = kind
        return state

    return make
