"""Follows parameters that drift: proposes a drift where constants do not explain what was seen, and keeps it fitted."""

from __future__ import annotations

import math

import numpy as np

from uamcts.agent.corrected_planner import CorrectedPlanner
from uamcts.agent.experience import Experience
from uamcts.agent.measure import Measure
from uamcts.corrections.drift import SHORTEST, WINDOW, Drift, fit_drift, follow_drift
from uamcts.corrections.parameters import Choice
from uamcts.corrections.referee import Referee
from uamcts.corrections.trials import Fit, Trials

ON_TRIAL, BETWEEN = 2 * WINDOW, 4
"""A drift that is not in use so many transitions after it was proposed is given up; one that predicts inexactly is
fitted anew after so many."""
POINTS, MEMORY = 16, 40.0
"""Values of a probability that are compared, and the transitions that their likelihoods remember."""
STEADY = 1e-4
"""A parameter that changes by less than this share of its size in a step is said to stay where it is."""


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

    def _latest_trials(self, experience: Experience, measure: Measure) -> tuple[Trials | None, np.ndarray]:
        """The latest transitions, and their steps."""
        rows = experience.latest(WINDOW, max(self.since, self._suspected - 1))
        rows = rows[[experience.raw[row] is not None for row in rows]]
        raw = [experience.raw[row] for row in rows]
        trials = self.planner.trials(raw, experience, rows.tolist(), measure, self.floor) if raw else None
        return trials, experience.column("last")[rows]

    def _propose_drift(self, experience: Experience, measure: Measure) -> None:
        """Looks for a drift that explains the latest transitions better than what is there."""
        if not self.choice.believed or self.now < self._patient:
            return
        trials, steps = self._latest_trials(experience, measure)
        if trials is None or trials.random or self.in_use == "drift":
            return
        found = fit_drift(trials, self.choice, steps, self.now + 1, {} if self.fit is None else self.fit.values)
        if found is None:
            return
        if self.drift is None or self.drift.values.keys() != found.values.keys():
            self.referee.clear("drift")
            self._begun = self.now
        self.drift, self._inexact = found, 0

    def _follow_probability(self, experience: Experience, measure: Measure) -> None:
        """Estimates a probability from the latest transitions alone: older ones count less and less."""
        if self.fit is None or len(self.fit.values) != 1:
            return
        (name,) = self.fit.values
        low, high = self.choice.bounds(name)
        row = experience.latest(1)
        if not np.isfinite([low, high]).all() or experience.raw[row[0]] is None:
            return
        if self.drift is None or name not in self.drift.values:
            self.drift, self._likelihoods = None, (0.0,) * POINTS
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
        if self.in_use != "drift" and self.now > self._begun + ON_TRIAL:
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
                    f"{name} is drifting: about {value:.3g} now, {believed} believed, {rate:+.2g} a step: corrected"
                )
        return said
