"""Fits the fewest parameters of a random simulator that explain how often things happened, by likelihood.

A single number is estimated by its posterior mean, with the believed value worth a few transitions; a probability that
the user has named may have any value, all equally likely at first. A table of probabilities, a vector of numbers that
sum to 1, is fitted as a whole: the probability of an outcome is linear in it, so that expectation maximisation finds
the best one. Further single numbers are added one by one. A larger set must gain more nats than its numbers do by
chance.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from uamcts.corrections.parameters import Choice
from uamcts.corrections.trials import PRIOR, Fit, Trials, log_prior

FEWEST, MOST_FITTED, RANKED, DRAWN = 4, 3, 4, 2
"""Transitions that a fit needs; single numbers in it at most; how many promising ones are fitted in earnest, and if
every likelihood takes many draws."""
SCREENED_ROWS = 36
"""Rows that rough values are compared on."""
POINTS, FEW_POINTS = 41, 21
"""Points of a posterior, and if every likelihood takes many draws."""
ROUNDS, HALF = 60, 0.5
"""Rounds of expectation maximisation, and how far a table is moved towards each of its corners to see what changes."""
MARGIN = 2.0
"""Nats that each further number must gain beyond half the logarithm of how many transitions there are."""


class Found(NamedTuple):
    """A fit: nats in all, values, and how many free numbers there are."""

    loss: float
    values: dict[str, float]
    numbers: int


def fit_likelihood(trials: Trials, choice: Choice, count: int, start: Fit | None = None) -> Fit | None:
    """Fits parameters to rows 0 .. count - 1; None if none explains credibly more than the believed values.

    A single parameter that the user has named is estimated from the first transition on.
    """
    if not count or not choice.believed:
        return None
    fit = _LikelihoodFit(trials, choice, np.arange(count))
    if choice.named and len(choice.believed) == 1:
        (name,) = choice.believed
        mean, low, high = fit.posterior(name, choice.believed[name])
        return Fit({name: mean}, {name: (low, high)})
    return None if fit.times < FEWEST else fit.run(start)


def or_likelier(found: Fit, trials: Trials, choice: Choice, count: int, start: Fit | None) -> Fit:
    """A fit of what happens; in a simulator that can only be drawn from, one by likelihood alone if that is likelier.

    Among a few draws, a number that says how often something happens may pass for one that says what happens: with some
    value of it, what was paid is drawn by chance.
    """
    if not getattr(trials, "draws", False):
        return found
    other, rows = fit_likelihood(trials, choice, count, start), np.arange(count)
    if other is None:
        return found
    vectors = [(list(one.values), np.array([list(one.values.values())])) for one in (found, other)]
    first, second = (float(trials.losses(names, vector, rows).sum()) for names, vector in vectors)
    return other if second < first else found


def find_tables(choice: Choice) -> list[list[str]]:
    """The names of the numbers of each table of probabilities."""
    groups: dict[str, list[str]] = {}
    for name in choice.believed:
        element = re.fullmatch(r"(.+)\[\d+\]", name)
        if element is not None:
            groups.setdefault(element[1], []).append(name)
    return [names for names in groups.values() if _is_table([choice.believed[name] for name in names])]


def _is_table(values: list[float]) -> bool:
    return len(values) > 1 and min(values) >= 0.0 and abs(sum(values) - 1.0) < 1e-6


class _LikelihoodFit:
    """One fit: all that it needs to compare sets of parameters."""

    def __init__(self, trials: Trials, choice: Choice, rows: np.ndarray):
        self.trials, self.choice, self.rows = trials, choice, rows
        self.draws = bool(getattr(trials, "draws", False))
        self.weights = np.asarray(trials.times, float)[rows]
        self.times = float(self.weights.sum())
        self.plain = self._loss({})
        few = np.argsort(-self.weights, kind="stable")[:SCREENED_ROWS]
        self.few = rows[np.sort(few)]

    def run(self, start: Fit | None) -> Fit | None:
        plain = Found(self.plain, {}, 0)
        tables = [one for one in self._tables() if self._simplest([plain, one]) is one]
        singles = self._singles({name for one in tables for name in one.values})
        found = [plain, *singles, *tables]
        if start is not None and len(start.values) > 1 and not _is_table(list(start.values.values())):
            found.append(self._refine(start.values))
        best = self._simplest(found)
        while best.values and best.numbers == len(best.values) < MOST_FITTED and not self.draws:
            more = [self._refine(best.values | one.values) for one in singles if not one.values.keys() & best.values]
            better = self._simplest([best, *more])
            if better is best:
                break
            best = better
        if not best.values:
            return None
        others = [one for one in singles if best.numbers == 1 and one.values.keys() != best.values.keys()]
        instead = tuple(next(iter(one.values)) for one in others if one.loss < best.loss + 1.0)
        return Fit(best.values, self._ranges(best), instead)

    def _simplest(self, found: list[Found]) -> Found:
        """The fit that gains most, each number having to earn its keep."""
        return min(found, key=lambda one: one.loss + self._price(one.numbers))

    def _price(self, numbers: int) -> float:
        choices = math.log(max(len(self.choice.believed), 1))
        return numbers * (0.5 * math.log(self.times) + MARGIN) + choices * min(numbers, MOST_FITTED)

    def _loss(self, values: dict[str, float]) -> float:
        vector = np.array([list(values.values())], float).reshape(1, len(values))
        return float(np.sum(self.trials.losses(list(values), vector, self.rows)))

    def _singles(self, tables: set[str]) -> list[Found]:
        """Fits of the most promising single parameters; those of a table that is wrong as a whole are none."""
        starts = []
        before = float(self.trials.losses([], np.zeros((1, 0)), self.few).sum())
        for name in self.choice.believed:
            grid = self.choice.grid(name)
            if grid.size and name not in tables:
                losses = self.trials.losses([name], grid[:, None], self.few).sum(axis=1)
                starts.append((float(losses.min()), name, float(grid[losses.argmin()])))
        found = []
        for loss, name, value in sorted(starts)[: DRAWN if self.draws else RANKED]:
            if loss < before - 1e-9:
                mean = self.posterior(name, value)[0]
                found.append(Found(self._loss({name: mean}), {name: mean}, 1))
        return found

    def _tables(self) -> list[Found]:
        """Fits of whole tables of probabilities."""
        found = []
        for names in [] if self.draws else find_tables(self.choice):
            believed = np.array([self.choice.believed[name] for name in names])
            corners = believed + HALF * (np.eye(len(names)) - believed)
            losses = self.trials.losses(names, np.concatenate([believed[None], corners]), self.rows) / self.weights
            chances = np.exp(-losses)
            slopes = np.maximum((chances[1:] - (1.0 - HALF) * chances[0]) / HALF, 1e-9)  # [names, rows]
            prior = PRIOR * (0.9 * believed + 0.1 / len(names))
            table = prior / prior.sum()
            for _ in range(ROUNDS):
                shares = table[:, None] * slopes
                table = (shares / shares.sum(axis=0)) @ self.weights + prior
                table /= table.sum()
            values = dict(zip(names, table.tolist(), strict=True))
            found.append(Found(self._loss(values), values, len(names) - 1))
        return found

    def _refine(self, values: dict[str, float]) -> Found:
        """The most likely values near some."""
        from scipy import optimize  # only where something is fitted: it takes a while to import

        names, first = list(values), np.array(list(values.values()), float)
        low, high = np.array([self.choice.bounds(name) for name in names], float).T

        def loss(vector: np.ndarray) -> float:
            return self._loss(dict(zip(names, np.clip(vector, low, high).tolist(), strict=True)))

        best = optimize.minimize(
            loss, np.clip(first, low, high), method="Nelder-Mead", options={"maxfev": 60, "xatol": 1e-3}
        )
        found = dict(zip(names, np.clip(best.x, low, high).tolist(), strict=True))
        return Found(self._loss(found), found, len(names))

    def posterior(self, name: str, centre: float) -> tuple[float, float, float]:
        """Mean and about 95 % of the posterior of a single parameter."""
        low, high = self.choice.bounds(name)
        believed = self.choice.believed[name]
        low = max(low, min(centre, believed) - 4 * max(abs(believed), 1.0))
        high = min(high, max(centre, believed) + 4 * max(abs(believed), 1.0))
        for _ in range(2):  # the second time where the first has found some weight
            grid = np.linspace(low, high, FEW_POINTS if self.draws else POINTS)
            losses = self.trials.losses([name], grid[:, None], self.rows).sum(axis=1) - log_prior(
                self.choice, name, grid
            )
            weights = np.where(np.isfinite(losses), np.exp(np.min(losses) - losses), 0.0)
            weights[[0, -1]] *= 0.5  # the trapezoidal rule: each end stands for half as wide a piece
            weights /= max(weights.sum(), 1e-300)
            total = np.cumsum(weights)
            ends = (
                grid[int(np.searchsorted(total, 0.001))],
                grid[min(int(np.searchsorted(total, 0.999)), len(grid) - 1)],
            )
            step = grid[1] - grid[0]
            low, high = max(low, ends[0] - step), min(high, ends[1] + step)
        return (
            float(grid @ weights),
            float(grid[int(np.searchsorted(total, 0.025))]),
            float(grid[min(int(np.searchsorted(total, 0.975)), len(grid) - 1)]),
        )

    def _ranges(self, best: Found) -> dict[str, tuple[float, float]]:
        """About 95 % of where each value may lie."""
        if len(best.values) == 1:
            return {name: self.posterior(name, value)[1:] for name, value in best.values.items()}
        if best.numbers == len(best.values):
            return {name: (value, value) for name, value in best.values.items()}
        wide = {
            name: 1.96 * math.sqrt(value * (1.0 - value) / (self.times + PRIOR)) for name, value in best.values.items()
        }
        return {
            name: (max(value - wide[name], 0.0), min(value + wide[name], 1.0)) for name, value in best.values.items()
        }
