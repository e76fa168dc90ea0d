"""Bellman backups: along a path after every iteration, and in sweeps over the whole graph.

Q(s, a) = sum over outcomes of p [r + gamma P(V(s'))],  V(s) = max over the actions that exist, 0 if there are none
P is the identity but for doubtful transitions: see `Rules.child_value`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.graph.descend import Descent
from uamcts.mcts.graph.graph import Graph
from uamcts.mcts.graph.loops import masked_while
from uamcts.mcts.rules import find_rules


def qualities(
    value: jax.Array, child: jax.Array, probability: jax.Array, reward: jax.Array, keep: jax.Array, config: SearchConfig
) -> jax.Array:
    """Q of actions, [..., actions], out of arrays [..., actions, slots]; `value` is that of all nodes."""
    worth = find_rules(config.rules).child_value(value[child], reward, keep[..., None], config)
    return jnp.sum(probability * worth, axis=-1)


def best(quality: jax.Array, exists: jax.Array) -> jax.Array:
    """V out of Q, over the last axis."""
    found = jnp.max(jnp.where(exists, quality, -jnp.inf), axis=-1)
    return jnp.where(jnp.any(exists, axis=-1), found, 0.0)


class _Climb(NamedTuple):
    value: jax.Array
    quality: jax.Array
    place: jax.Array


def back_up(graph: Graph, path: Descent, config: SearchConfig) -> Graph:
    """The graph after a backup of every node on the path, from its end up to the root."""

    def step(climb: _Climb) -> _Climb:
        going = climb.place >= 0
        row = path.rows[jnp.maximum(climb.place, 0)]
        found = qualities(
            climb.value, graph.child[row], graph.probability[row], graph.reward[row], graph.keep[row], config
        )
        place = jnp.where(going, row, graph.owner.size)
        owner = jnp.where(going, graph.owner[row], graph.value.size)
        return _Climb(
            climb.value.at[owner].set(best(found, graph.exists[row]), mode="drop"),
            climb.quality.at[place].set(found, mode="drop"),
            climb.place - 1,
        )

    start = _Climb(graph.value, graph.quality, path.length - 1)
    end = masked_while(lambda climb: climb.place >= 0, step, start)
    return graph._replace(value=end.value, quality=end.quality)
