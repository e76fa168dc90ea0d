"""Fits single elements of a simulator's tables: the value of one shelf, the cost of one kind of ground.

A table of 36 numbers is too large to fit at once, but a step reads only a few of them. Changing all of them, then
halves, quarters and so on shows which. If another value of one of these explains a wrongly predicted transition
exactly, that value is used, provided that more transitions are then predicted exactly than before. If two
elements would explain equally many, neither is changed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from uamcts.corrections.trials import Trials

MOST_READ, MOST_ROWS, STEPS = 6, 4, 8
"""The most elements that a step may read, transitions that one fit explains, and iterations towards a value."""
APART = 0.3
"""An element is changed by this share of its size, and at least by this, to see whether it matters."""
FEWEST_ALONE = 3
"""How many transitions a number must explain if it is not an element of a larger table."""
LOST = 2
"""How many more transitions must be explained for each that no longer is, so that it is not chance."""
FARTHEST = 1e5
"""How many times as large as believed, or as 1, an element may be: a step may count up to it."""


def fit_elements(
    trials: Trials,
    tables: Mapping[str, float],
    fixed: Mapping[str, float],
    known: Mapping[str, float],
    most: int = MOST_ROWS,
    alone: frozenset[str] = frozenset(),
) -> dict[str, float]:
    """The elements that are not as believed, and their values.

    Args:
        trials: What was seen, the latest last: `uamcts.corrections.trials.Trials`, of a deterministic simulator.
        tables: The believed values of all elements.
        fixed: Values of other parameters.
        known: What was found before.
        most: How many transitions that are predicted wrongly are looked at, the latest first.
        alone: Names of numbers that are no elements of larger tables. Many steps read them, so they must explain more.
    """
    search = _ElementSearch(trials, tables, fixed, alone)
    values, tried = dict(known), 0
    exact = search.exact(values)
    for row in np.flatnonzero(~exact)[::-1].tolist():
        if exact[row]:
            continue
        if (tried := tried + 1) > most:
            break
        better = search.explain(row, values, exact)
        if better is not None:
            values = {name: value for name, value in better.items() if value != tables[name]}
            exact = search.exact(values)
    return values


class _ElementSearch:
    def __init__(self, trials: Trials, tables: Mapping[str, float], fixed: Mapping[str, float], alone: frozenset[str]):
        self.trials, self.tables, self.fixed, self.alone = trials, tables, dict(fixed), alone
        self.limit = math.log(10.0 * trials.floor)

    def losses(self, values: Mapping[str, float], rows: Sequence[int]) -> np.ndarray:
        """Nats [rows]."""
        found = self.fixed | dict(values)
        return np.asarray(self.trials.losses(list(found), np.array([list(found.values())], float), np.asarray(rows))[0])

    def exact(self, values: Mapping[str, float]) -> np.ndarray:
        """Which transitions are predicted exactly, bool [rows]."""
        return self.losses(values, range(len(self.trials.seen))) <= self.limit

    def parts(self, values: Mapping[str, float], row: int) -> np.ndarray:
        """The differences of one transition to what is predicted."""
        found = self.fixed | dict(values)
        return np.asarray(self.trials.residuals(list(found), np.array(list(found.values()), float), np.array([row]))[0])

    def explain(self, row: int, values: dict[str, float], exact: np.ndarray) -> dict[str, float] | None:
        """Values with one element changed, so that this transition and more in all are predicted exactly; None if no
        element does that, or several do it equally well."""
        found = []
        for name in self.read(row, values):
            value = self.solve(row, name, values)
            if value is not None:
                changed = {**values, name: value}
                now = self.exact(changed)
                won, lost = int((now & ~exact).sum()), int((exact & ~now).sum())
                price = 1 if value == self.tables[name] else LOST  # what is believed is a reason by itself
                if won >= price * lost + (FEWEST_ALONE if name in self.alone else 1):
                    found.append((won - lost, changed))
        most = max((gain for gain, _ in found), default=0)
        best = [changed for gain, changed in found if gain == most]
        return best[0] if most > 0 and len(best) == 1 else None

    def read(self, row: int, values: dict[str, float]) -> list[str]:
        """The elements that a step depends on; empty if there are too many."""
        here, waiting = self.parts(values, row), [list(self.tables)]
        found: list[str] = []
        while waiting and len(found) <= MOST_READ:
            names = waiting.pop()
            moved = {name: self._moved(values.get(name, self.tables[name])) for name in names}
            if np.array_equal(self.parts(values | moved, row), here):
                continue
            if len(names) == 1:
                found += names
            else:
                waiting += [names[: len(names) // 2], names[len(names) // 2 :]]
        return found if len(found) <= MOST_READ else []

    def _moved(self, value: float) -> float:
        """Another value of an element; a whole number stays one, so that places remain places."""
        apart = max(APART * abs(value), APART)
        return value + (math.ceil(apart) if value.is_integer() else apart)

    def solve(self, row: int, name: str, values: dict[str, float]) -> float | None:
        """The value of an element that explains a transition exactly, by secants; None if none does."""
        value = values.get(name, self.tables[name])
        whole, farthest = value.is_integer(), FARTHEST * max(abs(value), 1.0)
        here, other = self.parts(values, row), self._moved(value)
        for _ in range(STEPS):
            there = self.parts({**values, name: other}, row)
            slope = (there - here) / (other - value)
            if not np.isfinite(slope).all() or not slope.any():
                return None
            value, here, other = other, there, float(other - slope @ there / (slope @ slope))
            if abs(other) > farthest:
                return None
            for one in (float(round(other)), other) if whole else (other,):  # a place in a list must be whole
                if self.losses({**values, name: one}, [row])[0] <= self.limit:
                    return self._shorten(row, name, one, values)
            if other == value:
                return None
        return None

    def _shorten(self, row: int, name: str, value: float, values: dict[str, float]) -> float:
        """The value with the fewest digits that explain as much: people write 1.4, not 1.4000000000000041."""
        exact = self.losses({**values, name: value}, [row])[0]
        for digits in (1, 2, 3, 4, 6, 9):
            short = float(f"{value:.{digits}g}")
            if self.losses({**values, name: short}, [row])[0] <= exact + 1e-9:
                return short
        return value
