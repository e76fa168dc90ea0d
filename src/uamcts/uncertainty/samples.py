"""What estimators do with samples: keep them, group equal ones, and draw from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uamcts.mcts.state_hash import fingerprint, word_vector
from uamcts.types import BatchedUncertainty, PyTree, Uncertainty
from uamcts.uncertainty.buffer import Buffer
from uamcts.uncertainty.estimator import Action, Copies, Estimator, Inputs, Scalar, Space
from uamcts.uncertainty.prediction_cache import PredictionCache


class Surprise(eqx.Module):
    """The squared error on samples that arrived since the last round, before anything was learned from them.

    An estimator that is refitted reproduces its own samples, so its error on them says nothing; this does.
    """

    total: Float[Array, "*runs"]
    count: Float[Array, "*runs"]

    @classmethod
    def empty(cls) -> Self:
        return cls(jnp.float32(0), jnp.float32(0))

    def add(self, predicted: Scalar, target: Scalar, copies: Copies) -> Self:
        return type(self)(self.total + copies * jnp.square(predicted - target), self.count + copies)

    @property
    def mean(self) -> Float[Array, "*runs"]:
        return self.total / jnp.maximum(self.count, 1)


class BufferedEstimator(Estimator):
    """Keeps all samples; subclasses learn from them in `learn`. Predicts 0 until the first round."""

    buffer: Buffer
    rounds: Int[Array, "*runs"]
    """Rounds of training so far."""
    encode: Callable[[PyTree], Inputs] = eqx.field(static=True)
    """A state as a vector of inputs."""
    num_actions: int = eqx.field(static=True)

    @staticmethod
    def empty_fields(key: jax.Array, space: Space, capacity: int, most_copies: int) -> dict[str, Any]:
        """The fields above, with nothing learned yet."""
        buffer = Buffer.empty(space.reset(key), jnp.float32(0), capacity, most_copies)
        return {"buffer": buffer, "rounds": jnp.int32(0), "encode": space.inputs, "num_actions": space.num_actions}

    def absorb(self, state: PyTree, action: Action, target: Scalar, copies: Copies = 1) -> Self:
        return replace(self, buffer=self.buffer.append(state, action, target, copies))

    @property
    def trained(self) -> Bool[Array, "*runs"]:
        return self.rounds > 0

    def reserve(self, samples: int) -> Self:
        return replace(self, buffer=self.buffer.reserve(samples))

    def uncertainty(self) -> Uncertainty | BatchedUncertainty:
        return PredictionCache(self.predict)


class RefittedEstimator(BufferedEstimator):
    """An estimator that is fitted anew in every round; its loss is the surprise since the last one."""

    surprise: Surprise

    @staticmethod
    def empty_fields(key: jax.Array, space: Space, capacity: int, most_copies: int) -> dict[str, Any]:
        common = BufferedEstimator.empty_fields(key, space, capacity, most_copies)
        return {**common, "surprise": Surprise.empty()}

    def absorb(self, state: PyTree, action: Action, target: Scalar, copies: Copies = 1) -> Self:
        surprise = self.surprise.add(self.predict(state, action), target, copies)
        return replace(super().absorb(state, action, target, copies), surprise=surprise)


class Groups(NamedTuple):
    """Samples of the same state and action, as one. Groups come first; `size` is 0 in the rows behind them."""

    row: Int[Array, " rows"]
    """The latest of the samples."""
    size: Int[Array, " rows"]
    """How many there are."""
    mean: Float[Array, " rows"]
    """The mean of their targets."""


def group_samples(buffer: Buffer) -> Groups:
    """The distinct (s, a) of a buffer, in the order in which they first arrived.

    Fingerprints bring equal samples together; full comparison decides which are equal, so targets of different
    transitions are never averaged. (Should two different ones share a fingerprint, each may form several groups.)
    """
    length = buffer.actions.shape[0]
    taken = jnp.arange(length) < buffer.count
    samples = (buffer.states, buffer.actions)
    first, second = jax.vmap(fingerprint)(samples)
    order = jnp.lexsort((second, first, ~taken))
    words = jax.vmap(word_vector)(samples)[order]
    begins = jnp.any(words != jnp.roll(words, 1, axis=0), axis=1).at[0].set(True)
    taken = taken[order]
    group = jnp.where(taken, jnp.cumsum(begins) - 1, length)  # what is beyond the last is dropped
    count = jax.ops.segment_sum(taken.astype(jnp.int32), group, length)
    total = jax.ops.segment_sum(buffer.targets[order], group, length)
    latest = jnp.maximum(jax.ops.segment_max(order, group, length), 0)
    arrived = jnp.argsort(jax.ops.segment_min(order, group, length))  # an empty group has the largest integer
    return Groups(latest[arrived], count[arrived], (total / jnp.maximum(count, 1))[arrived])


def sample_balanced(key: jax.Array, groups: Groups, shape: tuple[int, ...]) -> Int[Array, "*shape"]:
    """Draws groups: half of the draws have U > 0 and half have U = 0, where there are both.

    Within a class every group is equally likely, however often it was seen.
    """
    doubtful = (groups.size > 0) & (groups.mean > 0)
    certain = (groups.size > 0) & ~doubtful
    weight = doubtful / jnp.maximum(jnp.sum(doubtful), 1) + certain / jnp.maximum(jnp.sum(certain), 1)
    edges = jnp.cumsum(weight)
    drawn = jnp.searchsorted(edges, jax.random.uniform(key, shape) * edges[-1], side="right")
    return jnp.minimum(drawn, jnp.maximum(jnp.sum(groups.size > 0) - 1, 0))


def largest_target(buffer: Buffer) -> Scalar:
    """The scale of the targets, which a network learns in units of it: the largest one, or 1 where all are 0."""
    taken = jnp.arange(buffer.targets.shape[0]) < buffer.count
    largest = jnp.max(jnp.where(taken, buffer.targets, 0.0))
    return jnp.where(largest > 0, largest, 1.0)


def cautious(
    mean: Float[Array, "*batch"], deviation: Float[Array, "*batch"], k: float, noise: Scalar | float
) -> Float[Array, "*batch"]:
    """`mean` where mean - k * deviation is above the noise, exactly 0 elsewhere."""
    return jnp.where(mean - k * deviation > noise, mean, 0.0)
