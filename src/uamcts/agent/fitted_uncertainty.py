"""The uncertainty of a user's own simulator: an estimator of U fitted to all experience.

It is refitted to the whole experience every time, so it depends on nothing but the experience and a key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from uamcts.agent.experience import Experience
from uamcts.mcts.config import SearchConfig
from uamcts.types import BatchedUncertainty, PyTree, Uncertainty
from uamcts.uncertainty import Estimator, make_estimator
from uamcts.uncertainty.calibration import LATEST, applies, threshold_between
from uamcts.uncertainty.estimator import Action, Inputs, Scalar
from uamcts.uncertainty.prediction_cache import PredictionCache

RADIUS = 0.5
"""The radius of `nearest`, in standard deviations: one-hot inputs must be equal."""
PLACES = 1024
"""The most samples that `nearest` keeps: half of them with U = 0 and half with U > 0."""


class Vectors:
    """A `Space` whose states are vectors of `size` numbers."""

    def __init__(self, size: int, num_actions: int):
        self.size, self.num_actions = size, num_actions

    def reset(self, key: jax.Array) -> jax.Array:
        del key
        return jnp.zeros(self.size, jnp.float32)

    @staticmethod
    def features(state: jax.Array) -> jax.Array:
        return state

    inputs = features


class FittedUncertainty(eqx.Module):
    """A fitted estimator of U. Inputs are standardised, but not those that are 0 or 1; U is scaled to at most 1."""

    estimator: Estimator
    centre: Float[Array, " inputs"]
    spread: Float[Array, " inputs"]
    scale: Scalar
    """The largest U seen."""
    threshold: Scalar
    """A prediction counts as 0 unless it is above this share of the largest U (see `calibration`)."""

    @classmethod
    def fit(
        cls,
        estimator: str | Estimator,
        experience: Experience,
        observed: np.ndarray,
        key: jax.Array,
        num_actions: int,
        minibatches: int,
        config: SearchConfig,
    ) -> Self | None:
        """Fits an estimator to the `observed` U of every transition; None as long as all are 0.

        `config` is that of the searches.
        """
        if not observed.any():
            return None
        inputs = experience.column("inputs")
        deviation = inputs.std(axis=0)
        names = np.all((inputs == 0) | (inputs == 1), axis=0)  # one-hot inputs are not scaled
        centre = np.where(names, 0.0, inputs.mean(axis=0))
        spread = np.where(names | (deviation < 1e-9), 1.0, deviation)
        standard = jnp.asarray(centre, jnp.float32), jnp.asarray(spread, jnp.float32)
        room = 1 << max(3, (len(observed) - 1).bit_length())  # sizes double, so that few programs are compiled
        padded = [
            jnp.asarray(np.concatenate([rows, np.zeros((room - len(rows), *rows.shape[1:]), rows.dtype)]))
            for rows in (
                inputs,
                experience.column("action").astype(np.int32),
                (observed / observed.max()).astype(np.float32),
            )
        ]
        first, second = jax.random.split(key)
        if isinstance(estimator, str):
            space = Vectors(inputs.shape[1], num_actions)
            options: dict[str, Any] = (
                {"radius": RADIUS, "places": min(2 * room, PLACES)} if estimator.startswith("nearest") else {}
            )
            estimator = make_estimator(estimator, first, space, capacity=room, minibatches=minibatches, **options)
        estimator = estimator.reserve(room)
        learned = _fit_estimator(estimator, second, (padded[0] - standard[0]) / standard[1], *padded[1:], len(observed))
        everything = cls(learned.finish_on_host(), *standard, jnp.float32(observed.max()), jnp.float32(0))
        return everything._calibrate(inputs, padded[1], observed) if applies(config, estimator) else everything

    def _calibrate(self, inputs: np.ndarray, actions: jax.Array, observed: np.ndarray) -> Self:
        """Chooses the threshold by the predictions for the transitions seen."""
        places = np.concatenate([np.flatnonzero(observed == 0)[-LATEST:], np.flatnonzero(observed > 0)[-LATEST:]])
        rows = np.resize(places, 1 << (len(places) - 1).bit_length())  # one program per power of two
        there = np.arange(len(rows)) < len(places)
        threshold = _threshold(
            self, inputs[rows], actions[rows], there & (observed[rows] == 0), there & (observed[rows] > 0)
        )
        return replace(self, threshold=threshold)

    def __call__(self, inputs: Inputs, action: Action) -> Scalar:
        """U-hat, at least 0."""
        predicted = self.raw_prediction(inputs, action)
        return jnp.where(predicted > self.threshold, predicted, 0.0) * self.scale

    def raw_prediction(self, inputs: Inputs, action: Action) -> Scalar:
        """The estimator's own prediction, as a share of `scale`."""
        return jnp.maximum(self.estimator.predict((inputs - self.centre) / self.spread, action), 0.0)

    def uncertainty(self, inputs: Callable[[PyTree], jax.Array], num_actions: int) -> Uncertainty | BatchedUncertainty:
        """The uncertainty that the compiled search is given."""

        def predict(state: PyTree, action: Action) -> Scalar:
            return self(inputs(state), action)

        return PredictionCache(predict) if isinstance(self.estimator.uncertainty(), PredictionCache) else predict


@jax.jit
def _fit_estimator(
    estimator: Estimator,
    key: jax.Array,
    inputs: Float[Array, "rows inputs"],
    actions: Int[Array, " rows"],
    observed: Float[Array, " rows"],
    count: int,
) -> Estimator:
    """Absorbs the first `count` samples and learns from them."""
    absorbed: Estimator = jax.lax.fori_loop(
        0, count, lambda place, before: before.absorb(inputs[place], actions[place], observed[place]), estimator
    )
    return absorbed.learn(key)[0]


@jax.jit
def _threshold(
    fitted: FittedUncertainty,
    inputs: Float[Array, "rows inputs"],
    actions: Int[Array, " rows"],
    right: Bool[Array, " rows"],
    wrong: Bool[Array, " rows"],
) -> Scalar:
    """The threshold, by the predictions for rows of transitions."""
    answers = jax.lax.map(lambda row: fitted.raw_prediction(*row), (inputs, actions), batch_size=64)
    return threshold_between(answers, right, wrong)


@jax.jit
def every_action(
    fitted: FittedUncertainty, inputs: Float[Array, "rows inputs"], actions: Int[Array, " actions"]
) -> Float[Array, "rows actions"]:
    """U-hat of all actions for rows of inputs."""
    return jax.vmap(jax.vmap(fitted, (None, 0)), (0, None))(inputs, actions)
