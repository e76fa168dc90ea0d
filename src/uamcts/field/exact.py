"""Exact plans: a planner for the mean of the posterior, and the exact rewards of the best and of the stale plan.

The lines that every table of the field should have: the best that can be had, what the best plan in the old model gets,
and what is left to learn in a single episode.

Assumptions: the learner plans as if p were certain to be the mean of its posterior, whose prior is uniform; it makes no
move only to learn from it. All exact plans know how many steps are left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.domains.exact import Table, best_plan, evaluate
from uamcts.field.planner import Memory, Place, PosteriorPlanner, parameter_values, posterior
from uamcts.field.worlds import Grid

SWEEPS = 500
"""Steps that are looked ahead unless a number is given: far more than an episode has."""


def action_values(
    grid: Grid, parameter: float | jax.Array, gamma: float | jax.Array, steps: int | jax.Array = SWEEPS
) -> jax.Array:
    """What each action is worth in each cell if so many steps are left, [cells, actions], by backward induction."""
    chances = grid.probabilities(parameter)

    def sweep(_: int, q: jax.Array) -> jax.Array:
        onward = jnp.where(grid.ends, 0.0, q.max(axis=-1)[grid.following])
        return jnp.sum(chances * (grid.reward + gamma * onward), axis=-1)

    return jax.lax.fori_loop(0, steps, sweep, jnp.zeros(grid.following.shape[:2]))


class ExactLearner(PosteriorPlanner):
    """Takes the best action for the posterior mean of the parameter and the steps left: a search without its errors."""

    def act(self, key: jax.Array, grid: Grid, believed: jax.Array, memory: Memory, place: Place) -> jax.Array:
        del key, believed
        mean = posterior(memory) @ parameter_values()
        return jnp.argmax(action_values(grid, mean, self.settings.gamma, place.left)[place.cell])


@dataclass(frozen=True, eq=False)
class Yardsticks:
    """The exact rewards of a world, from its start.

    Args:
        grid: The grid.
        parameter: The real one.
        believed: The old one.
        gamma: The discount.
        steps: The time limit.
    """

    grid: Grid
    parameter: float
    believed: float
    gamma: float
    steps: int

    @cached_property
    def optimum(self) -> float:
        """What the best plan gets that knows the world and its time limit."""
        return float(best_plan(self._world, self.gamma, self.steps).values[self._start])

    @cached_property
    def stale(self) -> float:
        """What the best plan in the old model gets in the world; it knows the time limit."""
        return self._reward(best_plan(self.grid.table(self.believed), self.gamma, self.steps).actions)

    @property
    def _start(self) -> int:
        return int(self.grid.start)

    @cached_property
    def _world(self) -> Table:
        return self.grid.table(self.parameter)

    def _reward(self, actions: np.ndarray) -> float:
        return float(evaluate(self._world, actions, self.gamma, self.steps)[self._start])
