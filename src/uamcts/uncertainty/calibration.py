"""The threshold above which a U-hat makes a transition doubtful, calibrated on transitions that were seen.

Trust search asks whether a transition is doubtful, not how doubtful it is. "U above 0" is the right question for U
itself, but a regression never predicts exactly 0: everything it has learned would be doubtful. A U-hat therefore counts
only if it stands out from the estimator's own noise, in the units of the U that was seen:

score(t)  = share of the transitions seen to be wrong that it puts above t
            - 10 * share of the transitions seen to be right that it puts above t
t         = the smallest number with the greatest score, among 0 and all predictions
threshold = 0 where t is 0, else half-way from t to the next larger prediction; infinite where no score is above 0
U-hat counts as exactly 0 unless it is above the threshold

- An estimator that predicts exactly 0 for what was right (`nearest`, and mostly `trees`, `two_part` and gated ones) has
  a threshold of 0: all that it predicts counts, however small.
- What was seen to be wrong stays doubtful if the estimator separates it from what was right, however small it is beside
  other errors: the threshold is not a share of the largest one. Half-way leaves the same margin to unseen transitions
  of either kind.
- With an estimator that cannot separate wrong from right, or was never shown anything wrong, nothing is doubtful. The
  search is then plain MCTS, which is better than trusting nothing beyond the next step.
- A false alarm counts ten times as much as a miss, because one spoils every plan that leads through it, and plans have
  some ten steps. An estimator that takes more than a tenth of what was right for wrong is ignored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uamcts.mcts.config import SearchConfig
from uamcts.types import PyTree
from uamcts.uncertainty.estimator import Action, Copies, Estimator, Scalar
from uamcts.uncertainty.thresholded import ThresholdedEstimator, predict_rows

FALSE_ALARM = 10.0
"""The cost of doubting a share of what was right, where missing that share of what was wrong costs 1."""
LATEST = 1024
"""How many of the latest transitions seen, of either kind, are looked at."""


def applies(config: SearchConfig, estimator: Estimator) -> bool:
    """Whether to calibrate: if the rules read a threshold, none is given, and the estimator is not exact."""
    return config.reads("doubt_threshold") and config.doubt_threshold is None and not estimator.exact


def threshold_between(
    predicted: Float[Array, " rows"], right: Bool[Array, " rows"], wrong: Bool[Array, " rows"]
) -> Scalar:
    """The threshold, from predictions for transitions that were seen to be `right` or `wrong`."""
    seen = jnp.where(right | wrong, predicted, 0.0)
    candidates = jnp.sort(jnp.append(seen, 0.0))

    def share_above(kind: jax.Array) -> jax.Array:
        """The share of the predictions of a kind above each of the candidates."""
        ranked = jnp.sort(jnp.where(kind, predicted, jnp.inf))
        count = jnp.sum(kind)
        return (count - jnp.searchsorted(ranked, candidates, side="right")) / jnp.maximum(count, 1)

    score = share_above(wrong) - FALSE_ALARM * share_above(right)
    best = jnp.argmax(score)  # the first of equals
    least = candidates[best]
    following = jnp.min(jnp.where(seen > least, seen, jnp.inf))
    return jnp.where(least == 0, 0.0, jnp.where(score[best] > 0, (least + following) / 2, jnp.inf))


class Sightings(eqx.Module):
    """The latest transitions of a kind, in a ring."""

    states: PyTree
    """[places + 1, ...]; the last row takes what is not kept."""
    actions: Int[Array, "*runs places"]
    count: Int[Array, "*runs"]
    """Of all that there ever were."""

    @classmethod
    def empty(cls, state: PyTree, places: int = LATEST) -> Self:
        """An empty ring; `state` is an example of a state."""

        def rows(leaf: PyTree) -> jax.Array:
            return jnp.zeros((places + 1, *jnp.shape(leaf)), jnp.asarray(leaf).dtype)

        return cls(jax.tree.map(rows, state), rows(jnp.int32(0)), jnp.int32(0))

    def put(self, state: PyTree, action: Action, wanted: Bool[Array, ""]) -> Self:
        """Adds a transition, if it is `wanted`."""
        places = self.actions.shape[0] - 1
        row = jnp.where(wanted, self.count % places, places)
        states, actions = jax.tree.map(
            lambda rows, leaf: rows.at[row].set(jnp.asarray(leaf, rows.dtype)),
            (self.states, self.actions), (state, action),
        )  # fmt: skip
        return type(self)(states, actions, self.count + wanted)

    def predictions(self, estimator: Estimator) -> tuple[Float[Array, " rows"], Bool[Array, " rows"]]:
        """U-hat of every place, and which of the places are taken."""
        places = self.actions.shape[0] - 1
        taken = jnp.arange(places + 1) < jnp.minimum(self.count, places)
        return predict_rows(estimator, self.states, self.actions), taken


class Calibrated(ThresholdedEstimator):
    """An estimator whose threshold separates the transitions seen to be wrong from those seen to be right."""

    right: Sightings
    wrong: Sightings

    @classmethod
    def around(cls, inner: Estimator, state: PyTree) -> Self:
        """Calibrates an untrained estimator; `state` is an example of a state.

        The threshold is 0 until the first round: an untrained estimator predicts 0 anyway.
        """
        return cls(inner, jnp.float32(0), Sightings.empty(state), Sightings.empty(state))

    def absorb(self, state: PyTree, action: Action, target: Scalar, copies: Copies = 1) -> Self:
        return replace(
            self,
            inner=self.inner.absorb(state, action, target, copies),
            right=self.right.put(state, action, target == 0),
            wrong=self.wrong.put(state, action, target > 0),
        )

    def choose_threshold(self) -> Scalar:
        right, there = self.right.predictions(self.inner)
        wrong, here = self.wrong.predictions(self.inner)
        none = jnp.zeros(right.size, bool)
        return threshold_between(
            jnp.concatenate([right, wrong]), jnp.concatenate([there, none]), jnp.concatenate([none, here])
        )
