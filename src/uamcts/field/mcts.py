"""Plain MCTS (UCT) in the model it is given, and our search on a graph of shared states.

Kocsis and Szepesvári: Bandit based Monte-Carlo Planning, ECML 2006.

Assumptions: one random rollout from each new node, up to the time limit of an episode, however many steps are left; it
takes the most visited action. A planner that is told differs in nothing but the parameter that it is given.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from uamcts.field.planner import Memory, Place, Planner
from uamcts.field.tree import choose_action
from uamcts.field.worlds import Grid
from uamcts.mcts.api import search as uamcts_search
from uamcts.mcts.config import SearchConfig
from uamcts.types import Transition


class Mcts(Planner):
    """UCT with random rollouts."""

    def act(self, key: jax.Array, grid: Grid, believed: jax.Array, memory: Memory, place: Place) -> jax.Array:
        chances = grid.probabilities(believed)
        return choose_action(key, grid, place.cell, lambda _: chances, self.settings)


class GraphSearch(Planner):
    """`uamcts.search` with `graph=True`, in the model it is given."""

    def act(self, key: jax.Array, grid: Grid, believed: jax.Array, memory: Memory, place: Place) -> jax.Array:
        config = SearchConfig(
            rules="trust", graph=True, iterations=self.settings.iterations, gamma=self.settings.gamma,
            depth=self.settings.depth,
        )  # fmt: skip
        return uamcts_search(key, place.cell, _Model(grid, grid.probabilities(believed)), None, config).action


class _Model:
    """A grid as a model for `uamcts.search`."""

    num_actions = 4

    def __init__(self, grid: Grid, chances: jax.Array):
        self.grid, self.chances = grid, chances

    def outcomes(self, state: jax.Array, action: jax.Array) -> tuple[Transition, jax.Array]:
        """Every outcome with its probability."""
        following, reward, ends = (part[state, action] for part in self.grid[:3])
        return Transition(following, reward, ends), jnp.asarray(self.chances[state, action])
