"""Expansion: all children of a node are made, and perhaps one of them is deleted.

UA-Expansion: if sum_i U_i > deletion_threshold, with probability 1 - tau / deletion_scale delete exactly one child,
              child i with probability U_i / sum_j U_j. Not every rule set does: see `Rules.deletion_scale`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from uamcts.mcts.charge import Charged
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.problem import Problem
from uamcts.mcts.rules import find_rules
from uamcts.mcts.tree import Tree
from uamcts.randomness import DELETION, Seed, draw, uniform
from uamcts.types import BatchedUncertainty, Model, Number, Prior, PyTree, Transition, Uncertainty

BAD_PROBABILITY_SUM = 1e-4
"""By how much the probabilities of an action's outcomes may miss 1: they are numbers of 32 bits."""


class Children(NamedTuple):
    """A new block of a tree: the fields have the meaning of those of `Tree` and `Chance`."""

    state: PyTree
    exists: Bool[Array, " actions"]
    terminal: Bool[Array, " places"]
    reward: Float[Array, " places"]
    uncertainty: Float[Array, " actions"]
    bias: Float[Array, " actions"]
    keep: Float[Array, " actions"]
    probability: Float[Array, " places"] | None = None
    """NaN for all outcomes of an action whose probabilities are none."""
    prior: Float[Array, " actions"] | None = None
    """NaN if it is none."""


def evaluate(
    uncertainty: Uncertainty | BatchedUncertainty,
    cache: PyTree,
    states: PyTree,
    actions: Int[Array, " n"],
    wanted: Bool[Array, " n"],
) -> tuple[Float[Array, " n"], PyTree]:
    """The uncertainties of transitions where they are `wanted`, and the prediction cache afterwards.

    `states` has a leading axis [n].
    """
    if isinstance(uncertainty, BatchedUncertainty):
        return uncertainty.predict_batch(cache, states, actions, wanted)
    return jax.vmap(uncertainty)(states, actions).astype(float), cache


def expand(
    seed: Seed,
    index: Int[Array, ""],
    state: PyTree,
    problem: Problem,
    config: SearchConfig,
    *,
    cache: PyTree = None,
    wanted: Bool[Array, ""] | bool = True,
    doubt: Float[Array, " actions"] | None = None,
) -> tuple[Children, PyTree]:
    """The children of a place in `state`, and the prediction cache afterwards.

    `index` numbers the expansions of a search. The uncertainty of children that are not `wanted` is arbitrary; `doubt`
    is the uncertainty of all of them, if it is known already.
    """
    rules, num_actions = find_rules(config.rules), problem.num_actions
    actions = jnp.arange(num_actions, dtype=jnp.int32)
    believed, probability = believe(seed, index, state, actions, problem)
    allowed = jnp.ones(num_actions, bool) if problem.legal is None else problem.legal(state)
    if doubt is None:
        doubt, cache = doubt_of_actions(state, problem, cache, allowed & wanted)
    doubt = jnp.where(allowed, doubt, 0.0)
    if isinstance(problem.uncertainty, Charged):
        believed = believed._replace(reward=problem.uncertainty.settle(believed.reward, doubt))
        doubt = jnp.zeros_like(doubt)
    exists = allowed & ~choose_deletion(seed, index, doubt, allowed, config)
    edges = rules.edges(doubt, exists, config)
    possible = allowed
    if probability is not None:
        possible = jnp.repeat(allowed, probability.size // num_actions)
        probability = jnp.where(possible, probability, 0.0)
        possible = possible & ~(probability <= 0)
    reward = jnp.where(possible, believed.reward.astype(float), 0.0)
    prior = None if problem.prior is None else prior_of(state, exists, problem)
    children = Children(
        believed.state, exists, believed.terminal, reward, doubt, edges.bias, edges.keep, probability, prior
    )
    return children, cache


def doubt_of_actions(
    state: PyTree, problem: Problem, cache: PyTree, wanted: Bool[Array, " actions"]
) -> tuple[Float[Array, " actions"], PyTree]:
    """U of every action in a state where it is `wanted`, and the prediction cache afterwards."""
    actions = jnp.arange(problem.num_actions, dtype=jnp.int32)
    here = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (actions.size, *jnp.shape(leaf))), state)
    return evaluate(problem.uncertainty, cache, here, actions, wanted)


