"""The value of a leaf: by rollouts, by a value function, or by a mixture of both."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.problem import Problem
from uamcts.mcts.rollout import Start
from uamcts.mcts.simulate import leaf_value, nan_if_invalid, simulate
from uamcts.types import PyTree


class Estimate(NamedTuple):
    """The value of a leaf, what was wrong on the way to it, and the prediction cache."""

    value: Float[Array, ""]
    bad_uncertainty: Bool[Array, ""]
    bad_reward: Bool[Array, ""]
    """Whether a return, or the value function's answer, was not finite."""
    cache: PyTree
    best: Float[Array, ""]
    """The value with the best rollout in place of all."""
    actions: Int[Array, " depth"] | None = None
    """What that rollout did, if rollouts follow a sequence."""


def estimate(start: Start, problem: Problem, config: SearchConfig, below: SearchConfig, cache: PyTree) -> Estimate:
    """The value of the state that `start` begins in: 0 if the episode is over there or no time is left.

    `below` are the settings that hold for rollouts from it.
    """
    weight = config.value_weight
    if problem.value is None:
        return _by_rollouts(start, problem, config, below, cache)
    over = start.terminal if start.steps is None else start.terminal | (start.steps < 1)
    answer = jnp.asarray(problem.value(start.state), float)
    if answer.ndim:
        raise ValueError(f"value(state) returned an array of shape {answer.shape}; return one number")
    own = jnp.where(over, 0.0, answer)
    if isinstance(weight, (int, float)) and weight == 1:
        return Estimate(own, jnp.bool_(False), ~jnp.isfinite(own), cache, own)
    rolled = _by_rollouts(start, problem, config, below, cache)
    value, best = (weight * own + (1.0 - weight) * found for found in (rolled.value, rolled.best))
    return rolled._replace(value=value, best=best, bad_reward=rolled.bad_reward | ~jnp.isfinite(own))


def _by_rollouts(start: Start, problem: Problem, config: SearchConfig, below: SearchConfig, cache: PyTree) -> Estimate:
    if start.steps is not None:
        start = start._replace(terminal=start.terminal | (start.steps < 1))
    rollouts = simulate(start, problem, below, cache)
    doubtful = jnp.any(jnp.isnan(nan_if_invalid(rollouts.uncertainty)))
    endless = jnp.any(~jnp.isfinite(rollouts.returns))
    best = jnp.argmax(rollouts.returns)
    actions = None if rollouts.actions is None else rollouts.actions[best]
    return Estimate(leaf_value(rollouts, config), doubtful, endless, rollouts.cache, rollouts.returns[best], actions)
