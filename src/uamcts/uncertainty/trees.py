"""U-hat by extremely randomised trees: scikit-learn fits them on the host, and arrays of their nodes answer in JAX.

U-hat = the mean over trees where more than half of them say more than 0, exactly 0 elsewhere
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Self, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from uamcts.arguments import whole
from uamcts.types import PyTree
from uamcts.uncertainty.buffer import Buffer
from uamcts.uncertainty.estimator import Action, Inputs, Scalar, Space
from uamcts.uncertainty.samples import RefittedEstimator, Surprise, group_samples

ArrayLike: TypeAlias = jax.Array | np.ndarray
"""On the device or, while trees are fitted, on the host."""


class Nodes(NamedTuple):
    """Trees as arrays [trees, nodes]. Node 0 is the root; a leaf is its own child on both sides."""

    feature: Int[ArrayLike, "*runs trees nodes"]
    threshold: Float[ArrayLike, "*runs trees nodes"]
    left: Int[ArrayLike, "*runs trees nodes"]
    """The next node if the feature is at most the threshold."""
    right: Int[ArrayLike, "*runs trees nodes"]
    value: Float[ArrayLike, "*runs trees nodes"]


class Trees(RefittedEstimator):
    """Trees on the inputs with the one-hot action behind them, fitted to every distinct sample once."""

    nodes: Nodes
    seed: UInt32[Array, "*runs"]
    """Of the next fit."""
    fits: Int[Array, "*runs"]
    """Rounds whose trees are fitted."""
    depth: int = eqx.field(static=True)

    @classmethod
    def fresh(
        cls,
        key: jax.Array,
        space: Space,
        capacity: int = 1024,
        minibatches: int = 5000,
        most_copies: int = 1,
        trees: int = 16,
        leaves: int = 256,
        depth: int = 16,
    ) -> Self:
        """An untrained estimator, with trees of at most `leaves` and `depth`; `minibatches` mean nothing to it."""
        del minibatches
        whole("trees", trees)
        whole("depth", depth)
        whole("leaves", leaves, 2)
        _regressor()  # fail now where scikit-learn is missing, not after the first round's steps
        shape = (trees, 2 * leaves - 1)
        links = jnp.zeros(shape, jnp.int32)
        return cls(
            **cls.empty_fields(key, space, capacity, most_copies),
            nodes=Nodes(links, jnp.zeros(shape), links, links, jnp.zeros(shape)),
            seed=jnp.uint32(0),
            fits=jnp.int32(0),
            depth=depth,
        )

    def predict(self, state: PyTree, action: Action) -> Scalar:
        answers = evaluate_trees(self.nodes, with_action(self.encode(state), action, self.num_actions), self.depth)
        return jnp.where(2 * jnp.sum(answers > 0) > answers.size, jnp.mean(answers), 0.0)

    def learn(self, key: jax.Array) -> tuple[Self, Scalar]:
        """Only marks that trees are to be fitted: `finish_on_host` does it.

        A call of the host from within a compiled program waits forever on a CPU with few threads, because the program
        holds the thread that would bring the samples.
        """
        seed = jax.random.bits(key, (), jnp.uint32)
        after = replace(self, rounds=self.rounds + 1, seed=seed, surprise=Surprise.empty())
        return after, self.surprise.mean

    def finish_on_host(self) -> Self:
        runs = self.rounds.shape
        flat = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[len(runs) :]), self)
        nodes = jax.tree.map(np.array, flat.nodes)
        for run in np.flatnonzero(flat.rounds > flat.fits):
            samples = _samples(
                jax.tree.map(lambda leaf, run=run: leaf[run], flat.buffer), self.encode, self.num_actions
            )
            inputs, targets, sizes = (np.asarray(part) for part in samples)
            there = sizes > 0
            found = fit_trees(inputs[there], targets[there], int(flat.seed[run]), self.depth, nodes.feature.shape[1:])
            for old, new in zip(nodes, found, strict=True):
                old[run] = new
        nodes = jax.tree.map(lambda leaf: jnp.asarray(leaf.reshape(*runs, *leaf.shape[1:])), nodes)
        return replace(self, nodes=nodes, fits=self.rounds)


def with_action(inputs: Inputs, action: Action, num_actions: int) -> Float[Array, " inputs_and_actions"]:
    return jnp.concatenate([inputs, (jnp.arange(num_actions) == action).astype(jnp.float32)])


@functools.partial(jax.jit, static_argnames=("encode", "num_actions"))
def _samples(
    buffer: Buffer, encode: Callable[[PyTree], Inputs], num_actions: int
) -> tuple[Float[Array, "rows inputs_and_actions"], Float[Array, " rows"], Int[Array, " rows"]]:
    """Inputs, targets and sizes of the distinct samples of a buffer; size 0 where there are no more."""
    groups = group_samples(buffer)
    states, actions, _ = buffer.rows(groups.row)
    inputs = jax.vmap(lambda state, action: with_action(encode(state), action, num_actions))(states, actions)
    return inputs, groups.mean, groups.size


def evaluate_trees(nodes: Nodes, inputs: Float[Array, " features"], depth: int) -> Float[Array, " trees"]:
    """The prediction of each tree for one vector of inputs."""
    number = nodes.feature.shape[0]
    every_tree = jnp.arange(number)

    def step(_: jax.Array, place: jax.Array) -> jax.Array:
        at = (every_tree, place)
        goes_left = inputs[nodes.feature[at]] <= nodes.threshold[at]
        return jnp.where(goes_left, nodes.left[at], nodes.right[at])

    return nodes.value[every_tree, jax.lax.fori_loop(0, depth, step, jnp.zeros(number, jnp.int32))]


def fit_trees(
    inputs: Float[np.ndarray, "samples features"],
    targets: Float[np.ndarray, " samples"],
    seed: int,
    depth: int,
    shape: tuple[int, int],
) -> Nodes:
    """Fits trees on the host. `shape`: how many there are, and the most nodes of each."""
    feature, left, right = (np.zeros(shape, np.int32) for _ in range(3))
    threshold, value = (np.zeros(shape, np.float32) for _ in range(2))
    if len(targets):
        forest = _regressor()(
            shape[0], max_leaf_nodes=(shape[1] + 1) // 2, max_depth=depth, random_state=seed % 2**32
        ).fit(inputs, targets)
        for row, estimator in enumerate(forest.estimators_):
            tree = estimator.tree_
            count = tree.node_count
            leaf = tree.children_left < 0
            itself = np.arange(count)
            feature[row, :count] = np.where(leaf, 0, tree.feature)
            threshold[row, :count] = _round_down(tree.threshold)
            left[row, :count] = np.where(leaf, itself, tree.children_left)
            right[row, :count] = np.where(leaf, itself, tree.children_right)
            value[row, :count] = tree.value[:, 0, 0]
    return Nodes(feature, threshold, left, right, value)


def _round_down(numbers: np.ndarray) -> np.ndarray:
    """As float32, never above the number itself: then the same inputs are at most it."""
    rounded = numbers.astype(np.float32)
    return np.where(rounded > numbers, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def _regressor() -> Any:
    try:
        from sklearn.ensemble import ExtraTreesRegressor
    except ImportError:
        raise ImportError("the estimator `trees` needs scikit-learn: pip install scikit-learn") from None
    return ExtraTreesRegressor
