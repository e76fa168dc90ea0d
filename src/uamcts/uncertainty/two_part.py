"""U-hat in two parts: whether the model errs at all, and by how much where it does.

p(s, a) = sigmoid(first head)        is U > 0
m(s, a) = softplus(second head)      U / scale, learned where U > 0; scale: the largest target so far
U-hat   = scale * m where p > gate, exactly 0 elsewhere
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from uamcts.types import PyTree
from uamcts.uncertainty.buffer import Buffer
from uamcts.uncertainty.network import BATCH, HIDDEN, ActionNetwork, adam, descend
from uamcts.uncertainty.samples import (
    BufferedEstimator,
    Groups,
    at_least,
    group_samples,
    largest_target,
    sample_balanced,
    share,
)


class TwoPart(BufferedEstimator):
    """The paper's network with two outputs, trained on every different sample alike, half of them with U > 0."""

    network: Any
    optimiser: optax.OptState
    scale: jax.Array
    minibatches: int = eqx.field(static=True)
    gate: float = eqx.field(static=True)

    @classmethod
    def fresh(
        cls,
        key: jax.Array,
        state: PyTree,
        encode: Callable[[PyTree], jax.Array],
        num_actions: int,
        capacity: int = 1024,
        minibatches: int = 5000,
        most_copies: int = 1,
        gate: float = 0.9,
    ) -> Self:
        """Nothing learned yet; `state` is one state, as an example."""
        at_least(1, minibatches=minibatches)
        share(gate=gate)
        network = ActionNetwork(key, jax.eval_shape(encode, state).size, num_actions, (HIDDEN, HIDDEN), outputs=2)
        return cls(
            Buffer.empty(state, jnp.float32(0), capacity, most_copies),
            jnp.int32(0),
            encode,
            num_actions,
            network,
            adam().init(network),
            jnp.float32(1),
            minibatches,
            gate,
        )

    def predict(self, state: PyTree, action: jax.Array) -> jax.Array:
        logit, size = self.network(self.encode(state), action)
        errs = self.trained & (jax.nn.sigmoid(logit) > self.gate)
        return jnp.where(errs, self.scale * jax.nn.softplus(size), 0.0)

    def learn(self, key: jax.Array) -> tuple[Self, jax.Array]:
        """The loss: cross entropy of the first part, and squared error of the second where U > 0."""
        groups, scale = group_samples(self.buffer), largest_target(self.buffer)
        numbers = sample_balanced(key, groups, (self.minibatches, BATCH))

        def loss(network: Any, numbers: jax.Array) -> jax.Array:
            inputs, actions, targets = self._batch(groups, numbers)
            logits, sizes = jax.vmap(network)(inputs, actions).T
            wrong = optax.sigmoid_binary_cross_entropy(logits, (targets > 0).astype(jnp.float32))
            far = jnp.where(targets > 0, jnp.square(jax.nn.softplus(sizes) - targets / scale), 0.0)
            return jnp.mean(wrong + far)

        network, optimiser, mean = descend(self.network, self.optimiser, loss, numbers)
        learned = (network, optimiser, scale, self.rounds + 1)
        return eqx.tree_at(lambda one: (one.network, one.optimiser, one.scale, one.rounds), self, learned), mean

    def _batch(self, groups: Groups, numbers: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        states, actions, _ = self.buffer.rows(groups.row[numbers])
        return jax.vmap(self.encode)(states), actions, groups.mean[numbers]
