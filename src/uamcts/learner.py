"""What an agent knows and how it comes to know more: pure functions of one pytree, for loops of every kind.

A learner is what experience goes into and what a search plans with. `Doubter` is the paper's: the model stays as it is,
and U is learned. `uamcts.transition` has the other one, which learns the transition function instead, `uamcts.memory`
one that keeps what it saw, and `uamcts.baselines` those of other papers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol, Self

import equinox as eqx
import jax
import jax.numpy as jnp

from uamcts.domains.base import Domain
from uamcts.mcts.problem import Problem
from uamcts.mcts.search import SearchResult, tree_search
from uamcts.types import BatchedUncertainty, Model, PyTree, SearchConfig, Transition, Uncertainty
from uamcts.uncertainty.estimator import Estimator
from uamcts.uncertainty.schedule import Schedule


class Learner(Protocol):
    """What is planned with, and what learns. A pytree with pure methods."""

    def planner(self, domain: Domain) -> tuple[Model, Uncertainty | BatchedUncertainty]:
        """The model to plan in, and the doubt about it."""
        ...

    def seen(self, domain: Domain, state: PyTree, action: jax.Array, real: Transition, copies: Any) -> Self:
        """With one real transition more, counted `copies` times."""
        ...

    def learn(self, key: jax.Array) -> tuple[Self, jax.Array]:
        """After a round of training, and its mean loss."""
        ...

    def settled(self) -> Self:
        """After what a round of training can only do on the host. Not for use under `jit`."""
        ...

    def with_room(self, samples: int) -> Self:
        """With room for this many samples more. Not for use under `jit`."""
        ...


class Doubter(eqx.Module):
    """Plans in the given model and learns where it errs."""

    estimator: Estimator

    def planner(self, domain: Domain) -> tuple[Model, Uncertainty | BatchedUncertainty]:
        return domain.model, self.estimator.uncertainty()

    def seen(self, domain: Domain, state: PyTree, action: jax.Array, real: Transition, copies: Any) -> Self:
        target = domain.difference(real.state, domain.model(state, action).state)
        return type(self)(self.estimator.absorb(state, action, target, copies))

    def learn(self, key: jax.Array) -> tuple[Self, jax.Array]:
        estimator, loss = self.estimator.learn(key)
        return type(self)(estimator), loss

    def settled(self) -> Self:
        return type(self)(self.estimator.settled())

    def with_room(self, samples: int) -> Self:
        return type(self)(self.estimator.with_room(samples))


class Knowledge(eqx.Module):
    """All that an agent carries from one real step to the next."""

    learner: Any
    tau: jax.Array
    steps: jax.Array
    """Real steps seen. int32."""
    loss: jax.Array
    """Mean loss of the last round of training, infinite before the first."""

    @classmethod
    def fresh(cls, learner: Learner, schedule: Schedule) -> Self:
        return cls(learner, jnp.float32(schedule.start), jnp.int32(0), jnp.float32(jnp.inf))


def plan(
    knowledge: Knowledge, key: jax.Array, state: PyTree, domain: Domain, config: SearchConfig, memory: PyTree = None
) -> SearchResult:
    """A move from `state`, at the present tau."""
    model, uncertainty = knowledge.learner.planner(domain)
    settings = replace(config, tau=knowledge.tau)
    legal = getattr(domain, "legal", None)
    return tree_search(key, state, Problem(model, uncertainty, domain.num_actions, legal), settings, memory)


def seen(
    knowledge: Knowledge, domain: Domain, state: PyTree, action: jax.Array, real: Transition, copies: Any = 1
) -> Knowledge:
    """After one real transition."""
    learner = knowledge.learner.seen(domain, state, action, real, copies)
    return Knowledge(learner, knowledge.tau, knowledge.steps + 1, knowledge.loss)


def taught(knowledge: Knowledge, key: jax.Array, schedule: Schedule) -> Knowledge:
    """After a round of training and with a lower tau; as it was where the schedule says that training has stopped."""

    def round_of_training(knowledge: Knowledge) -> Knowledge:
        learner, loss = knowledge.learner.learn(key)
        return Knowledge(learner, schedule.decayed(knowledge.tau), knowledge.steps, loss)

    return jax.lax.cond(
        schedule.goes_on(knowledge.tau, knowledge.loss), round_of_training, lambda same: same, knowledge
    )


def settled(knowledge: Knowledge) -> Knowledge:
    """After a round of training: what of it can only be done on the host. Not for use under `jit`."""
    return eqx.tree_at(lambda knowledge: knowledge.learner, knowledge, knowledge.learner.settled())
