"""What is planned with where there are facts: they are mixed with what the model predicts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from uamcts.corrections.arrivals import Arrivals
from uamcts.corrections.effective_actions import EffectiveActions
from uamcts.corrections.effective_model import EffectiveModel
from uamcts.corrections.fact_weights import Question, Weigher
from uamcts.corrections.journal import Journal
from uamcts.corrections.mixture import Mixture, Outcome, are_possible, mix, predicted_outcomes
from uamcts.corrections.pooled_outcomes import PooledOutcomes
from uamcts.corrections.python_facts import DETERMINISTIC, DRIFTING, NOISY, Fact, Glance, Recurrence, State

NONE: Mapping[Any, Any] = MappingProxyType({})
CHECKED = 2000
"""Facts, the latest ones, that are compared with another model."""


class MixedFacts:
    """The part of a `PatchedModel` that weighs facts."""

    model: Any
    kind: str
    key: Callable[[Any], Hashable]
    prior_weight: float
    learns_weight: bool
    """Whether how much a random model is worth is learned."""
    weigher: Weigher
    drifting: bool
    repeats: int
    contradictions: float
    varied_rewards: int
    renewals: int
    """How often what is planned with has changed in several places at once."""
    num_actions: int
    effective: EffectiveActions | None = None
    """Which action each action acts as; None where that is not learned."""
    effects: EffectiveModel | None = None
    """The model in which actions act as others; None while the model itself is believed."""
    features: Callable[[State], np.ndarray] | None = None
    """The numbers of a state, if slips may depend on them."""
    arrivals: Arrivals | None = None
    """What is wrong about states wherever one comes from; None where that is not learned."""
    pooled: PooledOutcomes
    """What is known of transitions for which the same is listed."""
    caution: float = 0.0
    """By how much a step that was never seen is believed to pay less, so that of equal ways a known one is taken."""
    facts: dict[tuple[Hashable, int], Fact]
    glance: Glance
    journal: Journal
    _planned: dict[Any, Any]
    _contradicting: dict[Any, int]

    def _store(self, place: tuple[Hashable, int], fact: Fact) -> None:
        raise NotImplementedError

    def _arrive(self, place: tuple[Hashable, int], fact: Fact | None, new: bool = False) -> None:
        """Takes note of where a transition leads and where it should, or forgets it."""
        if fact is not None and self.kind == "outcomes":
            listed = predicted_outcomes(self.model, fact.state, place[1])
            if self.pooled.add(place, listed, fact, self.journal):
                self._renew()
        if self.arrivals is None:
            return
        if fact is None or fact.stale:
            changed = self.arrivals.drop(place, self.journal)
        else:
            changed = self.arrivals.add(place, self._said_of(place, fact), fact.latest(), self.journal, new)
        if changed:
            self._renew()

    def learn_arrivals(
        self, tested: Sequence[int] | None = None, said: Mapping[tuple[Hashable, int], list[tuple[float, Any]]] = NONE
    ) -> None:
        """Learns what is wrong about states from now on, from the latest facts on; not for models that only sample.

        `said`: what the model predicts, where that is known already.
        """
        if self.kind == "sample":
            return
        self.arrivals, self.pooled = Arrivals(self.key, self.glance.tells), PooledOutcomes()
        for place, fact in list(self.facts.items())[-CHECKED:]:
            if not fact.stale:
                found = said[place] if place in said and not fact.agrees else self._said_of(place, fact)
                self.arrivals.add(place, found, fact.latest(), Journal(), False)
            if self.kind == "outcomes":
                self.pooled.add(place, predicted_outcomes(self.model, fact.state, place[1]), fact, Journal())
        if tested is not None:
            self.arrivals.tested = tuple(tested)

    def _judge_anew(self) -> dict[tuple[Hashable, int], list[tuple[float, Any]]]:
        """Finds out which of the latest facts another model agrees with. Returns what it predicts."""
        said = {}
        for place, fact in list(self.facts.items())[-CHECKED:]:
            kind: Any = fact.most_frequent_kind
            said[place] = predicted_outcomes(self.model, fact.state, place[1])
            agrees = are_possible(said[place], (*kind, fact.outcomes[kind].reward), self.key)
            if agrees != fact.agrees:
                self._store(place, replace(fact, agrees=agrees))
        return said

    def _said_of(self, place: tuple[Hashable, int], fact: Fact) -> list[tuple[float, Any]]:
        """What the model predicts where a fact was seen; it need not be asked where it agrees."""
        if fact.agrees:
            return [(1.0, fact.latest())]
        return predicted_outcomes(self.model, fact.state, place[1])

    def _expect(self, state: State, outcomes: Sequence[tuple[float, Outcome]]) -> Sequence[tuple[float, Outcome]]:
        """Outcomes of a random model, with what is known of such lists, and of the states that they lead to."""
        outcomes = self.pooled.correct(outcomes)
        if self.arrivals is None or not self.arrivals.expects:
            return outcomes
        return self.arrivals.correct_all(state, outcomes)

    def recurrence(self) -> Recurrence:
        """Counts for a report."""
        times = sum(count.times for fact in self.facts.values() for count in fact.outcomes.values())
        return Recurrence(len(self.facts), times, sum(fact.varied for fact in self.facts.values()))

    @property
    def wrong_share(self) -> float:
        """The share of facts that contradict the model."""
        return len(self._contradicting) / max(len(self.facts), 1)

    @property
    def plans_effects(self) -> bool:
        """Whether actions are planned with that may act as others."""
        return self.effects is not None

    def believe(self, state: State, action: int) -> list[tuple[float, Any]]:
        """What is predicted without facts: all outcomes with their probabilities."""
        found = predicted_outcomes(self.model if self.effects is None else self.effects, state, action)
        return found if self.kind == "step" else list(self._expect(state, found))

    def learn_effects(self, effective: EffectiveActions | None) -> None:
        """Learns which action each action acts as from now on, beginning with what is known."""
        self.effective = effective
        self._plan_effects()

    def _plan_effects(self) -> None:
        """Plans with the present model, in which actions act as others if that is known."""
        planned = None if self.effective is None else self.effective.planned
        legal = getattr(self, "legal_actions", None)
        self.effects, odds = None, self._odds()
        if planned is not None:
            idle = () if self.effective is None else self.effective.idle.rewards()
            self.effects = EffectiveModel(self.model, planned, self.key, legal, odds, idle)

    def _odds(self) -> Callable[[State], float] | None:
        """How many times as often as elsewhere actions act as others in a state; None if that is everywhere alike."""
        features, places = self.features, None if self.effective is None else self.effective.places
        table = places.table() if places is not None and places.used else None
        return None if table is None or features is None else lambda state: table.odds(features(state))

    def _count_effect(
        self, state: State, action: int, kind: tuple[Hashable, bool], before: Fact | None, agrees: bool, reward: float
    ) -> None:
        """Counts which action the one taken has acted as."""
        if self.effective is None:
            return
        matches = [action] if agrees else []
        if not agrees or self.effective.wrong:  # as long as nothing was wrong, other actions are not asked
            allowed = getattr(self, "legal_actions", None)
            legal = range(self.num_actions) if allowed is None else allowed(state)
            for other in {*legal, action} - set(matches):
                after, _, over = self.model.step(state, other)
                matches += [other] if (self.key(after), bool(over)) == kind else []
        moved = self.key(state) != kind[0]
        if not matches and not moved and not kind[1]:  # nothing happened; a wall is always there, chance is not
            matches, moved = [self.num_actions], self.noisy
        outcomes = {} if before is None else before.outcomes
        times, same = sum(one.times for one in outcomes.values()), outcomes[kind].times if kind in outcomes else 0
        planned, point = self.effective.planned, None if self.features is None else self.features(state)
        self.effective = self.effective.add(action, matches, (times, same), moved, point, reward)
        if self.effective.planned is not planned:
            self._plan_effects()
            self._renew()

    @property
    def chance(self) -> float:
        """How often a transition comes out differently when it is seen again."""
        return min((self.contradictions + 1.0) / (self.repeats + 2.0), 1.0)

    @property
    def noisy(self) -> bool:
        """Whether a deterministic model has met a world with chance: earlier outcomes have returned."""
        return self.kind == "step" and self.contradictions >= NOISY

    @property
    def _is_random(self) -> bool:
        """Whether what is planned with has chance."""
        return self.kind != "step" or self.noisy or self.plans_effects

    @property
    def pays_by_chance(self) -> bool:
        """Whether rewards vary in most transitions that were seen again."""
        return self.varied_rewards >= max(NOISY, 0.5 * self.repeats)

    def _weigh(self, before: Fact | None, after: Fact, action: int) -> None:
        """Judges how much counts should weigh by a transition that is seen again."""
        if before is None or before.stale or not self.learns_weight or not self._is_random:
            return
        weights, question = self.weigher.weights, self._question(after, action)
        self.weigher = self.weigher.add(question, list(before.outcomes.values()), list(after.outcomes.values()))
        if self.weigher.weights != weights:
            self._renew()

    def _question(self, fact: Fact, action: int) -> Question:
        return Question(self.believe(fact.state, action), self.key, self.kind, self._slips)

    @property
    def _slips(self) -> float:
        if self.effective is not None and self.effects is not None:
            return self.effective.missed
        return min(self.chance, 0.5) if self.kind == "step" else 0.0

    def _renew(self) -> None:
        """Has everything worked out anew that is planned with."""
        self._planned, self.renewals = {}, self.renewals + 1

    def forget_all(self) -> None:
        """Drops all facts, because the world has changed."""
        for place in list(self.facts):
            for table in (self.facts, self._contradicting):
                self.journal.drop(table, place)
            self._arrive(place, None)
        self.pooled = PooledOutcomes()
        self.weigher = self.weigher.for_other_model()
        self._renew()

    def _mixture(self, fact: Fact, action: int) -> Mixture | None:
        """What the model predicts and what was seen; None if the latter is no reason to plan with anything else."""
        believed, counts = self.believe(fact.state, action), list(fact.outcomes.values())
        more = DRIFTING if self.drifting else 1.0
        if self.learns_weight and self._is_random:
            question = Question(believed, self.key, "outcomes" if self.kind == "step" else self.kind, self._slips)
            return self.weigher.mix(question, counts, more)
        if self.kind != "step":
            return mix(believed, counts, self.key, self.kind, self.prior_weight * more)
        total = sum(count.times for count in counts)
        known = {(self.key(state), bool(over)) for _, (state, _, over) in believed}
        chance = self.noisy or (self.pays_by_chance and known == fact.outcomes.keys())
        weight = self.prior_weight if chance else total / (DETERMINISTIC ** -min(total, 100) - 1.0)
        return mix(believed, counts, self.key, "outcomes", weight, True)
