"""Ideas from other papers, ported to MCTS for tasks with rewards. The original algorithms are in `cmax`.

CMAX      a transition that was seen to be wrong is avoided: in planning it ends the episode at the worst value
CMAX++    it is worth a learned Q(s, a) = r + V(s'), whatever the model says comes after it
penalty   every transition pays r - lambda U-hat(s, a); with a lambda below 0 it is a bonus for what is doubtful
nearest   the model's prediction is corrected by the residual of the nearest transition seen with the same action
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from uamcts.corrections.fact_table import CAPACITY, Facts
from uamcts.domains.base import Domain
from uamcts.mcts.api import no_uncertainty
from uamcts.mcts.charge import Charged
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.problem import Problem
from uamcts.mcts.rollout import Start
from uamcts.mcts.simulate import roll_out
from uamcts.types import BatchedUncertainty, Model, PyTree, Transition, Uncertainty
from uamcts.uncertainty.estimator import Copies
from uamcts.uncertainty.learner import Learner

WORST = -1.0
"""The value of a transition that is avoided: no episode of these domains returns less than 0."""
LOOK = SearchConfig(iterations=1, rollouts=32, depth=50)
"""The number of rollouts whose mean return is V(s') of CMAX++-MCTS."""
NEIGHBOURS = 512
"""The most transitions that a nearest-residual model keeps: every simulated step compares with all of them."""


class NoTraining(eqx.Module):
    """The methods of a learner without rounds of training: they change nothing."""

    def learn(self, key: jax.Array) -> tuple[Self, jax.Array]:
        del key
        return self, jnp.zeros((), jnp.float32)

    def finish_on_host(self) -> Self:
        return self

    @property
    def surprised(self) -> jax.Array:
        return jnp.bool_(False)


class CmaxMcts(NoTraining):
    """CMAX for MCTS: plans in the model, where transitions seen to be wrong end the episode at the worst value."""

    facts: Facts
    """X, the transitions seen to be wrong. There are no values."""

    @classmethod
    def fresh(cls, state: PyTree, capacity: int = CAPACITY) -> Self:
        return cls(Facts.empty(state, (), capacity))

    def planner(self, domain: Domain) -> tuple[Model, Uncertainty]:
        def model(state: PyTree, action: jax.Array) -> Transition:
            _, wrong = self.facts.find(state, action)
            return cut_off(domain.model(state, action), wrong, jnp.float32(WORST))

        return model, no_uncertainty

    def observe(self, domain: Domain, state: PyTree, action: jax.Array, real: Transition, copies: Copies) -> Self:
        del copies
        wrong = differ(real, domain.model(state, action))
        return type(self)(self.facts.put(state, action, (), wanted=wrong))

    def reserve(self, samples: int) -> Self:
        facts = self.facts.reserve(samples)
        return self if facts is self.facts else type(self)(facts)


class CmaxPlusMcts(NoTraining):
    """CMAX++ for MCTS: a transition seen to be wrong leads nowhere and pays Q(s, a).

    Each time it is seen, Q(s, a) <- r + V(s'), V(s') the mean return of random rollouts from the state it really led
    to, in the model with the Q of that moment. That is what an unexplored leaf of the search is worth.
    """

    facts: Facts
    """Q of the transitions in X."""
    looks: jax.Array
    """Transitions seen; numbers the rollouts."""

    @classmethod
    def fresh(cls, state: PyTree, capacity: int = CAPACITY) -> Self:
        return cls(Facts.empty(state, jnp.float32(0), capacity), jnp.int32(0))

    def planner(self, domain: Domain) -> tuple[Model, Uncertainty]:
        def model(state: PyTree, action: jax.Array) -> Transition:
            value, wrong = self.facts.find(state, action)
            return cut_off(domain.model(state, action), wrong, value)

        return model, no_uncertainty

    def observe(self, domain: Domain, state: PyTree, action: jax.Array, real: Transition, copies: Copies) -> Self:
        del copies
        wrong = differ(real, domain.model(state, action))
        value = jax.lax.cond(wrong, lambda: real.reward + self.value(domain, real), lambda: jnp.float32(0))
        return type(self)(self.facts.put(state, action, value, wanted=wrong), self.looks + 1)

    def value(self, domain: Domain, real: Transition) -> jax.Array:
        """V of the state after a transition."""
        model, _ = self.planner(domain)
        seed = jnp.stack([self.looks.astype(jnp.uint32), jnp.uint32(0)])
        problem = Problem(model, no_uncertainty, domain.num_actions, getattr(domain, "legal", None))
        end, _ = roll_out(Start(seed, self.looks, real.state, real.terminal), problem, LOOK)
        return jnp.mean(end.returned).astype(jnp.float32)

    def reserve(self, samples: int) -> Self:
        facts = self.facts.reserve(samples)
        return self if facts is self.facts else type(self)(facts, self.looks)


class Penalised(eqx.Module):
    """Plain MCTS where every transition pays r - weight * U-hat(s, a), with U-hat of another learner.

    A negative weight is a bonus: the planner seeks uncertain transitions. Inside of `Patched`, facts keep their reward.
    A U-hat that is evaluated in batches, such as a network's, is charged by the search, not by the model.
    """

    learner: Any
    """The `Learner` whose U-hat it is."""
    weight: Any
    """lambda, a number of either sign."""

    def planner(self, domain: Domain) -> tuple[Model, Uncertainty | BatchedUncertainty]:
        model, uncertainty = self.learner.planner(domain)
        if isinstance(uncertainty, Charged):
            return model, uncertainty
        if isinstance(uncertainty, BatchedUncertainty):
            return model, Charged(uncertainty, self.weight)

        def step(state: PyTree, action: jax.Array) -> Transition:
            believed = model(state, action)
            return believed._replace(reward=believed.reward - self.weight * uncertainty(state, action))

        return step, no_uncertainty

    def observe(self, domain: Domain, state: PyTree, action: jax.Array, real: Transition, copies: Copies) -> Self:
        return self._with(self.learner.observe(domain, state, action, real, copies))

    def learn(self, key: jax.Array) -> tuple[Self, jax.Array]:
        learner, loss = self.learner.learn(key)
        return self._with(learner), loss

    def finish_on_host(self) -> Self:
        return self._with(self.learner.finish_on_host())

    def reserve(self, samples: int) -> Self:
        learner = self.learner.reserve(samples)
        return self if learner is self.learner else self._with(learner)

    @property
    def surprised(self) -> jax.Array:
        return self.learner.surprised

    def _with(self, learner: Learner) -> Self:
        return type(self)(learner, self.weight)


class Seen(NamedTuple):
    """A transition for a nearest-residual model: s, a, M(s, a) - M^(s, a), all in features, and whether it ended."""

    features: jax.Array
    action: jax.Array
    residual: jax.Array
    terminal: jax.Array


class NearestResidual(NoTraining):
    """Plain MCTS in the given model, corrected where a similar transition was observed.

    M^(s, a) plus the residual of the seen transition of the same action whose features are nearest to those of s, if
    they are no further than `radius` away (Euclidean); rounded, within the bounds of the features. Duplicates
    are kept once, and only the first `NEIGHBOURS` different transitions are kept.
    """

    facts: Facts
    radius: float = eqx.field(static=True)

    @classmethod
    def fresh(cls, domain: Domain, radius: float = 1.0, capacity: int = NEIGHBOURS) -> Self:
        state = domain.reset(jax.random.key(0))
        features = jnp.zeros(domain.features(state).shape, jnp.float32)
        nothing = Seen(features, jnp.int32(0), features, jnp.bool_(False))
        return cls(Facts.empty(state, nothing, min(capacity, NEIGHBOURS)), radius)

    def planner(self, domain: Domain) -> tuple[Model, Uncertainty]:
        return lambda state, action: self.predict(domain, state, action), no_uncertainty

    def predict(self, domain: Domain, state: PyTree, action: jax.Array) -> Transition:
        """One step in the corrected model."""
        given, seen = domain.model(state, action), self.facts.values
        apart = jnp.sum(jnp.square(seen.features - domain.features(state)), axis=1)
        comparable = (jnp.arange(apart.size) < self.facts.count) & (seen.action == action)
        apart = jnp.where(comparable, apart, jnp.inf)
        nearest = jnp.argmin(apart)
        corrects = (apart[nearest] <= np.float32(self.radius**2)) & jnp.any(seen.residual[nearest] != 0)
        low, high = domain.feature_bounds()
        vector = jnp.clip(jnp.round(domain.features(given.state) + seen.residual[nearest]), low, high)
        following = domain.from_features(vector, seen.terminal[nearest])
        if type(domain).arrival is not Domain.arrival:
            corrected = Transition(following, *domain.arrival(following))
        else:
            corrected = Transition(following, given.reward, seen.terminal[nearest])
        return jax.tree.map(lambda a, b: jnp.where(corrects, a, b), corrected, given)

    def observe(self, domain: Domain, state: PyTree, action: jax.Array, real: Transition, copies: Copies) -> Self:
        del copies
        features = domain.features(state).astype(jnp.float32)
        residual = domain.features(real.state) - domain.features(domain.model(state, action).state)
        sample = Seen(features, action, residual.astype(jnp.float32), real.terminal)
        return type(self)(self.facts.put(state, action, sample), self.radius)

    def reserve(self, samples: int) -> Self:
        room = NEIGHBOURS - self.facts.keys.shape[jnp.ndim(self.facts.count)] + 1
        facts = self.facts.reserve(max(0, min(samples, room)))
        return self if facts is self.facts else type(self)(facts, self.radius)


def cut_off(believed: Transition, wrong: jax.Array, value: jax.Array) -> Transition:
    """A believed transition that, where it is known to be `wrong`, pays `value` and leads nowhere."""
    reward = jnp.where(wrong, value, believed.reward)
    return Transition(believed.state, reward, believed.terminal | wrong)


def differ(real: Transition, believed: Transition) -> jax.Array:
    """Whether a transition led to another state than predicted, or differs in whether it ended the episode."""
    same = jax.tree.map(lambda a, b: jnp.all(a == b), real.state, believed.state)
    return ~jnp.all(jnp.stack(jax.tree.leaves(same))) | (real.terminal != believed.terminal)
