"""RATS: worst-case lookahead in a world that may drift from its model by a bounded amount per step.

Lecarpentier and Rachelson: Non-Stationary Markov Decision Processes, a Worst-Case Approach using Model-Based
Reinforcement Learning, NeurIPS 2019.

A minimax tree of fixed depth: at a move d steps ahead the adversary may shift the model's probabilities by a
Wasserstein distance of at most d * lipschitz. The paper's closed form moves them towards the worst outcome.

Assumptions: leaves are worth 0; rewards do not drift; the distance between cells is counted in moves. Depth 3 is that
of the comparison in ADA-MCTS's paper. Among equal values it takes any action, so that it wanders where it sees nothing.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from uamcts.field.planner import Memory, Place, Planner
from uamcts.field.tree import any_best
from uamcts.field.worlds import Grid


class Rats(Planner):
    """Risk-averse tree search. Of its settings only gamma is used."""

    depth: int = eqx.field(default=3, static=True)
    lipschitz: float = 1.0

    def act(self, key: jax.Array, grid: Grid, believed: jax.Array, memory: Memory, place: Place) -> jax.Array:
        values = self.values(grid, believed)[place.cell]
        return any_best(values, jax.random.uniform(key, values.shape))

    def values(self, grid: Grid, believed: jax.Array) -> jax.Array:
        """What each action is worth in each cell, [cells, actions]. Equal cells at equal depths share their value."""
        chances = grid.probabilities(believed)
        value = jnp.zeros(len(grid.following))
        q = jnp.zeros(grid.following.shape[:2])
        for ahead in reversed(range(self.depth)):
            onward = jnp.where(grid.ends, 0.0, value[grid.following])
            worth = grid.reward + self.settings.gamma * onward
            shifted = worst_cases(worth, chances, grid.following, grid.distance, self.lipschitz * ahead)
            q = jnp.sum(shifted * worth, axis=-1)
            value = q.max(axis=-1)
        return q


def worst_case(
    values: jax.Array, chances: jax.Array, cells: jax.Array, distance: jax.Array, bound: float | jax.Array
) -> jax.Array:
    """Probabilities within a Wasserstein distance of `bound` of `chances`, moved towards the worst outcome.

    Args:
        values: What each outcome is worth, [outcomes].
        chances: Their probabilities.
        cells: The cells they lead to.
        distance: Between two cells.
        bound: The largest distance.
    """
    possible = jnp.where(chances > 0, values, jnp.inf)
    worst = jnp.argmin(possible)
    far = jnp.sum(chances * distance[cells, cells[worst]])
    share = jnp.minimum(1.0, bound / jnp.maximum(far, 1e-9))
    return (1 - share) * chances + share * jax.nn.one_hot(worst, len(chances))


worst_cases = jax.vmap(jax.vmap(worst_case, (0, 0, 0, None, None)), (0, 0, 0, None, None))
"""`worst_case` of every action in every cell, [cells, actions, outcomes]."""
