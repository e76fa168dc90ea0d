"""The few types that every part of the package speaks."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias

import jax

PyTree: TypeAlias = Any
"""A nested structure of arrays; a state is one."""


class Transition(NamedTuple):
    """What one step gives: the next state, the reward paid (float32) and whether the episode is over (bool)."""

    state: PyTree
    reward: jax.Array
    terminal: jax.Array


class Model(Protocol):
    """One step of a simulator: pure, unbatched, absorbing at terminals."""

    def __call__(self, state: PyTree, action: jax.Array) -> Transition: ...


class Uncertainty(Protocol):
    """How wrong the model is about one transition: a scalar >= 0, and 0 where the model is right."""

    def __call__(self, state: PyTree, action: jax.Array) -> jax.Array: ...
