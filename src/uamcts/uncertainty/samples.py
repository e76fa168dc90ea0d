"""What the estimators share that learn from a buffer of samples: keeping them, and each different one once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp

from uamcts.mcts.state_hash import fingerprint, word_vector
from uamcts.types import BatchedUncertainty, PyTree, Uncertainty
from uamcts.uncertainty.buffer import Buffer
from uamcts.uncertainty.estimator import Estimator
from uamcts.uncertainty.prediction_cache import PredictionCache


class Surprise(eqx.Module):
    """The squared error on samples that came since the last round, before anything was learned from them.

    What is fitted in one go reproduces its own samples, so its error on them says nothing; this does.
    """

    total: jax.Array
    count: jax.Array

    @classmethod
    def none(cls) -> Self:
        return cls(jnp.float32(0), jnp.float32(0))

    def more(self, predicted: jax.Array, target: jax.Array, copies: Any) -> Self:
        return type(self)(self.total + copies * jnp.square(predicted - target), self.count + copies)

    @property
    def mean(self) -> jax.Array:
        return self.total / jnp.maximum(self.count, 1)


class Sampled(Estimator):
    """Keeps all samples; a subclass says in `learn` what it makes of them. 0 until the first round."""

    buffer: Buffer
    rounds: jax.Array
    """Rounds of training so far."""
    encode: Callable[[PyTree], jax.Array] = eqx.field(static=True)
    """A state as a vector of inputs."""
    num_actions: int = eqx.field(static=True)

    def absorb(self, state: PyTree, action: jax.Array, target: jax.Array, copies: Any = 1) -> Self:
        return eqx.tree_at(lambda one: one.buffer, self, self.buffer.append(state, action, target, copies))

    @property
    def trained(self) -> jax.Array:
        return self.rounds > 0

    def reserve(self, samples: int) -> Self:
        return eqx.tree_at(lambda one: one.buffer, self, self.buffer.reserve(samples))

    def uncertainty(self) -> Uncertainty | BatchedUncertainty:
        return PredictionCache(self.predict, self.num_actions)


class FittedAtOnce(Sampled):
    """One that is fitted anew in every round; its loss is what it did not expect since the last one."""

    surprise: Surprise

    def absorb(self, state: PyTree, action: jax.Array, target: jax.Array, copies: Any = 1) -> Self:
        surprise = self.surprise.more(self.predict(state, action), target, copies)
        return eqx.tree_at(lambda one: one.surprise, super().absorb(state, action, target, copies), surprise)


class Groups(NamedTuple):
    """Samples of the same state and action, as one. Arrays [rows of the buffer]; groups first, then `size` 0."""

    row: jax.Array
    """The latest of the samples."""
    size: jax.Array
    """How many they are."""
    mean: jax.Array
    """The mean of their targets."""


def grouped(buffer: Buffer) -> Groups:
    """The different (s, a) of a buffer, in the order they first came.

    Fingerprints bring equal samples together; full comparison decides which are equal, so targets of different
    transitions are never averaged. (Should two different ones share a fingerprint, each may form several groups.)
    """
    length = buffer.actions.shape[0]
    kept = jnp.arange(length) < buffer.count
    samples = (buffer.states, buffer.actions)
    first, second = jax.vmap(fingerprint)(samples)
    order = jnp.lexsort((second, first, ~kept))
    words = jax.vmap(word_vector)(samples)[order]
    begins = jnp.any(words != jnp.roll(words, 1, axis=0), axis=1).at[0].set(True)
    kept = kept[order]
    group = jnp.where(kept, jnp.cumsum(begins) - 1, length)  # what is beyond the last is dropped
    count = jax.ops.segment_sum(kept.astype(jnp.int32), group, length)
    total = jax.ops.segment_sum(buffer.targets[order], group, length)
    latest = jnp.maximum(jax.ops.segment_max(order, group, length), 0)
    came = jnp.argsort(jax.ops.segment_min(order, group, length))  # where a group is empty this is the largest integer
    return Groups(latest[came], count[came], (total / jnp.maximum(count, 1))[came])


def balanced(key: jax.Array, groups: Groups, shape: tuple[int, ...]) -> jax.Array:
    """Numbers of groups: half of the draws from those with U > 0 and half from those with U = 0, where there are both.

    Within a class every group is as likely as any other, however often it came.
    """
    doubtful = (groups.size > 0) & (groups.mean > 0)
    certain = (groups.size > 0) & ~doubtful
    weight = doubtful / jnp.maximum(jnp.sum(doubtful), 1) + certain / jnp.maximum(jnp.sum(certain), 1)
    edges = jnp.cumsum(weight)
    drawn = jnp.searchsorted(edges, jax.random.uniform(key, shape) * edges[-1], side="right")
    return jnp.minimum(drawn, jnp.maximum(jnp.sum(groups.size > 0) - 1, 0))


def largest_target(buffer: Buffer) -> jax.Array:
    """What targets are scaled by, so that a network's errors count: the largest one, 1 where all are 0."""
    kept = jnp.arange(buffer.targets.shape[0]) < buffer.count
    largest = jnp.max(jnp.where(kept, buffer.targets, 0.0))
    return jnp.where(largest > 0, largest, 1.0)


def cautious(mean: jax.Array, deviation: jax.Array, k: float, noise: jax.Array | float) -> jax.Array:
    """`mean` where mean - k * deviation is above the noise, exactly 0 elsewhere."""
    return jnp.where(mean - k * deviation > noise, mean, 0.0)


def at_least(least: float, **options: float) -> None:
    """Refuses an option that is smaller than it may be."""
    for name, value in options.items():
        if not value >= least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")


def share(**options: float) -> None:
    """Refuses an option that is not between 0 and 1."""
    for name, value in options.items():
        if not 0 < value < 1:
            raise ValueError(f"{name} is {value}; it must lie between 0 and 1, without the ends")
