"""Follows parameters that drift: proposes a drift where constants do not explain what was seen, and keeps it fitted."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from uamcts.agent.chance import RealOutcome
from uamcts.agent.corrected_planner import CorrectedPlanner
from uamcts.agent.experience import Experience, Row
from uamcts.agent.measure import Measure
from uamcts.corrections.drift import SHORTEST, WINDOW, Drift, fit_drift, follow_drift
from uamcts.corrections.likelihood_fit import fit_likelihood
from uamcts.corrections.outcome_rates import OutcomeRates
from uamcts.corrections.parameters import Choice
from uamcts.corrections.referee import Referee
from uamcts.corrections.trials import Fit, Trials

ON_TRIAL, EARLY, BETWEEN = 2 * WINDOW, 16, 4
"""A drift that is not in use so many transitions after it was proposed is given up, after fewer if it is behind what is
in use; one that predicts inexactly is fitted anew after so many."""
RECENT, FEWEST_RECENT, CHANGED, UNCHANGED = 64, 8, 3.5, 1.5
"""Transitions of a random world that are kept in their order; the fewest that may be taken for another world; the
standard deviations by which their surprise must then exceed what is expected, and that of those before must not."""
REFITTED = 4
"""They are fitted anew after so many."""
POINTS, MEMORY = 16, 40.0
"""Values of a probability that are compared, and the transitions that their likelihoods remember."""
STEADY = 1e-4
"""A parameter that changes by less than this share of its size in a step is said to stay where it is."""


class Recent(NamedTuple):
    """A transition of a random world."""

    state: Any
    action: Any
    real: RealOutcome
    excess: float
    """By how many nats it surprised the corrected model more than that expected."""
    variance: float
    """The variance that this should have."""


class Follower:
    """The part of a corrector that deals with drift."""

    planner: CorrectedPlanner
    choice: Choice
    referee: Referee
    fit: Fit | None
    in_use: str
    floor: float
    since: int
    _suspected: int

    allowed: frozenset[str]
    residuals: dict[str, Any]
    """A `Residual` each; `OutcomeRates` for a random simulator."""
    rates: OutcomeRates = OutcomeRates({})
    """Those of a random simulator, as they are now; searches plan with ones that are nearly as new."""
    _renewed: bool = False
    """Whether the rates in use have been replaced by newer ones."""
    _variants: dict[str, Any]

    recent: tuple[Recent, ...] = ()
    """The latest transitions of a random world. They are not saved."""
    _in_new_world: bool = False
    """Whether all of these are taken for another world, and what was fitted to them is not in use yet."""
    _from_recent: bool = False
    """Whether the drift is a fit to these."""

    drift: Drift | None = None
    drifts_since: int = 0
    """The step since which the drift is in use: the model was another one at every step since then."""
    now: int = 0
    """The transitions that were seen."""
    _begun: int = 0
    """When the drift was proposed."""
    _patient: int = 0
    """The step before which no drift is proposed: each that is given up makes the next one wait longer."""
    _inexact: int = 0
    """Transitions that it has predicted inexactly since it was fitted."""
    _likelihoods: tuple[float, ...] = ()
    """The discounted log-likelihoods of some values of a probability."""

    @property
    def known_since(self) -> int:
        """The step after which what was seen can be held against the corrected model."""
        return max(self.since, self.drifts_since) if self.in_use == "drift" else self.since

    @property
    def keeps_outcomes(self) -> bool:
        """Whether what is in use changes nothing but the probabilities of outcomes."""
        return not self.planner.deterministic and self.in_use in ("residual", "tilt")

    def _count(self, row: Row, real: RealOutcome, variant: object, nats: float) -> None:
        """Counts which of the listed outcomes has happened; it surprised the variant in use by so many nats."""
        if self.choice.believed:
            expected, variance = self.planner.expected_surprise(row.state, row.action, variant)
            one = Recent(row.state, row.action, real, nats - expected, variance)
            self.recent = (*self.recent, one)[-RECENT:]
        self.count(row, real)

    def count(self, row: Row, real: RealOutcome) -> None:
        """Counts a transition for the rates of outcomes."""
        listed = self.planner.listed(row.state, row.action, real)
        if listed is None or "residual" not in self.allowed:
            return
        self.rates = self.rates.add(*listed, row.number, place_number(row))
        before = self.residuals.get("residual")
        if before is None or self.rates.differs(before):
            self.residuals = {**self.residuals, "residual": self.rates}
            self._variants.pop("residual", None)
            self._renewed = self.in_use == "residual"

    def _latest_trials(self, experience: Experience, measure: Measure) -> tuple[Trials | None, np.ndarray]:
        """The latest transitions, and their steps."""
        rows = experience.latest(WINDOW, max(self.since, self._suspected - 1))
        rows = rows[[experience.raw[row] is not None for row in rows]]
        raw = [experience.raw[row] for row in rows]
        trials = self.planner.trials(raw, experience, rows.tolist(), measure, self.floor) if raw else None
        return trials, experience.column("last")[rows]

    def _fitted_choice(self) -> Choice:
        """What may change: of the numbers in the code of a simulator, only those that are fitted."""
        fitted = {} if self.fit is None else self.fit.values
        return self.choice.of_plain(fitted)

    def _propose_drift(self, experience: Experience, measure: Measure) -> None:
        """Looks for a drift that explains the latest transitions better than what is there."""
        choice, fitted = self._fitted_choice(), {} if self.fit is None else self.fit.values
        if not choice.believed or self.now < self._patient:
            return
        trials, steps = self._latest_trials(experience, measure)
        if trials is None or trials.random or self.in_use == "drift":
            return
        found = fit_drift(trials, choice, steps, self.now + 1, fitted)
        if found is None:
            return
        if self.drift is None or self.drift.values.keys() != found.values.keys():
            self.referee.clear("drift")
            self._begun = self.now
        self.drift, self._inexact = found, 0

    def forget_recent(self) -> None:
        """Forgets the latest transitions; what was fitted to them stays."""
        self.recent, self._in_new_world, self._from_recent = (), False, False

    def _prefers_recent(self) -> bool:
        """Whether what was fitted to another world is used until it turns out worse."""
        if not self._from_recent or self.drift is None or not (self._in_new_world or self.in_use == "drift"):
            return False
        others = [name for name, there in (("none", True), ("parameters", self.fit is not None)) if there]
        return not any(self.referee.is_better(name, "drift") for name in others)

    def _find_change(self) -> int:
        """How many of the latest transitions surprise the corrected model, unlike those before them; 0 if none do."""
        best, length = CHANGED, 0
        for count in (FEWEST_RECENT, 2 * FEWEST_RECENT, 4 * FEWEST_RECENT):
            before, after = self.recent[:-count], self.recent[-count:]
            if len(before) >= FEWEST_RECENT and _deviations(before) < UNCHANGED and _deviations(after) > best:
                best, length = _deviations(after), count
        return length

    def _fit_recent(self, experience: Experience, measure: Measure) -> bool:
        """Fits parameters to the latest transitions alone, if they are unlike those before. Returns whether it does."""
        following = self._from_recent and self.drift is not None
        single = self.fit is not None and len(self.fit.values) == 1 and self.in_use != "drift"
        single &= not following and not self._in_new_world  # a single number is followed step by step
        if self.now % REFITTED or single:
            return following
        if len(self.recent) >= RECENT or self.in_use == "drift":
            self._in_new_world = False
        if not self._in_new_world and (changed := self._find_change()):
            self.recent, self._in_new_world = self.recent[-changed:], True
            if self.drift is None:
                self.referee.clear("parameters")  # what they were worth in the old one says nothing
        if not following and not self._in_new_world:
            return False
        seen = [(one.state, one.action, one.real) for one in self.recent]
        trials = self.planner.recent_trials(seen, experience, measure, self.floor)
        if trials is None or getattr(trials, "draws", False):
            return False
        found = fit_likelihood(trials, self._fitted_choice(), len(trials.seen))
        if found is None:
            return following
        if self.drift is None or self.drift.values.keys() != found.values.keys():
            self.referee.clear("drift")
        self.drift, self._from_recent = Drift(found.values, dict.fromkeys(found.values, 0.0), self.now + 1), True
        return True

    def _follow_probability(self, experience: Experience, measure: Measure) -> None:
        """Estimates a probability from the latest transitions alone: older ones count less and less."""
        if self._fit_recent(experience, measure):
            return
        if self.fit is None or len(self.fit.values) != 1:
            return
        (name,) = self.fit.values
        low, high = self.choice.bounds(name)
        row = experience.latest(1)
        if not np.isfinite([low, high]).all() or experience.raw[row[0]] is None:
            return
        if self.drift is None or name not in self.drift.values:
            self.drift, self._likelihoods, self._from_recent = None, (0.0,) * POINTS, False
            self.referee.clear("drift")
        edge = 0.5 * (high - low) / POINTS
        grid = np.linspace(low + edge, high - edge, POINTS)
        trials = self.planner.trials([experience.raw[row[0]]], experience, row.tolist(), measure, self.floor, True)
        if trials is None or getattr(trials, "draws", False):  # too many draws for every step
            return
        nats = trials.losses([name], grid[:, None], np.array([len(trials.seen) - 1]))[:, 0]
        likelihoods = (1.0 - 1.0 / MEMORY) * np.array(self._likelihoods) - nats
        weights = np.exp(likelihoods - likelihoods.max())
        self._likelihoods = tuple((likelihoods - likelihoods.max()).tolist())
        self.drift = Drift({name: float(grid @ weights / weights.sum())}, {name: 0.0}, self.now + 1)

    def _follow_drift(self, experience: Experience, measure: Measure, score: float | None) -> None:
        """Fits the drift anew where it was inexact, or gives it up."""
        if not self.planner.deterministic:
            return self._follow_probability(experience, measure)
        if self.drift is None:
            return None
        behind = self.referee.ahead("drift", self.in_use) < 0.0
        if self.in_use != "drift" and self.now > self._begun + (EARLY if behind else ON_TRIAL):
            self.drift, self._patient = None, 2 * self.now - self.since
            self.referee.clear("drift")
            return None
        self._inexact += score is not None and score > math.log(10.0 * self.floor)
        if self._inexact >= BETWEEN:
            trials, steps = self._latest_trials(experience, measure)
            if trials is not None and len(steps) >= SHORTEST:
                self.drift = follow_drift(trials, self.choice, steps, self.now + 1, self.drift)
            self._inexact = 0
        return None

    def _describe_drift(self) -> list[str]:
        """What drifts, in plain words."""
        if self.drift is None:
            return []
        said = []
        for name, value in self.drift.at_step(self.now + 1).items():
            rate, believed = self.drift.rates[name], f"{self.choice.believed[name]:g}"
            if abs(rate) <= STEADY * abs(value):
                said.append(f"{name} is about {value:.4g} now, not {believed}: corrected")
            else:
                said.append(
                    f"{name} is drifting: about {value:.3g} now, not {believed}, and {rate:+.2g} a step: corrected"
                )
        return said


def place_number(row: Row) -> int:
    """A number that tells the state of a transition from others."""
    return zlib.crc32(row.here.tobytes())


def _deviations(some: Sequence[Recent]) -> float:
    """By how many standard deviations transitions have surprised a model more than it expected."""
    return sum(one.excess for one in some) / math.sqrt(sum(one.variance for one in some) + 0.1)
