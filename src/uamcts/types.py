"""The types that every part of the package shares.

Array annotations follow jaxtyping: `Float[Array, "blocks actions"]`. Shapes are those of one search; `jax.vmap` adds
axes in front. They are documentation at run time and checked in the tests.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from jaxtyping import Bool, Float, Int

if TYPE_CHECKING or "jax" in sys.modules:
    from jaxtyping import Array as Array
    from jaxtyping import PRNGKeyArray
else:  # importing them would import JAX; what they annotate is not evaluated
    Array = PRNGKeyArray = Any

PyTree: TypeAlias = Any
"""A nested structure of arrays, such as a state or a prediction cache. JAX has no narrower type for it."""

Environment: TypeAlias = Any
"""A Gymnasium or gymnax environment. Every class has attributes of its own, which are read and written by name."""

Number: TypeAlias = Any
"""A Python number in the plain engine; in the compiled one also an array, traced or with an axis for a batch.

A union would not do: the result of arithmetic has the type of its operands, and each engine knows its own.
"""

Switch: TypeAlias = Any
"""The same for True and False."""


class Transition(NamedTuple):
    """The result of one step of a world or a model."""

    state: PyTree
    """The next state."""
    reward: Float[Array, "*batch"]
    """The reward of the step."""
    terminal: Bool[Array, "*batch"]
    """Whether the episode is over. The next state is then absorbing: further steps do not change it and pay 0."""


@runtime_checkable
class Model(Protocol):
    """One step of a simulator: a pure function of one state and one action. Terminal states are absorbing."""

    def __call__(self, state: PyTree, action: Int[Array, ""], /) -> Transition:
        """Takes one step.

        Args:
            state: a pytree of arrays, without a batch axis.
            action: the index of the action.

        Returns:
            The transition that the simulator predicts.
        """
        ...


class StepModel(Protocol):
    """A simulator whose method is the step."""

    def step(self, state: PyTree, action: Int[Array, ""], /) -> Transition: ...


class OutcomesModel(Protocol):
    """A random simulator that lists what can happen."""

    def outcomes(self, state: PyTree, action: Int[Array, ""], /) -> tuple[Transition, Float[Array, " outcomes"]]: ...


class SampleModel(Protocol):
    """A random simulator that can only be drawn from."""

    def sample(self, state: PyTree, action: Int[Array, ""], key: PRNGKeyArray, /) -> Transition: ...


AnyModel: TypeAlias = Model | OutcomesModel | SampleModel | StepModel
Policy: TypeAlias = Callable[[PyTree, PRNGKeyArray], Array]
"""(state, key) -> an action, or probabilities [actions]."""
Value: TypeAlias = Callable[[PyTree], Array | float]
"""The value of a state."""
Prior: TypeAlias = Callable[[PyTree], Array]
"""Prior probabilities of the actions in a state, [actions]: any numbers of at least 0."""


@runtime_checkable
class Uncertainty(Protocol):
    """How wrong the model is about one transition: 0 where it is right, larger where it is more wrong."""

    def __call__(self, state: PyTree, action: Int[Array, ""], /) -> Float[Array, ""]:
        """Evaluates U.

        Args:
            state: the state before the step.
            action: the index of the action.

        Returns:
            U(state, action), finite and at least 0.
        """
        ...


@runtime_checkable
class BatchedUncertainty(Protocol):
    """An uncertainty function that is evaluated in batches and may cache its predictions.

    During rollouts a search only looks up cached predictions. If any is missing, or if nothing is ever cached, it
    evaluates all transitions of the rollouts in one batch afterwards.
    """

    def empty_cache(self) -> PyTree:
        """An empty cache, or None if predictions are not cached."""
        ...

    def lookup(
        self, cache: PyTree, state: PyTree, action: Int[Array, ""], /
    ) -> tuple[Float[Array, ""], Bool[Array, ""]]:
        """The cached prediction for one transition, and whether there is one."""
        ...

    def predict_batch(
        self, cache: PyTree, states: PyTree, actions: Int[Array, " n"], wanted: Bool[Array, " n"], /
    ) -> tuple[Float[Array, " n"], PyTree]:
        """Predictions for transitions that are `wanted`, and the cache afterwards; `states` has a leading axis [n]."""
        ...


@runtime_checkable
class Legal(Protocol):
    """Which actions are legal in a state."""

    def __call__(self, state: PyTree, /) -> Bool[Array, " actions"]: ...
