"""The samples (s, a, target) that an estimator has absorbed, all of them."""

from __future__ import annotations

from typing import Any, Self, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from uamcts.runtime.zeros import zero_rows
from uamcts.types import PyTree
from uamcts.uncertainty.estimator import Action, Copies

Target: TypeAlias = Any
"""What is learned: U, or the features of the next state. An array, or in a buffer [rows] of them."""


class Buffer(eqx.Module):
    """Samples in order of arrival: the first `count` rows of arrays that have some room left behind them."""

    states: PyTree
    actions: Int[Array, "*runs rows"]
    targets: Target
    count: Int[Array, "*runs"]
    most_copies: int = eqx.field(static=True)

    @classmethod
    def empty(cls, state: PyTree, target: Target, capacity: int, most_copies: int = 1) -> Self:
        """Room for `capacity` samples like (`state`, an action, `target`), each counted at most `most_copies` times."""
        states, actions, targets = zero_rows((state, np.int32(0), target), capacity + most_copies)
        return cls(states, actions, targets, jnp.int32(0), most_copies)

    @property
    def capacity(self) -> int:
        return self.actions.shape[0] - self.most_copies

    def append(self, state: PyTree, action: Action, target: Target, copies: Copies = 1) -> Self:
        """Adds a sample in `copies` rows (at most `most_copies`).

        `most_copies` rows are written and `copies` of them counted; the next sample overwrites the others. Where there
        is no room left, nothing is counted (the rows behind the last exist for that): call `reserve` first.
        """
        copies = jnp.where(self.count + copies <= self.capacity, copies, 0)

        def put(rows: jax.Array, row: PyTree) -> jax.Array:
            block = jnp.broadcast_to(jnp.asarray(row, rows.dtype), (self.most_copies, *rows.shape[1:]))
            return jax.lax.dynamic_update_slice_in_dim(rows, block, self.count, 0)

        return type(self)(
            jax.tree.map(put, self.states, state),
            put(self.actions, action),
            jax.tree.map(put, self.targets, target),
            self.count + copies,
            self.most_copies,
        )

    def sample(self, key: jax.Array, shape: tuple[int, ...]) -> Int[Array, "*shape"]:
        """Draws row numbers, each equally likely, independently."""
        return jax.random.randint(key, shape, 0, jnp.maximum(self.count, 1))

    def rows(self, numbers: Int[Array, "*shape"]) -> tuple[PyTree, Int[Array, "*shape"], Target]:
        """The states, actions and targets of some samples."""
        states, actions, targets = jax.tree.map(lambda leaf: leaf[numbers], (self.states, self.actions, self.targets))
        return states, actions, targets

    def reserve(self, samples: int) -> Self:
        """Makes room for `samples` more, each in `most_copies` rows; a buffer that grows at least doubles.

        Not for use under `jit`. The arrays may have leading axes for runs.
        """
        needed = int(jnp.max(self.count)) + samples * self.most_copies
        axis = jnp.ndim(self.count)
        have = self.actions.shape[axis] - self.most_copies
        if needed <= have:
            return self
        more = max(needed, 2 * have) - have

        def extend(rows: jax.Array) -> jax.Array:
            return jnp.pad(rows, [(0, more if place == axis else 0) for place in range(rows.ndim)])

        states, actions, targets = jax.tree.map(extend, (self.states, self.actions, self.targets))
        return type(self)(states, actions, targets, self.count, self.most_copies)
