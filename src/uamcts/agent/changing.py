"""Notices that a random world has changed: transitions that were seen several times now come out differently.

A single random outcome says nothing. So the agent watches how much transitions that it has met before surprise the
model that it plans with, beyond what that model expects. If the latest ones clearly do, and those before did not, the
world has changed: the agent forgets what it learned in the old one, except for these latest transitions.

Parameters follow a change in their own way (`drifting`), which loses less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from uamcts.agent.comparing import Planner
from uamcts.agent.corrector import Corrector
from uamcts.agent.curiosity import Curiosity
from uamcts.agent.experience import Experience
from uamcts.agent.measure import Measure
from uamcts.agent.searching import Compared

WATCHED, SHORTEST, LONGEST, BEFORE = 96, 6, 24, 20
"""How many surprises are kept; how many of the latest, at least and at most, are compared with those before; and how
many there must be before."""
MET, COUNTED = 3, 16
"""How often a transition must have been seen before it is watched, and how many must be counted before rates are."""
IMPOSSIBLE = 6.5
"""An outcome that surprises by more nats is not listed: it says nothing about how often listed ones happen."""
CLEARLY, NATS, USUAL, MOST = 5.0, 9.0, 1.5, 2.5
"""By how many standard deviations, and by how many nats in all, the latest surprises must exceed what is expected; by
how many standard deviations those before may; and how many nats a single one counts at most: a rare outcome is no
change."""


class Surprise(NamedTuple):
    """A transition that was met before."""

    sample: Compared
    excess: float
    """By how many nats it surprised the model in use, beyond what that expects."""
    variance: float
    """The variance of this number that the model expects."""
    corrected: bool
    """Whether corrections were in use."""


class Changing:
    """The part of a backend that notices when a random world has changed."""

    planner: Planner
    corrector: Corrector
    curiosity: Curiosity
    steps: int
    measure: Measure
    experience: Experience
    surprises: tuple[tuple[Surprise, ...], ...] = ((), ())
    """How much the latest transitions surprised rates that hold everywhere, and how much those that were met before
    surprised the model in use. They are not saved."""

    def _watch(self, sample: Compared) -> int:
        """Notes a transition before it becomes a fact. Returns how many were seen in a new world; mostly 0."""
        corrector = self.corrector
        fits = corrector.choice.of_plain().believed
        if self.planner.deterministic or "residual" not in corrector.allowed or fits:
            return 0
        own = self._surprise_facts(sample)
        added = self._surprise_rates(sample, own), own
        self.surprises = tuple(
            known if new is None else (*known, Surprise(sample, *new, self.corrector.in_use != "none"))[-WATCHED:]
            for known, new in zip(self.surprises, added, strict=True)
        )
        of_rates, of_facts = (
            0 if new is None else find_change([one[1:3] for one in known])
            for known, new in zip(self.surprises, added, strict=True)
        )
        before = [one.corrected for one in self.surprises[0][: -of_rates or None]]
        return max(of_facts, of_rates if 2 * sum(before) >= len(before) else 0)

    def _surprise_rates(self, sample: Compared, own: tuple[float, float] | None) -> tuple[float, float] | None:
        """How much a transition surprises rates of outcomes, but not more than facts about it (`own`)."""
        row, planner = sample.row, self.planner
        if self.corrector.rates.now < COUNTED or planner.listed(row.state, row.number, sample.actual) is None:
            return None
        variant = planner.variant({}, self.corrector.rates)
        scales, floor = self.experience.scales, self.corrector.floor
        nats, _ = planner.score(row.state, row.number, sample.actual, row.real, variant, self.measure, scales, floor)
        mean, variance = planner.expected_surprise(row.state, row.number, variant)
        found = (nats - mean, variance) if nats < IMPOSSIBLE else None
        return found if own is None or found is None else min(found, own)

    def _surprise_facts(self, sample: Compared) -> tuple[float, float] | None:
        """How much a transition that was met before surprises the model in use."""
        found = self.planner.planned_chances(sample.row.state, sample.row.number, sample.actual, MET)
        if found is None:
            return None
        nats = [(one, -math.log(one)) for one in found[1] if one > 0.0]
        mean = sum(one * many for one, many in nats)
        return -math.log(found[0]) - mean, sum(one * (many - mean) ** 2 for one, many in nats)

    def _begin_anew(self, count: int) -> None:
        """Forgets what was learned in the old world, except for the latest transitions that were met before."""
        latest = [one.sample for one in max(self.surprises, key=len)[-count:]]
        self.surprises, self.curiosity = ((), ()), Curiosity(spent=self.curiosity.spent)
        facts = self.planner.patched
        if facts is not None:
            facts.forget_all()
            self.planner.settle()
        self.corrector.begin_anew(self.steps)
        for sample in latest:
            self.corrector.count(sample.row, sample.actual)
            if sample.whole:
                self.planner.remember(sample.row.state, sample.row.number, sample.row.following, *sample.paid)


def find_change(surprises: Sequence[tuple[float, float]]) -> int:
    """How many of the latest surprises, given as (excess, variance), belong to a changed world; 0 if none do."""
    best, found = CLEARLY, 0
    for count in range(SHORTEST, LONGEST + 1, 2):
        before, after = surprises[:-count], surprises[-count:]
        if len(before) < BEFORE:
            break
        if sum(min(excess, MOST) for excess, _ in after) < NATS or _deviations(before) > USUAL:
            continue
        if (apart := _deviations(after)) > best:
            best, found = apart, count
    return found


def _deviations(some: Sequence[tuple[float, float]]) -> float:
    return sum(min(excess, MOST) for excess, _ in some) / math.sqrt(sum(variance for _, variance in some) + 0.1)
