"""Learns a tilt: which features of outcomes make these more likely than a random simulator lists them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uamcts.agent.chance import RealOutcome
from uamcts.agent.drifting import Follower, place_number
from uamcts.agent.experience import Experience, Row
from uamcts.agent.measure import Measure, Scales
from uamcts.corrections.outcome_rates import OutcomeRates
from uamcts.corrections.outcome_tilt import OutcomeTilt, fit_tilt

FIRST, GROWTH, LONGEST = 16, 1.2, 60
"""Transitions before the first fit of weights, their growth until the next one, and the most between two."""
MORE, SHARE = 8.0, 0.25
"""By how many nats a tilt must be ahead of rates, and by which share of what rates have gained."""
FITTED = 300
"""How many of the latest facts weights are fitted to."""


class Tilting(Follower):
    """The part of a corrector that corrects the probabilities of outcomes by their features."""

    feature_names: tuple[str, ...]
    changes: tuple[int, ...]
    _tilts: int = FIRST
    """When weights are fitted next."""

    def begin_anew(self, step: int) -> None:
        """Forgets how often outcomes happen: the world has changed after this step."""
        self.rates, self.residuals, self._variants = OutcomeRates({}), {}, {}
        self.referee.clear()
        self.in_use, self.since, self._tilts, self._renewed = "none", step, step + FIRST, True
        self.changes = (*self.changes, step)[-20:]

    def _choose_probabilities(self, available: Sequence[str]) -> str:
        """The referee's choice, but rates unless a tilt predicts clearly better: rates are easier to understand."""
        best, referee = self.referee.choose(available), self.referee
        if best != "tilt" or not referee.is_better("residual", "none"):
            return best
        gained, more = referee.ahead("residual", "none"), referee.ahead("tilt", "residual")
        return best if more > max(MORE, SHARE * gained) else referee.choose([one for one in available if one != best])

    def _fit_tilt(self, experience: Experience) -> None:
        """Fits the weights when that is due."""
        if not self.planner.lists_outcomes or "residual" not in self.allowed or self.now < self._tilts:
            return
        self._tilts = self.now + min(max(int((GROWTH - 1.0) * self.now), 4), LONGEST)
        seen = self.planner.seen_outcomes(FITTED)
        if len(seen) < 2:
            return
        before, latest = self.residuals.get("tilt"), experience.raw[experience.latest(1)[0]]
        if latest is not None and not self.feature_names:
            self.feature_names = tuple(self.planner.feature_names(latest[0]))
        found = fit_tilt(seen, self.feature_names, before)
        if found is None or found.is_like(before):
            return
        self.residuals = {**self.residuals, "tilt": found}
        self._variants.pop("tilt", None)

    def _score_held_out(self, row: Row, real: RealOutcome, measure: Measure, scales: Scales) -> tuple[Any, Any]:
        """The scores on a transition of probabilities that were fitted to all others: nats and errors."""
        variants: dict[str, Any] = {}
        rates, listed = self.residuals.get("residual"), self.planner.listed(row.state, row.action, real)
        if isinstance(rates, OutcomeRates) and listed is not None:
            variants["residual"] = rates.without(len(listed[0]), row.number, place_number(row))
        tilt, seen = self.residuals.get("tilt"), self.planner.seen_outcome(row.state, row.number)
        if isinstance(tilt, OutcomeTilt):
            variants["tilt"] = tilt if seen is None else tilt.without(seen)
        found = {
            name: self.planner.score(
                row.state, row.action, real, row.real, self.planner.variant({}, one), measure, scales, self.floor
            )
            for name, one in variants.items()
        }
        return {name: one[0] for name, one in found.items()}, {name: one[1] for name, one in found.items()}
