"""Validates arguments. Each function returns a plain value, or raises an error that names the argument and the remedy.

The whole package validates with these functions. They do not import JAX, because `uamcts.gym` registers its
environments without it.
"""

from __future__ import annotations

import contextlib
import math
import operator
import os
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np

LARGEST = float(np.finfo(np.float32).max)
"""The largest absolute value of a reward, a feature or an uncertainty: the compiled search uses 32-bit floats."""
MOST_ACTIONS = 100_000
"""The largest number of actions: a node of a search tree has room for one child per action."""


def short_repr(thing: object) -> str:
    """The `repr` of a value for an error message, shortened if it is long; attributes of objects without a `repr`."""
    try:
        plain = type(thing).__repr__ is object.__repr__ and getattr(thing, "__dict__", None)
        held = ", ".join(f"{name}={value!r}" for name, value in vars(thing).items()) if plain else ""
        words = f"{type(thing).__name__}({held})" if plain else repr(thing)
    except Exception as error:  # somebody's own __repr__
        words = f"a {type(thing).__name__} whose repr raises {type(error).__name__}"
    return shorten(words, 80)


def shorten(text: str, longest: int) -> str:
    """The text, cut to `longest` characters with an ellipsis."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def integer(value: object) -> int | None:
    """`value` as an int if it is a whole number (an int, a NumPy integer or an array of one), else None."""
    if type(value) is int:
        return value
    if isinstance(value, (bool, np.bool_)):
        return None
    given: Any = value
    if hasattr(given, "ndim") and hasattr(given, "dtype"):
        return int(given) if given.ndim == 0 and np.issubdtype(given.dtype, np.integer) else None
    try:
        return operator.index(given)
    except TypeError:
        return None


def whole(argument: str, value: object, least: int = 1, most: int | None = None) -> int:
    """`value` as an int.

    Args:
        argument: The name of the argument, for the message.
        value: What was given. Floats and booleans are not accepted.
        least: The smallest value that is allowed.
        most: The largest value that is allowed, if there is a limit.

    Raises:
        ValueError: If `value` is not a whole number, or out of range.
    """
    number = integer(value)
    if number is None or number < least or (most is not None and number > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{argument} is {short_repr(value)}; it must be a whole number {limits}")
    return number


def action_number(value: object, num_actions: int, owner: str, argument: str = "action") -> int:
    """`value` as one of the actions 0 .. num_actions - 1."""
    number = integer(value)
    if number is None:
        raise ValueError(
            f"{argument} is {short_repr(value)} (a {type(value).__name__}); give the number of an action, 0 to "
            f"{num_actions - 1}"
        )
    if not 0 <= number < num_actions:
        raise ValueError(f"{argument} is {number}; {owner} has the actions 0 to {num_actions - 1}")
    return number


def action_count(value: object) -> int:
    """`value` as a number of actions."""
    return whole("num_actions", value, 1, MOST_ACTIONS)


def seed_number(value: object) -> int:
    """`value` as a seed: a whole number of at most 64 bits."""
    number = integer(value)
    if number is None or not -(2**63) <= number < 2**63:
        raise ValueError(f"seed is {short_repr(value)}; it must be a whole number of at most 64 bits (up to 2**63 - 1)")
    return number


def real(
    argument: str,
    value: object,
    remedy: str = "it must be a finite number",
    good: Callable[[float], bool] | None = None,
    verb: str = "is",
) -> float:
    """`value` as a float.

    Args:
        argument: The name of the argument, for the message.
        value: What was given: a number or an array of one.
        remedy: What the message says the value must be.
        good: A condition that the number must meet.
        verb: What stands between the argument and its value in the message.

    Raises:
        ValueError: If `value` is no finite 32-bit number, or is not `good`.
    """
    number = math.nan
    if hasattr(value, "__float__") and not isinstance(value, (bool, np.bool_)) and getattr(value, "ndim", 0) == 0:
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            number = float(value)
    if not abs(number) <= LARGEST or (good is not None and not good(number)):
        large = " and at most 3.4e38 in size" if math.isfinite(number) and abs(number) > LARGEST else ""
        raise ValueError(f"{argument} {verb} {short_repr(value)}; {remedy}{large}")
    return number


def at_least_zero(argument: str, value: object) -> float:
    """`value` as a finite number of at least 0."""
    return real(argument, value, "it must be a finite number of at least 0", lambda number: number >= 0)


def fraction(argument: str, value: object) -> float:
    """`value` as a number strictly between 0 and 1."""
    return real(argument, value, "it must lie between 0 and 1, exclusive", lambda number: 0 < number < 1)


def flag(argument: str, value: object, remedy: str = "it must be True or False") -> bool:
    """`value` as a bool; environments and arrays may also give the numbers 0 and 1."""
    number = int(value) if isinstance(value, (bool, np.bool_)) else integer(value)
    if getattr(value, "ndim", 1) == 0 and getattr(value, "dtype", None) == np.bool_:
        number = int(bool(value))
    if number not in (0, 1):
        raise ValueError(f"{argument} is {short_repr(value)}; {remedy}")
    return bool(value)


def switch(argument: str, value: object) -> bool:
    """`value` as a bool, where numbers are not accepted."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{argument} is {short_repr(value)}; it must be True or False")
    return bool(value)


