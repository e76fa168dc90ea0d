"""What a search finds out before its first iteration, above all V_min of the trust rules where it is not given."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
from jaxtyping import Array, Float

from uamcts.mcts.charge import Charged
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.problem import Problem
from uamcts.mcts.rollout import Start
from uamcts.mcts.simulate import roll_out
from uamcts.randomness import Seed
from uamcts.types import BatchedUncertainty, Number, PyTree


def fill_in(
    seed: Seed, state: PyTree, problem: Problem, config: SearchConfig, longest: int, cache: PyTree
) -> tuple[SearchConfig, PyTree]:
    """The settings with `worst`, if the rule set reads it, and an empty prediction cache, if there is none yet."""
    uncertainty = problem.uncertainty
    if config.worst is None and config.reads("worst"):
        priced = uncertainty.price(problem, uncertainty.uncertainty) if isinstance(uncertainty, Charged) else problem
        config = replace(config, worst=worst_return(seed, state, priced, config, longest))
    if cache is None and isinstance(uncertainty, BatchedUncertainty):
        cache = uncertainty.empty_cache()
    return config, cache


def worst_return(seed: Seed, state: PyTree, problem: Problem, config: SearchConfig, longest: int) -> Float[Array, ""]:
    """V_min where `worst` is not given: the worst return of one simulation from the root, at most 0.

    A rollout that is cut at `depth` is assumed to continue like that for as many steps as the search can look ahead.
    """
    index = jnp.int32(config.iterations)  # the simulations of the iterations have the numbers before
    end, _ = roll_out(Start(seed, index, state, jnp.bool_(False)), problem, config)
    rest = jnp.where(end.over, 1.0, horizon_ratio(config.gamma, config.depth, config.depth + longest))
    return jnp.minimum(0.0, jnp.min(end.returned * rest))


def horizon_ratio(gamma: Number, depth: int, span: int) -> Float[Array, ""]:
    """How many times more a reward of 1 at each of `span` steps is than at each of `depth` steps, discounted."""
    counts = jnp.power(gamma, jnp.arange(span))
    return jnp.sum(counts) / jnp.sum(counts[:depth])
