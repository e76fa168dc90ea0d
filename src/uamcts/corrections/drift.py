"""Parameters that drift: a value and a rate for each, fitted to the latest transitions.

Within a short window a drift is close to linear, whatever it is in the long run. So a parameter of a drifting world is
`value + rate * steps`, and the fit predicts the next transition with the value that the parameter will have by then.
Sets of parameters are ranked as in `parameter_fit`: by what they would explain if differences were linear in all values
and rates. The best few are then fitted by nonlinear least squares.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from uamcts.corrections.parameters import Choice
from uamcts.corrections.trials import HopelessError, Patience, Trials

WINDOW, SHORTEST, FEWEST = 32, 8, 6
"""Transitions in the longest and in the shortest window, and those without which nothing is fitted."""
MOST_DRIFTING, RANKED, REFINED = 3, 8, 4
"""Parameters that drift at the same time at most; how many promising ones sets are made of; how many sets are fitted in
each round."""
PATIENCE = 4
"""Steps of a fit after which it is given up if it explains next to nothing."""
ROOM = 0.5
"""Nats by which a long window may predict the latest transitions worse than a short one: fewer numbers per transition
are fitted to it, so it fits them less closely for no other reason."""


class Drift(NamedTuple):
    """Parameters that change with every step."""

    values: dict[str, float]
    rates: dict[str, float]
    """By how much each changes per step."""
    at: int
    """The step at which `values` hold."""

    def at_step(self, step: int) -> dict[str, float]:
        """The values at a step."""
        return {name: value + self.rates[name] * (step - self.at) for name, value in self.values.items()}


class _Path(NamedTuple):
    """Values at the next step, rates per step, and how badly they predict the transitions of a fit."""

    loss: float
    values: dict[str, float]
    rates: dict[str, float]


def fit_drift(
    trials: Trials, choice: Choice, steps: np.ndarray, next_step: int, start: dict[str, float]
) -> Drift | None:
    """Fits drifting parameters; None if they explain no more than the constant values `start`.

    Args:
        trials: The latest transitions, at most `WINDOW`, the latest one last.
        choice: Which parameters may be fitted.
        steps: The step of each transition.
        next_step: The step to be predicted next.
        start: The values of the best fit of constants.
    """
    if len(steps) < FEWEST:
        return None
    fit = _DriftFit(trials, choice, np.asarray(steps, float) - next_step)
    constant = fit.path(start, dict.fromkeys(start, 0.0))
    found = {0: constant}
    best, before, hopeful = constant, None, constant.loss - 0.5 * _least_gain(1, len(steps))
    for _ in range(2):
        if best is before:  # the second round would be the same again
            break
        before = best
        for values, rates in fit.promising(best):
            path, size = fit.refine(values, rates, hopeful=hopeful), len(values)
            if size not in found or path.loss < found[size].loss:
                found[size] = path
        best = _simplest(found, len(start), len(steps))
    if best is constant:
        return None
    steady = fit.refine(best.values, dict.fromkeys(best.values, 0.0), steady=True)
    if steady.loss - best.loss > _least_gain(len(best.values), len(steps)):
        return Drift(best.values, best.rates, next_step)
    if start and constant.loss - steady.loss > _least_gain(len(best.values), len(steps)):
        return Drift(steady.values, steady.rates, next_step)  # it has changed, and stays where it is now
    return None


def follow_drift(trials: Trials, choice: Choice, steps: np.ndarray, next_step: int, before: Drift) -> Drift:
    """Fits values and rates of the same parameters anew: to as many of the latest transitions as one line explains."""
    ages = np.asarray(steps, float) - next_step
    values, found = before.at_step(next_step), []
    late = _DriftFit(trials, choice, ages, SHORTEST)
    for window in (SHORTEST, 2 * SHORTEST, WINDOW):
        path = _DriftFit(trials, choice, ages, window).refine(values, before.rates)
        found.append(late.path(path.values, path.rates))
        if window >= len(steps):
            break
    best = [path for path in found if path.loss <= found[0].loss + ROOM][-1]
    return Drift(best.values, best.rates, next_step)


def _simplest(found: dict[int, _Path], constants: int, count: int) -> _Path:
    """The path with the fewest parameters that no other one is better than by more than its further numbers may."""
    best, numbers = found[0], constants
    for size in sorted(found)[1:]:
        extra = max(2 * size - numbers, 1)
        if best.loss - found[size].loss > _least_gain(extra, count):
            best, numbers = found[size], 2 * size
    return best


def _least_gain(numbers: int, count: int) -> float:
    """Nats per transition by which so many further numbers must improve a fit; the referee asks for more later on."""
    return 0.1 + numbers * math.log(count) / count


class _DriftFit:
    """One fit to the latest transitions; `ages` are their steps, counted from the next one: -1 is the latest."""

    def __init__(self, trials: Trials, choice: Choice, ages: np.ndarray, window: int = WINDOW):
        self.trials, self.choice = trials, choice
        self.rows = np.arange(len(ages))[-window:]
        self.ages = ages[self.rows]
        self.span = float(max(-self.ages[0], 1.0))

    def path(self, values: dict[str, float], rates: dict[str, float]) -> _Path:
        """A path with its loss."""
        parts = self._parts(list(values), np.array(list(values.values())), np.array(list(rates.values())))
        return _Path(float(np.mean(np.log(np.sum(parts**2, axis=1) + self.trials.floor))), values, rates)

    def _parts(self, names: list[str], values: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """Differences [rows, parts] of a path."""
        return self.trials.paths(names, self._along(names, values, rates), self.rows)

    def _along(self, names: list[str], values: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """The values at every transition, [rows, names], within their bounds."""
        low, high = self._bounds(names, values)
        return np.asarray(np.clip(values + self.ages[:, None] * rates, low, high).reshape(len(self.rows), len(names)))

    def _bounds(self, names: list[str], values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the user, or wide ones around where a parameter is now: a drift may lead anywhere."""
        ends = [self.choice.bounds_around(name, value) for name, value in zip(names, values, strict=True)]
        low, high = np.array(ends, float).reshape(len(names), 2).T
        return low, high

    def _slopes(self, names: list[str], values: np.ndarray, rates: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Derivatives [rows, parts, names] by the values, in their units, by central differences."""
        along, step = self._along(names, values, rates), self.trials.small_step
        columns = []
        for place, unit in enumerate(units):
            move = np.zeros(len(names))
            move[place] = step * unit
            ends = [self.trials.paths(names, along + sign * move, self.rows) for sign in (1.0, -1.0)]
            columns.append((ends[0] - ends[1]) / (2.0 * step))
        slopes = np.stack(columns, axis=-1)
        slopes[np.abs(slopes) > 0.4 / step] = 0.0  # an end that comes or goes is no slope
        return slopes

    def _units(self, names: list[str], values: np.ndarray) -> np.ndarray:
        believed = np.array([abs(self.choice.believed[name]) for name in names])
        sizes = np.maximum(np.abs(values), 0.1 * believed)
        return np.where(sizes > 0, sizes, 1.0)

    def promising(self, around: _Path) -> list[tuple[dict[str, float], dict[str, float]]]:
        """Sets of values and rates that would explain most if differences were linear in them."""
        believed = self.choice.believed
        names, home = list(believed), np.array(list(believed.values()))
        here = np.array([around.values.get(name, value) for name, value in believed.items()])
        rates = np.array([around.rates.get(name, 0.0) for name in names])
        units = self._units(names, here)
        base = self._parts(names, here, rates)
        usual = np.median(np.sum(base**2, axis=1)) + 1e-12
        weights = 1.0 / np.sqrt(1.0 + np.sum(base**2, axis=1, keepdims=True) / (4.0 * usual))
        slopes = self._slopes(names, here, rates, units) * weights[..., None]
        late = slopes * (self.ages / self.span)[:, None, None]
        both = np.stack([slopes, late], axis=-1).reshape(-1, len(names), 2)
        back = np.stack([(home - here) / units, -rates * self.span / units], axis=-1)  # the way to what is believed
        apart = (base * weights).ravel() + np.einsum("rnk,nk->r", both, back)
        found = []
        for chosen, steps in self._rank(both, apart):
            places = list(chosen)
            change = here[places] + (steps[:, 0] + back[places, 0]) * units[places]
            low, high = self._bounds([names[place] for place in places], here[places])
            speed = rates[places] + (steps[:, 1] + back[places, 1]) * units[places] / self.span
            picked = [names[place] for place in places]
            values = dict(zip(picked, np.clip(change, low, high).tolist(), strict=True))
            found.append((values, dict(zip(picked, speed.tolist(), strict=True))))
        return found

    @staticmethod
    def _rank(both: np.ndarray, apart: np.ndarray) -> list[tuple[tuple[int, ...], np.ndarray]]:
        """The sets of parameters that leave the least unexplained, and their steps [names, 2]."""

        def solve(chosen: tuple[int, ...]) -> tuple[float, np.ndarray]:
            columns = both[:, list(chosen)].reshape(len(apart), -1)
            gram, slope = columns.T @ columns, columns.T @ apart
            steps = -np.linalg.solve(gram + np.diag(1e-9 * np.diag(gram) + 1e-18), slope)
            return total + float(steps @ slope), steps

        total = float(apart @ apart)
        moves = [place for place in range(both.shape[1]) if np.any(np.abs(both[:, place]) > 1e-9)]
        single = {place: solve((place,))[0] for place in moves}
        best = sorted(single, key=lambda place: single[place])[:RANKED]
        ranked = []
        for count in range(1, MOST_DRIFTING + 1):
            for chosen in itertools.combinations(best, count):
                left, steps = solve(chosen)
                score = math.log(max(left, 1e-12 * total) + 1e-30) + 0.5 * count
                ranked.append((score, chosen, steps.reshape(count, 2)))
        ranked.sort(key=lambda one: one[0])
        return [(chosen, steps) for _, chosen, steps in ranked[:REFINED]]

    def refine(
        self, values: dict[str, float], rates: dict[str, float], steady: bool = False, hopeful: float = math.inf
    ) -> _Path:
        """The best path of the same parameters near one, with short numbers where these are as good.

        `steady` keeps the rates as they are. A fit that does not soon get below a loss of `hopeful` is given up.
        """
        from scipy import optimize  # only where something is fitted: it takes a while to import

        names, count = list(values), len(values)
        first, speeds = np.array(list(values.values())), np.array(list(rates.values()))
        units, (low, high) = self._units(names, first), self._bounds(names, first)
        wide, used = np.full(count, np.inf), count if steady else 2 * count
        bounds = np.append(low, -wide)[:used], np.append(high, wide)[:used]

        def parts(vector: np.ndarray) -> np.ndarray:
            found = self._parts(names, vector[:count], speeds if steady else vector[count:])
            return patience.watch(found).ravel()

        def slopes(vector: np.ndarray) -> np.ndarray:
            own = self._slopes(names, vector[:count], speeds if steady else vector[count:], units) / units
            return np.concatenate([own, own * self.ages[:, None, None]], axis=-1)[..., :used].reshape(-1, used)

        best = self.path(values, rates)
        for loss in ("linear", "cauchy"):
            patience = Patience(hopeful, self.trials.floor, PATIENCE)
            start = np.array([*best.values.values(), *best.rates.values()])[:used]
            start[:count] = np.clip(start[:count], low + 1e-9 * units, high - 1e-9 * units)
            sizes = np.abs(parts(start))
            usual = float(np.median(sizes[sizes > 0])) if (sizes > 0).any() else 0.0
            try:
                vector = optimize.least_squares(
                    parts, start, jac=slopes, bounds=bounds, x_scale=np.append(units, units / self.span)[:used],
                    loss=loss, f_scale=max(usual, 1e-9), max_nfev=10,
                ).x  # fmt: skip
            except HopelessError:
                continue
            except (ValueError, np.linalg.LinAlgError):
                break
            numbers = np.append(vector[:count], speeds if steady else vector[count:]).reshape(2, count).tolist()
            found = self.path(*(dict(zip(names, part, strict=True)) for part in numbers))
            best = min(best, found, key=lambda path: path.loss)
            if best.loss < math.log(10.0 * self.trials.floor):
                break
        return self._shorten(best) if best.loss < hopeful else best

    def _shorten(self, best: _Path) -> _Path:
        """The same path with as few digits as predict equally well: a mass grows by 0.1, not by 0.1000000000000041."""
        for digits in (2, 3, 4, 6):
            short = self.path(*({name: float(f"{number:.{digits}g}") for name, number in part.items()}
                                for part in (best.values, best.rates)))  # fmt: skip
            if short.loss <= best.loss + 1e-9:
                return short
        return best
