"""U-hat by five networks that saw different samples: where they disagree, it is 0.

U-hat = mean where mean - k * standard deviation of the members' answers > floor * scale, exactly 0 elsewhere
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from uamcts.arguments import at_least_zero, whole
from uamcts.types import PyTree
from uamcts.uncertainty.estimator import Action, Scalar, Space
from uamcts.uncertainty.network import BATCH, HIDDEN, ActionNetwork, adam, descend, input_size, squared_error
from uamcts.uncertainty.samples import BufferedEstimator, cautious, largest_target


class Ensemble(BufferedEstimator):
    """Members are the paper's network on U / scale (scale: the largest target), each with a bootstrap sample."""

    networks: ActionNetwork
    """All members as one network with [members] in front of its arrays."""
    optimisers: optax.OptState
    scale: Float[Array, "*runs"]
    minibatches: int = eqx.field(static=True)
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
        members: int = 5,
        k: float = 1.0,
        floor: float = 0.1,
    ) -> Self:
        """An untrained estimator."""
        whole("minibatches", minibatches)
        whole("members", members, 2)
        at_least_zero("k", k)
        at_least_zero("floor", floor)

        def member(key: jax.Array) -> ActionNetwork:
            return ActionNetwork(key, input_size(space), space.num_actions, (HIDDEN, HIDDEN))

        networks = jax.vmap(member)(jax.random.split(key, members))
        return cls(
            **cls.empty_fields(key, space, capacity, most_copies),
            networks=networks,
            optimisers=jax.vmap(adam().init)(networks),
            scale=jnp.float32(1),
            minibatches=minibatches,
            k=k,
            floor=floor,
        )

    def predict(self, state: PyTree, action: Action) -> Scalar:
        inputs = self.encode(state)
        answers = jax.vmap(lambda network: jax.nn.sigmoid(network(inputs, action)[0]))(self.networks)
        believed = cautious(jnp.mean(answers), jnp.std(answers), self.k, self.floor)
        return jnp.where(self.trained, self.scale * believed, 0.0)

    def learn(self, key: jax.Array) -> tuple[Self, Scalar]:
        scale = largest_target(self.buffer)

        def loss(network: ActionNetwork, numbers: Int[Array, " batch"]) -> Scalar:
            states, actions, targets = self.buffer.rows(numbers)
            return squared_error(network, jax.nn.sigmoid, jax.vmap(self.encode)(states), actions, targets / scale)

        def member(each: tuple[ActionNetwork, optax.OptState, jax.Array]) -> tuple[Any, optax.OptState, Scalar]:
            network, optimiser, key = each
            bag, draw = jax.random.split(key)
            bootstrap = self.buffer.sample(bag, self.buffer.actions.shape)
            places = jax.random.randint(draw, (self.minibatches, BATCH), 0, jnp.maximum(self.buffer.count, 1))
            return descend(network, optimiser, loss, bootstrap[places])

        keys = jax.random.split(key, jax.tree.leaves(self.networks)[0].shape[0])
        networks, optimisers, losses = jax.lax.map(member, (self.networks, self.optimisers, keys))
        after = replace(self, networks=networks, optimisers=optimisers, scale=scale, rounds=self.rounds + 1)
        return after, jnp.mean(losses)
