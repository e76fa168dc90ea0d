"""U-hat by regression: the paper's network, and the linear one of its gridworlds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from uamcts.types import BatchedUncertainty, PyTree, Uncertainty
from uamcts.uncertainty.buffer import Buffer
from uamcts.uncertainty.estimator import Action, Copies, Estimator, Inputs, Scalar, Space
from uamcts.uncertainty.prediction_cache import PredictionCache

HIDDEN = 128
BATCH = 32
STEP_SIZE = 1e-3

Encode: TypeAlias = Callable[[PyTree], Inputs]
Outputs: TypeAlias = Float[Array, " outputs"]
Link: TypeAlias = Callable[[Outputs], Outputs]
Transposed: TypeAlias = list[jax.Array]
Net = TypeVar("Net", bound="Network")
Made = TypeVar("Made")


@runtime_checkable
class Network(Protocol):
    """A pytree of weights."""

    def __call__(self, inputs: Inputs, action: Action) -> Outputs: ...


class ActionLayer(eqx.Module):
    """A linear layer on its inputs and the one-hot action beside them: weight @ inputs + action's row + bias."""

    weight: Float[Array, "*members outputs inputs"]
    actions: Float[Array, "*members actions outputs"]
    bias: Float[Array, "*members outputs"]

    def __init__(self, key: jax.Array, inputs: int, outputs: int, num_actions: int):
        both = eqx.nn.Linear(inputs + num_actions, outputs, key=key)
        assert both.bias is not None  # noqa: S101 (a linear layer has one unless told otherwise)
        self.weight, self.actions, self.bias = both.weight[:, :inputs], both.weight[:, inputs:].T, both.bias

    def __call__(self, inputs: Inputs, action: Action) -> Outputs:
        chosen = (jnp.arange(self.actions.shape[0]) == action)[:, None]
        return self.weight @ inputs + jnp.sum(jnp.where(chosen, self.actions, 0.0), axis=0) + self.bias


class ActionNetwork(eqx.Module):
    """tanh layers with the one-hot action beside the input of every layer, and a linear head."""

    layers: list[ActionLayer]

    def __init__(self, key: jax.Array, inputs: int, num_actions: int, hidden: tuple[int, ...], outputs: int = 1):
        sizes = [inputs, *hidden, outputs]
        pairs = zip(jax.random.split(key, len(sizes) - 1), sizes, sizes[1:], strict=False)
        self.layers = [ActionLayer(key, below, above, num_actions) for key, below, above in pairs]

    def __call__(self, inputs: Inputs, action: Action) -> Outputs:
        *hidden, head = self.layers
        for layer in hidden:
            inputs = jnp.tanh(layer(inputs, action))
        return head(inputs, action)

    def rows(
        self, transposed: Transposed, inputs: Float[Array, "rows inputs"], actions: Int[Array, " rows"]
    ) -> Float[Array, " rows"]:
        """The first output for each row.

        With `jax.vmap`, a CPU would transpose arrays between layers, number by number.
        """
        *hidden, head = self.layers
        for layer, weight in zip(hidden, transposed, strict=False):
            inputs = jnp.tanh(inputs @ weight + layer.actions[actions] + layer.bias)
        return jnp.sum(inputs * head.weight[0], axis=1) + head.actions[actions, 0] + head.bias[0]

    def transpose_weights(self) -> Transposed:
        """The weights of the hidden layers, [inputs, outputs]."""
        return [layer.weight.T for layer in self.layers[:-1]]


class PlainNetwork(eqx.Module):
    """The same with the action's number as one more input of the first layer, and nowhere else."""

    layers: list[eqx.nn.Linear]

    def __init__(self, key: jax.Array, inputs: int, hidden: tuple[int, ...] = (), outputs: int = 1):
        sizes = [inputs + 1, *hidden, outputs]
        pairs = zip(sizes, sizes[1:], jax.random.split(key, len(sizes) - 1), strict=False)
        self.layers = [eqx.nn.Linear(below, above, key=key) for below, above, key in pairs]

    def __call__(self, inputs: Inputs, action: Action) -> Outputs:
        inputs = jnp.append(inputs, action.astype(inputs.dtype))
        *hidden, head = self.layers
        for layer in hidden:
            inputs = jnp.tanh(layer(inputs))
        outputs: jax.Array = head(inputs)
        return outputs


class Regression(eqx.Module):
    """A network fitted to the samples of a buffer: Adam, squared error, minibatches of 32."""

    network: Any
    """A `Network`."""
    optimiser: optax.OptState
    buffer: Buffer
    rounds: Int[Array, "*runs"]
    """Rounds of training so far."""
    encode: Encode = eqx.field(static=True)
    """The inputs of the network for a state."""
    link: Link = eqx.field(static=True)
    """What the head's outputs go through."""
    minibatches: int = eqx.field(static=True)
    """E, the minibatches of a round."""

    @classmethod
    def fresh(cls, network: Network, buffer: Buffer, encode: Encode, link: Link, minibatches: int) -> Self:
        """An untrained regression."""
        optimiser = _compiled(_first_moments, network)
        return cls(network, optimiser, buffer, jnp.int32(0), encode, link, minibatches)

    def __call__(self, state: PyTree, action: Action) -> Outputs:
        """The network's prediction."""
        return self.link(self.network(self.encode(state), action))

    def fit(self, key: jax.Array) -> tuple[Self, Scalar]:
        """Makes `minibatches` steps of Adam; returns the fitted regression and the mean loss."""
        numbers = self.buffer.sample(key, (self.minibatches, BATCH))

        def loss(network: Network, numbers: Int[Array, " batch"]) -> Scalar:
            states, actions, targets = self.buffer.rows(numbers)
            return squared_error(network, self.link, jax.vmap(self.encode)(states), actions, targets)

        network, optimiser, mean = descend(self.network, self.optimiser, loss, numbers)
        fitted = type(self)(network, optimiser, self.buffer, self.rounds + 1, self.encode, self.link, self.minibatches)
        return fitted, mean


