"""The true uncertainty, for when the world may be looked at: the paper's offline scenario."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Array, Int

from uamcts.domains.base import Domain
from uamcts.types import PyTree
from uamcts.uncertainty.estimator import Action, Estimator, Scalar


@dataclass(frozen=True)
class TrueUncertainty:
    """U(s, a) = mean over the features of (M(s, a) - M^(s, a))^2; of random steps, `Domain.uncertainty`."""

    domain: Domain

    def __call__(self, state: PyTree, action: int | Int[Array, ""]) -> Scalar:
        return self.domain.uncertainty(state, action)


class TrueEstimator(Estimator):
    """The true U as an estimator: it has nothing to learn."""

    exact = True

    domain: Domain

    def predict(self, state: PyTree, action: Action) -> Scalar:
        return true_uncertainty(self.domain)(state, action)


def true_uncertainty(domain: Domain) -> TrueUncertainty:
    """The exact U of a domain, which knows both its world and its model.

    Args:
        domain: A domain, for example `uamcts.make("breakout")`.

    Returns:
        A pure function `(state, action) -> U`, a float32 scalar that is at least 0.

    Example:
        ```python
        domain = uamcts.make("two_way")
        u = uamcts.true_uncertainty(domain)
        result = uamcts.search(key, state, domain.model, u, uamcts.SearchConfig())
        ```
    """
    return TrueUncertainty(domain)
