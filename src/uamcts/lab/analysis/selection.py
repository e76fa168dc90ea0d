"""Which rows of a summary figures and tables show: the best c, fresh seeds before sweeps, one row for each tau."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeGuard

from uamcts import names
from uamcts.lab.analysis.forms import Entry
from uamcts.presets import RULES

ORDER = [algorithm.key for algorithm in names.TABLE]


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)


def rule_sets_to_show(entries: Iterable[Entry]) -> list[str]:
    """The rule sets that entries are shown under: the paper's, or all of them if none is the paper's."""
    found = list(dict.fromkeys(entry["rules"] for entry in entries))
    return [rules for rules in found if rules in RULES] or found


def under_rules(entries: Iterable[Entry], rules: str) -> list[Entry]:
    """The entries to show under a rule set: its own, and those of algorithms with rules of their own, like trust.

    Such an algorithm runs once, whichever of the paper's rules the others follow, and is compared with all of them.
    """
    return [entry for entry in entries if entry["rules"] == rules or entry["rules"] not in RULES]


@dataclass(frozen=True)
class OfflineResult:
    """The offline result of an algorithm, at one tau, that figures and tables show."""

    algorithm: str
    tau: float | None
    """None unless results at several tau are shown."""
    row: Entry
    """The row on fresh seeds if there is one, else the best of the sweep."""
    sweep: Entry | None
    """The best row of the sweep that chose the c of a `row` on fresh seeds: a maximum, so too high on average."""

    @property
    def title(self) -> str:
        return names.title(self.algorithm) + ("" if self.tau is None else f", tau {self.tau:g}")


def offline_results(rows: Iterable[Entry]) -> list[OfflineResult]:
    """The offline results of one experiment and rule set: one for each algorithm, and tau if it reads tau."""
    rows = drop_repeated_taus(rows)
    sweep, fresh = _best(rows, "sweep", by_tau=True), _best(rows, "fresh", by_tau=True)
    places = sorted({**sweep, **fresh}, key=lambda place: (_place(place[0]), place[1]))
    several = {algorithm for algorithm, tau in places if len({t for a, t in places if a == algorithm}) > 1}
    return [
        OfflineResult(
            algorithm,
            tau if algorithm in several else None,
            fresh.get((algorithm, tau)) or sweep[algorithm, tau],
            sweep.get((algorithm, tau)) if (algorithm, tau) in fresh else None,
        )
        for algorithm, tau in places
    ]


def drop_repeated_taus(rows: Iterable[Entry]) -> list[Entry]:
    """The rows without repetitions: an algorithm that ignores tau has the same row at every tau."""
    rows = list(rows)
    first: dict[str, Any] = {}
    for row in rows:
        first.setdefault(row["algorithm"], row["tau"])
    return [row for row in rows if row["algorithm"] not in names.WITHOUT_TAU or row["tau"] == first[row["algorithm"]]]


def tau_of(row: Entry) -> float:
    """The tau of an offline row; 0 if its algorithm ignores tau."""
    return row["tau"] if row["algorithm"] not in names.WITHOUT_TAU and is_number(row["tau"]) else 0.0


def _best(rows: Iterable[Entry], purpose: str, by_tau: bool = False) -> dict[tuple[str, float], Entry]:
    """The best offline row of every algorithm, or of every algorithm and tau."""
    chosen: dict[tuple[str, float], Entry] = {}
    for row in rows:
        if row["scenario"] == "offline" and row["purpose"] == purpose and is_number(row["mean"]):
            place = (row["algorithm"], tau_of(row) if by_tau else 0.0)
            held = chosen.get(place)
            if held is None or (bool(row["best"]), row["mean"]) > (bool(held["best"]), held["mean"]):
                chosen[place] = row
    return chosen


def _place(algorithm: str) -> tuple[int, str]:
    return (ORDER.index(algorithm) if algorithm in ORDER else len(ORDER), algorithm)
