"""The uncertainty itself, for when the real world may be looked at: the paper's offline scenario."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from uamcts.domains.base import Domain
from uamcts.types import PyTree
from uamcts.uncertainty.estimator import Estimator


@dataclass(frozen=True)
class TrueUncertainty:
    """U(s, a) = mean over the features of (M(s, a) - M^(s, a))^2; of random steps, `Domain.uncertainty`."""

    domain: Domain

    def __call__(self, state: PyTree, action: int | jax.Array) -> jax.Array:
        return self.domain.uncertainty(state, action)


class TrueEstimator(Estimator):
    """U itself, as an estimator: it has nothing to learn."""

    exact = True

    domain: Domain

    def predict(self, state: PyTree, action: jax.Array) -> jax.Array:
        return true_uncertainty(self.domain)(state, action)


def true_uncertainty(domain: Domain) -> TrueUncertainty:
    """A function (state, action) -> float32 that knows exactly how far world and model are apart."""
    return TrueUncertainty(domain)
