"""What an agent knows and how it comes to know more: pure functions of one pytree, for loops of every kind.

A learner is what experience goes into and what a search plans with. `UncertaintyLearner` is the paper's: the model
stays as it is, and U is learned. `uamcts.corrections.facts` has one that keeps what it saw,
`uamcts.baselines.transition` one that learns the transition function, and `uamcts.baselines` those of other papers.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import equinox as eqx
import jax
import jax.numpy as jnp

from uamcts.domains.base import Domain
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.problem import Problem
from uamcts.mcts.search import SearchResult, tree_search
from uamcts.types import BatchedUncertainty, Model, PyTree, Transition, Uncertainty
from uamcts.uncertainty.calibration import Calibrated, applies
from uamcts.uncertainty.estimator import Estimator
from uamcts.uncertainty.samples import Surprise
from uamcts.uncertainty.schedule import Schedule


class Learner(Protocol):
    """What is planned with, and what learns. A pytree with pure methods."""

    def planner(self, domain: Domain) -> tuple[Model, Uncertainty | BatchedUncertainty]:
        """The model to plan in, and the doubt about it."""
        ...

    def observe(self, domain: Domain, state: PyTree, action: jax.Array, real: Transition, copies: Any) -> Self:
        """With one real transition more, counted `copies` times."""
        ...

    def learn(self, key: jax.Array) -> tuple[Self, jax.Array]:
        """After a round of training, and its mean loss."""
        ...

    def finish_on_host(self) -> Self:
        """After what a round of training can only do on the host. Not for use under `jit`."""
        ...

    def reserve(self, samples: int) -> Self:
        """With room for this many samples more. Not for use under `jit`."""
        ...

    @property
    def surprised(self) -> jax.Array:
        """Whether something came since the last round that it did not expect, so that another round is worth it."""
        ...


class UncertaintyLearner(eqx.Module):
    """Plans in the given model and learns where it errs."""

    estimator: Estimator
    surprise: Surprise | None
    """What the estimator did not expect since the last round. None: it is not watched, and stops for good."""

    def __init__(self, estimator: Estimator, surprise: Surprise | None = None):
        """`surprise` need only be given to watch an estimator that otherwise stops for good."""
        watched = surprise is not None or not (estimator.stops_for_good or estimator.exact)
        self.estimator, self.surprise = estimator, (surprise or Surprise.empty()) if watched else None

    def planner(self, domain: Domain) -> tuple[Model, Uncertainty | BatchedUncertainty]:
        return domain.model, self.estimator.uncertainty()

    def observe(self, domain: Domain, state: PyTree, action: jax.Array, real: Transition, copies: Any) -> Self:
        target = domain.difference(real.state, domain.model(state, action).state)
        surprise = self.surprise
        if surprise is not None:
            surprise = surprise.add(self.estimator.predict(state, action), target, copies)
        return type(self)(self.estimator.absorb(state, action, target, copies), surprise)

    def learn(self, key: jax.Array) -> tuple[Self, jax.Array]:
        estimator, loss = self.estimator.learn(key)
        return type(self)(estimator, None if self.surprise is None else Surprise.empty()), loss

    def finish_on_host(self) -> Self:
        return type(self)(self.estimator.finish_on_host(), self.surprise)

    def reserve(self, samples: int) -> Self:
        return type(self)(self.estimator.reserve(samples), self.surprise)

    @property
    def surprised(self) -> jax.Array:
        return jnp.bool_(False) if self.surprise is None else self.surprise.total > 0


def fresh_learner(estimator: Estimator, config: SearchConfig, state: PyTree) -> UncertaintyLearner:
    """A learner for searches with these settings; `state` is one state, as an example.

    Where the search asks whether a transition is doubtful, the estimator's answers are calibrated, and nothing binds a
    network to the paper's rule of when to stop.
    """
    if applies(config, estimator):
        estimator = Calibrated.around(estimator, state)
    return UncertaintyLearner(estimator, Surprise.empty() if config.reads("doubt_threshold") else None)


class AgentState(eqx.Module):
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
    knowledge: AgentState, key: jax.Array, state: PyTree, domain: Domain, config: SearchConfig, memory: PyTree = None
) -> SearchResult:
    """A move from `state`, at the present tau."""
    model, uncertainty = knowledge.learner.planner(domain)
    settings = config.with_tau(knowledge.tau)
    legal = getattr(domain, "legal", None)
    return tree_search(key, state, Problem(model, uncertainty, domain.num_actions, legal), settings, memory)


def observe(
    knowledge: AgentState, domain: Domain, state: PyTree, action: jax.Array, real: Transition, copies: Any = 1
) -> AgentState:
    """After one real transition."""
    learner = knowledge.learner.observe(domain, state, action, real, copies)
    return AgentState(learner, knowledge.tau, knowledge.steps + 1, knowledge.loss)


def goes_on(knowledge: AgentState, schedule: Schedule) -> jax.Array:
    """Whether another round of training is worth it: the schedule says so, or something came that was not expected.

    A small loss alone may only mean that no error was met yet, so a stop must not be for good. With the paper's
    estimators it is, as in the paper (`Estimator.stops_for_good`).
    """
    return schedule.goes_on(knowledge.tau, knowledge.loss) | knowledge.learner.surprised


def train(knowledge: AgentState, key: jax.Array, schedule: Schedule) -> AgentState:
    """After a round of training and with a lower tau; as it was where another round is not worth it."""

    def round_of_training(knowledge: AgentState) -> AgentState:
        learner, loss = knowledge.learner.learn(key)
        return AgentState(learner, schedule.decay(knowledge.tau), knowledge.steps, loss)

    return jax.lax.cond(goes_on(knowledge, schedule), round_of_training, lambda same: same, knowledge)


def finish_on_host(knowledge: AgentState) -> AgentState:
    """After a round of training: what of it can only be done on the host. Not for use under `jit`."""
    return eqx.tree_at(lambda knowledge: knowledge.learner, knowledge, knowledge.learner.finish_on_host())
