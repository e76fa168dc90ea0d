"""Backpropagation: the leaf's value travels up to the root.

plain:                         N(v) += 1;  Q(v) += value;          value <- gamma value + r(v)
alpha = softmax(-U / tau)_v    among v's siblings, 1 for the root
UA-Backpropagation, released:  N(v) += 1;  Q(v) += value;          value <- alpha (gamma value + r(v))
UA-Backpropagation, pseudocode: N(v) += 1;  Q(v) += alpha value;   value <- gamma value + r(v)
UA-Backpropagation, trust:      N(v) += 1;  Q(v) += value;         value <- gamma P(value, kept(v)) + r(v)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from uamcts.mcts import trust
from uamcts.mcts.select import Path
from uamcts.mcts.tree import Tree, put
from uamcts.types import SearchConfig


def backpropagate(tree: Tree, path: Path, value: jax.Array, revisited: jax.Array, config: SearchConfig) -> Tree:
    """The tree after `value` was found at the end of `path`: one masked scatter along the path.

    `revisited`: the leaf had been visited before and did not grow.
    """
    nodes, places = path.nodes, jnp.arange(path.nodes.size)
    reward = tree.reward.reshape(-1).at[nodes].get(mode="fill", fill_value=0.0)
    share = tree.share.reshape(-1).at[nodes].get(mode="fill", fill_value=1.0)
    scale = share if config.rules == "released" else jnp.ones_like(share)
    values = climb(value, places < path.length - 1, scale * config.gamma, scale * reward)
    if config.rules == "trust":
        values = values + _lost_to_doubt(values, share, places, config)
    added = values if config.rules != "pseudocode" else values * share

    # A visit of a child adds its share to its parent's weight: the child is one further along the path. A leaf that was
    # visited before and could not grow was visited for itself.
    below = jnp.where(places < path.length - 1, jnp.roll(share, -1), 0.0)
    below = jnp.where((places == path.length - 1) & revisited, 1.0, below)

    amounts = jnp.stack([jnp.ones_like(added), added, below], axis=-1)
    stats = tree.stats.reshape(-1, 3).at[nodes].add(amounts, mode="drop")
    return tree._replace(stats=stats.reshape(tree.stats.shape))


def _lost_to_doubt(values: jax.Array, share: jax.Array, places: jax.Array, config: SearchConfig) -> jax.Array:
    """What the values along a path lose above its doubtful transition, [n]. A path has at most one with a share < 1.

    So the climb stays linear: what P takes away at that place is missing, discounted, in every place above it.
    """
    lost = jnp.where(trust.counts_less(share), trust.pessimistic(values, share, config.v_min) - values, 0.0)
    doubtful = jnp.argmax(trust.counts_less(share))
    distance = jnp.maximum(doubtful - places, 0)
    return jnp.where(places < doubtful, jnp.power(config.gamma, distance) * jnp.sum(lost), 0.0)


def climb(value: jax.Array, above: jax.Array, factor: jax.Array, summand: jax.Array) -> jax.Array:
    """The values along a path whose leaf has `value`: value_k = factor_(k+1) value_(k+1) + summand_(k+1), [n].

    `above` [n] holds for the places above the leaf. A CPU goes from place to place. A GPU, for which every round of a
    loop is a few kernels, doubles: in round j every place looks 2^j further down.
    """
    # value_k = times_k * value_(k+1) + plus_k; the leaf needs nobody below.
    times = jnp.where(above, jnp.roll(factor, -1), 0.0)
    plus = jnp.where(above, jnp.roll(summand, -1), value)
    if jax.default_backend() == "cpu":
        return _climb_by_steps(times, plus, jnp.sum(above), value)
    for distance in (2**j for j in range((times.size - 1).bit_length())):
        further = jnp.arange(times.size) + distance < times.size
        below = jnp.where(further, jnp.roll(times, -distance), 0.0)
        times, plus = times * below, times * jnp.where(further, jnp.roll(plus, -distance), 0.0) + plus
    return plus


def _climb_by_steps(times: jax.Array, plus: jax.Array, leaf: jax.Array, value: jax.Array) -> jax.Array:
    def step(carry: tuple) -> tuple:
        place, value, values = carry
        value = times[place] * value + plus[place]
        return place - 1, value, put(values, place, value)

    start = (leaf, value, jnp.zeros_like(plus))
    return jax.lax.while_loop(lambda carry: carry[0] >= 0, step, start)[2]
