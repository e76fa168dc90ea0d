"""Numbers in the code of a JAX simulator that was given no params: constants of modules, closures, default arguments.

They become its params, so that a compiled program takes them as values. A number that must be known while the function
is traced, such as the length of a loop, is left alone.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from uamcts.corrections.code_numbers import Code, code_of
from uamcts.corrections.elements import TABLES, element_name, numbers_in
from uamcts.types import PyTree

MOST = 40
"""How many numbers are tried at most."""


class Coded:
    """A function of a simulator that takes the numbers in its code as its last argument."""

    def __init__(self, function: Callable[..., Any], names: frozenset[str]):
        self.function, self.code = function, code_of(function, "")
        self.names = frozenset(names & _numbers_of(self.code).keys())

    def __call__(self, *given: PyTree) -> Any:
        *rest, params = given
        values = {name: params[name] for name in self.names}
        return (self.code.function_with(values) if values else self.function)(*rest)

    @property
    def identity(self) -> tuple[object, ...]:
        """What distinguishes it from others."""
        return id(self.function), self.names


def _numbers_of(code: Code) -> dict[str, float]:
    """The real numbers in the code of a function, except literals."""
    found: dict[str, float] = {}
    for name, value in code.values().items():
        if code.is_literal(name):
            continue
        if type(value) is float:
            found[name] = value
        elif isinstance(value, TABLES) and not hasattr(value, "dtype"):
            inner = {element_name(name, keys): number for keys, number in numbers_in(value)}
            found |= inner if len(inner) <= MOST else {}
    return found


def find_code_params(
    functions: Mapping[str, Callable[..., Any]], given: Mapping[str, tuple[PyTree, ...]]
) -> tuple[dict[str, float], dict[str, Coded]]:
    """The numbers in the code of functions, and functions that take them as params.

    Args:
        functions: The functions, by name.
        given: Arguments with which each can be traced.
    """
    plain = {name: one for name, one in functions.items() if isinstance(one, types.FunctionType)}
    numbers: dict[str, float] = {}
    for one in plain.values():
        numbers |= _numbers_of(code_of(one, ""))
    forms = {name: jax.eval_shape(one, *given[name]) for name, one in plain.items()}
    params = {}
    for name, value in list(numbers.items())[:MOST]:
        if all(_can_vary(one, name, value, given[key], forms[key]) for key, one in plain.items()):
            params[name] = value
    return params, {name: Coded(one, frozenset(params)) for name, one in functions.items()}


def _can_vary(function: types.FunctionType, name: str, value: float, given: tuple[PyTree, ...], form: PyTree) -> bool:
    """Whether a function returns arrays of the same form if a number in it is traced."""
    coded = Coded(function, frozenset({name}))
    if not coded.names:
        return True
    try:
        found = jax.eval_shape(coded, *given, {name: jnp.float32(value)})
    except Exception:  # whatever a function does with a number while it is traced
        return False
    same = jax.tree.map(lambda one, other: one.shape == other.shape and one.dtype == other.dtype, found, form)
    return all(jax.tree.leaves(same))
