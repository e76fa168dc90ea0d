"""Backpropagation: the leaf's value travels up to the root.

plain:                         N(v) += 1;  Q(v) += value;          value <- gamma value + r(v)
alpha = softmax(-U / tau)_v    among v's siblings, 1 for the root
UA-Backpropagation, released:  N(v) += 1;  Q(v) += value;          value <- alpha (gamma value + r(v))
UA-Backpropagation, pseudocode: N(v) += 1;  Q(v) += alpha value;   value <- gamma value + r(v)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from uamcts.mcts.select import Path
from uamcts.mcts.tree import Tree, put
from uamcts.types import SearchConfig


def backpropagate(tree: Tree, path: Path, value: jax.Array, config: SearchConfig) -> Tree:
    """The tree after `value` was found at the end of `path`: one masked scatter along the path per array."""
    nodes = path.nodes
    reward = tree.reward.reshape(-1).at[nodes].get(mode="fill", fill_value=0.0)
    share = tree.share.reshape(-1).at[nodes].get(mode="fill", fill_value=1.0)

    def climb(carry: tuple) -> tuple:
        place, value, values = carry
        scale = share[place] if config.rules == "released" else 1.0
        above = scale * (config.gamma * value + reward[place])
        return place - 1, above, put(values, place, value)

    start = (path.length - 1, value, jnp.zeros(nodes.size, value.dtype))
    _, _, values = jax.lax.while_loop(lambda carry: carry[0] >= 0, climb, start)
    added = values if config.rules == "released" else values * share

    # A visit of a child adds its share to its parent's weight: the child is one further along the path.
    below = jnp.where(jnp.arange(nodes.size) < path.length - 1, jnp.roll(share, -1), 0.0)

    def add(leaf: jax.Array, amount: jax.Array) -> jax.Array:
        return leaf.reshape(-1).at[nodes].add(amount.astype(leaf.dtype), mode="drop").reshape(leaf.shape)

    return tree._replace(
        visits=add(tree.visits, jnp.ones(nodes.size)),
        total=add(tree.total, added),
        weight=add(tree.weight, below),
    )
