"""Parameters that explain the same as others, so far: each is planned with for a while, to tell them apart.

Where only one action was taken, a weaker motor and a head wind explain the same. Planned with the wrong one of the two,
the agent may go on to take that action alone, and never find out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uamcts.agent.corrector_files import CorrectorFiles
from uamcts.agent.experience import Experience
from uamcts.agent.measure import Measure
from uamcts.agent.state_vectors import State
from uamcts.corrections.trials import Fit, Rival, Trials
from uamcts.errors import SimulatorError

CONFIRMED = 16
"""So many transitions in a row that are predicted exactly confirm a fit."""


class RivalFits(CorrectorFiles):
    """The part of a corrector that chooses between parameters that explain the same."""

    def _explained(self) -> bool:
        """Whether the corrected model has predicted everything lately, so that there is nothing to fit."""
        return len(self._scores) >= CONFIRMED and max(self._scores[-CONFIRMED:]) <= self._exact

    @property
    def _exact(self) -> float:
        """A score up to this is that of an exact prediction."""
        return math.log(10.0 * self.floor)

    def _weigh_rivals(self, experience: Experience, measure: Measure) -> None:
        """Drops rivals that the latest transition refutes, and plans with one if it is the better or an untried one."""
        row = experience.latest(1)
        if self.in_use != "parameters" or self.fit is None or not self.fit.rivals or experience.raw[row[0]] is None:
            return
        raw, fit = experience.raw[row[0]], self.fit
        trials = self.planner.trials([raw], experience, row.tolist(), measure, self.floor)
        if trials is None or trials.random:
            return
        right = [one for one in fit.rivals if _loss(trials, one) <= self._exact]
        if self._scores[-1] > self._exact:
            if right:
                self._plan_with(right[0], right[1:])
            return
        if len(right) < len(fit.rivals):
            self.fit = fit._replace(rivals=tuple(right), instead=tuple(one.name for one in right))
        if self._explained() and self.now % CONFIRMED == 0 and (untried := self._untried(raw, right)) is not None:
            (name, value), = fit.values.items()  # fmt: skip
            self._plan_with(untried, [*(one for one in right if one is not untried), Rival(name, value, True)])

    def _plan_with(self, rival: Rival, others: list[Rival]) -> None:
        """Plans with another explanation from now on."""
        names = tuple(one.name for one in others)
        self.fit = Fit({rival.name: rival.value}, {rival.name: (rival.value, rival.value)}, names, tuple(others))
        self._variants = {}

    def _untried(self, raw: tuple[State, object, State], rivals: list[Rival]) -> Rival | None:
        """A rival that was not planned with yet and predicts another effect of some action in a state."""
        count = getattr(self.planner, "num_actions", None)
        if count is None or all(one.tried for one in rivals):
            return None
        state, _, following = raw
        rows = [(state, action, following) for action in range(count)]
        try:
            said = self.planner.predict_next(rows, self.variant("parameters"))
            for one in rivals:
                other = self.planner.predict_next(rows, self.planner.variant({one.name: one.value}, None))
                close = all(np.allclose(a, b, 1e-6, 1e-9) for a, b in zip(said, other, strict=True))
                if not one.tried and not close:
                    return one
        except SimulatorError:  # some actions may not be legal here
            return None
        return None

    def variant(self, name: str | None = None) -> Any:
        """The simulator with a candidate's corrections."""
        raise NotImplementedError


def _loss(trials: Trials, one: Rival) -> float:
    return float(trials.losses([one.name], np.array([[one.value]]), np.arange(1))[0, 0])
