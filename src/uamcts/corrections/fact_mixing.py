"""What is planned with where there are facts: they are mixed with what the model predicts."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from uamcts.corrections.fact_weights import Question, Weigher
from uamcts.corrections.mixture import Mixture, mix, predicted_outcomes
from uamcts.corrections.python_facts import DETERMINISTIC, DRIFTING, NOISY, Fact


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
    _planned: dict[Any, Any]

    @property
    def chance(self) -> float:
        """How often a transition comes out differently when it is seen again."""
        return min((self.contradictions + 1.0) / (self.repeats + 2.0), 1.0)

    @property
    def noisy(self) -> bool:
        """Whether a deterministic model has met a world with chance: earlier outcomes have returned."""
        return self.kind == "step" and self.contradictions >= NOISY

    @property
    def pays_by_chance(self) -> bool:
        """Whether rewards vary in most transitions that were seen again."""
        return self.varied_rewards >= max(NOISY, 0.5 * self.repeats)

    def _weigh(self, before: Fact | None, after: Fact, action: int) -> None:
        """Judges how much counts should weigh by a transition that is seen again."""
        if before is None or before.stale or not self.learns_weight or (self.kind == "step" and not self.noisy):
            return
        weights, question = self.weigher.weights, self._question(after, action)
        self.weigher = self.weigher.add(question, list(before.outcomes.values()), list(after.outcomes.values()))
        if self.weigher.weights != weights:
            self._renew()

    def _question(self, fact: Fact, action: int) -> Question:
        return Question(predicted_outcomes(self.model, fact.state, action), self.key, self.kind, self._slips)

    @property
    def _slips(self) -> float:
        return min(self.chance, 0.5) if self.kind == "step" else 0.0

    def _renew(self) -> None:
        """Has everything worked out anew that is planned with."""
        self._planned, self.renewals = {}, self.renewals + 1

    def _mixture(self, fact: Fact, action: int) -> Mixture | None:
        """What the model predicts and what was seen; None if the latter is no reason to plan with anything else."""
        believed, counts = predicted_outcomes(self.model, fact.state, action), list(fact.outcomes.values())
        more = DRIFTING if self.drifting else 1.0
        if self.learns_weight and (self.kind != "step" or self.noisy):
            question = Question(believed, self.key, "outcomes" if self.kind == "step" else self.kind, self._slips)
            return self.weigher.mix(question, counts, more)
        if self.kind != "step":
            return mix(believed, counts, self.key, self.kind, self.prior_weight * more)
        total = sum(count.times for count in counts)
        known = {(self.key(state), bool(over)) for _, (state, _, over) in believed}
        chance = self.noisy or (self.pays_by_chance and known == fact.outcomes.keys())
        weight = self.prior_weight if chance else total / (DETERMINISTIC ** -min(total, 100) - 1.0)
        return mix(believed, counts, self.key, "outcomes", weight, True)
