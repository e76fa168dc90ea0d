"""The alternative: learn the transition function, instead of where the given one is wrong, and plan with it.

The paper's comparison on 2-Way GridWorld: a network predicts the features of the next state; plain MCTS plans with it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp

from uamcts.domains.base import Domain
from uamcts.mcts.api import no_uncertainty
from uamcts.types import Model, PyTree, Transition, Uncertainty
from uamcts.uncertainty.buffer import Buffer
from uamcts.uncertainty.estimator import Copies
from uamcts.uncertainty.network import PlainNetwork, Regression, raw_features

HIDDEN: dict[str, tuple[int, ...]] = {"linear": (), "8_units": (8,), "16_units": (16,)}
"""The sizes of the paper's three networks."""


class TransitionLearner(eqx.Module):
    """Learns M(s, a), or with `residual` the correction M(s, a) - M^(s, a), and plans in what it has learned.

    Until the first round of training it plans in the given model.
    """

    regression: Regression
    residual: bool = eqx.field(static=True)

    @classmethod
    def fresh(
        cls,
        key: jax.Array,
        domain: Domain,
        hidden: tuple[int, ...],
        residual: bool = False,
        capacity: int = 1024,
        minibatches: int = 5000,
        most_copies: int = 1,
    ) -> Self:
        """A learner before training."""
        state = domain.reset(key)
        features = domain.features(state)
        network = PlainNetwork(key, features.size, hidden, outputs=features.size)
        buffer = Buffer.empty(state, features.astype(jnp.float32), capacity, most_copies)
        return cls(Regression.fresh(network, buffer, raw_features(domain), _as_it_is, minibatches), residual)

    def planner(self, domain: Domain) -> tuple[Model, Uncertainty]:
        return lambda state, action: self.predict(domain, state, action), no_uncertainty

    def predict(self, domain: Domain, state: PyTree, action: jax.Array) -> Transition:
        """One step in the learned model: the network's output, rounded and clipped to the bounds of the features."""
        given = domain.model(state, action)
        answer = self.regression(state, action)
        if self.residual:
            answer = answer + domain.features(given.state)
        low, high = domain.feature_bounds()
        following = domain.from_features(jnp.clip(jnp.round(answer), low, high))
        _, over = domain.arrival(state)
        reward, terminal = domain.arrival(following)
        keep = over | (self.regression.rounds == 0)  # the given model absorbs where the episode is over
        learned = Transition(following, reward, terminal)
        return jax.tree.map(lambda a, b: jnp.where(keep, a, b), given, learned)

    def observe(self, domain: Domain, state: PyTree, action: jax.Array, real: Transition, copies: Copies) -> Self:
        target = domain.features(real.state)
        if self.residual:
            target = target - domain.features(domain.model(state, action).state)
        buffer = self.regression.buffer.append(state, action, target.astype(jnp.float32), copies)
        return replace(self, regression=replace(self.regression, buffer=buffer))

    def learn(self, key: jax.Array) -> tuple[Self, jax.Array]:
        fitted, loss = self.regression.fit(key)
        return type(self)(fitted, self.residual), loss

    def finish_on_host(self) -> Self:
        return self

    @property
    def surprised(self) -> jax.Array:
        return jnp.bool_(False)  # as in the paper, training stops for good

    def reserve(self, samples: int) -> Self:
        buffer = self.regression.buffer.reserve(samples)
        return replace(self, regression=replace(self.regression, buffer=buffer))


def _as_it_is(answer: jax.Array) -> jax.Array:
    return answer
