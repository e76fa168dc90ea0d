"""The protocol of an estimator of U. Adding an estimator takes one more file."""

from __future__ import annotations

from typing import ClassVar, Protocol, Self, TypeAlias, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uamcts.domains.base import Domain
from uamcts.types import BatchedUncertainty, PyTree, Uncertainty

Scalar: TypeAlias = Float[Array, ""]
Action: TypeAlias = Int[Array, ""]
Inputs: TypeAlias = Float[Array, " inputs"]
Copies: TypeAlias = int | Int[Array, ""]
"""How often a sample counts."""


@runtime_checkable
class Space(Protocol):
    """What an estimator needs to know of a domain or a simulator."""

    @property
    def num_actions(self) -> int: ...

    def reset(self, key: jax.Array) -> PyTree:
        """A state, as an example of the structure of states."""
        ...

    def inputs(self, state: PyTree) -> Inputs:
        """A state as the vector that U is learned from."""
        ...

    def features(self, state: PyTree) -> jax.Array:
        """A state as the vector that U is measured in."""
        ...


class Estimator(eqx.Module):
    """Learns U(s, a) from samples (s, a, U).

    An estimator is a pytree of arrays: it can be passed through `jit`, mapped over runs and saved. Subclasses implement
    `predict` and override the other methods where they need to. Methods are pure and unbatched; those that change
    something return the changed estimator.

    Example:
        ```python
        class Rain(uamcts.Estimator):
            def predict(self, state, action):
                return jnp.where(state.raining, 1.0, 0.0)

        agent = uamcts.Agent.paper(domain, Rain())
        ```
    """

    exact: ClassVar[bool] = False
    """Whether predictions are U itself, or a rule to be followed literally, rather than estimates with an error.
    Every prediction above 0 then counts (see `uamcts.uncertainty.calibration`)."""
    stops_for_good: ClassVar[bool] = False
    """Whether it never learns again once the schedule has stopped its training, as in the paper. Otherwise training
    resumes when an unexpected sample arrives."""

    def predict(self, state: PyTree, action: Action) -> Scalar:
        """Predicts U of one transition.

        Args:
            state: One state.
            action: The action taken in it.

        Returns:
            U-hat, at least 0; 0 until something was learned.
        """
        raise NotImplementedError(f"{type(self).__name__} has no predict(state, action)")

    def absorb(self, state: PyTree, action: Action, target: Scalar, copies: Copies = 1) -> Self:
        """Takes in one sample.

        Args:
            state: The state of the transition.
            action: Its action.
            target: U, as it was observed.
            copies: How often the sample counts.

        Returns:
            The estimator with the sample.
        """
        del state, action, target, copies
        return self

    def learn(self, key: jax.Array) -> tuple[Self, Scalar]:
        """Runs one round of training on the samples absorbed so far.

        Args:
            key: Randomness for this round.

        Returns:
            The trained estimator and the mean loss of the round.
        """
        del key
        return self, jnp.zeros((), jnp.float32)

    def finish_on_host(self) -> Self:
        """Completes a round with work that can only be done on the host, outside of `jit`.

        The arrays may have leading axes for runs.
        """
        return self

    @property
    def trained(self) -> Bool[Array, "*runs"]:
        """Whether predictions mean anything yet."""
        return jnp.ones((), bool)

    def reserve(self, samples: int) -> Self:
        """Makes room for this many more samples. Call it outside of `jit`: shapes may change."""
        del samples
        return self

    def uncertainty(self) -> Uncertainty | BatchedUncertainty:
        """The uncertainty that a search is given."""
        return self.predict


class ZeroUncertainty(Estimator):
    """U = 0 everywhere: the model is trusted, whatever happens."""

    exact = True

    def predict(self, state: PyTree, action: Action) -> Scalar:
        del state, action
        return jnp.zeros((), jnp.float32)


class ConstantUncertainty(Estimator):
    """U = 1 everywhere: nothing is trusted. With facts, which override it, that is every transition not yet seen."""

    exact = True

    def predict(self, state: PyTree, action: Action) -> Scalar:
        del state, action
        return jnp.ones((), jnp.float32)


class TrueEstimator(Estimator):
    """The true U of a domain as an estimator: it has nothing to learn."""

    exact = True

    domain: Domain

    def predict(self, state: PyTree, action: Action) -> Scalar:
        return self.domain.uncertainty(state, action)
