"""The best sequence of actions that a search has found, which its rollouts repeat in part.

Random rollouts tell little of what careful actions could reach. With `SearchConfig.follow`, every step of a rollout
takes the action of the best sequence so far with that probability, and any action otherwise: rollouts try what lies
around the best sequence, and a better one takes its place. Every fifth iteration rolls out at random throughout.

A sequence is an array over the steps from the root on. It holds action + 1; 0 stands for no action.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from uamcts.mcts.charge import Charged
from uamcts.mcts.config import RANDOM_EVERY, SearchConfig
from uamcts.mcts.problem import Problem
from uamcts.mcts.select import Path
from uamcts.mcts.tree import ROOT, TALLY, Tree
from uamcts.randomness import hash_word, uniform
from uamcts.types import PyTree

FOLLOW = np.uint32(0x5BD1E995)
"""Tells the words that decide whether to follow from those that draw actions."""


class BestSequence(NamedTuple):
    """What the best iteration so far did."""

    actions: Int[Array, " steps"]
    value: Float[Array, ""]
    """What its value was when it reached the root."""


def none_yet(config: SearchConfig, problem: Problem, longest: int) -> BestSequence | None:
    """No sequence; None in a search whose rollouts do not follow one."""
    if isinstance(config.follow, (int, float)) and config.follow == 0:
        return None
    if problem.is_random or isinstance(problem.uncertainty, Charged):
        return None
    return BestSequence(jnp.zeros(longest + 1 + config.depth, jnp.int32), jnp.asarray(-jnp.inf, float))


def suggest(
    best: BestSequence | None, index: Int[Array, ""], path: Path, config: SearchConfig
) -> Int[Array, " depth"] | None:
    """What the best sequence does from the end of a path on, if the rollouts of this iteration follow it."""
    if best is None:
        return None
    actions = jnp.concatenate([best.actions, jnp.zeros(config.depth, jnp.int32)])
    onward = jax.lax.dynamic_slice_in_dim(actions, path.length - 1, config.depth)
    return jnp.where(index % RANDOM_EVERY == RANDOM_EVERY - 1, 0, onward)


def follow(
    suggestion: Int[Array, ""],
    action: Int[Array, ""],
    state: PyTree,
    bits: UInt32[Array, ""],
    problem: Problem,
    config: SearchConfig,
) -> Int[Array, ""]:
    """The action of a step: the suggestion, if it is legal and a draw says so, or the one that was drawn."""
    wanted = jnp.maximum(suggestion - 1, 0)
    takes = (suggestion > 0) & (uniform(hash_word(bits ^ FOLLOW)) < config.follow)
    if problem.legal is not None:
        takes = takes & problem.legal(state)[wanted]
    return jnp.where(takes, wanted, action)


def update(
    best: BestSequence | None, path: Path, rolled: Int[Array, " depth"] | None, tree: Tree
) -> BestSequence | None:
    """The best sequence after an iteration: that of the iteration, if its value was the best that reached the root."""
    if best is None:
        return None
    depth, steps = path.length - 1, jnp.arange(best.actions.size)
    rolled = jnp.zeros(1, jnp.int32) if rolled is None else rolled
    above = path.places.at[1 + steps].get(mode="clip") % tree.num_actions + 1
    below = jnp.where(steps - depth < rolled.size, rolled.at[steps - depth].get(mode="clip"), 0)
    value = tree.entry(tree.stats, jnp.int32(ROOT))[TALLY]
    better = value > best.value
    actions = jnp.where(better, jnp.where(steps < depth, above, below), best.actions)
    return BestSequence(actions.astype(jnp.int32), jnp.where(better, value, best.value))
