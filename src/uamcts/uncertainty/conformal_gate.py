"""A conformal gate: any estimator made to say exactly 0, with a stated share of false alarms.

Some samples with U = 0 are held out: the estimator never learns from them. After each round its answers to these n are
sorted, and the threshold is the ceil((n + 1) (1 - level))-th smallest of them, infinite where there are too few.
A fresh transition with U = 0, drawn like the held-out ones, passes the gate with probability at most `level`.
(Nodes deep in a search tree are not drawn like the transitions the agent really made, so there it is no promise.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from uamcts.types import BatchedUncertainty, PyTree, Uncertainty
from uamcts.uncertainty.buffer import Buffer
from uamcts.uncertainty.estimator import Estimator
from uamcts.uncertainty.prediction_cache import PredictionCache
from uamcts.uncertainty.samples import at_least, share

_G = TypeVar("_G", bound="Gated")


class Gated(Estimator):
    """What `inner` says where that is above the threshold, exactly 0 elsewhere."""

    inner: Estimator
    buffer: Buffer
    """The samples held out: one of `every` with U = 0."""
    met: jax.Array
    """Samples with U = 0 so far."""
    threshold: jax.Array
    level: float = eqx.field(static=True)
    every: int = eqx.field(static=True)

    @classmethod
    def around(cls, inner: Estimator, state: PyTree, capacity: int = 1024, level: float = 0.01, every: int = 5) -> Self:
        """Nothing learned yet; `state` is one state, as an example."""
        share(level=level)
        at_least(2, every=every)
        held = Buffer.empty(state, jnp.float32(0), max(capacity // every, 1))
        return cls(inner, held, jnp.int32(0), jnp.float32(jnp.inf), level, every)

    def predict(self, state: PyTree, action: jax.Array) -> jax.Array:
        said = self.inner.predict(state, action)
        return jnp.where(said > self.threshold, said, 0.0)

    def absorb(self, state: PyTree, action: jax.Array, target: jax.Array, copies: Any = 1) -> Self:
        met = self.met + jnp.where(target == 0, 1, 0)
        held = (target == 0) & (met % self.every == 0)
        changed = (
            self.inner.absorb(state, action, target, jnp.where(held, 0, copies)),
            self.buffer.append(state, action, target, jnp.where(held, 1, 0)),
            met,
        )
        return eqx.tree_at(lambda one: (one.inner, one.buffer, one.met), self, changed)

    def learn(self, key: jax.Array) -> tuple[Self, jax.Array]:
        inner, loss = self.inner.learn(key)
        return measured(eqx.tree_at(lambda one: one.inner, self, inner)), loss

    def finish_on_host(self) -> Self:
        inner = self.inner.finish_on_host()
        if inner is self.inner:
            return self
        after = eqx.tree_at(lambda one: one.inner, self, inner)
        return (_measured_runs if self.met.ndim else _measured)(after)

    @property
    def trained(self) -> jax.Array:
        return self.inner.trained

    def reserve(self, samples: int) -> Self:
        changed = (self.inner.reserve(samples), self.buffer.reserve(samples // self.every + 1))
        return eqx.tree_at(lambda one: (one.inner, one.buffer), self, changed)

    def uncertainty(self) -> Uncertainty | BatchedUncertainty:
        asked = self.inner.uncertainty()
        return replace(asked, predict=self.predict) if isinstance(asked, PredictionCache) else self.predict


def measured(gated: _G) -> _G:
    """With the threshold that belongs to what the estimator says now about the samples held out."""
    held = gated.buffer
    answers = jax.lax.map(lambda row: gated.inner.predict(*row), (held.states, held.actions), batch_size=64)
    rank = jnp.ceil((held.count + 1) * (1 - gated.level)).astype(jnp.int32)
    smallest = jnp.sort(jnp.where(jnp.arange(answers.size) < held.count, answers, jnp.inf))
    there = smallest[jnp.clip(rank - 1, 0, answers.size - 1)]
    return eqx.tree_at(lambda one: one.threshold, gated, jnp.where(rank <= held.count, there, jnp.inf))


_measured, _measured_runs = jax.jit(measured), jax.jit(jax.vmap(measured))
