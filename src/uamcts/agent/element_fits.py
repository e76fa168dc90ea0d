"""Corrects single elements of a simulator's tables, where transitions identify them (`corrections.element_fit`)."""

from __future__ import annotations

from uamcts.agent.experience import Experience
from uamcts.agent.measure import Measure
from uamcts.agent.parameter_fits import ParameterFits
from uamcts.corrections.element_fit import MOST_ROWS, fit_elements
from uamcts.corrections.elements import is_entry

FITTED_ROWS = 160
"""How many of the latest transitions parameters are fitted to."""
SHOWN = 3
"""The most elements that a report names."""
FIRST_ELEMENTS, LAST_ELEMENTS = 20, 100
"""For so many steps, numbers in code wait for elements of larger tables: to be found, and to be in use."""
PATIENCE = 4
"""After so many fruitless attempts, each waits for one more wrong transition, after twice as many for four more, and so
on. An attempt is fruitless if it changes no element, or if elements are not in use."""


class ElementFits(ParameterFits):
    """The part of a corrector that fits elements of tables, and says what is corrected."""

    def _values(self) -> dict[str, float]:
        """All parameters and elements that were fitted."""
        return {**self.elements, **({} if self.fit is None else self.fit.values)}

    def _finds_elements(self, step: int) -> bool:
        """Whether elements of larger tables are being found, or may be: they take one transition each."""
        larger = self.tables.keys() - self.choice.believed.keys()
        if not larger or larger.isdisjoint(self.elements):
            return bool(larger) and step < FIRST_ELEMENTS
        return step < LAST_ELEMENTS or self.in_use in ("parameters", "both")

    def _fit_elements(self, experience: Experience, measure: Measure) -> None:
        """Fits elements, once enough transitions were predicted wrongly."""
        if not self.tables or self._misread <= (self._fruitless // PATIENCE) ** 2:
            return
        self._misread = 0
        rows = experience.latest(FITTED_ROWS, max(self.since, self._suspected - 1)).tolist()
        trials = self.planner.trials([experience.raw[row] for row in rows], experience, rows, measure, self.floor)
        if trials is None or not len(trials.seen):
            return
        fixed, most = {} if self.fit is None else self.fit.values, MOST_ROWS if self._fruitless < 2 * PATIENCE else 1
        tables, known = ({k: v for k, v in one.items() if k not in fixed} for one in (self.tables, self.elements))
        alone = frozenset(name for name in tables if name in self.choice.believed and not is_entry(name))
        found = fit_elements(trials, tables, fixed, known, most, alone)
        changed, used = found != self.elements, self.in_use in ("parameters", "both")
        self._fruitless = 0 if changed and used else self._fruitless + 1
        if changed:
            self.elements, self._variants = found, {}

    def _describe_elements(self) -> list[str]:
        fitted = {} if self.fit is None else self.fit.values
        elements = {name: value for name, value in self.elements.items() if name not in fitted}
        some = list(elements.items())[-SHOWN:]
        more = len(elements) - len(some)
        said = [f"{name} is about {_unlike(value, self.tables[name])}: corrected" for name, value in some]
        return said + ([f"{more} more numbers are corrected"] if more else [])

    def _describe_fit(self) -> list[str]:
        said: list[str] = []
        if self.fit is None:
            return said
        for name, value in self.fit.values.items():
            low, high = self.fit.ranges[name]
            around = f" ({low:.3g} to {high:.3g})" if high - low > 5e-3 * max(abs(value), 1e-9) else ""
            also = f"; {' or '.join(self.fit.instead)} would explain the same" if self.fit.instead else ""
            said.append(f"{name} is about {_unlike(value, self.choice.believed[name], around)}: corrected{also}")
        return said

    def sentences(self) -> list[str]:
        """What is corrected and why, in plain words."""
        said = [f"the world changed at about step {step}: learned anew from there" for step in self.changes[-3:]]
        if self.in_use in ("parameters", "both"):
            said += self._describe_fit() + self._describe_elements()
        if self.in_use == "drift":
            said += self._describe_drift()
        if self.in_use in ("residual", "both", "tilt"):
            residual = self.residuals[self.in_use]
            words = residual.describe(self.feature_names, self.planner.action_names)
            what = " and rewards" if "reward by" in words else ""
            which = f"states{what} before a step" if getattr(residual, "early", False) else f"next states{what}"
            which = "probabilities of outcomes" if self.keeps_outcomes else which
            said.append(f"{which} are corrected: {words}")
        return said


def _unlike(value: float, believed: float, around: str = "") -> str:
    """A value and the believed one, with enough digits to tell them apart."""
    said = next((f"{value:.{n}g}" for n in (4, 6, 9) if f"{value:.{n}g}" != f"{believed:.{n}g}"), f"{value!r}")
    return f"{said}{around}, not {believed:g}"
