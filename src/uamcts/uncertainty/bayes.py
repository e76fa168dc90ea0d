"""U-hat by Bayesian linear regression on the one-hot inputs, one for each action, in closed form.

With inputs x (and a 1 for the offset), targets y and a prior of precision `ridge` on the weights:

Lambda = ridge I + sum x x'      b = sum y x      both kept up to date with every sample: nothing else is remembered
mean   = Lambda^-1 b             sigma^2 = (sum y^2 - mean . b) / n       the variance that the fit leaves
U-hat  = mean . x where mean . x - k sigma sqrt(x' Lambda^-1 x) > noise, exactly 0 elsewhere

The noise level is sigma, and at least `floor` times the largest target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Bool, Float, Int

from uamcts.arguments import at_least_zero
from uamcts.types import BatchedUncertainty, PyTree, Uncertainty
from uamcts.uncertainty.estimator import Action, Copies, Estimator, Inputs, Scalar, Space
from uamcts.uncertainty.network import input_size
from uamcts.uncertainty.prediction_cache import PredictionCache
from uamcts.uncertainty.samples import Surprise, cautious


class Bayes(Estimator):
    """The sums over all samples (precision to largest), and the fit of the last round (weights to noise)."""

    precision: Float[Array, "*runs actions inputs inputs"]
    """Lambda."""
    moment: Float[Array, "*runs actions inputs"]
    """b."""
    squares: Float[Array, "*runs actions"]
    """sum y^2."""
    count: Float[Array, "*runs actions"]
    """n."""
    largest: Float[Array, "*runs"]
    weights: Float[Array, "*runs actions inputs"]
    covariance: Float[Array, "*runs actions inputs inputs"]
    """sigma^2 Lambda^-1."""
    noise: Float[Array, "*runs actions"]
    rounds: Int[Array, "*runs"]
    surprise: Surprise
    encode: Callable[[PyTree], Inputs] = eqx.field(static=True)
    num_actions: int = eqx.field(static=True)
    k: float = eqx.field(static=True)
    floor: float = eqx.field(static=True)

    @classmethod
    def fresh(
        cls,
        key: jax.Array,
        space: Space,
        capacity: int = 1024,
        minibatches: int = 5000,
        most_copies: int = 1,
        ridge: float = 0.1,
        k: float = 2.0,
        floor: float = 0.05,
    ) -> Self:
        """An untrained estimator; it keeps no samples, so the first three options mean nothing to it."""
        del key, capacity, minibatches, most_copies
        if not ridge > 0:
            raise ValueError(f"ridge is {ridge}; it must be above 0, or the weights are not determined")
        at_least_zero("k", k)
        at_least_zero("floor", floor)
        actions, size = space.num_actions, input_size(space) + 1
        prior = jnp.broadcast_to(ridge * jnp.eye(size), (actions, size, size))
        vectors, numbers = jnp.zeros((actions, size)), jnp.zeros(actions)
        return cls(
            prior, vectors, numbers, numbers, jnp.float32(0), vectors, jnp.zeros_like(prior), numbers, jnp.int32(0),
            Surprise.empty(), space.inputs, actions, k, floor,
        )  # fmt: skip

    def _inputs(self, state: PyTree) -> Inputs:
        return jnp.append(self.encode(state), 1.0)

    def predict(self, state: PyTree, action: Action) -> Scalar:
        inputs = self._inputs(state)
        mean = (self.weights @ inputs)[action]  # for all actions: then a batch is one matrix product
        variance = jnp.einsum("aij,i,j->a", self.covariance, inputs, inputs)[action]
        return cautious(mean, jnp.sqrt(jnp.maximum(variance, 0.0)), self.k, self.noise[action])

    def absorb(self, state: PyTree, action: Action, target: Scalar, copies: Copies = 1) -> Self:
        inputs = self._inputs(state)
        return replace(
            self,
            precision=self.precision.at[action].add(copies * inputs[:, None] * inputs),
            moment=self.moment.at[action].add(copies * target * inputs),
            squares=self.squares.at[action].add(copies * jnp.square(target)),
            count=self.count.at[action].add(copies),
            largest=jnp.maximum(self.largest, jnp.where(jnp.asarray(copies) > 0, target, 0.0)),
            surprise=self.surprise.add(self.predict(state, action), target, copies),
        )

    def learn(self, key: jax.Array) -> tuple[Self, Scalar]:
        del key

        def solve(precision: jax.Array, moment: jax.Array) -> tuple[jax.Array, jax.Array]:
            factor = cho_factor(precision)
            return cho_solve(factor, moment), cho_solve(factor, jnp.eye(moment.size))

        weights, inverse = jax.lax.map(lambda each: solve(*each), (self.precision, self.moment))
        unexplained = self.squares - jnp.sum(weights * self.moment, axis=1)
        variance = jnp.maximum(unexplained, 0.0) / jnp.maximum(self.count, 1)
        noise = jnp.maximum(jnp.sqrt(variance), self.floor * self.largest)
        after = replace(
            self,
            weights=weights,
            covariance=variance[:, None, None] * inverse,
            noise=noise,
            rounds=self.rounds + 1,
            surprise=Surprise.empty(),
        )
        return after, self.surprise.mean

    @property
    def trained(self) -> Bool[Array, "*runs"]:
        return self.rounds > 0

    def uncertainty(self) -> Uncertainty | BatchedUncertainty:
        return PredictionCache(self.predict)