def believe(
    seed: Seed, index: Int[Array, ""], state: PyTree, actions: Int[Array, " actions"], problem: Problem
) -> tuple[Transition, Float[Array, " places"] | None]:
    """What the model believes of all actions: transitions [places], and their probabilities if it is random."""
    if not problem.is_random:
        return jax.vmap(cast(Model, problem.model), in_axes=(None, 0))(state, actions), None
    counters = index * actions.size + actions
    after, probability = jax.vmap(problem.outcomes_of, (None, 0, None, 0))(state, actions, seed, counters)
    good = jnp.all(probability >= 0, axis=1) & (jnp.abs(jnp.sum(probability, axis=1) - 1.0) <= BAD_PROBABILITY_SUM)
    probability = jnp.where(good[:, None], probability, jnp.nan)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), after), probability.reshape(-1)


def prior_of(state: PyTree, exists: Bool[Array, " actions"], problem: Problem) -> Float[Array, " actions"]:
    """Prior probabilities of the children that exist; NaN if they are none."""
    given = jnp.asarray(cast(Prior, problem.prior)(state), float)
    if given.shape != exists.shape:
        raise ValueError(f"prior(state) returned an array of shape {given.shape}; return one number for each action")
    given = jnp.where(exists, given, 0.0)
    total = jnp.sum(given)
    good = jnp.all(given >= 0) & (total > 0) & (total < jnp.inf)
    return jnp.where(good, given / jnp.where(good, total, 1.0), jnp.nan)


def choose_deletion(
    seed: Seed,
    index: Int[Array, ""],
    doubt: Float[Array, " actions"],
    allowed: Bool[Array, " actions"],
    config: SearchConfig,
) -> Bool[Array, " actions"]:
    """Which child is deleted, if any. The last child is never deleted."""
    scale: Number | None = find_rules(config.rules).deletion_scale
    if scale is None:
        return jnp.zeros(doubt.shape, bool)
    if config.deletion_scale is not None:
        scale = config.deletion_scale
    chance, place = (uniform(draw(seed, DELETION, 2 * index + k)) for k in (0, 1))
    running = jnp.cumsum(doubt)
    total: jax.Array = running[-1]
    happens = config.expansion & (total > config.deletion_threshold) & (chance < 1.0 - config.tau / scale)
    happens = happens & (jnp.sum(allowed) > 1)
    reached = running > place * total
    return cast(jax.Array, happens & reached & (jnp.cumsum(reached) == 1))


def write(tree: Tree, block: Int[Array, ""], children: Children) -> Tree:
    """The tree with `children` as its block number `block`, not yet linked to a parent."""

    def put(leaf: Shaped[Array, " blocks *row"], row: Shaped[Array, "*row"]) -> Shaped[Array, " blocks *row"]:
        return cast(jax.Array, jax.lax.dynamic_update_index_in_dim(leaf, row.astype(leaf.dtype), block, 0))

    plain = ("exists", "terminal", "reward", "uncertainty", "bias", "keep")
    fields: dict[str, Any] = {name: put(getattr(tree, name), getattr(children, name)) for name in plain}
    if tree.chance is not None and children.probability is not None:
        fields["chance"] = tree.chance._replace(probability=put(tree.chance.probability, children.probability))
    if tree.prior is not None and children.prior is not None:
        fields["prior"] = put(tree.prior, children.prior)
    return tree._replace(state=jax.tree.map(put, tree.state, children.state), **fields)


def after_read(read: Bool[Array, ""], children: Children) -> Children:
    """The same children, as results of `read`, which holds.

    Rows that are known beforehand, such as U of a trusted model, could be written before the old tree is read. The
    compiler would copy the array in every iteration for that.
    """
    names = ("exists", "terminal", "reward", "uncertainty", "bias", "keep")
    rows = {name: getattr(children, name) for name in names}
    return children._replace(**{name: jnp.where(read, row, jnp.zeros_like(row)) for name, row in rows.items()})


def link(tree: Tree, parent: Int[Array, ""], block: Int[Array, ""], grows: Bool[Array, ""]) -> Tree:
    """The tree in which `block` holds the children of `parent`, if it grows.

    The array keeps its shape: the compiler would copy a reshaped one in every iteration.
    """
    place, row = jnp.where(grows, parent, tree.children.size), tree.children.shape[1]
    return tree._replace(children=tree.children.at[place // row, place % row].set(block, mode="drop"))
