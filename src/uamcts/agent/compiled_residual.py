"""A residual packed for the compiled search: what a step needs of it lies in two rows.

The steps of a rollout are cheap, and a residual is added to every one of them. Reading many small arrays, as
`Residual.difference_jax` does, would take several times as long.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from uamcts.corrections.residual import NO_SPLIT, Residual
from uamcts.corrections.residual_leaves import INNER, LEAVES

NEVER = np.float32(3e38)
"""A threshold that no feature is above."""


class PackedResidual(NamedTuple):
    """A `Residual` in other words; its shapes are those of all residuals of a simulator."""

    trees: Float[Array, "actions tree"]
    """Per action which feature each inner node looks at [features, inner] (0 or 1), thresholds, lower, upper."""
    leaves: Float[Array, "rows leaf"]
    """Per action and leaf the intercepts, slopes [features, outputs], low and high."""
    centre: Float[Array, " features"]
    nearness: Float[Array, " features"]
    """1 / reach."""

    @classmethod
    def of(cls, residual: Residual) -> Self:
        """Packs a residual."""
        actions, features = residual.num_actions, residual.num_features
        looks = np.arange(features)[:, None] == np.asarray(residual.split)[:, None, :]
        thresholds = np.where(np.asarray(residual.split) == NO_SPLIT, NEVER, residual.threshold)
        trees = [looks.reshape(actions, -1), thresholds, residual.lower, residual.upper]
        slopes = np.swapaxes(residual.slope, 2, 3).reshape(actions, LEAVES, -1)
        leaves = np.concatenate([residual.intercept, slopes, residual.low, residual.high], axis=2)
        packed = (np.concatenate(trees, axis=1), leaves.reshape(actions * LEAVES, -1), residual.centre)
        parts = (*packed, 1.0 / np.asarray(residual.reach))
        return cls(*(jnp.asarray(np.asarray(part, np.float32)) for part in parts))  # NumPy converts without a program

    def difference(self, features: Float[Array, " features"], action: Int[Array, ""]) -> Float[Array, " outputs"]:
        """What to add to the believed features of the next state and to the reward, as `Residual.difference`."""
        size = features.size
        outputs = self.leaves.shape[1] // (size + 3)
        tree = self.trees[action]
        ends = INNER * size
        seen = tree[:INNER] * features[0]
        for place in range(1, size):
            seen = seen + tree[INNER * place : INNER * (place + 1)] * features[place]
        right = seen > tree[ends : ends + INNER]
        second = jnp.where(right[0], right[2], right[1])
        third = jnp.where(
            right[0], jnp.where(second, right[6], right[5]), jnp.where(second, right[4], right[3])
        )  # node i has the children 2 i + 1 and 2 i + 2
        leaf = 4 * right[0].astype(jnp.int32) + 2 * second + third
        lower, upper = tree[ends + INNER : ends + INNER + size], tree[ends + INNER + size :]
        row = self.leaves[jnp.asarray(action, jnp.int32) * LEAVES + leaf]
        offsets, total = features - self.centre, row[:outputs]
        for place in range(size):
            total = total + row[outputs * (place + 1) : outputs * (place + 2)] * offsets[place]
        low, high = row[-2 * outputs : -outputs], row[-outputs:]
        outside = jnp.maximum(jnp.maximum(lower - features, features - upper), 0.0) * self.nearness
        weight = outside[0]
        for place in range(1, size):
            weight = jnp.maximum(weight, outside[place])
        weight = 1.0 - weight
        return jnp.where(weight > 0, weight * jnp.minimum(jnp.maximum(total, low), high), 0.0)