def raw_features(space: Space) -> Encode:
    """A domain's features as they are, as inputs of a network."""
    return lambda state: space.features(state).astype(jnp.float32)


def input_size(space: Space) -> int:
    """The number of inputs of a state."""
    state = jax.eval_shape(space.reset, jax.random.key(0))
    return int(jax.eval_shape(space.inputs, state).size)


def adam() -> optax.GradientTransformation:
    return optax.adam(STEP_SIZE)


def _first_moments(network: PyTree) -> optax.OptState:
    return adam().init(eqx.filter(network, eqx.is_inexact_array))


@eqx.filter_jit
def _compiled(make: Callable[..., Made], *arguments: object) -> Made:
    """What `make` makes, by one program: outside of it, each of its operations is compiled by itself."""
    return make(*arguments)


def descend(
    network: Net, optimiser: optax.OptState, loss: Callable[[Net, Any], Scalar], batches: PyTree
) -> tuple[Net, optax.OptState, Scalar]:
    """Takes a step of Adam on each of `batches`; returns the network and the mean of `loss(network, batch)`."""

    def step(carry: tuple[Net, optax.OptState], batch: PyTree) -> tuple[tuple[Net, optax.OptState], Scalar]:
        network, optimiser = carry
        value, gradients = jax.value_and_grad(loss)(network, batch)
        updates, optimiser = adam().update(gradients, optimiser, network)
        return (eqx.apply_updates(network, updates), optimiser), value

    (network, optimiser), losses = jax.lax.scan(step, (network, optimiser), batches)
    return network, optimiser, jnp.mean(losses)


def squared_error(
    network: Network,
    link: Link,
    inputs: Float[Array, "batch inputs"],
    actions: Int[Array, " batch"],
    targets: Float[Array, " batch"] | Float[Array, "batch outputs"],
) -> Scalar:
    """The mean of (network - target)^2 over a minibatch."""
    outputs = jax.vmap(lambda inputs, action: link(network(inputs, action)))(inputs, actions)
    return jnp.mean(jnp.square(outputs.reshape(targets.shape) - targets))


class NetworkEstimator(Estimator):
    """U-hat as a regression with a sigmoid at its end (U of these games lies in [0, 1)); 0 until the first round."""

    stops_for_good = True

    regression: Regression
    num_actions: int = eqx.field(static=True)

    @classmethod
    def fresh(
        cls, key: jax.Array, space: Space, capacity: int = 1024, minibatches: int = 5000, most_copies: int = 1
    ) -> Self:
        """An untrained estimator."""
        encode = cls.encoder(space)
        state = space.reset(key)
        network = _compiled(cls.network, key, jax.eval_shape(encode, state).size, space.num_actions)
        buffer = Buffer.empty(state, jnp.float32(0), capacity, most_copies)
        return cls(Regression.fresh(network, buffer, encode, jax.nn.sigmoid, minibatches), space.num_actions)

    @staticmethod
    def encoder(space: Space) -> Encode:
        """The inputs of the network for a state."""
        return space.inputs

    @staticmethod
    def network(key: jax.Array, inputs: int, num_actions: int) -> Network:
        """The network: two tanh layers of 128."""
        return ActionNetwork(key, inputs, num_actions, (HIDDEN, HIDDEN))

    def predict(self, state: PyTree, action: Action) -> Scalar:
        return jnp.where(self.trained, self.regression(state, action)[0], 0.0)

    def absorb(self, state: PyTree, action: Action, target: Scalar, copies: Copies = 1) -> Self:
        buffer = self.regression.buffer.append(state, action, target, copies)
        return replace(self, regression=replace(self.regression, buffer=buffer))

    def learn(self, key: jax.Array) -> tuple[Self, Scalar]:
        fitted, loss = self.regression.fit(key)
        return type(self)(fitted, self.num_actions), loss

    @property
    def trained(self) -> Bool[Array, "*runs"]:
        return self.regression.rounds > 0

    def reserve(self, samples: int) -> Self:
        buffer = self.regression.buffer.reserve(samples)
        return replace(self, regression=replace(self.regression, buffer=buffer))

    def uncertainty(self) -> Uncertainty | BatchedUncertainty:
        if not isinstance(self.regression.network, ActionNetwork):
            return PredictionCache(self.predict)
        return PredictionCache(self.predict, None, self._predict_rows, self.regression.network.transpose_weights)

    def _predict_rows(
        self, transposed: Transposed, states: PyTree, actions: Int[Array, " rows"]
    ) -> Float[Array, " rows"]:
        """`predict` of a few transitions."""
        inputs = jax.vmap(self.regression.encode)(states)
        outputs = self.regression.network.rows(transposed, inputs, actions)
        return jnp.where(self.trained, self.regression.link(outputs), 0.0)


class LinearEstimator(NetworkEstimator):
    """The same with one linear layer on the raw features and the action's number: the paper's for its gridworlds."""

    @staticmethod
    def network(key: jax.Array, inputs: int, num_actions: int) -> Network:
        del num_actions
        return PlainNetwork(key, inputs)

    @staticmethod
    def encoder(space: Space) -> Encode:
        return raw_features(space)

    def uncertainty(self) -> Uncertainty:
        return self.predict  # cheaper than looking it up
