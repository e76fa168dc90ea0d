"""Fits the fewest parameters of a simulator that explain what was seen.

Forward selection: parameters join one by one, the one first that explains most, as long as each explains credibly more;
then those that became superfluous leave. A fit is judged by the mean of log(u + u0) over transitions, u being the
squared error: one that is exact almost everywhere beats one that is a little wrong everywhere, so that a few
transitions that no parameter explains (a wall, a worn motor) do not bend it. SciPy does the numerics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scipy import optimize

from uamcts.corrections.parameters import Choice

MOST_FITTED = 4
"""Parameters in a fit at most."""
FEWEST_ROWS = 4
"""Transitions from which parameters are fitted at least."""
SCREENED = 32
"""Transitions on which starting values are compared."""
REFINED = 3
"""How many of the most promising parameters are fitted before one of them joins."""
EXACT = 6.0
"""Nats below the unfitted simulator at which a fit counts as exact: there is nothing more to explain."""


class Trials(Protocol):
    """Real transitions beside a simulator whose parameters can be set."""

    random: bool
    """Whether outcomes are random: `losses` are then negative log-likelihoods, and there are no `residuals`."""

    def losses(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """How badly a simulator with each of the `values` [G, names] predicts the `rows`: nats [G, rows]."""
        ...

    def residuals(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Differences for one set of values, so scaled that their squares sum to the squared errors: [rows, ...]."""
        ...


class Fit(NamedTuple):
    """Values of parameters that explain what was seen."""

    values: dict[str, float]
    ranges: dict[str, tuple[float, float]]
    """About 95 % of where a value may lie, given the rest of the fit."""
    instead: tuple[str, ...] = ()
    """Parameters that explain the same as the single one that was fitted."""


def fit_parameters(trials: Trials, choice: Choice, count: int, start: Fit | None = None) -> Fit | None:
    """Fits parameters to transitions 0 .. count - 1; None if none explains credibly more than the believed values."""
    if count < FEWEST_ROWS or not choice.believed:
        return None
    search = _Selection(trials, choice, np.arange(count))
    return search.run(start)


def credible(count: int, gain: float) -> bool:
    """Whether a mean gain of so many nats on `count` transitions is more than one more parameter brings by chance."""
    return gain > 0.1 and count * gain > 3.0 * math.log(count) + 4.0


