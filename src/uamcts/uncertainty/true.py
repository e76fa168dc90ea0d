"""The true uncertainty, for when the world may be looked at: the paper's offline scenario."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Array, Float, Int

from uamcts.domains.base import Domain
from uamcts.types import PyTree


@dataclass(frozen=True)
class TrueUncertainty:
    """U(s, a) = mean over the features of (M(s, a) - M^(s, a))^2; of random steps, `Domain.uncertainty`."""

    domain: Domain

    def __call__(self, state: PyTree, action: int | Int[Array, ""]) -> Float[Array, ""]:
        return self.domain.uncertainty(state, action)


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
