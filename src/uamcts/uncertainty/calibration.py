"""From which U-hat on a transition is doubtful: judged by what the estimator says of transitions that were seen.

Trust search asks of a transition whether it is doubtful, not how doubtful. "U above 0" is the right question for U
itself, but a regression never says exactly 0: asked that way, all that it has learned is doubtful. Here a U-hat counts
only if it stands out from the estimator's own noise, in the units of the U that was seen:

worth(t) = share of the transitions seen to be wrong that it puts above t
           - 10 * share of the transitions seen to be right that it puts above t
t        = the smallest number with the greatest worth, among 0 and all of its answers
cut      = 0 where t is 0, else half-way from t to the next larger answer; infinite where nothing is worth more than 0
U-hat counts as exactly 0 unless it is above the cut

- An estimator that says exactly 0 of what was right (`nearest`, and mostly `trees`, `two_part` and those with a gate)
  has a cut of 0: all that it says counts, however small.
- What was seen to be wrong stays doubtful if the estimator tells it from what was right, however small it is beside
  other errors: the cut is not a share of the largest one. Half-way leaves the same margin to transitions of either kind
  that were not seen.
- An estimator that cannot tell wrong from right, or was never shown anything wrong, casts no doubt. The search is then
  plain MCTS, which is better than to believe nothing beyond the next step.
- A false alarm counts ten times as much as a miss, because one spoils any plan that leads through it, and plans are of
  some ten steps. Where more than a tenth of what was right is taken for wrong, the estimator is not listened to.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from uamcts.mcts.config import SearchConfig
from uamcts.types import BatchedUncertainty, PyTree, Uncertainty
from uamcts.uncertainty.estimator import Estimator
from uamcts.uncertainty.prediction_cache import PredictionCache

FALSE_ALARM = 10.0
"""What it costs to doubt a share of what was right, if to miss that share of what was wrong costs 1."""
LATEST = 1024
"""How many of the transitions seen, of either kind, are looked at: the latest."""

_C = TypeVar("_C", bound="Calibrated")


def applies(config: SearchConfig, estimator: Estimator) -> bool:
    """Whether to cut what this estimator says: if the rules read a threshold, none is given, and it is not exact."""
    return config.reads("doubt_threshold") and config.doubt_threshold is None and not estimator.exact


def cut_between(answers: jax.Array, right: jax.Array, wrong: jax.Array) -> jax.Array:
    """The cut, from an estimator's answers [n] to transitions seen to be `right` or `wrong`, conditions [n]."""
    seen = jnp.where(right | wrong, answers, 0.0)
    candidates = jnp.sort(jnp.append(seen, 0.0))

    def above(kind: jax.Array) -> jax.Array:
        """The share of the answers of a kind above each of the candidates."""
        ranked = jnp.sort(jnp.where(kind, answers, jnp.inf))
        count = jnp.sum(kind)
        return (count - jnp.searchsorted(ranked, candidates, side="right")) / jnp.maximum(count, 1)

    worth = above(wrong) - FALSE_ALARM * above(right)
    best = jnp.argmax(worth)  # the first of equals
    least = candidates[best]
    following = jnp.min(jnp.where(seen > least, seen, jnp.inf))
    return jnp.where(least == 0, 0.0, jnp.where(worth[best] > 0, (least + following) / 2, jnp.inf))


class Sightings(eqx.Module):
    """The latest transitions of a kind, in a ring."""

    states: PyTree
    """[places + 1, ...]; the last row takes what is not kept."""
    actions: jax.Array
    count: jax.Array
    """Of all that there ever were."""

    @classmethod
    def empty(cls, state: PyTree, places: int = LATEST) -> Self:
        """None yet; `state` is one state, as an example."""

        def rows(leaf: Any) -> jax.Array:
            return jnp.zeros((places + 1, *jnp.shape(leaf)), jnp.asarray(leaf).dtype)

        return cls(jax.tree.map(rows, state), rows(jnp.int32(0)), jnp.int32(0))

    def put(self, state: PyTree, action: jax.Array, wanted: jax.Array) -> Self:
        """With one more, if it is `wanted`."""
        places = self.actions.shape[0] - 1
        row = jnp.where(wanted, self.count % places, places)
        states, actions = jax.tree.map(
            lambda rows, leaf: rows.at[row].set(jnp.asarray(leaf, rows.dtype)),
            (self.states, self.actions), (state, action),
        )  # fmt: skip
        return type(self)(states, actions, self.count + wanted)

    def answers(self, estimator: Estimator) -> tuple[jax.Array, jax.Array]:
        """What an estimator says of them, [places + 1], and which of these places are taken."""
        said = jax.lax.map(lambda row: estimator.predict(*row), (self.states, self.actions), batch_size=64)
        places = self.actions.shape[0] - 1
        return said, jnp.arange(places + 1) < jnp.minimum(self.count, places)


class Calibrated(Estimator):
    """What `inner` says where that is above the cut, exactly 0 elsewhere."""

    inner: Estimator
    right: Sightings
    wrong: Sightings
    cut: jax.Array
    """0 until the first round: what is untrained says nothing anyway."""

    @classmethod
    def around(cls, inner: Estimator, state: PyTree) -> Self:
        """Nothing learned yet; `state` is one state, as an example."""
        return cls(inner, Sightings.empty(state), Sightings.empty(state), jnp.float32(0))

    def predict(self, state: PyTree, action: jax.Array) -> jax.Array:
        said = self.inner.predict(state, action)
        return jnp.where(said > self.cut, said, 0.0)

    def absorb(self, state: PyTree, action: jax.Array, target: jax.Array, copies: Any = 1) -> Self:
        changed = (
            self.inner.absorb(state, action, target, copies),
            self.right.put(state, action, target == 0),
            self.wrong.put(state, action, target > 0),
        )
        return eqx.tree_at(lambda one: (one.inner, one.right, one.wrong), self, changed)

    def learn(self, key: jax.Array) -> tuple[Self, jax.Array]:
        inner, loss = self.inner.learn(key)
        return measured(eqx.tree_at(lambda one: one.inner, self, inner)), loss

    def finish_on_host(self) -> Self:
        inner = self.inner.finish_on_host()
        if inner is self.inner:
            return self
        after = eqx.tree_at(lambda one: one.inner, self, inner)
        return (_measured_runs if self.cut.ndim else _measured)(after)

    @property
    def trained(self) -> jax.Array:
        return self.inner.trained

    def reserve(self, samples: int) -> Self:
        return eqx.tree_at(lambda one: one.inner, self, self.inner.reserve(samples))

    def uncertainty(self) -> Uncertainty | BatchedUncertainty:
        asked = self.inner.uncertainty()
        return replace(asked, predict=self.predict) if isinstance(asked, PredictionCache) else self.predict


def measured(calibrated: _C) -> _C:
    """With the cut that belongs to what the estimator says now."""
    right, there = calibrated.right.answers(calibrated.inner)
    wrong, here = calibrated.wrong.answers(calibrated.inner)
    none = jnp.zeros(right.size, bool)
    cut = cut_between(jnp.concatenate([right, wrong]), jnp.concatenate([there, none]), jnp.concatenate([none, here]))
    return eqx.tree_at(lambda one: one.cut, calibrated, cut.astype(jnp.float32))


_measured, _measured_runs = jax.jit(measured), jax.jit(jax.vmap(measured))
