"""What the paper's two rule sets share: softmax weights over uncertainties, with the temperature tau."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxtyping import Bool, Float

from uamcts.mcts.rules.base import SWITCHES, Edges, PlainEdges, Rules
from uamcts.runtime.lazy_jax import jnp
from uamcts.types import Array, Number

if TYPE_CHECKING:
    from uamcts.mcts.config import SearchConfig


class SoftmaxRules(Rules):
    """UA-MCTS: bias = 1 - softmax(U / tau) and keep = softmax(-U / tau) among siblings, 1 where a phase is off.

    UA-Simulation weighs rollouts by softmax(-sigma / tau).
    """

    reads = SWITCHES | {"tau", "deletion_scale", "deletion_threshold"}

    def edges(
        self, uncertainty: Float[Array, " actions"], exists: Bool[Array, " actions"], config: SearchConfig
    ) -> Edges:
        bias = jnp.where(config.selection, 1.0 - softmax(uncertainty, exists, config.tau), 1.0)
        keep = jnp.where(config.backpropagation, softmax(-uncertainty, exists, config.tau), 1.0)
        return Edges(bias, keep)

    def plain_edges(self, uncertainty: Sequence[float], config: SearchConfig) -> PlainEdges:
        bias = keep = [1.0] * len(uncertainty)
        if config.selection:
            bias = [1.0 - weight for weight in plain_softmax(uncertainty, config.tau)]
        if config.backpropagation:
            keep = plain_softmax([-u for u in uncertainty], config.tau)
        return PlainEdges(bias, keep)

    def leaf_value(
        self, returns: Float[Array, " rollouts"], uncertainty: Float[Array, " rollouts"], config: SearchConfig
    ) -> Float[Array, ""]:
        weights = softmax(-uncertainty, jnp.ones(returns.shape, bool), config.tau)
        return jnp.where(config.simulation, jnp.sum(weights * returns), jnp.mean(returns))

    def plain_leaf_value(self, returns: Sequence[float], uncertainty: Sequence[float], config: SearchConfig) -> float:
        if not config.simulation:
            return sum(returns) / len(returns)
        weights = plain_softmax([-sigma for sigma in uncertainty], config.tau)
        return sum(weight * returned for weight, returned in zip(weights, returns, strict=True))


def softmax(numbers: Float[Array, " n"], exists: Bool[Array, " n"], tau: Number) -> Float[Array, " n"]:
    """softmax(numbers / tau) over the places that exist, 0 elsewhere.

    The greatest number is subtracted before the division, so that nothing overflows for any tau from 1e-6 to infinity.
    """
    greatest = jnp.max(jnp.where(exists, numbers, -jnp.inf))
    powers = jnp.where(exists, jnp.exp(jnp.where(exists, numbers - greatest, 0.0) / tau), 0.0)
    return powers / jnp.maximum(jnp.sum(powers), 1.0)


def plain_softmax(numbers: Sequence[float], tau: Number) -> list[float]:
    """The same for a list."""
    greatest = max(numbers)
    powers = [math.exp((number - greatest) / tau) for number in numbers]
    total = sum(powers)
    return [power / total for power in powers]
