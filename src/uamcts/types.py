"""The few types that every part of the package speaks."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

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


@runtime_checkable
class BatchedUncertainty(Protocol):
    """An uncertainty that is better asked for many transitions at once than for one, and that may remember answers.

    A search that is given one and remembers rolls out with what it remembers; where that says nothing, and where it
    remembers nothing at all, it asks after the rollouts for everything that was met.
    """

    def memory(self) -> PyTree:
        """What is remembered before anything was asked; None if nothing ever is."""
        ...

    def glance(self, memory: PyTree, state: PyTree, action: jax.Array) -> tuple[jax.Array, jax.Array]:
        """What is remembered of one transition, and whether anything is."""
        ...

    def many(self, memory: PyTree, states: PyTree, actions: jax.Array, wanted: jax.Array) -> tuple[jax.Array, PyTree]:
        """The uncertainties [n] of `actions` [n] in `states` [n, ...] where `wanted` [n], and the memory after."""
        ...


class Legal(Protocol):
    """Which actions may be taken in a state: conditions [num_actions]."""

    def __call__(self, state: PyTree) -> jax.Array: ...
