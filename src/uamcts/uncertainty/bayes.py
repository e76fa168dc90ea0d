"""U-hat by Bayesian linear regression on the one-hot inputs, one for each action, in closed form.

With inputs x (and a 1 for the offset), targets y and a prior of precision `ridge` on the weights:

Lambda = ridge I + sum x x'      b = sum y x      both kept up to date with every sample: nothing else is remembered
mean   = Lambda^-1 b             sigma^2 = (sum y^2 - mean . b) / n       the variance that the fit leaves
U-hat  = mean . x where mean . x - k sigma sqrt(x' Lambda^-1 x) > noise, exactly 0 elsewhere

The noise level is sigma, and at least `floor` times the largest target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from uamcts.types import BatchedUncertainty, PyTree, Uncertainty
from uamcts.uncertainty.estimator import Estimator
from uamcts.uncertainty.prediction_cache import PredictionCache
from uamcts.uncertainty.samples import Surprise, at_least, cautious


class Bayes(Estimator):
    """What was absorbed (precision to largest) and what was made of it in the last round (weights to noise)."""

    precision: jax.Array
    """Lambda, [actions, inputs, inputs]."""
    moment: jax.Array
    """b, [actions, inputs]."""
    squares: jax.Array
    """sum y^2, [actions]."""
    count: jax.Array
    """n, [actions]."""
    largest: jax.Array
    weights: jax.Array
    covariance: jax.Array
    """sigma^2 Lambda^-1, [actions, inputs, inputs]."""
    noise: jax.Array
    rounds: jax.Array
    surprise: Surprise
    encode: Callable[[PyTree], jax.Array] = eqx.field(static=True)
    num_actions: int = eqx.field(static=True)
    k: float = eqx.field(static=True)
    floor: float = eqx.field(static=True)

    @classmethod
    def fresh(
        cls,
        state: PyTree,
        encode: Callable[[PyTree], jax.Array],
        num_actions: int,
        ridge: float = 0.1,
        k: float = 2.0,
        floor: float = 0.05,
    ) -> Self:
        """Nothing learned yet; `state` is one state, as an example."""
        if not ridge > 0:
            raise ValueError(f"ridge is {ridge}; it must be above 0, or the weights are not determined")
        at_least(0, k=k, floor=floor)
        size = jax.eval_shape(encode, state).size + 1
        prior = jnp.broadcast_to(ridge * jnp.eye(size), (num_actions, size, size))
        vectors, numbers = jnp.zeros((num_actions, size)), jnp.zeros(num_actions)
        return cls(
            prior, vectors, numbers, numbers, jnp.float32(0), vectors, jnp.zeros_like(prior), numbers, jnp.int32(0),
            Surprise.empty(), encode, num_actions, k, floor,
        )  # fmt: skip

    def _inputs(self, state: PyTree) -> jax.Array:
        return jnp.append(self.encode(state), 1.0)

    def predict(self, state: PyTree, action: jax.Array) -> jax.Array:
        inputs = self._inputs(state)
        mean = (self.weights @ inputs)[action]  # for all actions: then a batch is one matrix product
        variance = jnp.einsum("aij,i,j->a", self.covariance, inputs, inputs)[action]
        return cautious(mean, jnp.sqrt(jnp.maximum(variance, 0.0)), self.k, self.noise[action])

    def absorb(self, state: PyTree, action: jax.Array, target: jax.Array, copies: Any = 1) -> Self:
        inputs = self._inputs(state)
        absorbed = (
            self.precision.at[action].add(copies * inputs[:, None] * inputs),
            self.moment.at[action].add(copies * target * inputs),
            self.squares.at[action].add(copies * jnp.square(target)),
            self.count.at[action].add(copies),
            jnp.maximum(self.largest, jnp.where(jnp.asarray(copies) > 0, target, 0.0)),
            self.surprise.add(self.predict(state, action), target, copies),
        )
        return eqx.tree_at(
            lambda one: (one.precision, one.moment, one.squares, one.count, one.largest, one.surprise), self, absorbed
        )

    def learn(self, key: jax.Array) -> tuple[Self, jax.Array]:
        del key

        def solved(precision: jax.Array, moment: jax.Array) -> tuple[jax.Array, jax.Array]:
            factor = cho_factor(precision)
            return cho_solve(factor, moment), cho_solve(factor, jnp.eye(moment.size))

        weights, inverse = jax.lax.map(lambda each: solved(*each), (self.precision, self.moment))
        unexplained = self.squares - jnp.sum(weights * self.moment, axis=1)
        variance = jnp.maximum(unexplained, 0.0) / jnp.maximum(self.count, 1)
        noise = jnp.maximum(jnp.sqrt(variance), self.floor * self.largest)
        learned = (weights, variance[:, None, None] * inverse, noise, self.rounds + 1, Surprise.empty())
        after = eqx.tree_at(
            lambda one: (one.weights, one.covariance, one.noise, one.rounds, one.surprise), self, learned
        )
        return after, self.surprise.mean

    @property
    def trained(self) -> jax.Array:
        return self.rounds > 0

    def uncertainty(self) -> Uncertainty | BatchedUncertainty:
        return PredictionCache(self.predict, self.num_actions)
