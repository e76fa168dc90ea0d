"""U-hat by one network with some of its units left out, many times over: Monte Carlo dropout.

U-hat = mean where mean - k * standard deviation over masks > floor * scale, exactly 0 elsewhere
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
from uamcts.uncertainty.samples import BufferedEstimator, at_least, cautious, largest_target, share


class Dropout(BufferedEstimator):
    """The paper's network on U / scale (scale: the largest target); `masks` leave out a share `rate` of the units.

    The masks that answer are drawn once and stay: a transition always gets the same answer.
    """

    network: Any
    optimiser: optax.OptState
    masks: jax.Array
    """[masks, layers, hidden], 0 or 1 / (1 - rate)."""
    scale: jax.Array
    minibatches: int = eqx.field(static=True)
    rate: float = eqx.field(static=True)
    k: float = eqx.field(static=True)
    floor: float = eqx.field(static=True)

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
        masks: int = 10,
        rate: float = 0.1,
        k: float = 1.0,
        floor: float = 0.1,
    ) -> Self:
        """Nothing learned yet; `state` is one state, as an example."""
        at_least(1, minibatches=minibatches)
        at_least(2, masks=masks)
        at_least(0, k=k, floor=floor)
        share(rate=rate)
        network_key, mask_key = jax.random.split(key)
        network = ActionNetwork(network_key, jax.eval_shape(encode, state).size, num_actions, (HIDDEN, HIDDEN))
        return cls(
            Buffer.empty(state, jnp.float32(0), capacity, most_copies),
            jnp.int32(0),
            encode,
            num_actions,
            network,
            adam().init(network),
            _masks(mask_key, masks, rate),
            jnp.float32(1),
            minibatches,
            rate,
            k,
            floor,
        )

    def predict(self, state: PyTree, action: jax.Array) -> jax.Array:
        inputs = self.encode(state)
        answers = jax.vmap(lambda mask: _apply_masked(self.network, inputs, action, mask))(self.masks)
        believed = cautious(jnp.mean(answers), jnp.std(answers), self.k, self.floor)
        return jnp.where(self.trained, self.scale * believed, 0.0)

    def learn(self, key: jax.Array) -> tuple[Self, jax.Array]:
        scale = largest_target(self.buffer)
        draw, mask_key = jax.random.split(key)

        def loss(network: Any, batch: tuple) -> jax.Array:
            numbers, key = batch
            states, actions, targets = self.buffer.rows(numbers)
            inputs = jax.vmap(self.encode)(states)
            answers = jax.vmap(_apply_masked, (None, 0, 0, 0))(network, inputs, actions, _masks(key, BATCH, self.rate))
            return jnp.mean(jnp.square(answers - targets / scale))

        batches = (self.buffer.sample(draw, (self.minibatches, BATCH)), jax.random.split(mask_key, self.minibatches))
        network, optimiser, mean = descend(self.network, self.optimiser, loss, batches)
        learned = (network, optimiser, scale, self.rounds + 1)
        return eqx.tree_at(lambda one: (one.network, one.optimiser, one.scale, one.rounds), self, learned), mean


def _masks(key: jax.Array, number: int, rate: float) -> jax.Array:
    kept = jax.random.bits(key, (number, 2, HIDDEN), jnp.uint8) >= round(256 * rate)
    return kept / (1 - round(256 * rate) / 256)


def _apply_masked(network: ActionNetwork, inputs: jax.Array, action: jax.Array, mask: jax.Array) -> jax.Array:
    """The network's answer with its hidden units multiplied by `mask` [layers, hidden]."""
    *hidden, head = network.layers
    for layer, units in zip(hidden, mask, strict=True):
        inputs = jnp.tanh(layer(inputs, action)) * units
    return jax.nn.sigmoid(head(inputs, action)[0])
