"""U-hat by extremely randomised trees: scikit-learn fits them on the host, and arrays of their nodes answer in JAX.

U-hat = the mean over trees where more than half of them say more than 0, exactly 0 elsewhere
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from uamcts.types import PyTree
from uamcts.uncertainty.buffer import Buffer
from uamcts.uncertainty.samples import RefittedEstimator, Surprise, at_least, group_samples


class Nodes(NamedTuple):
    """Trees as arrays [trees, nodes]. Node 0 is the root; a leaf is its own child on both sides."""

    feature: jax.Array
    threshold: jax.Array
    left: jax.Array
    """Where it goes on if the feature is at most the threshold."""
    right: jax.Array
    value: jax.Array


class Trees(RefittedEstimator):
    """Trees on the inputs with the one-hot action behind them, fitted to every different sample once."""

    nodes: Nodes
    seed: jax.Array
    """Of the next fit."""
    fits: jax.Array
    """Rounds whose trees are fitted."""
    depth: int = eqx.field(static=True)

    @classmethod
    def fresh(
        cls,
        state: PyTree,
        encode: Callable[[PyTree], jax.Array],
        num_actions: int,
        capacity: int = 1024,
        most_copies: int = 1,
        trees: int = 16,
        leaves: int = 256,
        depth: int = 16,
    ) -> Self:
        """Nothing learned yet; `state` is one state, as an example. No tree has more `leaves`, or is deeper."""
        at_least(1, trees=trees, depth=depth)
        at_least(2, leaves=leaves)
        _regressor()  # whoever has no scikit-learn is told now and not after the first round's steps
        shape = (trees, 2 * leaves - 1)
        whole = jnp.zeros(shape, jnp.int32)
        return cls(
            Buffer.empty(state, jnp.float32(0), capacity, most_copies),
            jnp.int32(0),
            encode,
            num_actions,
            Surprise.empty(),
            Nodes(whole, jnp.zeros(shape), whole, whole, jnp.zeros(shape)),
            jnp.uint32(0),
            jnp.int32(0),
            depth,
        )

    def predict(self, state: PyTree, action: jax.Array) -> jax.Array:
        answers = evaluate_trees(self.nodes, with_action(self.encode(state), action, self.num_actions), self.depth)
        return jnp.where(2 * jnp.sum(answers > 0) > answers.size, jnp.mean(answers), 0.0)

    def learn(self, key: jax.Array) -> tuple[Self, jax.Array]:
        """Only marks that trees are to be fitted: `finish_on_host` does it.

        A call of the host from within a compiled program waits forever on a CPU with few threads, because the program
        holds the thread that would bring the samples.
        """
        learned = (self.rounds + 1, jax.random.bits(key, (), jnp.uint32), Surprise.empty())
        after = eqx.tree_at(lambda one: (one.rounds, one.seed, one.surprise), self, learned)
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
        return eqx.tree_at(lambda one: (one.nodes, one.fits), self, (nodes, self.rounds))


def with_action(inputs: jax.Array, action: jax.Array, num_actions: int) -> jax.Array:
    return jnp.concatenate([inputs, (jnp.arange(num_actions) == action).astype(jnp.float32)])


@functools.partial(jax.jit, static_argnames=("encode", "num_actions"))
def _samples(buffer: Buffer, encode: Callable, num_actions: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Inputs, targets and sizes of the different samples of a buffer, [rows]; size 0 where there are no more."""
    groups = group_samples(buffer)
    states, actions, _ = buffer.rows(groups.row)
    inputs = jax.vmap(lambda state, action: with_action(encode(state), action, num_actions))(states, actions)
    return inputs, groups.mean, groups.size


def evaluate_trees(nodes: Nodes, inputs: jax.Array, depth: int) -> jax.Array:
    """What each tree says about one vector of inputs, [trees]."""
    number = nodes.feature.shape[0]
    every_tree = jnp.arange(number)

    def step(_: Any, place: jax.Array) -> jax.Array:
        at = (every_tree, place)
        goes_left = inputs[nodes.feature[at]] <= nodes.threshold[at]
        return jnp.where(goes_left, nodes.left[at], nodes.right[at])

    return nodes.value[every_tree, jax.lax.fori_loop(0, depth, step, jnp.zeros(number, jnp.int32))]


def fit_trees(inputs: np.ndarray, targets: np.ndarray, seed: int, depth: int, shape: tuple[int, int]) -> Nodes:
    """Trees fitted to inputs [n, d] and targets [n], on the host. `shape`: how many, and the nodes of each at most."""
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
    return Nodes(feature, threshold, left, right, value)  # type: ignore[arg-type]


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
