"""ADA-MCTS: pessimistic where the changed world is unknown, as learned where it is known.

Luo, Zhang, Dubey and Mukhopadhyay: Act as You Learn: Adaptive Decision-Making in Non-Stationary Markov Decision
Processes, AAMAS 2024 (arXiv 2401.01841).

Every outcome in the tree and in its rollouts is sampled in one of two phases. While the epistemic uncertainty of the
learned model exceeds that of the old model by more than epsilon, outcomes come from the worst case near the old model.
After that they come from the learned model; where that is more random than the old one, only with probability
exp(-likelihood * difference), else from the worst case near it.

Assumptions: The authors learn with a Bayesian neural network and a latent parameter of the task; here the exact
posterior of the parameter takes their place, which is the best that such a network can do. Its epistemic uncertainty is
the variance of an outcome's probability under the posterior, summed over outcomes, and its aleatoric uncertainty the
variance of the outcome itself. The old model is certain. Epsilon 0.02, likelihood 10,000 and the bound of 1 on the
Wasserstein distance are those of the authors' program; UCB1 with c = sqrt(2) and the most visited action too.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from uamcts.field.planner import Memory, Place, PosteriorPlanner, parameter_values, posterior
from uamcts.field.rats import worst_cases
from uamcts.field.tree import Chances, choose_action
from uamcts.field.worlds import Grid

BOUND = 1.0
"""How far the worst case may be from the model, as a Wasserstein distance in moves."""


class AdaMcts(PosteriorPlanner):
    """Dual-phase adaptive sampling."""

    epsilon: float = 0.02
    """How much more uncertain than the old model the learned one may be where it is used."""
    likelihood: float = 10_000.0

    def act(self, key: jax.Array, grid: Grid, believed: jax.Array, memory: Memory, place: Place) -> jax.Array:
        chances = self.chances(grid, believed, memory)
        return choose_action(key, grid, place.cell, lambda _: chances, self.settings)

    def chances(self, grid: Grid, believed: jax.Array, memory: jax.Array) -> Chances:
        """What the search samples from: the mixture of phases is itself a distribution over outcomes."""
        weights, values = posterior(memory), parameter_values()
        mean = weights @ values
        variance = weights @ (values - mean) ** 2
        old, learned = grid.probabilities(believed), grid.probabilities(mean)
        epistemic = variance * jnp.sum(grid.slope**2, axis=-1)
        surplus = jnp.maximum(_randomness(learned) - _randomness(old), 0.0)
        accepted = jnp.exp(-self.likelihood * surplus)[..., None]
        second = accepted * learned + (1 - accepted) * _pessimistic(grid, learned)
        return jnp.where((epistemic > self.epsilon)[..., None], _pessimistic(grid, old), second)


def _randomness(chances: Chances) -> jax.Array:
    return jnp.sum(chances * (1 - chances), axis=-1)


def _pessimistic(grid: Grid, chances: Chances) -> Chances:
    """The worst case by immediate reward, where an outcome pays less than 0; elsewhere the model itself."""
    threatened = jnp.any((grid.reward < 0) & (chances > 0), axis=-1, keepdims=True)
    rewards = jnp.where(chances > 0, grid.reward, jnp.inf)
    return jnp.where(threatened, worst_cases(rewards, chances, grid.following, grid.distance, BOUND), chances)
