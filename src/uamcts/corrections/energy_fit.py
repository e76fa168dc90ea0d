"""Fits parameters of a random simulator whose draws hardly ever equal what happened, by their distance from it.

Rain falls on some days, and then some amount; a shop sells a random number from a stock that it counts wrongly. A draw
is then hardly ever exactly what happened, so a likelihood that counts such draws says nothing, and the mean of the
draws says too little: it cannot tell more rain from a wetter soil. The energy score of Gneiting and Raftery (2007),

    mean |x - y| - 1/2 mean |x - x'|

for draws x, x' and what happened y, can: on average it is least for the distribution that y is drawn from, whatever
that looks like. So a fit looks for the values with the least mean score. A mean of n scores that is lower by the factor
r counts as a gain of n log(1 / r) nats.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from uamcts.corrections.parameters import Choice
from uamcts.corrections.trials import Fit

FEWEST, MOST_FITTED, REFINED = 8, 3, 3
"""Transitions that a fit needs; the most parameters in it; how many promising ones are fitted with care."""
MARGIN = 6.0
"""Nats that each further number must gain beyond half the logarithm of the number of transitions. Scores are not
likelihoods, and with few draws they vary by chance: where nothing is wrong, gains of 2 are usual and 6 were seen."""
STEPS = 20
"""How many sets of values a fit tries for each of its numbers."""
SMALL = 1e-6
"""Scores below this share of the first one count as 0."""


class EnergyTrials(Protocol):
    """Compares real transitions with a simulator that has `sample`."""

    def scores(self, values: dict[str, float], care: int = 1) -> np.ndarray:
        """The energy score of each transition. `care` 0: of some of them, roughly; 1: of all; 2: of all, precisely."""
        ...


Found = tuple[float, dict[str, float]]
"""The mean score, and values."""


def fit_energy(trials: EnergyTrials, choice: Choice, start: Fit | None = None) -> Fit | None:
    """The fewest parameters that explain credibly more than the believed values; None if there are none."""
    plain = trials.scores({})
    if len(plain) < FEWEST or not choice.believed:
        return None
    fit = _EnergyFit(trials, choice, len(plain), float(plain.mean()))
    best = fit.run(
        {} if start is None else {name: one for name, one in start.values.items() if name in choice.believed}
    )
    return Fit(best[1], {name: (value, value) for name, value in best[1].items()}) if best[1] else None


class _EnergyFit:
    """One fit of some transitions; `plain` is the mean score of the believed values."""

    def __init__(self, trials: EnergyTrials, choice: Choice, count: int, plain: float):
        self.trials, self.choice, self.count, self.plain = trials, choice, count, plain

    def run(self, start: dict[str, float]) -> Found:
        """Adds one parameter after another as long as each gains more than its price."""
        best: Found = (self.plain, {})
        if start:
            best = self._simpler(best, self._refine(start))
        while len(best[1]) < MOST_FITTED and best[0] > SMALL * self.plain:
            found = best
            for name, value in self._promising(best[1]):
                found = self._simpler(found, self._refine({**best[1], name: value}), best)
            if found is best:
                break
            best = found
        return self._refine(best[1], 2) if best[1] else best

    def _simpler(self, one: Found, other: Found, base: Found | None = None) -> Found:
        """The better of two fits, where each further number must gain its price."""
        base = one if base is None else base
        more = len(other[1]) - len(one[1])
        gain = self.count * math.log(max(one[0], SMALL * self.plain) / max(other[0], SMALL * self.plain))
        return other if gain > more * self._price() else one

    def _price(self) -> float:
        return 0.5 * math.log(self.count) + MARGIN + math.log(max(len(self.choice.believed), 1))

    def _promising(self, known: dict[str, float]) -> list[tuple[str, float]]:
        """The parameters that may add most to those that are known, each with its best value on a grid."""
        before = float(self.trials.scores(known, care=0).mean())
        found = []
        for name in self.choice.believed:
            if name not in known:
                grid = self.choice.grid(name).tolist()
                means = [float(self.trials.scores({**known, name: value}, care=0).mean()) for value in grid]
                if means and min(means) < before:
                    found.append((min(means), name, grid[int(np.argmin(means))]))
        return [(name, value) for _, name, value in sorted(found)[:REFINED]]

    def _refine(self, values: dict[str, float], care: int = 1) -> Found:
        """The best values near the given ones."""
        from scipy import optimize  # only where something is fitted: it takes a while to import

        names, first = list(values), np.array(list(values.values()), float)
        low, high = np.array([self.choice.bounds_near(name, values[name]) for name in names], float).T
        scale = np.maximum(np.abs(first), 0.1 * np.array([max(abs(self.choice.believed[name]), 0.1) for name in names]))

        def score(vector: np.ndarray) -> float:
            inside = np.clip(vector * scale, low, high)
            return float(self.trials.scores(dict(zip(names, inside.tolist(), strict=True)), care).mean())

        corners = first / scale + np.vstack([np.zeros(len(names)), 0.15 * np.eye(len(names))])
        options = {"maxfev": STEPS * len(names), "xatol": 1e-3, "fatol": 1e-4 * self.plain, "initial_simplex": corners}
        best = optimize.minimize(score, first / scale, method="Nelder-Mead", options=options)
        inside = np.clip(best.x * scale, low, high).tolist()
        return float(best.fun), {name: float(f"{one:.4g}") for name, one in zip(names, inside, strict=True)}
