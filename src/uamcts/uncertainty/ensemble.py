"""U-hat by five networks that saw different samples: where they disagree, there is no doubt yet to act on.

U-hat = mean where mean - k * standard deviation of the members' answers > floor * scale, exactly 0 elsewhere
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
from uamcts.uncertainty.network import BATCH, HIDDEN, ActionNetwork, adam, descend, squared_error
from uamcts.uncertainty.samples import BufferedEstimator, at_least, cautious, largest_target


class Ensemble(BufferedEstimator):
    """Members are the paper's network on U / scale (scale: the largest target), each with a bootstrap sample."""

    networks: Any
    """All members as one network with [members] in front of its arrays."""
    optimisers: optax.OptState
    scale: jax.Array
    minibatches: int = eqx.field(static=True)
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
        members: int = 5,
        k: float = 1.0,
        floor: float = 0.1,
    ) -> Self:
        """Nothing learned yet; `state` is one state, as an example."""
        at_least(1, minibatches=minibatches)
        at_least(2, members=members)
        at_least(0, k=k, floor=floor)
        inputs = jax.eval_shape(encode, state).size
        member = lambda key: ActionNetwork(key, inputs, num_actions, (HIDDEN, HIDDEN))  # noqa: E731
        networks = jax.vmap(member)(jax.random.split(key, members))
        return cls(
            Buffer.empty(state, jnp.float32(0), capacity, most_copies),
            jnp.int32(0),
            encode,
            num_actions,
            networks,
            jax.vmap(adam().init)(networks),
            jnp.float32(1),
            minibatches,
            k,
            floor,
        )

    def predict(self, state: PyTree, action: jax.Array) -> jax.Array:
        inputs = self.encode(state)
        answers = jax.vmap(lambda network: jax.nn.sigmoid(network(inputs, action)[0]))(self.networks)
        believed = cautious(jnp.mean(answers), jnp.std(answers), self.k, self.floor)
        return jnp.where(self.trained, self.scale * believed, 0.0)

    def learn(self, key: jax.Array) -> tuple[Self, jax.Array]:
        scale = largest_target(self.buffer)

        def loss(network: Any, numbers: jax.Array) -> jax.Array:
            states, actions, targets = self.buffer.rows(numbers)
            return squared_error(network, jax.nn.sigmoid, jax.vmap(self.encode)(states), actions, targets / scale)

        def member(each: tuple) -> tuple:
            network, optimiser, key = each
            bag, draw = jax.random.split(key)
            bootstrap = self.buffer.sample(bag, self.buffer.actions.shape)
            places = jax.random.randint(draw, (self.minibatches, BATCH), 0, jnp.maximum(self.buffer.count, 1))
            return descend(network, optimiser, loss, bootstrap[places])

        keys = jax.random.split(key, jax.tree.leaves(self.networks)[0].shape[0])
        networks, optimisers, losses = jax.lax.map(member, (self.networks, self.optimisers, keys))
        learned = (networks, optimisers, scale, self.rounds + 1)
        after = eqx.tree_at(lambda one: (one.networks, one.optimisers, one.scale, one.rounds), self, learned)
        return after, jnp.mean(losses)
