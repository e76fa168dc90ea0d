"""What an agent knows and how it learns: pure functions of one pytree, for loops of every kind.

`uamcts.episodes.online` runs them as compiled lanes, `uamcts.Agent.paper` one call at a time; from the same key, both
give the same numbers.

A learner takes in experience and says what to plan with. `UncertaintyLearner` is the paper's: the model stays as it is,
and U is learned. `uamcts.corrections.facts` has one that keeps what it saw, `uamcts.baselines.transition` one that
learns the transition function, and `uamcts.baselines` those of other papers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol, Self, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uamcts.domains.base import Domain
from uamcts.mcts.api import run_search
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.problem import Problem
from uamcts.mcts.search import SearchResult
from uamcts.types import BatchedUncertainty, Model, PyTree, Transition, Uncertainty
from uamcts.uncertainty.calibration import Calibrated, applies
from uamcts.uncertainty.estimator import Action, Copies, Estimator, Scalar
from uamcts.uncertainty.samples import Surprise
from uamcts.uncertainty.schedule import Schedule

SEARCHES, RESETS, ROUNDS, LOOKS, STEPS = range(5)
"""What the key of an agent or a run is used for: each gives a key of its own."""


def purpose(key: jax.Array, use: int, number: int | jax.Array) -> jax.Array:
    """The key for one of these uses, the `number`-th time."""
    return jax.random.fold_in(jax.random.fold_in(key, use), number)


@runtime_checkable
class Learner(Protocol):
    """What a search plans with, and what learns. A pytree with pure methods."""

    def planner(self, domain: Domain) -> tuple[Model, Uncertainty | BatchedUncertainty]:
        """The model to plan in, and its uncertainty."""
        ...

    def observe(self, domain: Domain, state: PyTree, action: Action, real: Transition, copies: Copies) -> Self:
        """Takes in one real transition, counted `copies` times."""
        ...

    def learn(self, key: jax.Array) -> tuple[Self, Scalar]:
        """Runs a round of training; also returns its mean loss."""
        ...

    def finish_on_host(self) -> Self:
        """Completes a round with work that can only be done on the host. Not for use under `jit`."""
        ...

    def reserve(self, samples: int) -> Self:
        """Makes room for this many more samples. Not for use under `jit`."""
        ...

    @property
    def surprised(self) -> Bool[Array, "*runs"]:
        """Whether something unexpected happened since the last round, so that another round is worth it."""
        ...


class UncertaintyLearner(eqx.Module):
    """Plans in the given model and learns where it errs."""

    estimator: Estimator
    surprise: Surprise | None
    """How far off the estimator was since the last round. None: it is not watched, and stops for good."""

    def __init__(self, estimator: Estimator, surprise: Surprise | None = None):
        """Pass `surprise` to watch an estimator that otherwise stops for good."""
        watched = surprise is not None or not (estimator.stops_for_good or estimator.exact)
        self.estimator, self.surprise = estimator, (surprise or Surprise.empty()) if watched else None

    def planner(self, domain: Domain) -> tuple[Model, Uncertainty | BatchedUncertainty]:
        return domain.model, self.estimator.uncertainty()

    def observe(self, domain: Domain, state: PyTree, action: Action, real: Transition, copies: Copies) -> Self:
        target = domain.difference(real.state, domain.model(state, action).state)
        surprise = self.surprise
        if surprise is not None:
            surprise = surprise.add(self.estimator.predict(state, action), target, copies)
        return type(self)(self.estimator.absorb(state, action, target, copies), surprise)

    def learn(self, key: jax.Array) -> tuple[Self, Scalar]:
        estimator, loss = self.estimator.learn(key)
        return type(self)(estimator, None if self.surprise is None else Surprise.empty()), loss

    def finish_on_host(self) -> Self:
        return type(self)(self.estimator.finish_on_host(), self.surprise)

    def reserve(self, samples: int) -> Self:
        return type(self)(self.estimator.reserve(samples), self.surprise)

    @property
    def surprised(self) -> Bool[Array, "*runs"]:
        return jnp.bool_(False) if self.surprise is None else self.surprise.total > 0


def fresh_learner(estimator: Estimator, config: SearchConfig, state: PyTree) -> UncertaintyLearner:
    """A learner for searches with these settings; `state` is an example of a state.

    Where the search asks whether a transition is doubtful, predictions are calibrated, and a network is not bound to
    the paper's rule of when to stop.
    """
    if applies(config, estimator):
        estimator = Calibrated.around(estimator, state)
    return UncertaintyLearner(estimator, Surprise.empty() if config.reads("doubt_threshold") else None)


class AgentState(eqx.Module):
    """All that an agent carries from one real step to the next."""

    learner: Any
    """A `Learner`."""
    tau: Float[Array, "*runs"]
    steps: Int[Array, "*runs"]
    """Real steps so far."""
    loss: Float[Array, "*runs"]
    """Mean loss of the last round of training, infinite before the first."""

    @classmethod
    def fresh(cls, learner: Learner, schedule: Schedule) -> Self:
        return cls(learner, jnp.float32(schedule.start), jnp.int32(0), jnp.float32(jnp.inf))


def empty_cache(learner: Learner, domain: Domain) -> PyTree:
    """What searches share, before the first one and after every round of training; None if nothing."""
    _, uncertainty = learner.planner(domain)
    return uncertainty.empty_cache() if isinstance(uncertainty, BatchedUncertainty) else None


def plan(
    knowledge: AgentState, key: jax.Array, state: PyTree, domain: Domain, config: SearchConfig, cache: PyTree = None
) -> SearchResult:
    """Searches for a move from `state`, at the present tau."""
    model, uncertainty = knowledge.learner.planner(domain)
    settings = config.with_tau(knowledge.tau)
    legal = getattr(domain, "legal", None)
    return run_search(key, state, Problem(model, uncertainty, domain.num_actions, legal), settings, cache)


def observe(
    knowledge: AgentState, domain: Domain, state: PyTree, action: Action, real: Transition, copies: Copies = 1
) -> AgentState:
    """Takes in one real transition."""
    learner = knowledge.learner.observe(domain, state, action, real, copies)
    return AgentState(learner, knowledge.tau, knowledge.steps + 1, knowledge.loss)


def goes_on(knowledge: AgentState, schedule: Schedule) -> Bool[Array, ""]:
    """Whether another round of training is worth it: the schedule says so, or something unexpected happened.

    A small loss alone may only mean that no error was met yet, so training must be able to resume. With the paper's
    estimators it stops for good, as in the paper (`Estimator.stops_for_good`).
    """
    more: jax.Array = schedule.goes_on(knowledge.tau, knowledge.loss) | knowledge.learner.surprised
    return more


def train(knowledge: AgentState, key: jax.Array, schedule: Schedule) -> AgentState:
    """Runs a round of training and lowers tau, if another round is worth it."""

    def run_round(knowledge: AgentState) -> AgentState:
        learner, loss = knowledge.learner.learn(key)
        return AgentState(learner, schedule.decay(knowledge.tau), knowledge.steps, loss)

    after: AgentState = jax.lax.cond(goes_on(knowledge, schedule), run_round, lambda same: same, knowledge)
    return after


def finish_on_host(knowledge: AgentState) -> AgentState:
    """Completes a round of training with work that can only be done on the host. Not for use under `jit`."""
    return replace(knowledge, learner=knowledge.learner.finish_on_host())
