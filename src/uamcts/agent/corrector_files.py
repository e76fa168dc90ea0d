"""What a corrector has learned, as arrays, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from uamcts.agent.tilting import Tilting
from uamcts.arguments import flag, real, whole
from uamcts.corrections.drift import Drift
from uamcts.corrections.outcome_rates import OutcomeRates
from uamcts.corrections.outcome_tilt import OutcomeTilt
from uamcts.corrections.parameters import Choice
from uamcts.corrections.referee import Referee
from uamcts.corrections.residual import Residual
from uamcts.corrections.trials import Fit, Rival

CANDIDATES = ("none", "parameters", "residual", "both", "drift", "tilt")
"""The corrections among which the referee decides, the simplest first. Add new ones at the end: files of agents hold a
score for each."""


class CorrectorFiles(Tilting):
    """Saves and restores a `Corrector`."""

    choice: Choice
    referee: Referee
    fit: Fit | None
    tables: dict[str, float]
    """All elements of the simulator's tables that may be wrong, and their believed values."""
    elements: dict[str, float]  # replaced, never changed
    """Those that are wrong, and their values."""
    _misread: int
    _fruitless: int
    in_use: str
    since: int
    changes: tuple[int, ...]
    floor: float
    feature_names: tuple[str, ...]
    allowed: frozenset[str]
    refused: tuple[tuple[str, ...], bool]
    """Parameters that the simulator fails with, and whether it fails with a residual."""
    _full: tuple[Choice, frozenset[str], dict[str, float]]
    """What may be corrected as long as nothing fails."""
    _suspected: int
    _unexplained: int
    _bearable: int
    _scores: tuple[float, ...]
    _next: int
    _thorough: int
    _fits: bool
    """Whether parameters explained nearly everything when they were fitted."""
    _variants: dict[str, Any]

    @property
    def candidates(self) -> list[str]:
        """Those that can be used now."""
        ready = {
            "none": True,
            "parameters": self.fit is not None or bool(self.elements),
            "drift": self.drift is not None,
        }
        ready |= dict.fromkeys(self.residuals, True)
        return [name for name in CANDIDATES if ready.get(name, False)]

    def refuse(self, names: Iterable[str], residual: bool) -> None:
        """Never uses some of the parameters, or a residual, again."""
        names = tuple(names)
        self.refused = (*self.refused[0], *names), self.refused[1] or residual
        self.choice = self.choice.without(names)
        self.tables = {} if any(name in self.tables for name in names) else self.tables
        self.allowed -= {"residual"} if residual else set()

    def arrays(self) -> dict[str, np.ndarray]:
        """All that was learned, to be saved."""
        words = {
            "fit": None if self.fit is None else list(self.fit),
            "elements": self.elements, "misread": [self._misread, self._fruitless],
            "in_use": self.in_use, "since": self.since, "changes": list(self.changes), "scores": list(self._scores),
            "next": self._next, "thorough": self._thorough, "patient": self._patient, "floor": self.floor,
            "fits": self._fits, "next_code": self._next_code,
            "residuals": list(self.residuals),
            "names": list(self.feature_names), "suspected": self._suspected, "unexplained": self._unexplained,
            "bearable": self._bearable, "refused": [list(self.refused[0]), self.refused[1]],
            "drift": None if self.drift is None else list(self.drift),
            "drifting": [self.drifts_since, self.now, self._begun, self._inexact], "likely": list(self._likelihoods),
            "rates": self.rates.arrays()["rates"].tobytes().decode(), "tilts": self._tilts,
        }  # fmt: skip
        parts = {
            f"{name}.{part}": array for name, one in self.residuals.items() for part, array in one.arrays().items()
        }
        scores = {f"referee.{name}": array for name, array in self.referee.arrays().items()}
        return {"words": np.frombuffer(json.dumps(words).encode(), np.uint8), **parts, **scores}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restores what `arrays` returned; raises an error that says what is wrong with other arrays."""
        if "words" not in arrays or arrays["words"].dtype != np.uint8 or arrays["words"].ndim != 1:
            raise ValueError("the corrections have no words")
        words = json.loads(arrays["words"].tobytes().decode())
        fit, elements = self._parse_fit(words["fit"]), self._parse_elements(words.get("elements", {}))
        misread = [whole("misread", number, 0) for number in words.get("misread", (0, 0))]
        drift = None if words["drift"] is None else self._parse_drift(*words["drift"])
        drifting = [whole("drifting", number, 0) for number in words["drifting"]]
        rates = OutcomeRates.of({"rates": np.frombuffer(str(words["rates"]).encode(), np.uint8)})
        likely = tuple(real("likelihood", number) for number in words["likely"])
        residuals = {
            name: _residual_of(
                {part.removeprefix(f"{name}."): array for part, array in arrays.items() if part.startswith(f"{name}.")}
            )
            for name in words["residuals"]
            if name in CANDIDATES
        }
        wanted = {"words", *(f"referee.{name}" for name in self.referee.arrays())}
        wanted |= {f"{name}.{part}" for name, residual in residuals.items() for part in residual.arrays()}
        if wanted != arrays.keys():
            raise ValueError(f"{min(wanted ^ arrays.keys())} is missing or not part of it")
        referee = self.referee.copy()
        referee.restore(
            {name.removeprefix("referee."): array for name, array in arrays.items() if name.startswith("referee.")}
        )
        tilts = whole("tilts", words.get("tilts", 0), 0)
        scores = tuple(real("score", score) for score in words["scores"])
        since, wait, suspected = (whole(name, words[name], 0) for name in ("since", "next", "suspected"))
        thorough, patient = (whole(name, words.get(name, 0), 0) for name in ("thorough", "patient"))
        coded = whole("next_code", words.get("next_code", 0), 0)
        unexplained, bearable = whole("unexplained", words["unexplained"], 0), whole("bearable", words["bearable"])
        changes = tuple(whole("change", step, 0) for step in words["changes"])
        floor = real("floor", words["floor"], "it must be above 0", lambda level: level > 0)
        self.fit, self.residuals, self.referee, self._variants = fit, residuals, referee, {}
        self.elements, (self._misread, self._fruitless) = elements, misread
        self._scores, self.since, self._next, self.changes, self.floor = scores, since, wait, changes, floor
        self._likelihoods, self.rates, self._thorough, self._patient = likely, rates, thorough, patient
        self._fits, self._next_code, self._tilts = flag("fits", words.get("fits", False)), coded, tilts
        self.drift, (self.drifts_since, self.now, self._begun, self._inexact) = drift, drifting
        self._suspected, self._unexplained, self._bearable = suspected, unexplained, bearable
        (self.choice, self.allowed, self.tables), self.refused = self._full, ((), False)
        self.refuse(map(str, words["refused"][0]), flag("refused", words["refused"][1]))
        self.feature_names = tuple(map(str, words.get("names", ())))
        self.in_use = words["in_use"] if words["in_use"] in self.candidates else "none"

    def _parse_fit(self, found: list[Any] | None) -> Fit | None:
        if found is None:
            return None
        values = {name: real(name, value) for name, value in found[0].items()}
        unknown = [name for name in values if name not in self.choice.believed]
        if unknown:
            raise ValueError(f"it has a value for the parameter {unknown[0]!r}, which the simulator does not have")
        ranges = {name: (real(name, low), real(name, high)) for name, (low, high) in found[1].items()}
        if ranges.keys() != values.keys():
            raise ValueError("its ranges and its values are for different parameters")
        return Fit(values, ranges, tuple(map(str, found[2])), self._parse_rivals(found[3]))

    def _parse_elements(self, found: dict[str, object]) -> dict[str, float]:
        if not found.keys() <= self._full[2].keys():
            raise ValueError("it has values for elements of tables that the simulator does not have")
        return {name: real(name, value) for name, value in found.items()}

    def _parse_rivals(self, found: Iterable[tuple[str, object, object]]) -> tuple[Rival, ...]:
        rivals = tuple(Rival(str(name), real(str(name), value), flag("tried", tried)) for name, value, tried in found)
        if not {rival.name for rival in rivals} <= self.choice.believed.keys():
            raise ValueError("it has rivals of its parameters that the simulator does not have")
        return rivals

    def _parse_drift(self, values: dict[str, Any], rates: dict[str, Any], at: Any) -> Drift:
        if values.keys() != rates.keys() or not values.keys() <= self.choice.believed.keys():
            raise ValueError("its drift is of parameters that the simulator does not have")
        here, speeds = ({name: real(name, number) for name, number in part.items()} for part in (values, rates))
        return Drift(here, speeds, whole("drift", at, 0))


def _residual_of(arrays: dict[str, np.ndarray]) -> Residual | OutcomeRates | OutcomeTilt:
    if "tilt.terms" in arrays:
        return OutcomeTilt.of(arrays)
    return OutcomeRates.of(arrays) if "rates" in arrays else Residual.of(arrays)
