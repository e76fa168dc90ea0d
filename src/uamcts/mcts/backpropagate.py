"""Backpropagation: the leaf's value travels up to the root.

plain: N(v) += 1;  Q(v) += value;  value <- gamma value + r(v)
UA-Backpropagation lets less of a value pass where a transition is uncertain: see `Rules.pieces` and `Rules.credit`.
"""

from __future__ import annotations

import functools
from typing import cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.rules import find_rules
from uamcts.mcts.select import Path
from uamcts.mcts.tree import Tree, put
from uamcts.types import Number


def backpropagate(
    tree: Tree, path: Path, value: Float[Array, ""], revisited: Bool[Array, ""], config: SearchConfig
) -> Tree:
    """The tree after `value` was found at the end of `path`: one masked scatter along the path.

    `revisited`: the node of the leaf had been visited before and the leaf did not grow.
    """
    rules = find_rules(config.rules)
    nodes, levels = tree.node_of(path.places), jnp.arange(path.places.size)
    reward = tree.reward.reshape(-1).at[path.places].get(mode="fill", fill_value=0.0)
    keep = tree.keep.reshape(-1).at[nodes].get(mode="fill", fill_value=1.0)
    above = levels < path.length - 1
    # Slopes are at least 0, and at most one transition of a path has pieces that differ: so the least of the pieces at
    # each transition is the least of the climbs.
    climbs = [climb(value, above, slope, offset) for slope, offset in rules.pieces(reward, keep, config)]
    added = cast(jax.Array, rules.credit(functools.reduce(jnp.minimum, climbs), keep))

    # A visit of a child adds its keep to its parent's weight: the child is one further along the path. A leaf that was
    # visited before and could not grow was visited for itself.
    below = jnp.where(above, jnp.roll(keep, -1), 0.0)
    below = jnp.where((levels == path.length - 1) & revisited, 1.0, below)

    amounts = jnp.stack([jnp.ones_like(added), added, below], axis=-1)
    stats = tree.stats.reshape(-1, 3).at[nodes].add(amounts, mode="drop")
    tree = tree._replace(stats=stats.reshape(tree.stats.shape))
    if tree.chance is None:
        return tree
    visits = tree.chance.visits.reshape(-1).at[path.places].add(1.0, mode="drop")
    return tree._replace(chance=tree.chance._replace(visits=visits.reshape(tree.children.shape)))


def climb(
    value: Float[Array, ""], above: Bool[Array, " levels"], slope: Number, offset: Number
) -> Float[Array, " levels"]:
    """The values along a path whose leaf has `value`: value_k = slope_(k+1) value_(k+1) + offset_(k+1).

    `above` holds for the places above the leaf. A CPU goes from place to place. A GPU, for which every round of a
    loop is a few kernels, doubles: in round j every place looks 2^j further down.
    """
    # value_k = times_k * value_(k+1) + plus_k; the leaf needs nobody below.
    times = jnp.where(above, jnp.roll(jnp.broadcast_to(slope, above.shape), -1), 0.0)
    plus = jnp.where(above, jnp.roll(offset, -1), value)
    if jax.default_backend() == "cpu":
        return _climb_by_steps(times, plus, jnp.sum(above), value)
    for distance in (2**j for j in range((times.size - 1).bit_length())):
        further = jnp.arange(times.size) + distance < times.size
        below = jnp.where(further, jnp.roll(times, -distance), 0.0)
        times, plus = times * below, times * jnp.where(further, jnp.roll(plus, -distance), 0.0) + plus
    return plus


def _climb_by_steps(
    times: Float[Array, " levels"], plus: Float[Array, " levels"], leaf: Int[Array, ""], value: Float[Array, ""]
) -> Float[Array, " levels"]:
    def step(carry: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        place, value, values = carry
        value = times[place] * value + plus[place]
        return place - 1, value, put(values, place, value)

    start = (leaf, value, jnp.zeros_like(plus))
    return jax.lax.while_loop(lambda carry: carry[0] >= 0, step, start)[2]
