"""Transitions that pay for their uncertainty, r - weight * U(s, a), where U is evaluated in batches.

A model could charge by itself, but a network would then be asked at every step of a rollout. Here rollouts look
predictions up. Only if one is missing are they rolled out again, and all of their transitions are evaluated at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uamcts.mcts.problem import Problem
from uamcts.types import Number, PyTree, Transition, Uncertainty


@dataclass(frozen=True, eq=False)
class Charged:
    """A `BatchedUncertainty` that every transition pays for. The search itself takes no transition for uncertain."""

    uncertainty: Any
    """A `BatchedUncertainty` that is an `Uncertainty` as well."""
    weight: Number

    def empty_cache(self) -> PyTree:
        return self.uncertainty.empty_cache()

    def lookup(self, cache: PyTree, state: PyTree, action: Int[Array, ""]) -> tuple[Float[Array, ""], Bool[Array, ""]]:
        found: tuple[jax.Array, jax.Array] = self.uncertainty.lookup(cache, state, action)
        return found

    def predict_batch(
        self, cache: PyTree, states: PyTree, actions: Int[Array, " n"], wanted: Bool[Array, " n"]
    ) -> tuple[Float[Array, " n"], PyTree]:
        found: tuple[jax.Array, PyTree] = self.uncertainty.predict_batch(cache, states, actions, wanted)
        return found

    def known(self, cache: PyTree) -> Uncertainty:
        """The predictions in the cache; NaN where there is none."""

        def look_up(state: PyTree, action: Int[Array, ""]) -> Float[Array, ""]:
            found, known = self.lookup(cache, state, action)
            return jnp.where(known, found, jnp.nan)

        return look_up

    def price(self, problem: Problem, uncertainty: Uncertainty) -> Problem:
        """A problem whose model charges by itself, for this uncertainty."""

        def pay(after: PyTree, state: PyTree, action: jax.Array) -> Transition:
            after = Transition(*after)
            paid: Transition = after._replace(reward=after.reward - self.weight * uncertainty(state, action))
            return paid

        def charge(call: Callable[..., Any] | None) -> Callable[..., Any] | None:
            return None if call is None else lambda state, action, *key: pay(call(state, action, *key), state, action)

        outcomes, listed = problem.outcomes, None
        if outcomes is not None:

            def listed(state: PyTree, action: jax.Array) -> tuple[Transition, jax.Array]:
                after, probabilities = outcomes(state, action)
                return pay(after, state, action), probabilities

        return problem._replace(model=charge(problem.model), sample=charge(problem.sample), outcomes=listed)

    def settle(self, reward: jax.Array, uncertainty: Float[Array, " actions"]) -> jax.Array:
        """Rewards of all actions, [actions * slots] or [actions, slots], less what they pay."""
        paid = reward.reshape(uncertainty.size, -1) - self.weight * uncertainty[:, None]
        settled: jax.Array = paid.reshape(reward.shape)
        return settled
