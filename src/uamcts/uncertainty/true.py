"""The uncertainty itself, for when the real world may be looked at: the paper's offline scenario."""

from __future__ import annotations

import jax

from uamcts.domains.base import Domain
from uamcts.types import PyTree, Uncertainty


def true_uncertainty(domain: Domain) -> Uncertainty:
    """U(s, a) = mean over the features of (M(s, a) - M^(s, a))^2, a function (state, action) -> float32."""

    def uncertainty(state: PyTree, action: jax.Array) -> jax.Array:
        return domain.difference(domain.world(state, action).state, domain.model(state, action).state)

    return uncertainty
