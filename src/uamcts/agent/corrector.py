"""Which corrections of a simulator are in use: fits them to what was seen and has the referee judge them."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from uamcts.agent.corrected_planner import CorrectedPlanner
from uamcts.agent.corrector_files import CANDIDATES
from uamcts.agent.element_fits import FITTED_ROWS, ElementFits
from uamcts.agent.experience import Experience, Row
from uamcts.agent.measure import Measure
from uamcts.agent.parameter_fits import FIRST_FIT, LATE
from uamcts.agent.residual_rows import find_newly_exact, fit_residuals
from uamcts.agent.rival_fits import CONFIRMED
from uamcts.arguments import short_repr
from uamcts.corrections.parameters import Choice
from uamcts.corrections.referee import MEMORY, RANDOM_MEMORY, Referee
from uamcts.corrections.trials import WORST, Fit

CORRECTIONS = ("facts", "parameters", "residual")
"""What an agent may correct a simulator by."""
RESIDUAL_ROWS = 1000
"""How many of the latest transitions residuals are fitted to."""
EARLY_FIT, SHORTEST_WAIT, GROWTH, THOROUGH_GROWTH, HOPELESS_GROWTH = 2, 3, 1.25, 1.4, 2.0
"""Transitions before a search for a parameter that explains all of them exactly, and at least between two fits. Then
the factors by which transitions grow until the next fit: of residuals, of parameters and drifts, and of the latter
where they explain too little."""
LONGEST_WAIT, LIFETIMES = 400, 5
"""At the latest, these are fitted after so many, or a fifth of all that were seen in this world, whichever is more."""
SURPRISES, SURPRISING = 3, 2.5
"""One comes earlier after so many transitions that were predicted worse than usual, by so many nats."""
FEWEST_WRONG, BEFORE = 5, 25
"""A change is suspected if so many of the `LATE` latest are wrong, unlike so many before."""


class Corrector(ElementFits):
    """The corrections of one simulator.

    Args:
        planner: The planner: it knows the simulator's parameters and builds variants of it.
        given: What the user said about parameters.
        allowed: Which kinds of corrections may be used.
    """

    def __init__(self, planner: CorrectedPlanner, given: Any, allowed: Sequence[str] = CORRECTIONS):
        self.planner, self.allowed = planner, frozenset(allowed)
        if "parameters" not in self.allowed and given:
            raise ValueError(f"parameters is {short_repr(given)}, but corrections leaves 'parameters' out; add it")
        given = given if "parameters" in self.allowed else ()
        self.tables = planner.elements() if given is None else {}
        self.elements, self._misread, self._fruitless = {}, 0, 0
        self.choice = Choice(given, planner.parameters(), planner.name, not planner.deterministic)
        self.referee = Referee(CANDIDATES, MEMORY if planner.deterministic else RANDOM_MEMORY)
        self.fit: Fit | None = None
        self.residuals: dict[str, Any] = {}  # replaced, never changed
        """By the candidate that it belongs to."""
        self.in_use, self._fits = "none", False
        self.since = 0
        """The step after which the world is as it is now, as far as is known."""
        self.changes: tuple[int, ...] = ()
        """When the world changed in a way that corrections explain."""
        self._suspected = 0  # when it may have changed, as long as nothing explains that
        self._unexplained, self._bearable = 0, SURPRISES
        """Transitions predicted unusually badly since the last fit, and how many call for one: ever more of them."""
        self._scores: tuple[float, ...] = ()
        """What the corrected model scored lately."""
        self._posterior = self.choice.named and not planner.deterministic
        """Whether a parameter that the user has named is planned with from the first transition on."""
        early = planner.deterministic and self.choice.believed
        self._next = self._thorough = 1 if self._posterior else EARLY_FIT if early else FIRST_FIT
        self.floor, self.refused, self._full = 1e-6, ((), False), (self.choice, self.allowed, self.tables)
        self.feature_names: tuple[str, ...] = ()
        """What the numbers of a state are called in reports."""
        self._variants: dict[str, Any] = {}
        self._drift_score: float | None = None

    def copy(self, planner: CorrectedPlanner) -> Corrector:
        """A copy that goes on by itself."""
        twin = copy.copy(self)
        twin.planner, twin.referee, twin._variants = planner, self.referee.copy(), dict(self._variants)
        return twin

    @property
    def active(self) -> bool:
        """Whether there is anything that could be corrected."""
        shifts = self.planner.can_shift or self.planner.lists_outcomes
        return bool(self.choice.believed or self.tables) or ("residual" in self.allowed and shifts)

    def variant(self, name: str | None = None) -> Any:
        """The simulator with a candidate's corrections; by default those in use."""
        name = self.in_use if name is None else name
        if name not in self._variants:
            values = self._values() if name in ("parameters", "both") else {}
            if name == "drift" and self.drift is not None:
                values = self.drift.at_step(self.now + 1)
            self._variants[name] = self.planner.variant(values, self.residuals.get(name))
        return self._variants[name]

    def withdraw(self) -> None:
        """Gives up the corrections in use for good: the simulator fails with them."""
        names: Iterable[str] = self._values() if self.in_use in ("parameters", "both") else ()
        if self.in_use == "drift" and self.drift is not None:
            names, self.drift = self.drift.values, None
        self.refuse(names, self.in_use in ("residual", "both", "tilt"))
        self.fit, self.elements = (None, {}) if names else (self.fit, self.elements)
        self.residuals = (
            {} if "residual" not in self.allowed else {k: v for k, v in self.residuals.items() if k != "both"}
        )
        self.referee.clear()
        self.in_use, self._variants, self._scores, self._suspected = "none", {}, (), 0

    def judge(self, row: Row, real: Any, measure: Measure, scales: Any) -> None:
        """Lets every candidate predict a transition that none has learned from."""
        if not self.active:
            return
        scores, errors = {}, {}
        known = {"none": (row.believed, row.own[0]), self.in_use: (row.used, row.own[1])}
        for name in self.candidates:
            if name in known and self.planner.deterministic:
                predicted, own = known[name]
                errors[name] = measure.error(row.real, predicted, scales, own)
                scores[name] = math.log(min(errors[name], WORST) + self.floor)
            else:
                scores[name], errors[name] = self.planner.score(
                    row.state, row.action, real, row.real, self.variant(name), measure, scales, self.floor
                )
        others = self._score_held_out(row, real, measure, scales) if self.planner.lists_outcomes else ({}, {})
        self.referee.add({**scores, **others[0]}, {**errors, **others[1]})
        if self.planner.lists_outcomes and "residual" in self.allowed:
            self._count(row, real, self.variant(), scores[self.in_use])
        self._drift_score = scores.get("drift")
        self._misread += bool(self.tables) and scores.get("parameters", scores["none"]) > self._exact
        if scores[self.in_use] > self._exact and scores[self.in_use] > self._usual + SURPRISING:
            self._unexplained += 1
        self._scores = (*self._scores, scores[self.in_use])[-(BEFORE * 8) :]

    def update(self, experience: Experience, measure: Measure) -> bool:
        """Fits where that is due, and decides what to use. Returns whether the corrected model is another one now."""
        if not self.active:
            return False
        with self.planner.quiet:
            return self._update(experience, measure)

    def _update(self, experience: Experience, measure: Measure) -> bool:
        step, before, since = experience.steps, self._model(), self.since
        self.now = step
        self._variants.pop("drift", None)
        suspected = self._suspects_change(step)
        surprised = self._unexplained >= self._bearable and self.planner.deterministic
        fits = suspected or ((step >= min(self._next, self._thorough) or surprised) and not self._explained())
        if fits:
            self._unexplained = 0
            self._next = step + self._wait(step - self.since)
            self._fit(experience, measure, suspected or surprised)
        self._fit_elements(experience, measure)
        self._fit_tilt(experience)
        self._follow_drift(experience, measure, self._drift_score)
        self.in_use = self._choose()
        if self.in_use == "drift" and before[0] != "drift":
            self.drifts_since = step
        self._confirm_change(step)
        if not fits and self.planner.deterministic and self._model() == before:
            self._weigh_rivals(experience, measure)
        changed, self._renewed = bool(self._model() != before) or self._renewed, False
        if self.in_use != before[0] or self.since != since:
            self._bearable = SURPRISES
        elif fits and surprised:
            self._bearable = min(2 * self._bearable, LONGEST_WAIT)
        self._scores = () if changed else self._scores  # those of another model say nothing about this one
        return changed

    def _wait(self, lived: int) -> int:
        """The transitions until the next fit: ever more, but not so many that a new part of the world waits long."""
        if self._posterior:
            return min(math.ceil(0.1 * lived), max(LONGEST_WAIT, lived // LIFETIMES))
        soon = max(SHORTEST_WAIT, min((GROWTH - 1.0) * lived, 1.5 * math.sqrt(lived)))
        return math.ceil(max(soon, 0.05 * lived, 0.1 * lived - 500))

    def _model(self) -> Any:
        """What tells the corrected model from others."""
        values = self._values() if self.in_use in ("parameters", "both") else None
        return self.in_use, values, id(self.residuals.get(self.in_use))

    def _suspects_change(self, step: int) -> bool:
        """Whether the latest transitions are suddenly predicted much worse than those before.

        Parameters are then fitted to these alone; only if they go on to explain everything has the world changed.
        """
        if not self.planner.deterministic or self._suspected or len(self._scores) < LATE + BEFORE:
            return False
        if sum(score > self._exact for score in self._scores[-LATE:]) < FEWEST_WRONG:
            return False
        wrong = np.array(self._scores) > self._exact
        usual = (wrong[:-LATE].sum() + 1.0) / (len(wrong) - LATE + 2.0)
        if wrong[-LATE:].mean() < 4.0 * usual:
            return False
        self._suspected, self._scores = step - LATE + 1 + int(np.argmax(wrong[-LATE:])), ()
        self.referee.clear("parameters")
        self.referee.clear("both")
        return True

    def _confirm_change(self, step: int) -> None:
        """Believes in a change once its parameters explain all that followed, and forgets about it if they do not."""
        if not self._suspected:
            return
        if self.in_use == "parameters" and self._explained():
            self.since, self._suspected, self._patient = self._suspected - 1, 0, 0
            self.changes = (*self.changes, self.since + 1)[-20:]
        elif step > self._suspected + 4 * CONFIRMED:
            self._suspected, self._next, self._thorough = 0, step, step

    @property
    def _usual(self) -> float:
        """What the corrected model scores usually."""
        return float(np.median(self._scores[-4 * CONFIRMED :])) if self._scores else self._exact

    def _choose(self) -> str:
        """The referee's choice; parameters that the user has named are preferred until they turn out worse.

        So are those of a random simulator: what a likelihood has gained beyond its price is no chance.
        """
        best = self._choose_probabilities(self.candidates)
        named = (self.choice.named or not self.planner.deterministic) and self.fit is not None
        if self._prefers_recent():
            return "drift"
        simpler = best == "none" or (best in ("residual", "tilt") and not self.planner.deterministic)
        if simpler and named and not self.referee.is_better(best, "parameters"):
            return "parameters"
        return best

    def _fit(self, experience: Experience, measure: Measure, urgent: bool) -> None:
        """Fits all corrections anew; `urgent`: because transitions are predicted worse than usual."""
        errors = experience.simulator_errors(measure)
        rows = experience.latest(FITTED_ROWS, max(self.since, self._suspected - 1))
        wrong = errors[rows] > 0
        early = experience.steps - self.since < FIRST_FIT
        if self.planner.deterministic and wrong.sum() < (EARLY_FIT if early else 3) and self.fit is None:
            return
        if wrong.any():  # what was exact stays so, in other units
            before, self.floor = self._exact, max(1e-4 * float(np.median(errors[rows][wrong])), 1e-10)
            self._scores = tuple(min(one, self._exact) if one <= before else one for one in self._scores)
        step = experience.steps
        thorough = urgent or step >= self._thorough or not self.planner.deterministic
        if thorough:
            lived = step - self.since
            growth = HOPELESS_GROWTH if not self._fits and lived > BEFORE else THOROUGH_GROWTH
            wait = max(math.ceil((growth - 1.0) * lived), SHORTEST_WAIT)
            self._thorough = step + min(wait, max(LONGEST_WAIT, lived // LIFETIMES))
            self._fits = self._fit_parameters(experience, measure, rows) if self.choice.believed else False
        if early and self.planner.deterministic:
            self._variants = {}
            return
        steady = self.in_use in ("residual", "both") and not urgent  # a drift would have made it worse
        if thorough and not self._fits and not steady and self.planner.deterministic:
            self._propose_drift(experience, measure)
        if not self._fits and self.planner.deterministic:
            self._fit_residuals(experience)
        self._variants = {}

    def _fit_residuals(self, experience: Experience) -> None:
        """Fits what the simulator, and the simulator with its parameters, get wrong in the next state."""
        values = self._values()
        if not values:
            self.residuals = {name: one for name, one in self.residuals.items() if name != "both"}
        latest = experience.latest(RESIDUAL_ROWS, self.since)
        rows = latest[[experience.raw[row] is not None for row in latest]]  # a file may lack states
        if "residual" not in self.allowed or len(rows) < 3 or not self.planner.can_shift:
            return
        self.feature_names = tuple(self.planner.feature_names(experience.raw[rows[-1]][0]))
        seen = self.planner, experience, rows, values or None
        found = fit_residuals(*seen, self.floor)
        for name in find_newly_exact(*seen, self.residuals, found, self.floor) - {self.in_use}:
            self.referee.clear(name)
        self.residuals = {**self.residuals, **found}  # without a new one, the one before stays, if the referee likes it
