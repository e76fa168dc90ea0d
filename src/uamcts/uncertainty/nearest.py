"""U-hat from the samples nearby, after CMAX: a transition is doubtful if a doubtful one is within a radius.

Among remembered samples of the same action with |x - x_i| <= radius, weighted by w_i = 1 / (|x - x_i|^2 + 1e-6):
U-hat = weighted mean of the U_i > 0 where these have more weight than those with U_i = 0, exactly 0 elsewhere.
A sample of the very same state outweighs all others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uamcts.arguments import at_least_zero, whole
from uamcts.types import PyTree
from uamcts.uncertainty.estimator import Action, Scalar, Space
from uamcts.uncertainty.network import input_size
from uamcts.uncertainty.samples import RefittedEstimator, Surprise, group_samples


class Nearest(RefittedEstimator):
    """Remembers the latest different samples, as many with U > 0 as with U = 0 at most: `places` in all."""

    points: Float[Array, "*runs places inputs"]
    """Inputs of remembered samples."""
    actions: Int[Array, "*runs places"]
    """Their actions; -1 where nothing is remembered."""
    values: Float[Array, "*runs places"]
    """Their U."""
    radius: float = eqx.field(static=True)

    @classmethod
    def fresh(
        cls,
        key: jax.Array,
        space: Space,
        capacity: int = 1024,
        minibatches: int = 5000,
        most_copies: int = 1,
        radius: float = 2.0,
        places: int = 1024,
    ) -> Self:
        """An untrained estimator; `minibatches` mean nothing to it."""
        del minibatches
        at_least_zero("radius", radius)
        whole("places", places, 2)
        return cls(
            **cls.empty_fields(key, space, capacity, most_copies),
            points=jnp.zeros((places, input_size(space))),
            actions=jnp.full(places, -1),
            values=jnp.zeros(places),
            radius=radius,
        )

    def predict(self, state: PyTree, action: Action) -> Scalar:
        inputs = self.encode(state)
        lengths = jnp.sum(jnp.square(self.points), axis=1)  # |a - b|^2 written out: a batch is one matrix product
        square = jnp.maximum(lengths - 2 * (self.points @ inputs) + jnp.sum(jnp.square(inputs)), 0.0)
        near = (square <= self.radius**2 + 1e-3) & (self.actions == action)
        weight = jnp.where(near, 1 / (square + 1e-6), 0.0)
        doubtful = jnp.where(self.values > 0, weight, 0.0)
        mean = jnp.sum(doubtful * self.values) / jnp.maximum(jnp.sum(doubtful), 1e-9)
        return jnp.where(2 * jnp.sum(doubtful) > jnp.sum(weight), mean, 0.0)

    def learn(self, key: jax.Array) -> tuple[Self, Scalar]:
        del key
        groups = group_samples(self.buffer)
        half = self.values.size // 2
        doubtful = (groups.size > 0) & (groups.mean > 0)
        certain = (groups.size > 0) & ~doubtful
        chosen = jnp.concatenate(
            [_latest(groups.row, doubtful, self.values.size - half), _latest(groups.row, certain, half)]
        )
        there = chosen < groups.row.size
        chosen = jnp.minimum(chosen, groups.row.size - 1)
        states, actions, _ = self.buffer.rows(groups.row[chosen])
        after = replace(
            self,
            points=jnp.where(there[:, None], jax.vmap(self.encode)(states), 0.0),
            actions=jnp.where(there, actions, -1),
            values=jnp.where(there, groups.mean[chosen], 0.0),
            rounds=self.rounds + 1,
            surprise=Surprise.empty(),
        )
        return after, self.surprise.mean


def _latest(row: Int[Array, " rows"], wanted: Bool[Array, " rows"], number: int) -> Int[Array, " number"]:
    """The `number` of the `wanted` with the highest rows; beyond the last row where there are fewer."""
    order = jnp.argsort(jnp.where(wanted, -row, row.size))[:number]
    order = jnp.pad(order, (0, number - order.size))
    return jnp.where(jnp.arange(number) < jnp.sum(wanted), order, row.size)
