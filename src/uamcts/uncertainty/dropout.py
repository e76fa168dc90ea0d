"""U-hat by one network with some of its units left out, many times over: Monte Carlo dropout.

U-hat = mean where mean - k * standard deviation over masks > floor * scale, exactly 0 elsewhere
"""

from __future__ import annotations

from dataclasses import replace
from typing import Self, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from uamcts.arguments import at_least_zero, fraction, whole
from uamcts.types import PyTree
from uamcts.uncertainty.estimator import Action, Inputs, Scalar, Space
from uamcts.uncertainty.network import BATCH, HIDDEN, ActionNetwork, adam, descend, input_size
from uamcts.uncertainty.samples import BufferedEstimator, cautious, largest_target

Batch: TypeAlias = tuple[Int[Array, " batch"], jax.Array]
"""The samples of a minibatch, and a key for its masks."""


class Dropout(BufferedEstimator):
    """The paper's network on U / scale (scale: the largest target); `masks` leave out a share `rate` of the units.

    The masks of predictions are drawn once: a transition always gets the same prediction.
    """

    network: ActionNetwork
    optimiser: optax.OptState
    masks: Float[Array, "*runs masks layers hidden"]
    """0 or 1 / (1 - rate)."""
    scale: Float[Array, "*runs"]
    minibatches: int = eqx.field(static=True)
    rate: float = eqx.field(static=True)
    k: float = eqx.field(static=True)
    floor: float = eqx.field(static=True)

    @classmethod
    def fresh(
        cls,
        key: jax.Array,
        space: Space,
        capacity: int = 1024,
        minibatches: int = 5000,
        most_copies: int = 1,
        masks: int = 10,
        rate: float = 0.1,
        k: float = 1.0,
        floor: float = 0.1,
    ) -> Self:
        """An untrained estimator."""
        whole("minibatches", minibatches)
        whole("masks", masks, 2)
        at_least_zero("k", k)
        at_least_zero("floor", floor)
        fraction("rate", rate)
        network_key, mask_key = jax.random.split(key)
        network = ActionNetwork(network_key, input_size(space), space.num_actions, (HIDDEN, HIDDEN))
        return cls(
            **cls.empty_fields(key, space, capacity, most_copies),
            network=network,
            optimiser=adam().init(network),
            masks=_masks(mask_key, masks, rate),
            scale=jnp.float32(1),
            minibatches=minibatches,
            rate=rate,
            k=k,
            floor=floor,
        )

    def predict(self, state: PyTree, action: Action) -> Scalar:
        inputs = self.encode(state)
        answers = jax.vmap(lambda mask: _apply_masked(self.network, inputs, action, mask))(self.masks)
        believed = cautious(jnp.mean(answers), jnp.std(answers), self.k, self.floor)
        return jnp.where(self.trained, self.scale * believed, 0.0)

    def learn(self, key: jax.Array) -> tuple[Self, Scalar]:
        scale = largest_target(self.buffer)
        draw, mask_key = jax.random.split(key)

        def loss(network: ActionNetwork, batch: Batch) -> Scalar:
            numbers, key = batch
            states, actions, targets = self.buffer.rows(numbers)
            inputs = jax.vmap(self.encode)(states)
            answers = jax.vmap(_apply_masked, (None, 0, 0, 0))(network, inputs, actions, _masks(key, BATCH, self.rate))
            return jnp.mean(jnp.square(answers - targets / scale))

        batches = (self.buffer.sample(draw, (self.minibatches, BATCH)), jax.random.split(mask_key, self.minibatches))
        network, optimiser, mean = descend(self.network, self.optimiser, loss, batches)
        return replace(self, network=network, optimiser=optimiser, scale=scale, rounds=self.rounds + 1), mean


def _masks(key: jax.Array, number: int, rate: float) -> Float[Array, "masks layers hidden"]:
    kept = jax.random.bits(key, (number, 2, HIDDEN), jnp.uint8) >= round(256 * rate)
    return kept / (1 - round(256 * rate) / 256)


def _apply_masked(
    network: ActionNetwork, inputs: Inputs, action: Action, mask: Float[Array, "layers hidden"]
) -> Scalar:
    """The network's output with its hidden units multiplied by `mask`."""
    *hidden, head = network.layers
    for layer, units in zip(hidden, mask, strict=True):
        inputs = jnp.tanh(layer(inputs, action)) * units
    return jax.nn.sigmoid(head(inputs, action)[0])
