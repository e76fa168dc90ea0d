"""Expansion: all children of a node are made, and perhaps one of them is deleted.

UA-Expansion: if sum_i U_i > deletion_threshold, with probability 1 - tau / deletion_scale delete exactly one child,
              child i with probability U_i / sum_j U_j. Not every rule set does: see `Rules.deletion_scale`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.problem import Problem
from uamcts.mcts.rules import find_rules
from uamcts.mcts.tree import Tree
from uamcts.randomness import DELETION, draw, uniform
from uamcts.types import BatchedUncertainty, PyTree, Uncertainty


class Children(NamedTuple):
    """One block of a tree to be: arrays over [actions], as in `Tree`."""

    state: PyTree
    exists: jax.Array
    terminal: jax.Array
    reward: jax.Array
    uncertainty: jax.Array
    bias: jax.Array
    keep: jax.Array


def ask(
    uncertainty: Uncertainty | BatchedUncertainty, memory: PyTree, states: PyTree, actions: jax.Array, wanted: jax.Array
) -> tuple[jax.Array, PyTree]:
    """The uncertainties of `actions` [n] in `states` [n, ...] where they are `wanted`, and what is remembered after."""
    if isinstance(uncertainty, BatchedUncertainty):
        return uncertainty.many(memory, states, actions, wanted)
    return jax.vmap(uncertainty)(states, actions).astype(float), memory


def expand(
    seed: jax.Array,
    index: jax.Array,
    state: PyTree,
    problem: Problem,
    config: SearchConfig,
    *,
    memory: PyTree = None,
    wanted: jax.Array | bool = True,
) -> tuple[Children, PyTree]:
    """The children of a node that is in `state`, and what the uncertainty remembers after.

    `index` numbers the expansions of a search. Children that are not `wanted` have no uncertainty worth having.
    """
    rules, num_actions = find_rules(config.rules), problem.num_actions
    actions = jnp.arange(num_actions, dtype=jnp.int32)
    believed = jax.vmap(problem.model, in_axes=(None, 0))(state, actions)
    allowed = jnp.ones(num_actions, bool) if problem.legal is None else problem.legal(state)
    here = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_actions, *jnp.shape(leaf))), state)
    doubt, memory = ask(problem.uncertainty, memory, here, actions, allowed & wanted)
    doubt = jnp.where(allowed, doubt, 0.0)
    exists = allowed & ~choose_deletion(seed, index, doubt, allowed, config)
    children = Children(
        believed.state,
        exists,
        believed.terminal,
        jnp.where(allowed, believed.reward.astype(float), 0.0),
        doubt,
        *rules.edges(doubt, exists, config),
    )
    return children, memory


def choose_deletion(
    seed: jax.Array, index: jax.Array, doubt: jax.Array, allowed: jax.Array, config: SearchConfig
) -> jax.Array:
    """Which child is deleted, conditions [actions]. The last child is never deleted."""
    scale = find_rules(config.rules).deletion_scale
    if scale is None:
        return jnp.zeros(doubt.shape, bool)
    if config.deletion_scale is not None:
        scale = config.deletion_scale
    chance, place = (uniform(draw(seed, DELETION, 2 * index + k)) for k in (0, 1))
    running = jnp.cumsum(doubt)
    total = running[-1]
    happens = config.expansion & (total > config.deletion_threshold) & (chance < 1.0 - config.tau / scale)
    happens = happens & (jnp.sum(allowed) > 1)
    reached = running > place * total
    return happens & reached & (jnp.cumsum(reached) == 1)


def write(tree: Tree, block: jax.Array, children: Children) -> Tree:
    """The tree with `children` as its block number `block`, not yet linked to a parent."""

    def put(leaf: jax.Array, row: jax.Array) -> jax.Array:
        return jax.lax.dynamic_update_index_in_dim(leaf, row.astype(leaf.dtype), block, 0)

    fields = {name: put(getattr(tree, name), getattr(children, name)) for name in Children._fields if name != "state"}
    return tree._replace(state=jax.tree.map(put, tree.state, children.state), **fields)
