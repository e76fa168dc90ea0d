"""`PatchedModel`: facts for models of `uamcts.reference`, as dictionaries."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from uamcts.arguments import action_number, flag, real
from uamcts.corrections.fact_mixing import MixedFacts
from uamcts.corrections.fact_weights import Weigher
from uamcts.corrections.journal import Journal
from uamcts.corrections.mixture import (
    PRIOR_WEIGHT,
    Mixture,
    holds_possible,
    model_kind,
)
from uamcts.corrections.outcome_rates import RatedSimulator
from uamcts.corrections.outcome_tilt import TiltedSimulator
from uamcts.corrections.pooled_outcomes import PooledOutcomes
from uamcts.corrections.python_facts import (
    MOST_FACTS,
    MOST_UNMET,
    NOISY,
    Change,
    Fact,
    Glance,
    OutcomeCount,
    State,
    Streak,
)
from uamcts.corrections.random_model import RandomModel
from uamcts.reference import PythonModel

PythonUncertainty: TypeAlias = Callable[[State, int], float]


class PatchedModel(MixedFacts):
    """A model for `uamcts.reference.search` in which facts correct another model.

    A fact about a deterministic model (`step`) overrides it in `step`. In `planned_model`, which agents search, the
    model keeps a small share where a fact contradicts it, and a larger one in a world with chance. A fact about a
    random model (`outcomes` or `sample`) is mixed with it: see `uamcts.corrections.mixture`.

    If the latest outcomes of a transition are improbable as chance, the world has changed: only they count from then
    on, and older facts that contradict the model are tried again. So is every such fact after a while.

    Args:
        model: The model to correct: any object with `num_actions` and `outcomes`, `sample` or `step`.
        key: Makes a hashable key of a state. By default the state itself is its key.
        prior_weight: How many real transitions the distribution of a random model is worth; None: that is learned, see
            `uamcts.corrections.fact_weights`.
        own_keys: Whether tuples of floats are their own keys. By default if there is no `key`.
        most: How many facts are kept at most; 10,000 as long as no transition was ever met again.

    Example:
        ```python
        model = uamcts.PatchedModel(simulator)
        model.remember(state, 1, next_state, reward=0.0, terminal=False)
        result = uamcts.reference.search(0, state, model, None, uamcts.SearchConfig())
        ```
    """

    def __init__(
        self,
        model: PythonModel | Any,
        key: Callable[[State], Hashable] | None = None,
        prior_weight: float | None = PRIOR_WEIGHT,
        own_keys: bool | None = None,
        most: int = MOST_FACTS,
    ):
        self.model: Any = model
        self.num_actions = model.num_actions
        self.key = key if key is not None else lambda state: state
        self.learns_weight, prior_weight = prior_weight is None, PRIOR_WEIGHT if prior_weight is None else prior_weight
        self.prior_weight = real("prior_weight", prior_weight, "it must be above 0", lambda weight: weight > 0)
        self.weigher, self.pooled = Weigher(), PooledOutcomes()
        self.renewals = 0
        """How often what is planned with has changed in several places at once."""
        self.most, self.drifting = most, False
        self.facts: dict[tuple[Hashable, int], Fact] = {}
        self.glance = Glance(key is None if own_keys is None else own_keys)
        self.journal = Journal()
        self._planned: dict[Any, Any] = {}
        self._contradicting: dict[Any, int] = {}
        self.clock, self.repeats, self.contradictions, self.varied_rewards = 0, 0, 0.0, 0
        self.changes: tuple[Change, ...] = ()  # the latest ones
        self.kind = model_kind(model)
        if self.kind != "step":  # only what the model itself offers: a search takes the first of the three it finds
            setattr(self, self.kind, {"outcomes": self._outcomes, "sample": self._sample}[self.kind])
        if hasattr(model, "legal_actions"):
            self.legal_actions = model.legal_actions
        if key is not None or hasattr(model, "identity"):
            self.identity = getattr(model, "identity", None) if key is None else key

    def remember(
        self,
        state: State,
        action: int,
        next_state: State,
        reward: float,
        terminal: bool,
        agrees: bool | None = None,
    ) -> None:
        """Adds a real transition.

        Args:
            state: The state before the step.
            action: The action taken.
            next_state: The state after the step.
            reward: The reward of the step.
            terminal: Whether the episode ended.
            agrees: Whether the model predicts this. By default the model is asked.

        Raises:
            ValueError: `action`, `reward` or `terminal` is not a legal value.
            TypeError: The state is not hashable, and there is no `key`.
        """
        number = action_number(action, self.num_actions, "the model")
        paid, over = real("reward", reward), flag("terminal", terminal)
        place, kind = self._place(state, number), (self._place(next_state, 0)[0], over)
        if agrees is None:
            agrees = holds_possible(self.model, state, number, (*kind, paid), self.key)
        self.clock += 1
        before = self.facts.get(place)
        outcomes = {} if before is None else dict(before.outcomes)
        count = outcomes.pop(kind, None) or OutcomeCount(next_state, over, 0, paid, False)
        outcomes[kind] = count.again(next_state, paid)
        self.varied_rewards += count.times > 0 and abs(paid - count.reward) > 1e-9
        streak = self._streak(before, kind)
        held = before is not None and before.stale and len(outcomes) == 1
        fact = Fact(state if before is None else before.state, outcomes, streak, agrees, self.clock,
                    0 if before is None else before.confirmed + held)  # fmt: skip
        if self.kind == "step" and fact.has_changed:
            self.changes = (*self.changes, Change(self.clock, state, number))[-20:]
            self.contradictions = max(self.contradictions - 1.0, 0.0)  # it was a change, not chance
            fact = replace(fact, outcomes={kind: outcomes[kind]._replace(times=streak.length)}, confirmed=0)
            self._try_again([one for one in self._contradicting if one != place and self.facts[one].last < self.clock])
        self._count_effect(state, number, kind, before, agrees, paid)
        self._weigh(before, fact, number)
        self._store(place, fact)
        self._arrive(place, fact, before is None)
        if self.clock % (64 << (len(self._contradicting) // 5000).bit_length()) == 0:
            self._age()

    def _streak(self, before: Fact | None, kind: Hashable) -> Streak:
        """The latest outcomes of a transition; counts repeats and contradictions on the way."""
        if before is None:
            return Streak(kind, 1, self.chance)
        chance, was_noisy = self.chance, self.noisy
        self.repeats += 1
        if before.streak.kind == kind:
            return before.streak._replace(length=before.streak.length + 1)
        self.contradictions += NOISY if kind in before.outcomes else 1.0
        if self.noisy and not was_noisy:
            self._renew()
        return Streak(kind, 1, chance)

    def _try_again(self, places: Sequence[tuple[Hashable, int]]) -> None:
        """Has facts that contradict the model tried again."""
        self.renewals += bool(places)
        for place in places:
            self.journal.put(self.facts, place, replace(self.facts[place], stale=True))
            self.journal.drop(self._contradicting, place)
            self.journal.drop(self._planned, place)
            self._arrive(place, None)

    def _age(self) -> None:
        """Has old facts that contradict the model tried again, and drops what was not seen for the longest time."""
        self._try_again([place for place, due in self._contradicting.items() if due <= self.clock])
        most = self.most if self._recurs else min(self.most, MOST_UNMET)
        for _, place in list(zip(range(len(self.facts) - most), self.facts, strict=False)):
            for table in (self.facts, self._contradicting, self._planned):
                self.journal.drop(table, place)
            self._arrive(place, None)
        self.glance = self.glance.renew((key for key, _ in self.facts), 2 * most)

    @property
    def _recurs(self) -> bool:
        """Whether more than a few transitions were met again."""
        return self.repeats > self.clock // 200

    def place(self, state: State, action: int, outcomes: dict[Hashable, OutcomeCount], **known: Any) -> None:
        """Stores all that was seen of one transition."""
        streak = Streak(next(reversed(outcomes)), 1, 1.0)
        self.varied_rewards += sum(count.varied for count in outcomes.values())
        place, fact = self._place(state, action), Fact(state, outcomes, **{"streak": streak, **known})
        self._store(place, fact)
        self._arrive(place, fact)

    def _store(self, place: tuple[Hashable, int], fact: Fact) -> None:
        self.glance.add(place[0])
        self.journal.drop(self.facts, place)  # the latest is the last
        self.journal.put(self.facts, place, fact)
        self.journal.drop(self._planned, place)
        if fact.agrees or fact.stale:
            self.journal.drop(self._contradicting, place)
        else:
            self.journal.put(self._contradicting, place, fact.due)

    def set_model(self, model: Any, drifting: bool = False) -> None:
        """Corrects another model from now on, which is of the same kind; `drifting` if it changes at every step."""
        other = not isinstance(model, RatedSimulator | TiltedSimulator) or type(model) is not type(self.model)
        if other:  # else they differ a little
            self.weigher = self.weigher.for_other_model()
        self.model, self._planned, self.drifting = model, {}, drifting
        self._plan_effects()
        said = self._judge_anew() if self.kind == "step" and not drifting else {}
        if self.arrivals is not None and other and not drifting:
            self.learn_arrivals(self.arrivals.tested, said)

    def _plan(self, place: tuple[Hashable, int]) -> Any:
        """Works out what is planned with instead of the model, and keeps it; None without a fact."""
        fact = self.facts.get(place)
        if fact is None or fact.stale:
            return None
        certain = not self._is_random and len(fact.outcomes) == 1 and fact.agrees
        planned = self._planned[place] = fact.most_frequent() if certain else self._mixture(fact, place[1])
        return planned

    def twin(self) -> PatchedModel:
        """A copy that goes on by itself, as long as every change of its tables is written to its journal."""
        other = copy.copy(self)
        other.journal = Journal()
        other.arrivals = None if self.arrivals is None else self.arrivals.twin(other.key)
        if self.kind != "step":
            setattr(other, self.kind, {"outcomes": other._outcomes, "sample": other._sample}[self.kind])
        return other

    def knows(self, state: State, action: int) -> bool:
        """Whether there is a fact about this transition that is planned with."""
        fact = self.facts.get(self._place(state, action))
        return fact is not None and not fact.stale

    def step(self, state: State, action: int) -> tuple[State, float, bool]:
        """One step in a deterministic model: the fact where there is one, else what the model predicts."""
        if self.glance.excludes(state):
            return self.model.step(state, action)  # type: ignore[no-any-return]
        planned = self.plans_with(state, action)
        if isinstance(planned, Mixture):
            return self.facts[self._place(state, action)].most_frequent()
        return self.model.step(state, action) if planned is None else planned  # type: ignore[no-any-return]

    def planned_model(self) -> Any:
        """What to search in: this model; if facts contradict a deterministic one, one with `outcomes`.

        Where no fact says anything else than the model, that is the model itself, which need not look facts up.
        """
        differs = self.contradictions or (self._contradicting and self._recurs)
        if self.plans_effects or (self.kind == "step" and differs):
            return RandomModel(self)
        return self if self.kind != "step" or self._contradicting else self.model

    def _outcomes(self, state: State, action: int) -> Any:
        """All outcomes, the model's and those seen, with their probabilities."""
        planned = None if self.glance.excludes(state) else self.plans_with(state, action)
        return self._expect(state, self.model.outcomes(state, action)) if planned is None else planned.outcomes

    def _sample(self, state: State, action: int, rng: np.random.Generator) -> Any:
        """A draw from the model, or from what was seen."""
        mixture = self.plans_with(state, action)
        if mixture is None or rng.random() < mixture.model_share:
            return self.model.sample(state, action, rng)
        return mixture.draw_seen(rng.random())

    def plans_with(self, state: State, action: int) -> Any:
        """What is planned with where there is a fact; None without one."""
        try:
            return self.plans_at(self.key(state), action)
        except TypeError:
            return self._plan(self._place(state, action))

    def plans_at(self, key: Hashable, action: int) -> Any:
        """What is planned with for the state with this key."""
        planned = self._planned.get((key, action), self)
        return self._plan((key, action)) if planned is self else planned

    def patch_uncertainty(self, uncertainty: PythonUncertainty) -> PythonUncertainty:
        """An uncertainty of the model, a function `(state, action) -> U`, that is 0 for transitions that are known."""
        return lambda state, action: 0.0 if self.knows(state, action) else uncertainty(state, action)

    def undoubted(self, uncertainty: PythonUncertainty) -> PythonUncertainty:
        """Deprecated: use `patch_uncertainty`."""
        warnings.warn("PatchedModel.undoubted is deprecated; use patch_uncertainty", DeprecationWarning, stacklevel=2)
        return self.patch_uncertainty(uncertainty)

    def _place(self, state: State, action: int) -> tuple[Hashable, int]:
        place = (self.key(state), int(action))
        try:
            hash(place)
        except TypeError:
            remedy = "give PatchedModel a `key`, for example key=lambda s: s.tobytes()"
            raise TypeError(f"state is {state!r}, which is not hashable; {remedy}") from None
        return place
