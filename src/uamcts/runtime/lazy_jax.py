"""JAX, imported when it is first used: agents of Python simulators and the plain engine do without it.

Modules that these use take `jax` and `jnp` from here, and array types from `uamcts.types`. All others import JAX
themselves.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp

__all__ = ["is_a", "is_array", "is_traced", "jax", "jnp", "when_loaded"]


class _Module:
    """A module that is imported when one of its names is first asked for."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


if not TYPE_CHECKING:
    jax, jnp = _Module("jax"), _Module("jax.numpy")


def when_loaded(register: Callable[[], object]) -> None:
    """Calls a function that tells JAX about a class: now, or as soon as anybody has imported JAX."""
    if "jax" in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, _Finder(register))


class _Finder:
    """Finds JAX as it is found without it, and calls a function once JAX is imported."""

    def __init__(self, register: Callable[[], object]):
        self._register = register

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        del path, target
        if name != "jax":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("jax")
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def run(module: ModuleType) -> None:
                execute(module)
                self._register()

            spec.loader.exec_module = run  # type: ignore[method-assign]  # of this loader alone, which loads JAX
        return spec


def is_array(value: object) -> TypeGuard[jax.Array]:
    """Whether a value is an array of JAX. Where JAX is not loaded, there are none."""
    return is_a(value, "jax", "Array")


def is_traced(value: object) -> bool:
    """Whether a value is an array of JAX whose entries are not known yet."""
    return is_a(value, "jax.core", "Tracer")


def is_a(thing: object, module: str, name: str) -> bool:
    """Whether a thing is of a class of another module. Whoever has one has imported the module."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(thing, getattr(loaded, name))
