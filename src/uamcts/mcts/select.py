"""Selection: from the root down to a leaf, along the best scores.

x_i     = r_i + gamma value(v_i)                                      the reward into the child is not in its value
score_i = x_i + c sqrt(ln N(v) / N(v_i))                              UCT (Kocsis and Szepesvari, 2006)
alpha_i = softmax(U / tau)_i                                          among the siblings
UA-Selection, released:    score_i <- (1 - alpha_i) score_i           x_i min-max normalised to [0, 1]
UA-Selection, pseudocode:  only the exploration term times (1 - alpha_i), x_i raw
UA-Selection, trust:       score_i <- score_i - penalty where U_i is the path's first doubt, x_i min-max normalised
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from uamcts.mcts import trust
from uamcts.mcts.tree import ROOT, TOTAL, UNEXPANDED, VISITS, WEIGHT, Tree, first_greatest, fold, put
from uamcts.types import SearchConfig


class Path(NamedTuple):
    """The nodes from the root to a leaf: `nodes` [tree_depth + 2], of which the first `length` count."""

    nodes: jax.Array
    length: jax.Array
    leaf: jax.Array


def select(tree: Tree, config: SearchConfig, longest: int) -> Path:
    """Descends until a node without children. The tree is only read: it is not part of what the loop carries."""

    def expanded(path: Path) -> jax.Array:
        return (tree.node(tree.children, path.leaf) != UNEXPANDED) & (path.length <= longest)

    def descend(path: Path) -> Path:
        child = best_child(tree, path.leaf, config)
        return Path(put(path.nodes, path.length, child), path.length + 1, child)

    root, outside = jnp.int32(ROOT), tree.children.size
    nodes = jnp.full(longest + 2, outside, jnp.int32).at[0].set(root)
    return jax.lax.while_loop(expanded, descend, Path(nodes, jnp.int32(1), root))


def best_child(tree: Tree, node: jax.Array, config: SearchConfig) -> jax.Array:
    """The child with the best score, or the first one never visited; ties go to the first in action order."""
    block = tree.node(tree.children, node)
    exists, stats = tree.exists[block], tree.stats[block]
    visits = stats[:, VISITS]
    found, damping = worth(stats, tree.reward[block], tree.share[block], config), tree.damping[block]
    score = scores(
        config,
        exists=exists,
        parent_visits=tree.node(tree.stats, node)[VISITS],
        visits=visits,
        values=found,
        damping=damping,
    )
    fresh = visits == 0
    if config.rules == "trust":
        fresh, exists = trust.certain(exists & fresh, damping), trust.looked_at(exists, found, damping)
        exists = exists | fresh
    action = first_greatest(jnp.where(exists, jnp.where(fresh, jnp.inf, score), -jnp.inf))
    return block * tree.num_actions + action


def values(stats: jax.Array, config: SearchConfig) -> jax.Array:
    """The value of each node of a block out of its `stats`, without the reward of the transition into it.

    Released: Q / (1 + sum over children of softmax(-U / tau)_i N(v_i)); with UA-Backpropagation off every share is 1
    and this is Q / N, since every visit but the first goes on to a child or is counted as one. Else Q / N.
    """
    if config.rules == "released":
        return stats[:, TOTAL] / (1.0 + stats[:, WEIGHT])
    return stats[:, TOTAL] / jnp.maximum(stats[:, VISITS], 1.0)


def worth(stats: jax.Array, reward: jax.Array, share: jax.Array, config: SearchConfig) -> jax.Array:
    """x_i = r_i + gamma value(v_i) for each child of a block."""
    found = values(stats, config)
    if config.rules == "trust":
        found = trust.pessimistic(found, share, config.v_min)
    return config.gamma * found + reward


def scores(
    config: SearchConfig,
    exists: jax.Array,
    parent_visits: jax.Array,
    visits: jax.Array,
    values: jax.Array,
    damping: jax.Array,
) -> jax.Array:
    """The scores of siblings, [actions]; only those of visited, existing children mean anything."""
    exploration = config.c * jnp.sqrt(jnp.log(jnp.maximum(parent_visits, 1.0)) / jnp.maximum(visits, 1.0))
    if config.rules == "pseudocode":
        return values + exploration * damping
    if config.rules == "trust":
        return normalised(values, exists) + exploration - damping
    return (normalised(values, exists) + exploration) * damping


def normalised(values: jax.Array, exists: jax.Array) -> jax.Array:
    """Values brought to [0, 1] among the siblings that exist; 0.5 where all are equal."""
    low = fold(jnp.minimum, jnp.where(exists, values, jnp.inf))
    high = fold(jnp.maximum, jnp.where(exists, values, -jnp.inf))
    spread = high - low
    return jnp.where(spread > 0, (values - low) / jnp.where(spread > 0, spread, 1.0), 0.5)
