"""What was really seen is a fact: an exact memory (s, a) -> (s', r, terminal) that overrides the model in planning.

`Facts` is the table and `Outcomes` counts in it how often each outcome was seen. `Patched` is a learner that plans in
the given model with the facts in the places of its guesses, and `PatchedModel` does the same for models of
`uamcts.reference`.

Where one transition had several outcomes, the most frequent one is planned with, the latest of equally frequent ones.
Outcomes that differ in their reward alone count as one, which pays their mean.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp

from uamcts.arguments import flag, integer, real
from uamcts.corrections.fact_table import CAPACITY, Facts
from uamcts.domains.base import Domain
from uamcts.reference import PythonModel
from uamcts.types import BatchedUncertainty, Model, PyTree, Transition, Uncertainty
from uamcts.uncertainty.estimator import ZeroUncertainty
from uamcts.uncertainty.learner import Learner, UncertaintyLearner


def no_transition(state: PyTree) -> Transition:
    """A transition of the form that a table of transitions keeps."""
    return Transition(state, jnp.float32(0), jnp.bool_(False))


class BestOutcome(NamedTuple):
    """What is planned with for one (state, action)."""

    outcome: Transition
    times: jax.Array
    """How often this outcome was seen. int32."""
    varied: jax.Array
    """Whether any other outcome was seen as well. bool."""


class Tally(NamedTuple):
    """How often one outcome of one (state, action) was seen, and what it paid on average."""

    times: jax.Array
    reward: jax.Array


class Outcomes(eqx.Module):
    """Facts about transitions: how often each outcome was seen, and which one is the most frequent.

    States are looked up by their identity, which is the state itself unless a simulator says otherwise.
    """

    best: Facts
    """(state, action) -> BestOutcome."""
    tally: Facts
    """((state, next state, end), action) -> Tally."""

    @classmethod
    def empty(cls, state: PyTree, capacity: int = CAPACITY, identity: PyTree = None) -> Self:
        """Nothing seen yet; `state` is one state as an example, `identity` its identity if that is not itself."""
        identity = state if identity is None else identity
        best = BestOutcome(no_transition(state), jnp.int32(0), jnp.bool_(False))
        pair = (identity, identity, jnp.bool_(False))
        return cls(
            Facts.empty(identity, best, capacity),
            Facts.empty(pair, Tally(jnp.int32(0), jnp.float32(0)), capacity),
        )

    def find(self, identity: PyTree, action: jax.Array) -> tuple[Transition, jax.Array]:
        """What is planned with, and whether there is any such fact; without one the transition means nothing."""
        best, known = self.best.find(identity, action)
        return best.outcome, known

    def put(self, identity: PyTree, action: jax.Array, real: Transition, following: PyTree = None) -> Self:
        """With one more real transition; `following` is the identity of its next state if that is not itself."""
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
            self.best.put(identity, action, BestOutcome(chosen[0], chosen[1], varied)),
            self.tally.put(pair, action, Tally(times, mean)),
        )

    def reserve(self, transitions: int) -> Self:
        """The same with room for this many more. Not for use under `jit`."""
        best, tally = self.best.reserve(transitions), self.tally.reserve(transitions)
        return self if best is self.best and tally is self.tally else type(self)(best, tally)

    def recurrence(self) -> Recurrence:
        """What there is to say in a report. Not for use under `jit`."""
        count = int(self.best.count)
        times = int(jnp.sum(self.tally.values.times[: int(self.tally.count)]))
        return Recurrence(count, times, int(jnp.sum(self.best.values.varied[:count])))


class Recurrence(NamedTuple):
    """What a memory knows: different transitions, how often they were seen, and how many had several outcomes."""

    facts: int
    times: int
    varied: int


def identity_of(owner: Any) -> Callable[[PyTree], PyTree]:
    """What tells the states of a domain or a simulator apart: its own `identity(state)`, or the state itself."""
    own = getattr(owner, "identity", None)
    return (lambda state: state) if own is None else own


class Patched(eqx.Module):
    """Plans in another learner's model with facts in the places of its guesses, and doubts only what was not seen.

    With an estimator that says 0 everywhere this is MCTS in the patched model.
    """

    facts: Outcomes
    learner: Any
    """What answers where there is no fact; it learns from everything that is seen, too."""

    @classmethod
    def fresh(
        cls, state: PyTree, learner: Learner | None = None, capacity: int = CAPACITY, identity: PyTree = None
    ) -> Self:
        """Nothing seen yet; `state` is one state as an example, `identity` its identity if that is not itself."""
        learner = UncertaintyLearner(ZeroUncertainty()) if learner is None else learner
        return cls(Outcomes.empty(state, capacity, identity), learner)

    def planner(self, domain: Domain) -> tuple[Model, Uncertainty | BatchedUncertainty]:
        model, doubt = self.learner.planner(domain)
        find = finder(self.facts, identity_of(domain))
        return patch_model(model, find), patch_uncertainty(doubt, find)

    def observe(self, domain: Domain, state: PyTree, action: jax.Array, real: Transition, copies: Any) -> Self:
        learner = self.learner.observe(domain, state, action, real, copies)
        identity = identity_of(domain)
        return type(self)(self.facts.put(identity(state), action, real, identity(real.state)), learner)

    def learn(self, key: jax.Array) -> tuple[Self, jax.Array]:
        learner, loss = self.learner.learn(key)
        return type(self)(self.facts, learner), loss

    def finish_on_host(self) -> Self:
        return type(self)(self.facts, self.learner.finish_on_host())

    def reserve(self, samples: int) -> Self:
        facts, learner = self.facts.reserve(samples), self.learner.reserve(samples)
        return self if facts is self.facts and learner is self.learner else type(self)(facts, learner)

    @property
    def surprised(self) -> jax.Array:
        return self.learner.surprised


Find = Callable[[PyTree, jax.Array], tuple[Transition, jax.Array]]
"""What is known of an action in a state, and whether anything is."""


def finder(facts: Outcomes, identity: Callable[[PyTree], PyTree]) -> Find:
    """Looks facts up by the identity of a state."""
    return lambda state, action: facts.find(identity(state), action)


def patch_model(model: Model, find: Find) -> Model:
    """`model`, and what is known in the place of its guesses."""

    def step(state: PyTree, action: jax.Array) -> Transition:
        fact, known = find(state, action)
        return jax.tree.map(lambda real, guess: jnp.where(known, real, guess), fact, model(state, action))

    return step


def patch_uncertainty(doubt: Uncertainty | BatchedUncertainty, find: Find) -> Uncertainty | BatchedUncertainty:
    """`doubt`, and 0 about what is known."""
    if isinstance(doubt, BatchedUncertainty):
        return PatchedUncertainty(doubt, find)

    def one(state: PyTree, action: jax.Array) -> jax.Array:
        return jnp.where(find(state, action)[1], 0.0, doubt(state, action))

    return one


@dataclass(frozen=True, eq=False)
class PatchedUncertainty:
    """The same for an uncertainty that is asked for many transitions at once; what it remembers stays its own."""

    doubt: Any
    find: Find

    def __call__(self, state: PyTree, action: jax.Array) -> jax.Array:
        return jnp.where(self.find(state, action)[1], 0.0, self.doubt(state, action))

    def memory(self) -> PyTree:
        return self.doubt.memory()

    def glance(self, memory: PyTree, state: PyTree, action: jax.Array) -> tuple[jax.Array, jax.Array]:
        fact = self.find(state, action)[1]
        found, known = self.doubt.glance(memory, state, action)
        return jnp.where(fact, 0.0, found), fact | known

    def many(self, memory: PyTree, states: PyTree, actions: jax.Array, wanted: jax.Array) -> tuple[jax.Array, PyTree]:
        fact = jax.vmap(self.find)(states, actions)[1]
        found, memory = self.doubt.many(memory, states, actions, wanted & ~fact)
        return jnp.where(fact, 0.0, found), memory


class OutcomeCount(NamedTuple):
    """One outcome of a transition of a Python simulator."""

    following: Any
    terminal: bool
    times: int
    reward: float
    """What it paid, on average."""
    varied: bool
    """Whether it did not always pay the same."""


@dataclass(frozen=True)
class Fact:
    """All that was seen of one (state, action)."""

    state: Any
    outcomes: dict[Hashable, OutcomeCount]
    """The latest one is the last."""

    @property
    def varied(self) -> bool:
        return len(self.outcomes) > 1 or any(seen.varied for seen in self.outcomes.values())

    def most_frequent(self) -> tuple[Any, float, bool]:
        """The most frequent outcome, the latest of equally frequent ones."""
        best = max(reversed(self.outcomes.values()), key=lambda seen: seen.times)
        return best.following, best.reward, best.terminal


class PatchedModel:
    """A model for `uamcts.reference.search` in which what was seen overrides what another model says.

    `key` makes something hashable of a state; by default the state itself is it.
    """

    def __init__(self, model: PythonModel, key: Callable[[Any], Hashable] | None = None):
        self.model = model
        self.num_actions = model.num_actions
        self.key = key if key is not None else lambda state: state
        self.facts: dict[tuple[Hashable, int], Fact] = {}
        self._planned: dict[tuple[Hashable, int], tuple[Any, float, bool]] = {}
        if hasattr(model, "legal_actions"):
            self.legal_actions = model.legal_actions

    def remember(self, state: Any, action: int, next_state: Any, reward: float, terminal: bool) -> None:
        """Takes in what really happened. Where outcomes differ, the most frequent one is planned with."""
        number, paid, over = integer(action), real("reward", reward), flag("terminal", terminal)
        if number is None or not 0 <= number < self.num_actions:
            raise ValueError(f"action is {action!r}; it must be a whole number from 0 to {self.num_actions - 1}")
        place, kind = self._place(state, number), (self._place(next_state, 0)[0], over)
        before = self.facts.get(place)
        outcomes = {} if before is None else dict(before.outcomes)
        seen = outcomes.pop(kind, None) or OutcomeCount(next_state, over, 0, paid, False)
        times = seen.times + 1
        mean, varied = seen.reward + (paid - seen.reward) / times, seen.varied or paid != seen.reward
        outcomes[kind] = OutcomeCount(next_state, over, times, mean, varied)
        self.place(state if before is None else before.state, number, outcomes)

    def place(self, state: Any, action: int, outcomes: dict[Hashable, OutcomeCount]) -> None:
        """Puts all that was seen of one transition where it is found again."""
        place = self._place(state, action)
        fact = Fact(state, outcomes)
        self.facts[place], self._planned[place] = fact, fact.most_frequent()

    def twin(self) -> PatchedModel:
        """A copy that can learn more on its own."""
        other = PatchedModel(self.model, self.key)
        other.facts, other._planned = dict(self.facts), dict(self._planned)
        return other

    def recurrence(self) -> Recurrence:
        facts = self.facts.values()
        times = sum(seen.times for fact in facts for seen in fact.outcomes.values())
        return Recurrence(len(facts), times, sum(fact.varied for fact in facts))

    def knows(self, state: Any, action: int) -> bool:
        return self._place(state, action) in self._planned

    def step(self, state: Any, action: int) -> tuple[Any, float, bool]:
        fact = self._planned.get(self._place(state, action))
        return self.model.step(state, action) if fact is None else fact

    def patch_uncertainty(self, uncertainty: Callable[[Any, int], float]) -> Callable[[Any, int], float]:
        """`uncertainty`, and 0 about what is known."""
        return lambda state, action: 0.0 if self.knows(state, action) else uncertainty(state, action)

    def _place(self, state: Any, action: int) -> tuple[Hashable, int]:
        place = (self.key(state), int(action))
        try:
            hash(place)
        except TypeError:
            raise TypeError(
                f"state is {state!r}, which cannot be a key of a dictionary; give PatchedModel a `key` that makes "
                "something hashable of a state, for example key=lambda state: state.tobytes()"
            ) from None
        return place
