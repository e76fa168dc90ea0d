"""An estimator behind a threshold: its predictions count only above it."""

from __future__ import annotations

import abc
from dataclasses import replace
from typing import Self, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from uamcts.types import BatchedUncertainty, PyTree, Uncertainty
from uamcts.uncertainty.estimator import Action, Estimator, Scalar
from uamcts.uncertainty.prediction_cache import PredictionCache

_T = TypeVar("_T", bound="ThresholdedEstimator")


class ThresholdedEstimator(Estimator):
    """Predicts what `inner` predicts where that is above the threshold, and exactly 0 elsewhere.

    Subclasses choose the threshold after every round of training.
    """

    inner: Estimator
    threshold: Float[Array, "*runs"]

    @abc.abstractmethod
    def choose_threshold(self) -> Scalar:
        """The threshold for `inner` as it is now."""

    def predict(self, state: PyTree, action: Action) -> Scalar:
        return self._above(self.inner.predict(state, action))

    def _above(self, predicted: Float[Array, "*n"]) -> Float[Array, "*n"]:
        return jnp.where(predicted > self.threshold, predicted, 0.0)

    def learn(self, key: jax.Array) -> tuple[Self, Scalar]:
        inner, loss = self.inner.learn(key)
        return _update_threshold(replace(self, inner=inner)), loss

    def finish_on_host(self) -> Self:
        inner = self.inner.finish_on_host()
        if inner is self.inner:
            return self
        after = replace(self, inner=inner)
        updated: Self = (_update_threshold_of_runs if self.threshold.ndim else _update_threshold_jit)(after)
        return updated

    @property
    def trained(self) -> Bool[Array, "*runs"]:
        return self.inner.trained

    def reserve(self, samples: int) -> Self:
        return replace(self, inner=self.inner.reserve(samples))

    def uncertainty(self) -> Uncertainty | BatchedUncertainty:
        inner = self.inner.uncertainty()
        return inner.map(self._above) if isinstance(inner, PredictionCache) else self.predict


def predict_rows(estimator: Estimator, states: PyTree, actions: jax.Array) -> Float[Array, " rows"]:
    """U-hat of rows of transitions, a few at a time."""
    rows: jax.Array = jax.lax.map(lambda row: estimator.predict(*row), (states, actions), batch_size=64)
    return rows


def _update_threshold(estimator: _T) -> _T:
    threshold = estimator.choose_threshold().astype(jnp.float32)
    return replace(estimator, threshold=threshold)


_update_threshold_jit, _update_threshold_of_runs = jax.jit(_update_threshold), jax.jit(jax.vmap(_update_threshold))
