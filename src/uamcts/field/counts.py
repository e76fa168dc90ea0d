"""A plain model-based learner: it plans with the frequencies it has seen and has no prior from the old model.

Assumptions: it knows which cells a move may lead to and what they pay; where it has never made a move, all of that
move's outcomes are equally likely. The search is the one plain MCTS has.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from uamcts.field.planner import Memory, Place, Planner
from uamcts.field.tree import Chances, choose_action
from uamcts.field.worlds import Grid


class Counts(Planner):
    """MCTS in the frequencies of what was seen, cell by cell and action by action."""

    def begin(self, grid: Grid, believed: jax.Array) -> jax.Array:
        del believed
        return jnp.zeros(grid.following.shape)

    def act(self, key: jax.Array, grid: Grid, believed: jax.Array, memory: Memory, place: Place) -> jax.Array:
        del believed
        chances = self.chances(memory)
        return choose_action(key, grid, place.cell, lambda _: chances, self.settings)

    def chances(self, memory: jax.Array) -> Chances:
        """Frequencies, or equal probabilities where nothing was seen."""
        seen = memory.sum(axis=-1, keepdims=True)
        return jnp.where(seen > 0, memory / jnp.maximum(seen, 1.0), 1.0 / memory.shape[-1])

    def learn(self, grid: Grid, memory: jax.Array, cell: jax.Array, action: jax.Array, outcome: jax.Array) -> jax.Array:
        return memory.at[cell, action, outcome].add(1.0)
