"""BAMCP: one tree over worlds that are drawn from the posterior, a new one for each iteration (root sampling).

Guez, Silver and Dayan: Efficient Bayes-Adaptive Reinforcement Learning using Sample-Based Search, NeurIPS 2012.

A path of the tree is a history, so later moves of a path react to what its earlier moves have shown of the world.

Assumptions: the posterior is that of the one parameter, with a uniform prior; rollouts are random, not by a learned
policy.
"""

from __future__ import annotations

import jax

from uamcts.field.planner import Memory, Place, PosteriorPlanner, parameter_values
from uamcts.field.tree import Chances, choose_action
from uamcts.field.worlds import Grid


class Bamcp(PosteriorPlanner):
    """Bayes-adaptive Monte Carlo planning."""

    def act(self, key: jax.Array, grid: Grid, believed: jax.Array, memory: Memory, place: Place) -> jax.Array:
        def draw(key: jax.Array) -> Chances:
            return grid.probabilities(parameter_values()[jax.random.categorical(key, memory)])

        return choose_action(key, grid, place.cell, draw, self.settings)