def function(argument: str, value: object, form: str) -> None:
    """Raises a TypeError if `value` cannot be called; None means that the argument was not given."""
    if value is not None and not callable(value):
        raise TypeError(f"{argument} is {short_repr(value)}; give a function {form}")


def names(argument: str, value: object, count: int) -> tuple[str, ...]:
    """`value` as a tuple of `count` names, or an empty one."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise ValueError(f"{argument} is {short_repr(value)}; give one name for each of the {count} actions, or none")
    found = tuple(value)
    if found and (len(found) != count or not all(isinstance(name, str) for name in found)):
        raise ValueError(f"{argument} is {short_repr(found)}; give one name for each of the {count} actions, or none")
    return found


def refuse_beyond_memory(needed: float, what: str, remedy: str) -> None:
    """Raises a ValueError if `what` needs more memory (in bytes) than this machine has."""
    have = _machine_memory()
    if needed > have:
        raise ValueError(f"{what} takes about {gigabytes(needed)} and this machine has {gigabytes(have)}; {remedy}")


def gigabytes(size: float) -> str:
    """A number of bytes for a message, like `1.5 GB`."""
    for unit, factor in (("MB", 1e6), ("GB", 1e9), ("TB", 1e12)):
        if size < 1000 * factor or unit == "TB":
            return f"{size / factor:,.3g} {unit}"
    raise AssertionError


def _machine_memory() -> float:
    """The machine's memory in bytes; infinite where the system does not tell."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def state_bytes(state: object) -> int:
    """The bytes of the arrays of a state."""
    import jax

    leaves = jax.tree.leaves(state)
    return sum(int(np.prod(np.shape(leaf))) * np.dtype(jax.dtypes.result_type(leaf)).itemsize for leaf in leaves)


class _Budget(Protocol):
    """What the size of a compiled search depends on; `uamcts.SearchConfig` has more."""

    @property
    def iterations(self) -> int: ...

    @property
    def rollouts(self) -> int: ...


def search_bytes(state: object, config: _Budget, num_actions: int) -> float:
    """An estimate of the bytes a compiled search needs: its tree, and a state for every rollout."""
    size = state_bytes(state)
    node = size + 34  # links, conditions and statistics
    return float((config.iterations + 2) * num_actions * node + config.rollouts * (size + 16))


_INT = frozenset((int,))


def legal_actions(allowed: object, num_actions: int) -> list[int]:
    """What `legal_actions(state)` returned, as a sorted list of actions.

    Args:
        allowed: A sequence of different actions from 0 to `num_actions - 1`, or a mask of `num_actions` booleans.
        num_actions: The number of actions.

    Raises:
        ValueError: If `allowed` is neither.
    """
    if type(allowed) is list and _INT.issuperset(map(type, allowed)):
        numbers: list[Any] = allowed  # the usual case, which every step of a rollout goes through
    else:
        numbers = _action_numbers(allowed, num_actions)
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"legal_actions gave {short_repr(allowed)}, which names an action twice; name each one once")
    ordered = sorted(numbers)
    if ordered and not 0 <= ordered[0] <= ordered[-1] < num_actions:
        odd = next(number for number in numbers if not 0 <= number < num_actions)
        raise ValueError(f"legal_actions gave {odd!r}; actions are 0 to {num_actions - 1}")
    return ordered


def _action_numbers(allowed: object, num_actions: int) -> list[int]:
    """The actions in a sequence, an array, a set or a mask, in the order given."""
    flat = getattr(allowed, "ndim", 1) == 1 and not isinstance(allowed, (str, bytes, dict))
    if not flat or not isinstance(allowed, Iterable):
        raise ValueError(f"legal_actions gave {short_repr(allowed)}; it must give a list of actions, or a mask")
    given = list(allowed)
    conditions = [isinstance(one, (bool, np.bool_)) or getattr(one, "dtype", None) == np.bool_ for one in given]
    if given and all(conditions):
        if len(given) != num_actions:
            raise ValueError(
                f"legal_actions gave {short_repr(allowed)}, conditions for {len(given)} actions where there are "
                f"{num_actions}; give one for each action, or a list of the legal actions"
            )
        return [action for action, condition in enumerate(given) if condition]
    numbers = [integer(one) for one in given]
    if None in numbers:
        odd = given[numbers.index(None)]
        raise ValueError(f"legal_actions gave {short_repr(odd)}; actions are whole numbers, 0 to {num_actions - 1}")
    return [number for number in numbers if number is not None]
