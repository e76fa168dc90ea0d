"""Facts: real transitions (s, a) -> (s', r, terminal) that override the model in planning.

`Outcomes` counts how often each outcome was seen. `Patched` is a learner that plans in the given model, corrected by
the facts; `uamcts.corrections.patched_model` does the same for models of `uamcts.reference`.

Where a transition had several outcomes, the search plans with the most frequent one, the latest of equally frequent
ones. Outcomes that differ in their reward alone count as one, which pays their mean.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uamcts.corrections.fact_patch import identity_of, patch_model, patch_uncertainty
from uamcts.corrections.fact_table import CAPACITY, Facts
from uamcts.corrections.python_facts import Recurrence
from uamcts.domains.base import Domain
from uamcts.types import BatchedUncertainty, Model, PyTree, Transition, Uncertainty
from uamcts.uncertainty.estimator import Action, Copies, Scalar, ZeroUncertainty
from uamcts.uncertainty.learner import Learner, UncertaintyLearner


class BestOutcome(NamedTuple):
    """The outcome of one (state, action) that a search plans with."""

    outcome: Transition
    times: Int[Array, "*rows"]
    """How often this outcome was seen."""
    varied: Bool[Array, "*rows"]
    """Whether any other outcome was seen as well."""


class Tally(NamedTuple):
    """How often one outcome of one (state, action) was seen, and what it paid on average."""

    times: Int[Array, "*rows"]
    reward: Float[Array, "*rows"]


class Outcomes(eqx.Module):
    """Facts about transitions: how often each outcome was seen, and which one is the most frequent.

    States are looked up by their identity, which is the state itself unless a simulator defines another.
    """

    best: Facts
    """(state, action) -> BestOutcome."""
    tally: Facts
    """((state, next state, end), action) -> Tally."""

    @classmethod
    def empty(cls, state: PyTree, capacity: int = CAPACITY, identity: PyTree = None) -> Self:
        """No facts yet; `state` is an example of a state, `identity` its identity if that is not the state itself."""
        identity = state if identity is None else identity
        best = BestOutcome(Transition(state, jnp.float32(0), jnp.bool_(False)), jnp.int32(0), jnp.bool_(False))
        pair = (identity, identity, jnp.bool_(False))
        return cls(
            Facts.empty(identity, best, capacity),
            Facts.empty(pair, Tally(jnp.int32(0), jnp.float32(0)), capacity),
        )

    def find(self, identity: PyTree, action: jax.Array) -> tuple[Transition, jax.Array]:
        """The outcome to plan with, and whether there is one; without one the transition means nothing."""
        found: tuple[Transition, jax.Array] = self.best.find(identity, action, lambda best: best.outcome)
        return found

    def find_surprise(self, identity: PyTree, action: jax.Array) -> tuple[Transition, jax.Array]:
        """The same where the model predicted something else; facts that it predicted may be left out."""
        return self.best.find(identity, action, lambda best: best.outcome, marked=True)

    def put(
        self, identity: PyTree, action: jax.Array, real: Transition, following: PyTree = None,
        surprising: bool | jax.Array = True,
    ) -> Self:  # fmt: skip
        """Adds a real transition.

        Args:
            identity: the identity of its state.
            action: its action.
            real: what followed.
            following: the identity of its next state, if that is not the state itself.
            surprising: whether the model predicts something else.
        """
        pair = (identity, real.state if following is None else following, jnp.asarray(real.terminal, bool))
        tally, seen = self.tally.find(pair, action)
        times = jnp.where(seen, tally.times, 0) + 1
        mean = jnp.where(seen, tally.reward + (real.reward - tally.reward) / times, real.reward)
        best, known = self.best.find(identity, action)
        same = seen & (real.reward == tally.reward)
        varied = known & (best.varied | ~same)
        outcome = Transition(real.state, mean, real.terminal)
        replaces = ~known | (times >= best.times)
        chosen = jax.tree.map(
            lambda new, old: jnp.where(replaces, jnp.asarray(new, old.dtype), old), (outcome, times), best[:2]
        )
        return type(self)(
            self.best.put(identity, action, BestOutcome(chosen[0], chosen[1], varied), marked=surprising),
            self.tally.put(pair, action, Tally(times, mean)),
        )

    def reserve(self, transitions: int) -> Self:
        """Makes room for this many more. Not for use under `jit`."""
        best, tally = self.best.reserve(transitions), self.tally.reserve(transitions)
        return self if best is self.best and tally is self.tally else type(self)(best, tally)

    def recurrence(self) -> Recurrence:
        """Counts for a report. Not for use under `jit`."""
        count = int(self.best.count)
        times = int(jnp.sum(self.tally.values.times[: int(self.tally.count)]))
        return Recurrence(count, times, int(jnp.sum(self.best.values.varied[:count])))


class Patched(eqx.Module):
    """Plans in another learner's model, corrected by facts; only transitions that were not seen are uncertain.

    With `ZeroUncertainty` this is MCTS in the patched model.
    """

    facts: Outcomes
    learner: Any
    """A `Learner` for transitions without facts; it learns from everything that is seen, too."""

    @classmethod
    def fresh(
        cls, state: PyTree, learner: Learner | None = None, capacity: int = CAPACITY, identity: PyTree = None
    ) -> Self:
        """No facts yet; `state` is an example of a state, `identity` its identity if that is not the state itself."""
        learner = UncertaintyLearner(ZeroUncertainty()) if learner is None else learner
        return cls(Outcomes.empty(state, capacity, identity), learner)

    def planner(self, domain: Domain) -> tuple[Model, Uncertainty | BatchedUncertainty]:
        model, uncertainty = self.learner.planner(domain)
        identity = identity_of(domain)

        def find(state: PyTree, action: Action) -> tuple[Transition, Bool[Array, ""]]:
            return self.facts.find(identity(state), action)

        def find_surprise(state: PyTree, action: Action) -> tuple[Transition, Bool[Array, ""]]:
            return self.facts.find_surprise(identity(state), action)

        # If the model never changes, facts that it predicted need no lookup: it still predicts them.
        patched = patch_model(model, find_surprise if model == domain.model else find)
        return patched, patch_uncertainty(uncertainty, find)

    def observe(self, domain: Domain, state: PyTree, action: Action, real: Transition, copies: Copies) -> Self:
        learner = self.learner.observe(domain, state, action, real, copies)
        identity = identity_of(domain)
        surprising = _differ(real, domain.model(state, action))
        return type(self)(self.facts.put(identity(state), action, real, identity(real.state), surprising), learner)

    def learn(self, key: jax.Array) -> tuple[Self, Scalar]:
        learner, loss = self.learner.learn(key)
        return type(self)(self.facts, learner), loss

    def finish_on_host(self) -> Self:
        return type(self)(self.facts, self.learner.finish_on_host())

    def reserve(self, samples: int) -> Self:
        facts, learner = self.facts.reserve(samples), self.learner.reserve(samples)
        return self if facts is self.facts and learner is self.learner else type(self)(facts, learner)

    @property
    def surprised(self) -> Bool[Array, "*runs"]:
        surprised: jax.Array = self.learner.surprised
        return surprised


def _differ(real: Transition, believed: Transition) -> Bool[Array, ""]:
    """Whether anything about a transition differs from what was predicted."""
    same = jax.tree.map(lambda ours, theirs: jnp.all(ours == theirs), real, believed)
    return ~jnp.all(jnp.stack(jax.tree.leaves(same)))
