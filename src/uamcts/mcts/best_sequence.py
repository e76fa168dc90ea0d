"""The best sequence of actions that a search has found: rollouts repeat part of it, and the move begins it.

Random rollouts tell little of what careful actions could reach, but in a deterministic model the best return that was
found can be had again. With `SearchConfig.follow`, every step of a rollout takes the action of the best sequence so far
with that probability, and any action otherwise: rollouts try what lies around the best sequence, and a better one takes
its place. Every second iteration rolls out from the root instead of a leaf, and every fifth at random throughout.

All iterations look equally far ahead, so that their returns compare (`steps_ahead`), and rewards far ahead count less
(`FADE`). The first iteration tries what an earlier search has left of its sequence: a search never begins with less.

A sequence is an array over the steps from the root on. It holds action + 1; 0 stands for no action.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from uamcts.mcts.backpropagate import values_along
from uamcts.mcts.charge import Charged
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.following import FADE, FROM_ROOT_EVERY, NEAR, RANDOM_EVERY, steps_ahead
from uamcts.mcts.problem import Problem
from uamcts.mcts.select import Path
from uamcts.mcts.tree import Tree
from uamcts.randomness import hash_word, uniform
from uamcts.types import Number, PyTree

FOLLOW = np.uint32(0x5BD1E995)
"""Tells the words that decide whether to follow from those that draw actions."""


class BestSequence(NamedTuple):
    """The actions of the best rollout so far, from the root on."""

    actions: Int[Array, " steps"]
    """Before the first iteration: the rest of the sequence of an earlier search."""
    value: Float[Array, ""]
    """What it is worth at the root."""


def is_sought(config: SearchConfig, problem: Problem) -> bool:
    """Whether a search looks for the best sequence of actions. In a random model the best return is luck."""
    return (
        config.follows and not config.graph and not problem.is_random and not isinstance(problem.uncertainty, Charged)
    )


def begin(config: SearchConfig, problem: Problem, carried: Int[Array, " steps"] | None) -> BestSequence | None:
    """The sequence before the first iteration; None in a search that does not look for one."""
    if not is_sought(config, problem):
        return None
    actions = jnp.zeros(steps_ahead(config, problem.num_actions), jnp.int32)
    if carried is not None:
        rest = carried[1 : actions.size + 1].astype(jnp.int32) + 1
        actions = actions.at[: rest.size].set(rest)
    return BestSequence(actions, jnp.asarray(-jnp.inf, float))


def end_early(best: BestSequence | None, config: SearchConfig, horizon: Number) -> Number:
    """The number of steps left, or how far iterations that follow a sequence look, if that is less."""
    if best is None:
        return horizon
    steps = jnp.where(config.follow > 0, best.actions.size, np.iinfo(np.int32).max)
    return steps if horizon is None else jnp.minimum(steps, horizon)


def stay_at_root(index: Int[Array, ""], config: SearchConfig, limit: Number) -> Number:
    """The most transitions of the path of an iteration: `limit`, or none if it rolls out from the root."""
    return jnp.where((index % FROM_ROOT_EVERY == 0) & (config.follow > 0), 0, limit)


def fade(ahead: Int[Array, ""] | None, config: SearchConfig) -> Number:
    """By how much more a step is discounted than by gamma, `ahead` steps from the root; None: in another search."""
    return 1.0 if ahead is None else jnp.where((ahead >= NEAR) & (config.follow > 0), FADE, 1.0)


def suggest(
    best: BestSequence | None, index: Int[Array, ""], path: Path, config: SearchConfig
) -> Int[Array, " depth"] | None:
    """What the best sequence does from the end of a path on, if the rollouts of this iteration follow it.

    The first iteration finds out what a carried sequence is worth: negative entries are followed for certain.
    """
    if best is None:
        return None
    actions = jnp.concatenate([best.actions, jnp.zeros(config.depth, jnp.int32)])
    onward = jax.lax.dynamic_slice_in_dim(actions, path.length - 1, config.depth)
    onward = jnp.where((index == 0) & (config.follow > 0), -onward, onward)
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
    wanted = jnp.maximum(jnp.abs(suggestion) - 1, 0)
    drawn = uniform(hash_word(bits ^ FOLLOW)) < config.follow
    takes = (suggestion < 0) | ((suggestion > 0) & drawn)
    if problem.legal is not None:
        takes = takes & problem.legal(state)[wanted]
    return jnp.where(takes, wanted, action)


def update(
    best: BestSequence | None,
    path: Path,
    rolled: Int[Array, " depth"] | None,
    returned: Float[Array, ""],
    tree: Tree,
    config: SearchConfig,
) -> BestSequence | None:
    """The best sequence after an iteration: that of its best rollout, if it is worth more at the root."""
    if best is None:
        return None
    depth, steps = path.length - 1, jnp.arange(best.actions.size)
    rolled = jnp.zeros(1, jnp.int32) if rolled is None else rolled
    above = path.places.at[1 + steps].get(mode="clip") % tree.num_actions + 1
    below = jnp.where(steps - depth < rolled.size, rolled.at[steps - depth].get(mode="clip"), 0)
    reward, keep = (
        leaf.reshape(-1).at[path.places].get(mode="fill", fill_value=0.0) for leaf in (tree.reward, tree.keep)
    )
    value = values_along(path, returned, reward, keep, config)[0].astype(best.value.dtype)
    better = value > best.value
    actions = jnp.where(better, jnp.where(steps < depth, above, below), best.actions)
    return BestSequence(actions.astype(jnp.int32), jnp.where(better, value, best.value))


def choose(
    best: BestSequence | None, config: SearchConfig, exists: Bool[Array, " actions"], usual: Int[Array, ""]
) -> Int[Array, ""]:
    """The move: the first action of the best sequence, or the usual one of a search that does not look for one."""
    if best is None:
        return usual
    action = jnp.maximum(best.actions[0] - 1, 0)
    return jnp.where((config.follow > 0) & (best.actions[0] > 0) & exists[action], action, usual)
