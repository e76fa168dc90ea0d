"""What a random simulator with other parameters says *happens*, apart from how often.

A number may say how often something happens (a slip probability) or what then happens (a price, a mass beside a gust of
wind). The likelihood of what was seen is flat around a wrong price: no outcome pays what was paid. So the latter are
fitted like those of a deterministic simulator, by differences:

- Where outcomes are a few, a real transition is compared with the outcome that leads to the same state.
- Where no two draws are equal, it is compared with the mean of the draws, in units of their spread. The same random
  numbers are used for all values of the parameters, so that what changes is due to these alone.
- Where some draws are equal and others come from a continuum, as where rain falls on some days, and where draws are
  hardly ever what happened, `energy_trials` looks at how far they are from it.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from uamcts.agent.energy_trials import EnergyDraws, is_mixed
from uamcts.agent.measure import Outcome, Outcomes
from uamcts.agent.plain_trials import PlainTrials, Sighting
from uamcts.agent.python_simulator import PythonSimulator
from uamcts.corrections.trials import WORST
from uamcts.runtime.watch import attempt

DRAWS, FEW_DRAWS = 32, 2
"""Draws that tell the mean and the spread at the believed values, and those that tell what other values change."""
MATCHED_DRAWS = 8
"""Draws among which the outcome that happened is looked for."""
MOST_ROWS, FEWEST_WRONG, UNUSUAL = 32, 3, 0.25
"""Rows that a fit looks at, as every one takes draws; how many must be wrong, and which share where all is noise."""
FEWEST_LIVELY, USUAL, TOO_FAR = 8, 0.6745, 0.5
"""Numbers that tell a spread; what the median of a normal deviation is; the logarithm of how far it may be off."""
STRANGE, MIXED_ROWS = 0.3, 0.25
"""If the share of transitions that no draw explains, or of those with mixed draws, is at least this, draws are compared
by their distance."""
LEAST_SPREAD = 1e-3
"""The smallest spread that counts, of that of all states: there is no end to how exact a number may be."""


class MatchedTrials:
    """Real transitions beside a random simulator, as `corrections.trials.Trials` of a deterministic one.

    Args:
        trials: The trials of the random simulator.
    """

    random, small_step = False, 1e-5

    def __init__(self, trials: PlainTrials):
        self.trials, self.seen, self.times = trials, trials.seen, trials.times
        simulator = trials.simulator
        self.features = simulator.features
        self.believed = [self._draw(simulator, sight, DRAWS) for sight in self.seen] if trials.draws else []
        distinct = [len({simulator.key(after) for after, _, _ in drawn}) for drawn in self.believed]
        self.continuum = bool(distinct) and float(np.median(distinct)) > DRAWS // 2
        """Whether no two draws are equal, as a rule."""
        self.outcomes = [Outcome(self.features(one.following), one.real.reward, one.real.terminal) for one in self.seen]
        self.size = self.outcomes[0].features.size if self.outcomes else 0
        self.whole = Outcomes.of(self.outcomes, self.size)
        self.floor = trials.floor
        if self.continuum:
            points = [self._points(drawn) for drawn in self.believed]
            self.centres = np.stack([one.mean(axis=0) - one[:FEW_DRAWS].mean(axis=0) for one in points])
            """What the mean of all draws has beyond that of the first few."""
            paid = [np.nan if one.real.reward is None else one.real.reward for one in self.seen]
            self.real = np.array(
                [[*self.features(one.following), pays] for one, pays in zip(self.seen, paid, strict=True)], float
            )
            least = LEAST_SPREAD * np.append(trials.scales.features, trials.scales.reward)
            own = np.stack([one.std(axis=0) for one in points])
            self.spreads, self.lively = np.maximum(own, least), own > least
            self.floor = float(points[0].shape[1])

    def needs_distances(self, count: int) -> bool:
        """Whether probabilities of what happened say nothing, as draws are mixed, or equal to no real transition."""
        if not self.believed or count < FEWEST_LIVELY:
            return False
        key = self.trials.simulator.key
        keys = [[key(after) for after, _, _ in drawn] for drawn in self.believed[:count]]
        if np.mean([is_mixed(one) for one in keys]) >= MIXED_ROWS:
            return True
        known = [key(one.following) in places for one, places in zip(self.seen[:count], keys, strict=True)]
        return not self.continuum and float(np.mean(known)) < 1.0 - STRANGE

    def energy(self, count: int) -> EnergyDraws:
        """The same transitions, compared with draws by distance."""
        return EnergyDraws(self.trials, count)

    @property
    def noise(self) -> float:
        """Nats up to which there is nothing to explain."""
        return math.log(3.0 * self.floor) if self.continuum else math.log(10.0 * self.floor)

    def choose_rows(self, count: int) -> np.ndarray:
        """The rows to fit to, out of the first so many: some that are wrong, and some others; none if all are right."""
        losses = self.losses([], np.zeros((1, 0)), np.arange(count))[0]
        wrong = np.flatnonzero(losses > self.noise)
        if len(wrong) < (max(FEWEST_WRONG, UNUSUAL * count) if self.continuum else FEWEST_WRONG):
            return np.zeros(0, int)
        chosen = wrong[-(2 * MOST_ROWS // 3) :]
        others = np.setdiff1d(np.arange(count), chosen)[len(chosen) - MOST_ROWS :]
        return np.sort(np.concatenate([chosen, others]))

    def spread_is_off(self, count: int) -> bool:
        """Whether draws from a continuum lie clearly too near to each other, or too far apart, for what was seen."""
        apart = self.residuals([], np.zeros(0), np.arange(count))
        lively = self.lively[:count]
        if lively.sum() < FEWEST_LIVELY:
            return False
        return abs(math.log(max(float(np.median(np.abs(apart[lively]))), 1e-6) / USUAL)) > TOO_FAR

    def losses(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        squares = [np.sum(self.residuals(names, vector, rows) ** 2, axis=1) for vector in values]
        return np.asarray(np.log(np.minimum(np.stack(squares), self._worst) + self.floor))

    @property
    def _worst(self) -> float:
        return WORST * self.floor if self.continuum else WORST

    def residuals(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        model, rows = self.trials._model(names, values), np.asarray(rows)
        if self.continuum:
            return self._from_means(self._draw_all(names, values, model, rows, FEW_DRAWS), rows)
        found = Outcomes.of(self._match_all(names, values, model, rows), self.size)
        own = np.where(np.isinf(found.rewards), np.nan, 0.0)  # states are the same
        measure, scales = self.trials.measure, self.trials.scales
        return measure.many_differences(self.whole.take(rows), found, scales, WORST, own)

    def paths(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The same where every row has its own values."""
        return np.concatenate(
            [self.residuals(names, vector, rows[[place]]) for place, vector in enumerate(values)], axis=0
        )

    def _draw_all(
        self, names: Sequence[str], values: np.ndarray, model: PythonSimulator | None, rows: np.ndarray, count: int
    ) -> list[list[tuple[Any, float, bool]]]:
        """Draws of a simulator with these values for some rows; none where it fails or takes too long."""
        none: list[list[tuple[Any, float, bool]]] = [[]] * len(rows)
        if model is None:
            return none
        said = self.trials.run(
            names, values, count * len(rows), lambda: [self._draw(model, self.seen[row], count) for row in rows]
        )
        return none if said is None else list(said)

    def _list_all(
        self, names: Sequence[str], values: np.ndarray, model: PythonSimulator | None, rows: np.ndarray
    ) -> list[list[tuple[Any, float, bool]] | None]:
        """The same for listed outcomes."""
        if model is None:
            return [None] * len(rows)
        said = self.trials.run(
            names, values, len(rows), lambda: [self._list(model, self.seen[row]) for row in rows]
        )  # fmt: skip
        return [None] * len(rows) if said is None else list(said)

    def _from_means(self, drawn: Sequence[list[tuple[Any, float, bool]]], rows: np.ndarray) -> np.ndarray:
        """The differences to the means of the draws, in units of their spread."""
        spreads, real = self.spreads[rows], self.real[rows].copy()
        means = self.centres[rows].copy()
        for place, one in enumerate(drawn):
            points = attempt(self._points, one) if one else None
            means[place] += np.nan if points is None else points.mean(axis=0)
        unpaid = np.isnan(real[:, -1])
        real[unpaid, -1] = means[unpaid, -1]
        most = math.sqrt(self._worst / spreads.shape[1])
        return np.asarray(np.clip(np.nan_to_num((real - means) / spreads, nan=most), -most, most))

    def _match_all(
        self, names: Sequence[str], values: np.ndarray, model: PythonSimulator | None, rows: np.ndarray
    ) -> list[Outcome | None]:
        """The outcomes of a simulator with these values that match what happened."""
        if self.trials.draws:
            found: Sequence[Any] = self._draw_all(names, values, model, rows, MATCHED_DRAWS)
        else:
            found = self._list_all(names, values, model, rows)
        pairs = zip(found, rows.tolist(), strict=True)
        return [attempt(self._match, one, row) if one else None for one, row in pairs]

    def _match(self, found: Sequence[tuple[Any, float, bool]], row: int) -> Outcome | None:
        """The outcome that leads to the state that was reached, the one that pays most nearly what was paid.

        That something is not drawn says nothing about what it would pay: it counts as before.
        """
        sight, real = self.seen[row], self.outcomes[row]
        key = self.trials.simulator.key
        place = key(sight.following)
        same = [one for one in found if key(one[0]) == place]
        if not same and self.trials.draws:
            same = [one for one in self.believed[row] if key(one[0]) == place]
        if not same:
            return real if self.trials.draws else None
        _, paid, over = min(same, key=lambda one: 0.0 if real.reward is None else abs(real.reward - one[1]))
        return Outcome(real.features, float(paid), bool(over))

    def _points(self, drawn: Sequence[tuple[Any, float, bool]]) -> np.ndarray:
        return np.array([[*self.features(after), paid] for after, paid, _ in drawn], float)

    def _draw(self, model: PythonSimulator, sight: Sighting, count: int) -> list[tuple[Any, float, bool]]:
        """Draws with random numbers that depend on the state alone; none where the simulator fails."""
        rng = np.random.default_rng(zlib.crc32(self.features(sight.state).tobytes()))
        found: list[tuple[Any, float, bool]] = attempt(
            lambda: [model.call(sight.state, sight.action, rng) for _ in range(count)], otherwise=[]
        )
        return found

    def _list(self, model: PythonSimulator, sight: Sighting) -> list[tuple[Any, float, bool]] | None:
        """The outcomes that are possible; None where the simulator fails."""
        found: list[tuple[Any, float, bool]] | None = attempt(
            lambda: [one for chance, one in model.call(sight.state, sight.action) if chance > 0.0]
        )
        return found
