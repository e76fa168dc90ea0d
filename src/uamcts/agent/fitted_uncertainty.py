"""Doubt about somebody's own simulator: an estimator of U fitted to all that was experienced, and how planners ask it.

It is fitted anew from the whole experience every time, so it depends on nothing but what was seen and a key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from uamcts.agent.experience import Experience, Measure
from uamcts.mcts.config import SearchConfig
from uamcts.types import BatchedUncertainty, PyTree, Uncertainty
from uamcts.uncertainty import Estimator, make_estimator
from uamcts.uncertainty.calibration import LATEST, applies, threshold_between
from uamcts.uncertainty.prediction_cache import PredictionCache

RADIUS = 0.5
"""How near a sample must be to say something, for `nearest`: in standard deviations; one-hot inputs must be equal."""
PLACES = 1024
"""How many samples it keeps at most: half of them right ones and half wrong ones."""
LARGEST_TABLE = 200_000
"""States whose doubt a plain search remembers; then it forgets them all."""


class Vectors:
    """What an estimator must know of a domain, for states that are vectors of `size` numbers."""

    name = "simulator"

    def __init__(self, size: int, num_actions: int):
        self.size, self.num_actions = size, num_actions

    def reset(self, key: jax.Array) -> jax.Array:
        """One state, as an example."""
        del key
        return jnp.zeros(self.size, jnp.float32)

    @staticmethod
    def features(state: jax.Array) -> jax.Array:
        return state

    inputs = features


class FittedUncertainty(eqx.Module):
    """A fitted estimator of U. Inputs are standardised, but not those that are 0 or 1; U is scaled to at most 1."""

    estimator: Estimator
    centre: jax.Array
    spread: jax.Array
    scale: jax.Array
    """The greatest U seen."""
    cut: jax.Array
    """What is not above this share of it counts as 0 (see `calibration`)."""

    @classmethod
    def fit(
        cls,
        estimator: str | Estimator,
        experience: Experience,
        measure: Measure,
        key: jax.Array,
        num_actions: int,
        minibatches: int,
        config: SearchConfig,
    ) -> Self | None:
        """None as long as the simulator was never wrong: there is nothing to doubt. `config` is the searches'."""
        errors = experience.uncertainties(measure)
        if not errors.any():
            return None
        inputs = experience.column("inputs")
        deviation = inputs.std(axis=0)
        names = np.all((inputs == 0) | (inputs == 1), axis=0)  # one-hot: that two differ is all that there is to know
        centre = np.where(names, 0.0, inputs.mean(axis=0))
        spread = np.where(names | (deviation < 1e-9), 1.0, deviation)
        standard = jnp.asarray(centre, jnp.float32), jnp.asarray(spread, jnp.float32)
        room = 1 << max(3, (len(errors) - 1).bit_length())  # sizes double: few programs, each compiled once
        padded = [
            jnp.asarray(np.concatenate([rows, np.zeros((room - len(rows), *rows.shape[1:]), rows.dtype)]))
            for rows in (
                inputs,
                experience.column("action").astype(np.int32),
                (errors / errors.max()).astype(np.float32),
            )
        ]
        first, second = jax.random.split(key)
        if isinstance(estimator, str):
            space: Any = Vectors(inputs.shape[1], num_actions)
            options: dict[str, Any] = (
                {"radius": RADIUS, "places": min(2 * room, PLACES)} if estimator.startswith("nearest") else {}
            )
            estimator = make_estimator(estimator, first, space, capacity=room, minibatches=minibatches, **options)
        estimator = estimator.reserve(room)
        learned = _fit_estimator(estimator, second, (padded[0] - standard[0]) / standard[1], *padded[1:], len(errors))
        everything = cls(learned.finish_on_host(), *standard, jnp.float32(errors.max()), jnp.float32(0))
        return everything._calibrate(inputs, padded[1], errors) if applies(config, estimator) else everything

    def _calibrate(self, inputs: np.ndarray, actions: jax.Array, errors: np.ndarray) -> Self:
        """With the cut that belongs to what the estimator says of the transitions seen."""
        places = np.concatenate([np.flatnonzero(errors == 0)[-LATEST:], np.flatnonzero(errors > 0)[-LATEST:]])
        rows = np.resize(places, 1 << (len(places) - 1).bit_length())  # a program a power of two
        there = np.arange(len(rows)) < len(places)
        cut = _cut(self, inputs[rows], actions[rows], there & (errors[rows] == 0), there & (errors[rows] > 0))
        return replace(self, cut=cut)

    def __call__(self, inputs: jax.Array, action: jax.Array) -> jax.Array:
        """U-hat of an action where these are the inputs, at least 0."""
        said = self.raw_prediction(inputs, action)
        return jnp.where(said > self.cut, said, 0.0) * self.scale

    def raw_prediction(self, inputs: jax.Array, action: jax.Array) -> jax.Array:
        """The estimator's answer as it is, as a share of `scale`."""
        return jnp.maximum(self.estimator.predict((inputs - self.centre) / self.spread, action), 0.0)

    def uncertainty(self, inputs: Callable[[PyTree], jax.Array], num_actions: int) -> Uncertainty | BatchedUncertainty:
        """What the compiled search is given."""

        def predict(state: PyTree, action: jax.Array) -> jax.Array:
            return self(inputs(state), action)

        return (
            PredictionCache(predict, num_actions)
            if isinstance(self.estimator.uncertainty(), PredictionCache)
            else predict
        )


