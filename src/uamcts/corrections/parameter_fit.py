"""Fits the fewest parameters of a simulator that explain what was seen.

Which parameters? Around the present values, differences are linear in the parameters: sets of up to three are ranked by
what they would explain if that held everywhere, and the best few are fitted in earnest from there, by nonlinear least
squares. A second round starts from the first one's result. Single parameters are also tried on a grid, for those that
act in jumps or far away. The smallest set wins that no larger one is credibly better than.

A fit is judged by the mean of log(u + u0), u being the squared error: one that is exact almost everywhere beats one
that is a little wrong everywhere, so that a wall does not bend it. For random outcomes: `likelihood_fit`, `energy_fit`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from uamcts.corrections.energy_fit import fit_energy
from uamcts.corrections.likelihood_fit import fit_likelihood, or_likelier
from uamcts.corrections.parameters import Choice
from uamcts.corrections.ranking import rank_sets, slopes_of
from uamcts.corrections.trials import Fit, HopelessError, Patience, Rival, Trials, WithValues, credible, least_gain

MOST_FITTED, REFINED = 3, 4
"""Parameters in a fit at most, and how many sets are fitted in each round."""
FEWEST_ROWS, FEW_ROWS, FITTED_ROWS, SCREENED_ROWS = 2, 4, 64, 24
"""Transitions that a fit needs: fewer than the second number must be explained exactly, by one parameter. Those that it
is computed from at most, and those that grids are compared on."""
REVERSED = (-2.0, -1.0, -0.5)
"""How many times as large as believed a parameter with the other sign is tried."""
PATIENCE = 5
"""Steps of a fit after which it is given up if it explains next to nothing."""
EXACT = 6.0
"""Nats below the unfitted simulator at which a fit counts as exact: there is nothing more to explain."""


def fit_parameters(trials: Trials, choice: Choice, count: int, start: Fit | None = None) -> Fit | None:
    """Fits parameters to transitions 0 .. count - 1; None if none explains credibly more than the believed values."""
    if trials.random:
        return _fit_random(trials, choice, count, start)
    if count < FEWEST_ROWS or not choice.believed:
        return None
    search = _Selection(trials, choice, np.arange(count))
    return search.run(start)


def _fit_random(trials: Trials, choice: Choice, count: int, start: Fit | None) -> Fit | None:
    """Fits what happens by least squares, and then how often it does by likelihood."""
    matched = trials.matched() if hasattr(trials, "matched") and count >= FEW_ROWS and choice.believed else None
    found = None
    if matched is not None:
        if matched.needs_distances(count):
            return fit_energy(matched.energy(count), choice, start)
        found = fit_amounts(matched, choice, count, start)
        if matched.continuum and (found is not None or not (choice.named or matched.spread_is_off(count))):
            return found
    if found is None:
        return fit_likelihood(trials, choice, count, start)
    before = {} if start is None else {name: one for name, one in start.values.items() if name not in found.values}
    first = Fit(before, {}) if before else None
    rest = fit_likelihood(WithValues(trials, found.values), choice.without(found.values), count, first)
    found = found if rest is None else Fit(found.values | rest.values, found.ranges | rest.ranges)
    return or_likelier(found, trials, choice, count, start)


def fit_amounts(matched: Trials, choice: Choice, count: int, start: Fit | None) -> Fit | None:
    """Fits what happens in a random simulator, and not how often."""
    rows = matched.choose_rows(count)  # type: ignore[attr-defined]
    if not rows.size:
        return None
    search = _Selection(matched, choice.of_amounts(), rows)
    known = {} if start is None else search.needed(start.values)
    enough = bool(known) and search.explains(known, matched.noise)  # type: ignore[attr-defined]
    return search.run(Fit(known, {}) if known else None, not enough)


class _Selection:
    """One fit: all that it needs to compare sets of parameters."""

    def __init__(self, trials: Trials, choice: Choice, rows: np.ndarray):
        self.trials, self.choice, self.rows = trials, choice, rows
        losses = trials.losses([], np.zeros((1, 0)), rows)[0]
        self.plain = float(np.mean(losses))
        order = rows[np.argsort(losses, kind="stable")]  # from the best predicted to the worst
        self.some = rows[:: -(-len(rows) // FITTED_ROWS)]
        some = float(np.mean(trials.losses([], np.zeros((1, 0)), self.some)))
        self.hopeful = some - 0.5 * least_gain(len(rows))
        """The loss of values that might still turn out to explain something."""
        self.few = order[np.unique(np.linspace(0, len(rows) - 1, SCREENED_ROWS).astype(int))]
        worst = order[-SCREENED_ROWS // 2 :]
        self.few = np.unique(np.concatenate([self.few, worst]))
        self.tried: dict[frozenset[str], tuple[float, dict[str, float]]] = {frozenset(): (self.plain, {})}

    def run(self, start: Fit | None, wide: bool = True) -> Fit | None:
        """Fits from what was fitted before, if there is any, and unless that is enough, from everywhere else."""
        if start is not None:
            self._try(start.values)
        for around in self._rounds() if wide else ():
            for values in self._promising_sets(around):
                self._try(values)
        if wide and not self._exact():
            self._try_single_values(REFINED)
        loss, chosen = self._best()
        if not chosen or (len(self.rows) < FEW_ROWS and not self._explains_all(chosen)):
            return None
        rivals = self._same_explanation(loss, chosen)
        return Fit(chosen, self._ranges(chosen), tuple(rival.name for rival in rivals), rivals)

    def _rounds(self) -> Iterator[dict[str, float]]:
        """What the first round starts from, and the second one: there is none if it would be the same again."""
        yield (first := self._best()[1])
        if (second := self._best()[1]) != first and not self._exact():
            yield second

    def needed(self, values: dict[str, float]) -> dict[str, float]:
        """Those of some values without which less would be explained."""
        loss = self._loss(values)
        without = {one: {name: value for name, value in values.items() if name != one} for one in values}
        return {name: value for name, value in values.items() if self._loss(without[name]) > loss + 1e-9}

    def explains(self, values: dict[str, float], noise: float) -> bool:
        """Whether values explain most transitions up to some noise."""
        return float(np.median(self.trials.losses(list(values), np.array([list(values.values())]), self.rows))) < noise

    def _exact(self) -> bool:
        return self._best()[0] < max(self.plain - EXACT, getattr(self.trials, "noise", -math.inf))

    def _explains_all(self, values: dict[str, float]) -> bool:
        """Whether a single parameter explains every transition exactly: already of few of them, that is no chance."""
        left = self.trials.losses(list(values), np.array([list(values.values())]), self.rows)
        return len(values) == 1 and bool(np.all(left <= math.log(10.0 * self.trials.floor)))

    def _loss(self, values: dict[str, float]) -> float:
        vector = np.array([list(values.values())], float).reshape(1, len(values))
        return float(np.mean(self.trials.losses(list(values), vector, self.rows)))

    def _try(self, first: dict[str, float]) -> None:
        """Fits a set of parameters from a start."""
        refined, place = self._refine(first), frozenset(first)
        for values in [] if refined is None else self.choice.with_and_without(refined):
            found = self._shorten(values)
            better = place not in self.tried or found[0] < self.tried[place][0]
            if better and not any(self.choice.is_believed(*pair) for pair in found[1].items()):
                self.tried[place] = found

    def _shorten(self, values: dict[str, float]) -> tuple[float, dict[str, float]]:
        """Values with as few digits as explain the same: people write 1.4 and not 1.4000000000000041."""
        exact = self._loss(values)
        for digits in (2, 3, 4, 6):
            short = {name: float(f"{value:.{digits}g}") for name, value in values.items()}
            if (loss := self._loss(short)) <= exact + 1e-9:
                return loss, short
        return exact, values

    def _best(self) -> tuple[float, dict[str, float]]:
        """The smallest set that no larger one is credibly better than."""
        best = self.tried[frozenset()]
        for size in range(1, MOST_FITTED + 1):
            sets = [found for place, found in self.tried.items() if len(place) == size]
            better = min(sets, key=lambda found: found[0], default=None)
            if better is not None and credible(len(self.rows), (best[0] - better[0]) / max(size - len(best[1]), 1)):
                best = better
        return best

    def _same_explanation(self, loss: float, chosen: dict[str, float]) -> tuple[Rival, ...]:
        """Other single parameters that explain as much as the chosen one."""
        if len(chosen) > 1:
            return ()
        others = [found for place, found in self.tried.items() if len(place) == 1 and place != set(chosen)]
        return tuple(Rival(*next(iter(values.items()))) for other, values in others if other < loss + 0.1)

    def _promising_sets(self, around: dict[str, float]) -> list[dict[str, float]]:
        """Sets of parameters, with starting values, that would explain most if differences were linear."""
        believed = self.choice.believed
        names = list(believed)
        units = np.array([around.get(name, value) or 1.0 for name, value in believed.items()])  # their own sizes
        here = np.array([around.get(name, value) for name, value in believed.items()])
        base = self.trials.residuals(names, here, self.some)
        usual = np.median(np.sum(base**2, axis=1)) + 1e-12
        weights = 1.0 / np.sqrt(1.0 + np.sum(base**2, axis=1, keepdims=True) / (4.0 * usual))
        slopes = slopes_of(self.trials, names, here, self.some, units, 1e-4, base) * units
        jacobian, apart = (slopes * weights[..., None]).reshape(-1, len(names)), (base * weights).ravel()
        home = (np.array(list(believed.values())) - here) / units  # the way back to what is believed
        ranked = rank_sets(jacobian, apart, home, MOST_FITTED)
        sets = []
        for _, chosen, steps in ranked[:REFINED]:
            values = {}
            for place, step in zip(chosen, steps, strict=True):
                low, high = self.choice.bounds_near(names[place], here[place])
                change = here[place] + step * units[place]
                if here[place] != 0.0 and not 0.2 < change / here[place] < 5.0:  # a long way: as if in logarithms
                    if change / here[place] < 0.0 and len(chosen) == 1:  # or it has the other sign
                        ends = self.choice.bounds_near(names[place], change)
                        sets.append({names[place]: float(np.clip(change, *ends))})
                    change = here[place] * math.exp(float(np.clip(step, -2.0, 2.0)))
                values[names[place]] = float(np.clip(change, low, high))
            sets.append(values)
        return sets

    def _try_single_values(self, most: int) -> None:
        """Fits single parameters from the best of several values: for those that act in jumps, or far away."""
        starts = []
        losses = self.trials.losses([], np.zeros((1, 0)), self.few)
        before, hopeful = float(np.mean(losses)), float(np.mean(losses)) - 0.5 * least_gain(len(self.rows))
        for name in self.choice.believed:
            grid = self._grid(name)
            if grid.size and self._matters(name, grid, losses):
                mean = self.trials.losses([name], grid[:, None], self.few).mean(axis=1)
                starts.append((float(mean.min()), name, float(grid[mean.argmin()]), grid))
        for loss, name, value, grid in sorted(starts, key=lambda start: start[0])[:most]:
            if loss < before - 1e-9 and self._scan(name, value, grid, self.few, 1)[0] < hopeful:
                self._try({name: self._scan(name, value, grid, self.rows, 2)[1]})

    def _matters(self, name: str, grid: np.ndarray, losses: np.ndarray) -> bool:
        """Whether a parameter changes any prediction: if three values far apart do not, the others need no trial."""
        some = grid[[0, len(grid) // 2, -1]]
        return bool(np.any(self.trials.losses([name], some[:, None], self.few) != losses))

    def _grid(self, name: str) -> np.ndarray:
        """Values of a parameter from which a fit starts, those of the other sign included where they are possible."""
        turned = self.choice.believed[name] * np.array(REVERSED)
        low, high = self.choice.bounds_near(name, turned[0])
        return np.unique([*self.choice.grid(name), *turned[(turned >= low) & (turned <= high) & (turned != 0.0)]])

    def _scan(self, name: str, value: float, grid: np.ndarray, rows: np.ndarray, passes: int) -> tuple[float, float]:
        """The loss on rows of a better value between the neighbours of one on a grid, and that value.

        Where there is no slope, only trying helps.
        """
        ends, least = np.unique(np.append(grid, self.choice.believed[name])), math.inf
        for _ in range(passes):
            place = int(np.searchsorted(ends, value))
            left, right = ends[max(place - 1, 0)], ends[min(place + 1, len(ends) - 1)]
            near = np.unique([*np.linspace(left, right, 11), value])  # half of what is believed may be exactly right
            losses = self.trials.losses([name], near[:, None], rows).mean(axis=1)
            least = float(losses.min())
            best = np.flatnonzero(losses <= least + 1e-12)
            value, ends = float(near[best[len(best) // 2]]), near
        return least, value

    def _refine(self, values: dict[str, float]) -> dict[str, float] | None:
        """The best values near a start; None as soon as they turn out to explain nothing."""
        from scipy import optimize  # only where something is fitted: it takes a while to import

        names, first = list(values), np.array(list(values.values()), float)
        low, high = np.array([self.choice.bounds_near(name, values[name]) for name in names], float).T
        first = np.clip(first, low, high)
        scale = np.maximum(np.abs(first), 0.1 * np.array([max(abs(self.choice.believed[name]), 0.1) for name in names]))
        best = np.clip(first, low + 1e-9 * scale, high - 1e-9 * scale)
        own = getattr(self.trials, "jacobian", None)
        slopes = "2-point" if own is None else lambda vector: _flat(own(names, vector, self.some, scale))
        hopeless = True
        for loss in ("linear", "cauchy"):
            patience = Patience(self.hopeful, self.trials.floor, PATIENCE * (1 + (len(names) if own is None else 0)))
            try:
                found = optimize.least_squares(
                    lambda vector: patience.watch(self.trials.residuals(names, vector, self.some)).ravel(), best,  # noqa: B023
                    bounds=(low, high), jac=slopes, x_scale=scale, loss=loss, f_scale=self._spread(names, best),
                    max_nfev=12, diff_step=1e-6,
                ).x  # fmt: skip
            except HopelessError:
                continue
            except (ValueError, np.linalg.LinAlgError):
                break
            hopeless = False
            candidates = np.stack([best, found])
            losses = self.trials.losses(names, candidates, self.some)
            best = candidates[np.argmin(losses.mean(axis=1))]
            if np.median(losses[-1]) < self.plain - EXACT:  # exact: robustness would change nothing
                break
        return None if hopeless else dict(zip(names, best.tolist(), strict=True))

    def _spread(self, names: list[str], vector: np.ndarray) -> float:
        """The usual size of a difference, beyond which a robust fit believes it less."""
        sizes = np.abs(self.trials.residuals(names, vector, self.some))
        usual = float(np.median(sizes[sizes > 0])) if (sizes > 0).any() else 0.0
        return max(usual, 1e-9)

    def _ranges(self, chosen: dict[str, float]) -> dict[str, tuple[float, float]]:
        """About 95 % of where each value may lie: by the curvature."""
        names, vector = list(chosen), np.array(list(chosen.values()))
        base = self.trials.residuals(names, vector, self.rows)
        units = np.maximum(np.abs(vector), 1e-3)
        jacobian = _flat(slopes_of(self.trials, names, vector, self.rows, units, 1e-5, base))
        usual = 1.4826 * float(np.median(np.abs(base)))
        with np.errstate(all="ignore"):
            covariance = np.linalg.pinv(jacobian.T @ jacobian) * usual**2
        wide = 1.96 * np.sqrt(np.maximum(np.diag(covariance), 0.0))
        return {
            name: (float(value - width), float(value + width))
            for name, value, width in zip(names, vector, wide, strict=True)
        }


def _flat(slopes: np.ndarray) -> np.ndarray:
    """Derivatives [rows, parts, names] as a matrix."""
    return slopes.reshape(-1, slopes.shape[-1])