class _Selection:
    """One fit: all that it needs to compare sets of parameters."""

    def __init__(self, trials: Trials, choice: Choice, rows: np.ndarray):
        self.trials, self.choice, self.rows = trials, choice, rows
        self.few = rows if len(rows) <= SCREENED else rows[:: -(-len(rows) // SCREENED)]
        self.plain = self._loss({}, rows)

    def run(self, start: Fit | None) -> Fit | None:
        chosen: dict[str, float] = {}
        loss, instead = self.plain, ()
        if start is not None:  # what was fitted before is where a fit begins
            again = self._refine(start.values)
            if credible(len(self.rows), self.plain - self._loss(again, self.rows)):
                chosen, loss = again, self._loss(again, self.rows)
        while len(chosen) < MOST_FITTED and loss > self.plain - EXACT:
            found = self._best_addition(chosen)
            if found is None or not credible(len(self.rows), loss - found[0][0]):
                break
            (loss, chosen), others = found[0], found[1:]
            same = [set(other) - set(chosen) for after, other in others if after < loss + 0.05]
            instead = tuple(name for extra in same for name in extra) if len(chosen) == 1 else ()
        if not chosen:
            return None
        chosen = self._drop_superfluous(chosen)
        return Fit(chosen, self._ranges(chosen), instead if len(chosen) == 1 else ())

    def _loss(self, values: dict[str, float], rows: np.ndarray) -> float:
        vector = np.array([list(values.values())], float).reshape(1, len(values))
        return float(np.mean(self.trials.losses(list(values), vector, rows)))

    def _best_addition(self, chosen: dict[str, float]) -> list[tuple[float, dict[str, float]]] | None:
        """Sets of one more parameter, the best first."""
        starts = []
        for name in self.choice.believed:
            grid = self.choice.grid(name) if name not in chosen else np.zeros(0)
            if grid.size:
                fixed = np.tile(list(chosen.values()), (len(grid), 1)).reshape(len(grid), len(chosen))
                losses = self.trials.losses([*chosen, name], np.column_stack([fixed, grid]), self.few).mean(axis=1)
                starts.append((float(losses.min()), name, float(grid[losses.argmin()])))
        before = self._loss(chosen, self.few)
        starts = [one for one in sorted(starts) if np.isfinite(one[0])][:REFINED]
        if not starts or not (starts[0][0] < before or len(chosen) == 0):
            starts = starts[:1]
        found = []
        for _, name, value in starts:
            for first in (value, self._near_believed(name)):
                values = self._refine({**chosen, name: first})
                found.append((self._loss(values, self.rows), values))
        unique = {tuple(sorted(values)): (loss, values) for loss, values in sorted(found, key=lambda one: -one[0])}
        return sorted(unique.values(), key=lambda one: one[0]) or None

    def _near_believed(self, name: str) -> float:
        """A start next to the believed value: a small error is found from here, a large one from the grid."""
        value, (low, high) = self.choice.believed[name], self.choice.bounds(name)
        return float(np.clip(value * 1.02 if value else 1e-3, low, high))

    def _refine(self, values: dict[str, float]) -> dict[str, float]:
        """The best values near a start."""
        names, first = list(values), np.array(list(values.values()), float)
        low, high = np.array([self.choice.bounds(name) for name in names], float).T
        first = np.clip(first, low, high)
        scale = np.maximum(np.abs(first), 0.1 * np.array([max(abs(self.choice.believed[name]), 0.1) for name in names]))
        if self.trials.random:
            return self._refine_likelihood(names, first, low, high)
        inside = np.clip(first, low + 1e-9 * scale, high - 1e-9 * scale)
        best = inside
        for loss in ("linear", "cauchy"):
            try:
                found = optimize.least_squares(
                    lambda vector: self.trials.residuals(names, vector, self.rows).ravel(), best, bounds=(low, high),
                    x_scale=scale, loss=loss, f_scale=self._spread(names, best), max_nfev=25, diff_step=1e-6,
                ).x  # fmt: skip
            except (ValueError, np.linalg.LinAlgError):
                break
            candidates = np.stack([best, found])
            best = candidates[np.argmin(self.trials.losses(names, candidates, self.rows).mean(axis=1))]
        return dict(zip(names, best.tolist(), strict=True))

    def _spread(self, names: list[str], vector: np.ndarray) -> float:
        """The usual size of a difference, beyond which a robust fit believes it less."""
        sizes = np.abs(self.trials.residuals(names, vector, self.rows))
        usual = float(np.median(sizes[sizes > 0])) if (sizes > 0).any() else 0.0
        return max(usual, 1e-9)

    def _refine_likelihood(
        self, names: list[str], first: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> dict[str, float]:
        """The most likely values; a single one by its posterior mean, which is what a plan should reckon with."""
        if len(names) == 1:
            mean, _, _ = self._posterior(names[0], first[0])
            return {names[0]: mean}

        def loss(vector: np.ndarray) -> float:
            inside = np.clip(vector, low, high)
            return float(np.mean(self.trials.losses(names, inside[None], self.rows)))

        found = optimize.minimize(loss, first, method="Nelder-Mead", options={"maxfev": 60, "xatol": 1e-3})
        return dict(zip(names, np.clip(found.x, low, high).tolist(), strict=True))

    def _posterior(self, name: str, centre: float) -> tuple[float, float, float]:
        """Mean and about 95 % of the posterior of a single parameter under a flat prior."""
        low, high = self.choice.bounds(name)
        believed = self.choice.believed[name]
        low = max(low, min(centre, believed) - 4 * max(abs(believed), 1.0))
        high = min(high, max(centre, believed) + 4 * max(abs(believed), 1.0))
        for _ in range(2):  # the second time where the first has found some weight
            grid = np.linspace(low, high, 41)
            losses = self.trials.losses([name], grid[:, None], self.rows).sum(axis=1)
            weights = np.where(np.isfinite(losses), np.exp(np.min(losses) - losses), 0.0)
            weights /= max(weights.sum(), 1e-300)
            total = np.cumsum(weights)
            ends = grid[np.searchsorted(total, 0.001)], grid[min(np.searchsorted(total, 0.999), 40)]
            step = grid[1] - grid[0]
            low, high = max(low, ends[0] - step), min(high, ends[1] + step)
        return (
            float(grid @ weights),
            float(grid[np.searchsorted(total, 0.025)]),
            float(grid[min(np.searchsorted(total, 0.975), 40)]),
        )

    def _drop_superfluous(self, chosen: dict[str, float]) -> dict[str, float]:
        """Leaves out parameters that the others make superfluous."""
        loss = self._loss(chosen, self.rows)
        for name in list(chosen):
            rest = {other: value for other, value in chosen.items() if other != name}
            if rest:
                refined = self._refine(rest)
                without = self._loss(refined, self.rows)
                if not credible(len(self.rows), without - loss):
                    chosen, loss = refined, without
        return chosen

    def _ranges(self, chosen: dict[str, float]) -> dict[str, tuple[float, float]]:
        """About 95 % of where each value may lie: by the curvature, or by the posterior."""
        if self.trials.random:
            return {name: self._posterior(name, value)[1:] if len(chosen) == 1 else (value, value)
                    for name, value in chosen.items()}  # fmt: skip
        names, vector = list(chosen), np.array(list(chosen.values()))
        base = self.trials.residuals(names, vector, self.rows).ravel()
        steps = 1e-5 * np.maximum(np.abs(vector), 1e-3)
        columns = [
            (self.trials.residuals(names, vector + np.eye(len(names))[place] * steps[place], self.rows).ravel() - base)
            / steps[place]
            for place in range(len(names))
        ]
        jacobian = np.stack(columns, axis=1)
        usual = 1.4826 * float(np.median(np.abs(base)))
        with np.errstate(all="ignore"):
            covariance = np.linalg.pinv(jacobian.T @ jacobian) * usual**2
        wide = 1.96 * np.sqrt(np.maximum(np.diag(covariance), 0.0))
        return {
            name: (float(value - width), float(value + width))
            for name, value, width in zip(names, vector, wide, strict=True)
        }
