"""U-hat in two parts: whether the model errs at all, and by how much where it does.

p(s, a) = sigmoid(first head)        is U > 0
m(s, a) = softplus(second head)      U / scale, learned where U > 0; scale: the largest target so far
U-hat   = scale * m where p > gate, exactly 0 elsewhere
"""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from uamcts.arguments import fraction, whole
from uamcts.types import PyTree
from uamcts.uncertainty.estimator import Action, Scalar, Space
from uamcts.uncertainty.network import BATCH, HIDDEN, ActionNetwork, adam, descend, input_size
from uamcts.uncertainty.samples import (
    BufferedEstimator,
    Groups,
    group_samples,
    largest_target,
    sample_balanced,
)


class TwoPart(BufferedEstimator):
    """The paper's network with two outputs, trained on every different sample alike, half of them with U > 0."""

    network: ActionNetwork
    optimiser: optax.OptState
    scale: Float[Array, "*runs"]
    minibatches: int = eqx.field(static=True)
    gate: float = eqx.field(static=True)

    @classmethod
    def fresh(
        cls,
        key: jax.Array,
        space: Space,
        capacity: int = 1024,
        minibatches: int = 5000,
        most_copies: int = 1,
        gate: float = 0.9,
    ) -> Self:
        """An untrained estimator."""
        whole("minibatches", minibatches)
        fraction("gate", gate)
        network = ActionNetwork(key, input_size(space), space.num_actions, (HIDDEN, HIDDEN), outputs=2)
        return cls(
            **cls.empty_fields(key, space, capacity, most_copies),
            network=network,
            optimiser=adam().init(network),
            scale=jnp.float32(1),
            minibatches=minibatches,
            gate=gate,
        )

    def predict(self, state: PyTree, action: Action) -> Scalar:
        logit, size = self.network(self.encode(state), action)
        errs = self.trained & (jax.nn.sigmoid(logit) > self.gate)
        return jnp.where(errs, self.scale * jax.nn.softplus(size), 0.0)

    def learn(self, key: jax.Array) -> tuple[Self, Scalar]:
        """The loss: cross entropy of the first part, and squared error of the second where U > 0."""
        groups, scale = group_samples(self.buffer), largest_target(self.buffer)
        numbers = sample_balanced(key, groups, (self.minibatches, BATCH))

        def loss(network: ActionNetwork, numbers: Int[Array, " batch"]) -> Scalar:
            inputs, actions, targets = self._batch(groups, numbers)
            logits, sizes = jax.vmap(network)(inputs, actions).T
            wrong = optax.sigmoid_binary_cross_entropy(logits, (targets > 0).astype(jnp.float32))
            far = jnp.where(targets > 0, jnp.square(jax.nn.softplus(sizes) - targets / scale), 0.0)
            return jnp.mean(wrong + far)

        network, optimiser, mean = descend(self.network, self.optimiser, loss, numbers)
        return replace(self, network=network, optimiser=optimiser, scale=scale, rounds=self.rounds + 1), mean

    def _batch(
        self, groups: Groups, numbers: Int[Array, " batch"]
    ) -> tuple[Float[Array, "batch inputs"], Int[Array, " batch"], Float[Array, " batch"]]:
        states, actions, _ = self.buffer.rows(groups.row[numbers])
        inputs = jax.vmap(self.encode)(states)
        return inputs, actions, groups.mean[numbers]
