"""Facts about a random simulator beside what it lists: which of its outcomes were seen, and how often."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

import numpy as np

from uamcts.agent.chance import RealOutcome
from uamcts.agent.python_simulator import PythonSimulator
from uamcts.corrections.mixture import predicted_outcomes
from uamcts.corrections.outcome_tilt import Seen
from uamcts.corrections.patched_model import PatchedModel
from uamcts.corrections.python_facts import Fact
from uamcts.corrections.tilt_terms import Listed
from uamcts.types import PyTree

MEMORY = 400.0
"""Transitions after which a fact counts about a third, so that weights follow a world that drifts."""
MOST_TIMES = 5.0
"""A single fact counts at most as so many transitions: what holds in one place need not hold elsewhere."""
DIGITS = 9
"""Digits after the point in which rewards are the same."""
MOST_KEPT = 2000
"""How many lists of outcomes are kept."""


class SeenOutcomes:
    """The part of a planner that compares facts with the outcomes that its simulator lists."""

    simulator: PythonSimulator
    patched: PatchedModel | None
    _listed: dict[tuple[Hashable, int], tuple[Listed, list[tuple[Hashable, float, bool]]]]
    """What the simulator lists for transitions that were seen, and what distinguishes these outcomes."""

    def seen_outcomes(self, most: int) -> list[Seen]:
        """The latest facts about transitions with several outcomes."""
        if self.patched is None:
            return []
        facts = list(self.patched.facts.items())[-most:]
        found = (self._seen_of(place, fact) for place, fact in facts)
        return [one for one in found if one is not None]

    def seen_outcome(self, state: PyTree, action: int) -> Seen | None:
        """The fact about one transition; None if there is none, or if it says nothing about probabilities."""
        if self.patched is None:
            return None
        place = self.simulator.key(state), action
        fact = self.patched.facts.get(place)
        return None if fact is None else self._seen_of(place, fact)

    def planned_chances(
        self, state: PyTree, action: int, real: RealOutcome, met: int
    ) -> tuple[float, list[float]] | None:
        """The probabilities in use for a transition: that of what happened, and those of all outcomes.

        None if it was seen fewer than `met` times, if what happened has probability 0, or if no outcomes are listed.
        """
        place, facts = (self.simulator.key(state), action), self.patched
        fact = None if facts is None or facts.kind != "outcomes" else facts.facts.get(place)
        if facts is None or fact is None or None in real or sum(one.times for one in fact.outcomes.values()) < met:
            return None
        planned, key = facts.plans_at(*place), self.simulator.key
        chances: defaultdict[Hashable, float] = defaultdict(float)
        share = 1.0 if planned is None else planned.model_share
        for chance, (after, reward, ends) in facts.believe(state, action):
            chances[key(after), bool(ends), round(float(reward), DIGITS)] += share * chance
        total = sum(one.times for one in fact.outcomes.values())
        for kind, one in fact.outcomes.items():
            for paid, times in one.each_reward():
                reward = round(one.reward if paid is None else paid, DIGITS)
                chances[(*_parts(kind), reward)] += (1.0 - share) * times / total
        found = chances[key(real.following), real.terminal, round(real.reward or 0.0, DIGITS)]
        return (min(found, 1.0), list(chances.values())) if found > 0.0 else None

    def _seen_of(self, place: tuple[Hashable, int], fact: Fact) -> Seen | None:
        listed, marks = self._list(place, fact)
        if len(listed.chances) < 2 or self.patched is None:
            return None
        matches, times = [], []
        for kind, one in fact.outcomes.items():
            key, over = _parts(kind)
            for reward, count in one.each_reward():
                match = np.array([
                    chance > 0.0 and mark[0] == key and mark[2] == over
                    and (reward is None or abs(mark[1] - reward) <= 1e-6 * max(1.0, abs(mark[1])))
                    for chance, mark in zip(listed.chances, marks, strict=True)
                ])  # fmt: skip
                if match.any():
                    matches.append(match)
                    times.append(float(count))
        if not times:
            return None
        share = min(1.0, MOST_TIMES / sum(times)) * np.exp((fact.last - self.patched.clock) / MEMORY)
        return Seen(listed, tuple(matches), tuple(share * one for one in times))

    def _list(self, place: tuple[Hashable, int], fact: Fact) -> tuple[Listed, list[tuple[Hashable, float, bool]]]:
        found = self._listed.get(place)
        if found is None:
            simulator, state = self.simulator, fact.state
            outcomes = predicted_outcomes(simulator, state, place[1])
            listed = Listed.of(simulator.features, state, place[1], outcomes)
            marks = [(simulator.key(after), float(reward), bool(over)) for _, (after, reward, over) in outcomes]
            if len(self._listed) >= MOST_KEPT:
                self._listed.clear()
            found = self._listed[place] = listed, marks
        return found


def _parts(kind: Hashable) -> tuple[Hashable, bool]:
    """The key of the next state, and whether that is the end."""
    assert isinstance(kind, tuple)  # noqa: S101 (a fact's)
    return kind[0], kind[1]
