"""States as vectors of numbers, and back."""

from __future__ import annotations

import copy
import enum
import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from typing import Any, TypeAlias, cast

import numpy as np

from uamcts.agent.identity import fields, place
from uamcts.runtime.lazy_jax import is_array, jax, jnp
from uamcts.types import PyTree

State: TypeAlias = Any
"""A state of the user's own simulator: any object."""
NUMBERS, FLOATS = frozenset({float, int}), frozenset({float})
MARKS = 4
"""How many numbers stand for a string, or for another part of a state that is no number."""
UNNUMBERED = (str, bytes, set, frozenset)


def is_vector(state: State) -> bool:
    """Whether a state is a tuple of Python numbers, as most are: there are shortcuts for these."""
    return type(state) is tuple and NUMBERS.issuperset(map(type, state))


def flatten(state: State) -> np.ndarray:
    """All numbers in a state made of numbers, arrays, enums, tuples, lists, dictionaries, dataclasses and objects.

    For strings and sets, and parts that are None, there are marks instead.
    """
    if isinstance(state, UNNUMBERED) and not isinstance(state, np.generic):
        return np.array(marks(canonical(state)))
    if isinstance(state, (bool, int, float, np.ndarray, np.generic)):
        return np.asarray(state, np.float64).reshape(-1)
    if is_vector(state) and state:
        return np.array(state, np.float64)
    if isinstance(state, dict):
        state = [state[key] for key in sorted(state)]
    elif hasattr(state, "__dataclass_fields__"):
        state = read_fields(state)
    elif is_array(state):
        return np.asarray(state, np.float64).reshape(-1)
    elif isinstance(state, enum.Enum):
        return np.array([place(state)])
    elif not isinstance(state, (list, tuple)):
        state = list(fields(state).values())
    if state and NUMBERS.issuperset(map(type, state)):
        return np.array(state, np.float64)
    parts = [flatten(part) if part is not None else np.array(marks("None")) for part in state]
    return np.concatenate(parts) if parts else np.zeros(0)


@functools.lru_cache(20_000)
def marks(text: str) -> tuple[float, ...]:
    """Numbers from 0 to 1 for a text: the same for the same text in every process, and far apart for two others."""
    digest = hashlib.blake2b(text.encode(errors="backslashreplace"), digest_size=2 * MARKS).digest()
    return tuple(int.from_bytes(digest[place : place + 2], "big") / 65536 for place in range(0, 2 * MARKS, 2))


def fingerprint(state: State) -> np.ndarray:
    """Marks of a whole state, for states that do not hold equally many numbers."""
    return np.array(marks(canonical(state)))


def canonical(state: State) -> str:
    """A text that is equal for equal states; a TypeError for what does not show what it holds."""
    if state is None or isinstance(state, (bool, int, float, str, bytes)):
        return repr(state)
    if isinstance(state, (np.ndarray, np.generic)) or is_array(state):
        return repr(np.asarray(state).tolist())
    if isinstance(state, (set, frozenset)):
        return f"{{{', '.join(sorted(canonical(part) for part in state))}}}"
    if isinstance(state, (list, tuple)):
        return f"({', '.join(canonical(part) for part in state)})"
    if isinstance(state, dict):
        return f"{{{', '.join(sorted(f'{canonical(key)}: {canonical(part)}' for key, part in state.items()))}}}"
    if isinstance(state, enum.Enum):
        return str(state)
    return canonical(fields(state))


def numbers_of(state: State) -> list[float]:
    """What `flatten` returns, as Python numbers: faster than arrays for states this small."""
    if isinstance(state, (float, int)):
        return [state]
    if state is None:  # a part of a state may be
        return list(marks("None"))
    if isinstance(state, dict):
        return [number for key in sorted(state) for number in numbers_of(state[key])]
    if hasattr(state, "__dataclass_fields__"):
        state = read_fields(state)
    if isinstance(state, (list, tuple)):
        if NUMBERS.issuperset(map(type, state)):
            return list(state)  # the usual case
        return [number for part in state for number in (numbers_of(part) if part is not None else marks("None"))]
    numbers: list[float] = flatten(state).tolist()
    return numbers


def refill(state: State, numbers: Iterable[float]) -> State:
    """A state with other floats; whole numbers stay. A TypeError if it holds anything else."""
    return _refill(state, iter(numbers))


def unflatten(state: State, vector: np.ndarray) -> State:
    """A state with the floats of `vector` instead of its own; whole numbers stay. None if it holds anything else."""
    try:
        return refill(state, np.asarray(vector, np.float64).tolist())
    except TypeError:
        return None


def _refill(state: State, numbers: Iterator[float]) -> State:
    if type(state) is float:
        return next(numbers)
    if isinstance(state, np.ndarray) and state.dtype.kind in "biuf":
        filled = np.array([next(numbers) for _ in range(state.size)]).reshape(state.shape)
        return filled.astype(state.dtype) if state.dtype.kind == "f" else state
    if isinstance(state, (bool, int, np.bool_, np.integer)):
        next(numbers)
        return state
    if isinstance(state, float):
        return type(state)(next(numbers))
    if isinstance(state, np.floating):
        return state.dtype.type(next(numbers))
    if isinstance(state, enum.Enum):
        next(numbers)
        return state
    if isinstance(state, dict):
        return {**state, **{key: _refill(state[key], numbers) for key in sorted(state)}}
    if hasattr(state, "__dataclass_fields__"):
        held, kind = read_fields(state), cast(Any, type(state))
        if FLOATS.issuperset(map(type, held)) and takes_all(kind):
            return kind(*islice(numbers, len(held)))
        renewed = [_refill(part, numbers) for part in held]
        return replace(state, **dict(zip(state.__dataclass_fields__, renewed, strict=True)))
    if isinstance(state, (list, tuple)):
        parts = [_refill(part, numbers) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)
    filled = copy.copy(state)
    for name, part in fields(state).items():
        object.__setattr__(filled, name, _refill(part, numbers))
    return filled


def read_fields(state: State) -> tuple[Any, ...]:
    """What the fields of a dataclass hold."""
    kind: Any = type(state)
    return reader(kind)(state)


@functools.cache
def reader(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    """A function that returns what the fields of a dataclass hold."""
    names = tuple(kind.__dataclass_fields__)
    if len(names) > 1:
        return attrgetter(*names)
    return lambda state: tuple(getattr(state, name) for name in names)


@functools.cache
def takes_all(kind: Any) -> bool:
    """Whether a dataclass is made of all of its fields, in their order."""
    whole = all(field.init and not field.kw_only for field in kind.__dataclass_fields__.values())
    return whole and bool(kind.__dataclass_params__.init)


def flatten_jax(state: PyTree) -> jax.Array:
    """All numbers in a state, as a vector."""
    return jnp.concatenate([jnp.ravel(jnp.asarray(leaf)).astype(jnp.float32) for leaf in jax.tree.leaves(state)])
