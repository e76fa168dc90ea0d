"""The search tree as a structure of arrays, allocated once.

Nodes lie in blocks of one node per action. Block 0 holds the root alone, and block 1 its children. Children of other
nodes follow in the order in which they were made. An iteration writes its children to the next block whether or not the
tree grows, and the next one that does not find them linked overwrites them.

A node stands for an action and has its statistics. Each outcome of the action has a slot of the node, a *place*, with a
state and children of its own. In a deterministic model a node has one place, which has the node's number: the arrays
and the compiled program are then those of a tree without chance.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from uamcts.types import PyTree

ROOT = 0
UNEXPANDED = 0
"""The value of `children` for a node without any: block 0 is the root's, nobody's children."""

SHORT = 512
"""The longest vector that is compared entry by entry: see `put`."""

FEW_ACTIONS = 128
"""Loops over up to this many actions are written out."""

REDUCTIONS: dict[Callable[..., jax.Array], Callable[[jax.Array], jax.Array]] = {
    jnp.minimum: jnp.min,
    jnp.maximum: jnp.max,
    jnp.add: jnp.sum,
    jnp.logical_or: jnp.any,
}
"""The operations of `reduce_actions`, over a whole vector."""

VISITS, TOTAL, WEIGHT = range(3)
"""The entries of `stats`."""


class Chance(NamedTuple):
    """What a random model adds to a tree."""

    probability: Float[Array, "blocks places"]
    visits: Float[Array, "blocks places"]
    """How often each outcome was visited."""


class Tree(NamedTuple):
    """Arrays over [blocks, actions] and [blocks, places], of which a block has actions * slots.

    The number of a node is its block * actions + its action; that of a place is its node * slots + its slot. Only what
    can be reached from the root through `children` means anything: the blocks behind the last one are linked to nobody.
    """

    state: PyTree
    """What the model believes to be the state of a place, [blocks, places, ...]."""
    children: Int[Array, "blocks places"]
    """The block of the children of a place, or UNEXPANDED."""
    exists: Bool[Array, "blocks actions"]
    """False for children that UA-Expansion deleted and for illegal actions."""
    terminal: Bool[Array, "blocks places"]
    """Whether the episode is over there."""
    stats: Float[Array, "blocks actions 3"]
    """What backpropagation adds to, side by side so that it is one addition: N, Q and the weight."""
    reward: Float[Array, "blocks places"]
    """r of the transition into the place."""
    uncertainty: Float[Array, "blocks actions"]
    """U of the transition into the node."""
    bias: Float[Array, "blocks actions"]
    """How selection corrects the node's score: see `Rules.score`."""
    keep: Float[Array, "blocks actions"]
    """Which fraction of a value passes through the transition into the node: see `Rules.pieces`."""
    chance: Chance | None = None
    """None if the model is deterministic."""
    prior: Float[Array, "blocks actions"] | None = None
    """Prior probabilities of the actions, if there is a prior."""

    @property
    def visits(self) -> Float[Array, "*batch blocks actions"]:
        """N."""
        return self.stats[..., VISITS]

    @property
    def total(self) -> Float[Array, "*batch blocks actions"]:
        """Q, the sum of values."""
        return self.stats[..., TOTAL]

    @property
    def weight(self) -> Float[Array, "*batch blocks actions"]:
        """Sum over the node's children of keep * N."""
        return self.stats[..., WEIGHT]

    @property
    def num_actions(self) -> int:
        return self.exists.shape[1]

    @property
    def slots(self) -> int:
        """How many places a node has."""
        return self.children.shape[1] // self.exists.shape[1]

    def has_room(self, block: Int[Array, ""]) -> Bool[Array, ""]:
        """Whether a block may be linked: the last one takes what is written in vain."""
        return block < self.exists.shape[0] - 1

    def entry(self, leaf: Shaped[Array, "blocks row *entry"], number: Int[Array, ""]) -> Shaped[Array, "*entry"]:
        """The entry of a node in an array over nodes, or that of a place in an array over places."""
        return leaf[number // leaf.shape[1], number % leaf.shape[1]]

    def node_of(self, place: Int[Array, "*n"]) -> Int[Array, "*n"]:
        """The node that a place belongs to."""
        return place if self.chance is None else place // self.slots

    def rewards(self, block: Int[Array, ""]) -> Float[Array, " actions"]:
        """r of each node of a block: the mean over its visits, if there are several outcomes."""
        if self.chance is None:
            return self.reward[block]
        visits, rewards = (leaf[block].reshape(-1, self.slots) for leaf in (self.chance.visits, self.reward))
        return jnp.sum(visits * rewards, axis=1) / jnp.maximum(jnp.sum(visits, axis=1), 1.0)


def empty(state: PyTree, blocks: int, num_actions: int, slots: int | None = None, has_prior: bool = False) -> Tree:
    """A tree with a root and nothing else. `slots` is the number of outcomes of an action in a random model."""
    shape, places = (blocks, num_actions), (blocks, num_actions * (slots or 1))
    zeros, ones = jnp.zeros(shape, dtype=float), jnp.ones(shape, dtype=float)
    states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*places, *jnp.shape(leaf))), state)
    return Tree(
        state=states,
        children=jnp.zeros(places, jnp.int32),
        exists=jnp.zeros(shape, bool),
        terminal=jnp.zeros(places, bool),
        stats=jnp.zeros((*shape, 3), dtype=float),
        reward=jnp.zeros(places, dtype=float),
        uncertainty=zeros,
        bias=ones,
        keep=ones,
        chance=None if slots is None else Chance(jnp.zeros(places, float), jnp.zeros(places, float)),
        prior=zeros if has_prior else None,
    )


def put(
    numbers: Shaped[Array, " n *entry"], place: Int[Array, ""], number: Shaped[Array, "*entry"]
) -> Shaped[Array, " n *entry"]:
    """The array `numbers` with one entry (of its first axis) changed.

    On a GPU, where a write is a kernel of its own, a short vector such as a path is compared entry by entry with
    `place` instead: the compiler merges that with its surroundings.
    """
    if jax.default_backend() != "cpu" and numbers.ndim == 1 and numbers.size <= SHORT:
        return jnp.where(jnp.arange(numbers.size) == place, number, numbers)
    written: jax.Array = jax.lax.dynamic_update_index_in_dim(numbers, number, place, 0)
    return written


def reduce_actions(
    operation: Callable[[jax.Array, jax.Array], jax.Array], numbers: Shaped[Array, " actions"]
) -> Shaped[Array, ""]:
    """The entries of a vector over actions joined one by one, from the first on.

    Where they are few, it is written out: the compiler merges it with its surroundings, while a reduction over an axis
    would be a kernel of its own. Written out for many, it would take the compiler longer than the search.
    """
    if numbers.shape[0] > FEW_ACTIONS:
        return REDUCTIONS[operation](numbers)
    return functools.reduce(operation, [numbers[index] for index in range(numbers.shape[0])])


def argmax_actions(numbers: Float[Array, " actions"]) -> Int[Array, ""]:
    """The index of the first of the greatest entries, written out where they are few."""
    if numbers.shape[0] > FEW_ACTIONS:
        return jnp.argmax(jnp.where(jnp.isnan(numbers), -jnp.inf, numbers)).astype(jnp.int32)
    best: jax.Array = numbers[0]
    index: jax.Array = jnp.int32(0)
    for other in range(1, numbers.shape[0]):
        better = numbers[other] > best
        best, index = jnp.where(better, numbers[other], best), jnp.where(better, jnp.int32(other), index)
    return index
