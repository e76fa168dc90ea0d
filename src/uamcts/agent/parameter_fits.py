"""Fits numbers of a simulator: its attributes first, and those in its code where attributes do not explain enough."""

from __future__ import annotations

import numpy as np

from uamcts.agent.experience import Experience
from uamcts.agent.measure import Measure
from uamcts.agent.rival_fits import RivalFits
from uamcts.corrections.elements import is_in_code
from uamcts.corrections.parameter_fit import fit_amounts, fit_parameters
from uamcts.corrections.parameters import Choice
from uamcts.corrections.trials import Fit, Trials, unless_same

FIRST_FIT = 5
"""Transitions before the first fit that may leave errors."""
WRONG, LATE = 0.1, 8
"""Parameters explain nearly everything if they leave less than this share of transitions unexplained, or, while they
are in use, fewer than this number."""


class ParameterFits(RivalFits):
    """The part of a corrector that fits parameters."""

    _next_code = 0
    """The step at which numbers in the simulator's code are tried next."""

    def _fit_parameters(self, experience: Experience, measure: Measure, rows: np.ndarray) -> bool:
        """Fits parameters; returns whether they explain nearly everything, or have done so until a moment ago."""
        places = rows.tolist()
        trials = self.planner.trials([experience.raw[row] for row in places], experience, places, measure, self.floor)
        if trials is None:
            return False
        count, found, wrong = len(trials.seen), self.fit, 1.0
        coded = found is not None and any(map(is_in_code, found.values))
        if not coded:
            found, wrong = self._try_fit(trials, self.choice.of_plain(), found)
        if coded or (wrong >= WRONG and count >= FIRST_FIT and self._reads_code(experience.steps)):
            found, wrong = self._try_fit(trials, self.choice, found)
        self.fit = unless_same(found, self.fit)
        if trials.random:
            return False
        return wrong < WRONG or (self.in_use == "parameters" and wrong * count < LATE)  # else see what comes

    def _try_fit(self, trials: Trials, choice: Choice, start: Fit | None) -> tuple[Fit | None, float]:
        """A fit, and the share of transitions that it leaves unexplained; if random, 0 with a fit and 1 without."""
        count = len(trials.seen)
        with_code = any(map(is_in_code, choice.believed)) and not choice.named
        if with_code and trials.random and not getattr(trials, "draws", False):  # rates and tilts say how often
            found = fit_amounts(trials.matched(), choice, count, start) if hasattr(trials, "matched") else None
        else:
            found = fit_parameters(trials, choice, count, start)
        if found is None or trials.random:
            return found, float(found is None)
        vector = np.array([list(found.values.values())])
        wrong = trials.losses(list(found.values), vector, np.arange(count)) > self._exact
        return found, float(wrong.mean())

    def _finds_elements(self, step: int) -> bool:
        """Whether elements of larger tables are being found, or may be: they take one transition each."""
        raise NotImplementedError

    def _reads_code(self, step: int) -> bool:
        """Whether numbers in the simulator's code are tried now, which happens ever more rarely."""
        if self.choice.named or step < self._next_code or self._finds_elements(step):
            return False
        self._next_code = 2 * step
        return True
