"""PA-MCTS: a convex mix of a stale policy's values and of a search in the present world.

Pettet, Zhang, Luo, Wray, Baier, Laszka, Dubey and Mukhopadhyay: Decision Making in Non-Stationary Environments with
Policy-Augmented Search, AAMAS 2024.

It takes the action with the largest alpha * Q_stale + (1 - alpha) * Q_search.

Assumptions: as in the paper the search knows the present world, and only the policy is stale; here Q_stale is exact, by
value iteration in the old model. An action that the search never tried is worth as much as the worst that it tried.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from uamcts.field.exact import action_values
from uamcts.field.planner import Memory, Place, Planner
from uamcts.field.tree import any_best, search
from uamcts.field.worlds import Grid


class PaMcts(Planner):
    """Policy-augmented search. `believed` is the present parameter, `stale` the one the policy was computed for."""

    alpha: float = 0.5
    stale: float = 0.7

    def act(self, key: jax.Array, grid: Grid, believed: jax.Array, memory: Memory, place: Place) -> jax.Array:
        chances = grid.probabilities(believed)
        searching, choosing = jax.random.split(key)
        tree = search(searching, grid, place.cell, lambda _: chances, self.settings)
        tried = tree.visits[0] > 0
        found = jnp.where(tried, tree.values[0], jnp.min(jnp.where(tried, tree.values[0], jnp.inf)))
        stale = action_values(grid, self.stale, self.settings.gamma)[place.cell]
        return any_best(self.alpha * stale + (1 - self.alpha) * found, jax.random.uniform(choosing, stale.shape))
