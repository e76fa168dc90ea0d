"""A conformal gate: makes any estimator predict exactly 0, with a stated share of false alarms.

Some samples with U = 0 are held out: the estimator never learns from them. After each round its predictions for these n
are sorted, and the threshold is the ceil((n + 1) (1 - level))-th smallest of them, infinite where there are too few.
A fresh transition with U = 0, drawn like the held-out ones, passes the gate with probability at most `level`.
(Nodes deep in a search tree are not drawn like the transitions the agent really made, so there it is no guarantee.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int

from uamcts.arguments import fraction, whole
from uamcts.types import PyTree
from uamcts.uncertainty.buffer import Buffer
from uamcts.uncertainty.estimator import Action, Copies, Estimator, Scalar
from uamcts.uncertainty.thresholded import ThresholdedEstimator, predict_rows


class Gated(ThresholdedEstimator):
    """An estimator whose threshold lets a share `level` of the held-out samples with U = 0 pass."""

    buffer: Buffer
    """The samples held out: one of `every` with U = 0."""
    met: Int[Array, "*runs"]
    """Samples with U = 0 so far."""
    level: float = eqx.field(static=True)
    every: int = eqx.field(static=True)

    @classmethod
    def around(cls, inner: Estimator, state: PyTree, capacity: int = 1024, level: float = 0.01, every: int = 5) -> Self:
        """A gate around an untrained estimator; `state` is an example of a state."""
        fraction("level", level)
        whole("every", every, 2)
        held = Buffer.empty(state, jnp.float32(0), max(capacity // every, 1))
        return cls(inner, jnp.float32(jnp.inf), held, jnp.int32(0), level, every)

    def absorb(self, state: PyTree, action: Action, target: Scalar, copies: Copies = 1) -> Self:
        met = self.met + jnp.where(target == 0, 1, 0)
        held = (target == 0) & (met % self.every == 0)
        return replace(
            self,
            inner=self.inner.absorb(state, action, target, jnp.where(held, 0, copies)),
            buffer=self.buffer.append(state, action, target, jnp.where(held, 1, 0)),
            met=met,
        )

    def choose_threshold(self) -> Scalar:
        held = self.buffer
        predicted = predict_rows(self.inner, held.states, held.actions)
        rank = jnp.ceil((held.count + 1) * (1 - self.level)).astype(jnp.int32)
        smallest = jnp.sort(jnp.where(jnp.arange(predicted.size) < held.count, predicted, jnp.inf))
        there = smallest[jnp.clip(rank - 1, 0, predicted.size - 1)]
        return jnp.where(rank <= held.count, there, jnp.inf)

    def reserve(self, samples: int) -> Self:
        buffer = self.buffer.reserve(samples // self.every + 1)
        return replace(super().reserve(samples), buffer=buffer)
