"""One iteration between selection and simulation: what is known of the leaf, its children, and where to roll out."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.expand import Children, expand
from uamcts.mcts.problem import Problem
from uamcts.mcts.rules import find_rules
from uamcts.mcts.select import first_of
from uamcts.mcts.simulate import nan_if_invalid
from uamcts.randomness import CHILD, Seed, draw, pick
from uamcts.types import PyTree

BAD_UNCERTAINTY, BAD_REWARD, NO_ACTION, BAD_PROBABILITY = 1, 2, 4, 8
"""Flags of a result: what only shows while the search runs."""


class Leaf(NamedTuple):
    """What an iteration needs to know of the leaf that it selected."""

    state: PyTree
    terminal: Bool[Array, ""]
    visits: Float[Array, ""]
    """N of its node."""
    outcome_visits: Float[Array, ""] | None
    """N of its place, if the model is random."""
    doubted: Bool[Array, ""]
    """Whether a transition on the way to it keeps less than all of a value. Only if a rule set follows doubt."""

    @property
    def place_visits(self) -> Float[Array, ""]:
        return self.visits if self.outcome_visits is None else self.outcome_visits


class Growth(NamedTuple):
    """What an iteration adds to the tree below a leaf, and where it rolls out."""

    children: Children
    grows: Bool[Array, ""]
    """Whether the leaf gets these children."""
    place: Int[Array, ""]
    """The place in the new block that is rolled out, if it grows."""
    state: PyTree
    """The state that is rolled out: the new child's, or the leaf's own."""
    over: Bool[Array, ""]
    """Whether the episode is over there."""
    below: SearchConfig
    """The settings that hold for rollouts from it."""
    flags: Int[Array, ""]


def grow(
    seed: Seed,
    index: Int[Array, ""],
    number: Int[Array, ""],
    leaf: Leaf,
    room: Bool[Array, ""],
    problem: Problem,
    config: SearchConfig,
    cache: PyTree = None,
    doubt: Float[Array, " actions"] | None = None,
) -> tuple[Growth, PyTree]:
    """The children of a leaf, and the prediction cache afterwards.

    `index` is the number of the iteration, and `number` that of the expansion. Without `room` the leaf lies as deep as
    the tree may be. `doubt` is U of the leaf's actions, if it is known already.
    """
    rules = find_rules(config.rules)
    ripe = (leaf.place_visits > 0) & ~leaf.terminal & room
    below = rules.below_doubt(config, leaf.doubted) if rules.follows_doubt else config
    children, cache = expand(seed, number, leaf.state, problem, below, cache=cache, wanted=ripe, doubt=doubt)
    grows = ripe & jnp.any(children.exists)
    first = _first(seed, index, children, config)
    place = _first_place(children, first)
    child = jax.tree.map(lambda row: row[place], children.state)
    pairs = (child, children.terminal[place]), (leaf.state, leaf.terminal)
    state, over = jax.tree.map(lambda new, old: jnp.where(grows, new, old), *pairs)
    if rules.follows_doubt:
        below = rules.below_doubt(below, grows & (children.keep[first] < 1.0))
    flags = jnp.where(grows, children_flags(children), 0)
    return Growth(children, grows, place.astype(jnp.int32), state, over, below, flags), cache


def _first(seed: Seed, index: Int[Array, ""], children: Children, config: SearchConfig) -> Int[Array, ""]:
    """Which of the new children is rolled out."""
    rules = find_rules(config.rules)
    if rules.picks_at_random:
        return pick(draw(seed, CHILD, index), children.exists)
    return first_of(rules.first_choice(children.exists, children.bias), config)


def _first_place(children: Children, first: Int[Array, ""]) -> Int[Array, ""]:
    """Which of its outcomes: the most likely one."""
    if children.probability is None:
        return first
    slots = children.probability.size // children.exists.size
    return first * slots + jnp.argmax(children.probability.reshape(-1, slots)[first])


def children_flags(children: Children) -> Int[Array, ""]:
    """What is wrong with new children."""
    doubtful = jnp.any(jnp.isnan(nan_if_invalid(children.uncertainty)))
    flags = flag_word(doubtful, jnp.any(~jnp.isfinite(children.reward)))
    for numbers in (children.probability, children.prior):
        if numbers is not None:
            flags = flags | BAD_PROBABILITY * jnp.any(jnp.isnan(numbers)).astype(jnp.int32)
    return flags


def flag_word(uncertainty: Bool[Array, ""], reward: Bool[Array, ""]) -> Int[Array, ""]:
    return BAD_UNCERTAINTY * uncertainty.astype(jnp.int32) + BAD_REWARD * reward.astype(jnp.int32)
