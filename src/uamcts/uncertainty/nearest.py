"""U-hat from the samples nearby, after CMAX: a transition is doubted if a doubtful one is within a radius.

Among remembered samples of the same action with |x - x_i| <= radius, weighted by w_i = 1 / (|x - x_i|^2 + 1e-6):
U-hat = weighted mean of the U_i > 0 where these have more weight than those with U_i = 0, exactly 0 elsewhere.
A sample of the very same state outweighs all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp

from uamcts.types import PyTree
from uamcts.uncertainty.buffer import Buffer
from uamcts.uncertainty.samples import RefittedEstimator, Surprise, at_least, group_samples


class Nearest(RefittedEstimator):
    """Remembers the latest different samples, as many with U > 0 as with U = 0 at most: `places` in all."""

    points: jax.Array
    """Inputs of remembered samples, [places, inputs]."""
    actions: jax.Array
    """Their actions, [places]; -1 where nothing is remembered."""
    values: jax.Array
    """Their U, [places]."""
    radius: float = eqx.field(static=True)

    @classmethod
    def fresh(
        cls,
        state: PyTree,
        encode: Callable[[PyTree], jax.Array],
        num_actions: int,
        capacity: int = 1024,
        most_copies: int = 1,
        radius: float = 2.0,
        places: int = 1024,
    ) -> Self:
        """Nothing learned yet; `state` is one state, as an example."""
        at_least(0, radius=radius)
        at_least(2, places=places)
        size = jax.eval_shape(encode, state).size
        return cls(
            Buffer.empty(state, jnp.float32(0), capacity, most_copies),
            jnp.int32(0),
            encode,
            num_actions,
            Surprise.empty(),
            jnp.zeros((places, size)),
            jnp.full(places, -1),
            jnp.zeros(places),
            radius,
        )

    def predict(self, state: PyTree, action: jax.Array) -> jax.Array:
        inputs = self.encode(state)
        lengths = jnp.sum(jnp.square(self.points), axis=1)  # |a - b|^2 written out: a batch is one matrix product
        square = jnp.maximum(lengths - 2 * (self.points @ inputs) + jnp.sum(jnp.square(inputs)), 0.0)
        near = (square <= self.radius**2 + 1e-3) & (self.actions == action)
        weight = jnp.where(near, 1 / (square + 1e-6), 0.0)
        doubtful = jnp.where(self.values > 0, weight, 0.0)
        mean = jnp.sum(doubtful * self.values) / jnp.maximum(jnp.sum(doubtful), 1e-9)
        return jnp.where(2 * jnp.sum(doubtful) > jnp.sum(weight), mean, 0.0)

    def learn(self, key: jax.Array) -> tuple[Self, jax.Array]:
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
        learned = (
            jnp.where(there[:, None], jax.vmap(self.encode)(states), 0.0),
            jnp.where(there, actions, -1),
            jnp.where(there, groups.mean[chosen], 0.0),
            self.rounds + 1,
            Surprise.empty(),
        )
        after = eqx.tree_at(lambda one: (one.points, one.actions, one.values, one.rounds, one.surprise), self, learned)
        return after, self.surprise.mean


def _latest(row: jax.Array, wanted: jax.Array, number: int) -> jax.Array:
    """Which of the `wanted` have the highest rows, [number]; beyond the last where there are fewer."""
    order = jnp.argsort(jnp.where(wanted, -row, row.size))[:number]
    order = jnp.pad(order, (0, number - order.size))
    return jnp.where(jnp.arange(number) < jnp.sum(wanted), order, row.size)