@jax.jit
def _fit_estimator(
    estimator: Estimator, key: jax.Array, inputs: jax.Array, actions: jax.Array, errors: jax.Array, count: int
) -> Estimator:
    """The estimator after it has absorbed the first `count` samples and learned from them."""
    absorbed = jax.lax.fori_loop(
        0, count, lambda place, before: before.absorb(inputs[place], actions[place], errors[place]), estimator
    )
    return absorbed.learn(key)[0]


@jax.jit
def _cut(
    doubt: FittedUncertainty, inputs: jax.Array, actions: jax.Array, right: jax.Array, wrong: jax.Array
) -> jax.Array:
    """The cut, by what the estimator says of rows of inputs [n, d] and actions [n]."""
    answers = jax.lax.map(lambda row: doubt.raw_prediction(*row), (inputs, actions), batch_size=64)
    return threshold_between(answers, right, wrong)


@jax.jit
def _every_action(doubt: FittedUncertainty, inputs: jax.Array, actions: jax.Array) -> jax.Array:
    """U-hat of all actions [a] for rows of inputs [n, d]: [n, a]."""
    return jax.vmap(jax.vmap(doubt, (None, 0)), (0, None))(inputs, actions)


class CachedUncertainty:
    """Doubt as the plain search asks for it, with a table of the answers: all actions of a state at once.

    What is `known` to be so is not doubted.
    """

    def __init__(self, doubt: FittedUncertainty, simulator: Any, known: Callable[[Any, int], bool] | None = None):
        self.doubt, self.simulator, self.known = doubt, simulator, known
        self.actions = jnp.arange(simulator.num_actions)
        self.table: dict[Any, list[float]] = {}

    def __call__(self, state: Any, action: int) -> float:
        return self.many([state], [action])[0]

    def many(self, states: Sequence[Any], actions: Sequence[int]) -> list[float]:
        """U-hat of many transitions; those of states that are new are computed together."""
        if len(self.table) > LARGEST_TABLE:
            self.table.clear()
        keys = [self.simulator.key(state) for state in states]
        new = {key: state for key, state in zip(keys, states, strict=True) if key not in self.table}
        if new:
            self._fill(new)
        answers = [self.table[key][action] for key, action in zip(keys, actions, strict=True)]
        if self.known is None:
            return answers
        triples = zip(states, actions, answers, strict=True)
        return [0.0 if answer and self.known(state, action) else answer for state, action, answer in triples]

    def _fill(self, states: dict[Any, Any]) -> None:
        inputs = np.stack([np.asarray(self.simulator.inputs(state), np.float32) for state in states.values()])
        rows = 1 << (len(inputs) - 1).bit_length()  # a program a power of two
        padded = np.concatenate([inputs, np.repeat(inputs[-1:], rows - len(inputs), axis=0)])
        answers = np.asarray(_every_action(self.doubt, padded, self.actions))[: len(inputs)].tolist()
        self.table.update(zip(states, answers, strict=True))
