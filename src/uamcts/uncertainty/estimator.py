"""What an estimate of U is: one small protocol, so that another estimator is one more file."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp

from uamcts.types import BatchedUncertainty, PyTree, Uncertainty


class Estimator(eqx.Module):
    """Learns U(s, a) from samples (s, a, U). A pytree of arrays: it is passed through `jit`, mapped over runs, saved.

    A new estimator gives `predict` and what it needs of the rest. Its methods are pure and unbatched, and return the
    estimator as it is afterwards.
    """

    exact: ClassVar[bool] = False
    """Whether the answers are U itself, or a rule to be taken at its word, not estimates with an error of their own.
    Then every U above 0 counts (see `calibration`)."""
    stops_for_good: ClassVar[bool] = False
    """Whether it never learns again once the schedule has stopped its training, as in the paper. Otherwise training
    goes on when a sample comes that it did not expect."""

    def predict(self, state: PyTree, action: jax.Array) -> jax.Array:
        """U-hat of one transition, at least 0; 0 as long as nothing was learned."""
        raise NotImplementedError(f"{type(self).__name__} has no predict(state, action)")

    def absorb(self, state: PyTree, action: jax.Array, target: jax.Array, copies: Any = 1) -> Self:
        """With one more sample, counted `copies` times."""
        del state, action, target, copies
        return self

    def learn(self, key: jax.Array) -> tuple[Self, jax.Array]:
        """After a round of training on what was absorbed, and the round's mean loss."""
        del key
        return self, jnp.zeros((), jnp.float32)

    def finish_on_host(self) -> Self:
        """After what a round can only do on the host, outside of `jit`. The arrays may have leading axes for runs."""
        return self

    @property
    def trained(self) -> jax.Array:
        """Whether predictions mean anything yet."""
        return jnp.bool_(True)

    def reserve(self, samples: int) -> Self:
        """Able to absorb this many samples more. Not for use under `jit`: shapes may change."""
        del samples
        return self

    def uncertainty(self) -> Uncertainty | BatchedUncertainty:
        """What a search is given."""
        return self.predict


class ZeroUncertainty(Estimator):
    """U = 0 everywhere: the model is believed, whatever happens."""

    exact = True

    def predict(self, state: PyTree, action: jax.Array) -> jax.Array:
        del state, action
        return jnp.zeros((), jnp.float32)


class ConstantUncertainty(Estimator):
    """U = 1 everywhere: nothing is believed. With a memory, which knows better, that is all that was never tried."""

    exact = True

    def predict(self, state: PyTree, action: jax.Array) -> jax.Array:
        del state, action
        return jnp.ones((), jnp.float32)
