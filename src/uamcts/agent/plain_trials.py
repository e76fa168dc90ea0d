"""Python simulators with other parameters, and how well each predicts what was seen."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from uamcts.agent.chance import RealOutcome
from uamcts.agent.measure import Measure, Outcome, Outcomes, Scales
from uamcts.agent.python_simulator import PythonSimulator
from uamcts.agent.simulator_probe import place_of
from uamcts.corrections.links import resolve
from uamcts.corrections.memories import forget
from uamcts.corrections.mixture import model_kind
from uamcts.corrections.parameters import set_values
from uamcts.corrections.trials import WORST
from uamcts.errors import SimulatorError

if TYPE_CHECKING:
    from uamcts.agent.matched_trials import MatchedTrials

DRAWS = 32
"""Draws that stand for the distribution of a simulator that can only `sample`."""
IMPOSSIBLE = 1e-3
"""The least probability of an outcome: a simulator may be wrong about what is possible."""
LARGEST_OF_REWARD = 9.0
"""The squared deviation of a reward, in units of its spread, that counts at most: rewards jump where states do not."""
MOST_SURPRISES = 5000
"""Rows of surprises that are kept, some 2.5 MB."""
FEWEST_MODELS = 6
"""Values of a grid of which not all are tried everywhere."""
KEPT = 32
"""Sets of values whose differences are kept during a fit."""


class Sighting(NamedTuple):
    """A real transition as trials see it."""

    state: Any
    action: Any
    following: Any
    real: Outcome
    times: int = 1
    """How often it was seen."""


class PlainTrials:
    """Real transitions beside a Python simulator whose parameters can be set.

    Args:
        simulator: The simulator.
        laboratory: A copy of the user's object, for trials.
        seen: What was seen.
        measure: How errors are measured.
        scales: In which units.
        floor: An error up to this is as good as none.
        surprises: What random simulators have said about transitions before. Fits ask for much the same again.
    """

    small_step = 1e-5

    def __init__(
        self,
        simulator: PythonSimulator,
        laboratory: Any,
        seen: Sequence[Sighting],
        measure: Measure,
        scales: Scales,
        floor: float,
        surprises: dict[Hashable, np.ndarray] | None = None,
    ):
        self.surprises: dict[Hashable, np.ndarray] = {} if surprises is None else surprises
        self.simulator, self.laboratory, self.seen = simulator, laboratory, seen
        self.measure, self.scales, self.floor = measure, scales, floor
        self.random, self.draws = simulator.kind != "step", simulator.kind == "sample"
        self.times = np.array([sight.times for sight in seen], float)
        self.real = Outcomes.of([one.real for one in seen], seen[0].real.features.size if seen else 0)
        self._known: dict[Hashable, tuple[dict[int, np.ndarray], PythonSimulator]] = {}
        """Differences for the latest sets of values, by rows, and the simulators with these values."""
        self._walked: dict[Hashable, np.ndarray] = {}
        """The same where every row has its own values."""

    def matched(self) -> MatchedTrials:
        """What a random simulator says happens, apart from how often."""
        from uamcts.agent.matched_trials import MatchedTrials

        return MatchedTrials(self)

    def losses(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Nats [G, rows]: log(u + floor), or the surprise where outcomes are random."""
        if self.random:
            return self._surprises(names, values, rows)
        found = np.zeros((len(values), len(rows)))
        for place, vector in enumerate(values):
            parts = self.residuals(names, vector, rows)
            found[place] = np.log(np.minimum(np.sum(parts**2, axis=1), WORST) + self.floor)
        return found

    def _surprises(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Nats [G, rows] of a random simulator; what was asked before is looked up."""
        if len(self.surprises) > MOST_SURPRISES:
            self.surprises.clear()
        key, asked = self.simulator.key, (tuple(names), values.tobytes())
        models: list[PythonSimulator] = []
        columns = []
        for sight in (self.seen[row] for row in rows):
            place = asked, key(sight.state), place_of(sight.action), key(sight.following), *sight.real[1:]
            column = self.surprises.get(place)
            if column is None:
                models = models or [self._model(names, vector) for vector in values]
                column = self._surprises_of(models, sight)
                self.surprises[place] = column
            columns.append(sight.times * column)
        return np.stack(columns, axis=1)

    def _surprises_of(self, models: Sequence[PythonSimulator], sight: Sighting) -> np.ndarray:
        """What each of some models says of a transition.

        Draws take time. Where the first, the middle and the last value of a grid say the same, the number does not
        matter to this transition, and the others are not asked.
        """
        if not self.draws or len(models) < FEWEST_MODELS:
            return np.array([self._surprise(model, sight) for model in models])
        some = {place: self._surprise(models[place], sight) for place in (0, len(models) // 2, len(models) - 1)}
        if len(set(some.values())) == 1:
            return np.full(len(models), some[0])
        return np.array([some[n] if n in some else self._surprise(model, sight) for n, model in enumerate(models)])

    def residuals(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Differences for one set of values, [rows, parts]. A fit asks for much the same again: it is looked up."""
        place = tuple(names), np.asarray(values, float).tobytes()
        known = self._known.pop(place, None)
        if known is None:
            known = {}, self._model(names, values)
        if len(self._known) >= KEPT:
            self._known.pop(next(iter(self._known)))
        self._known[place] = known
        found, model = known
        missing = [row for row in np.asarray(rows).tolist() if row not in found]
        if missing:
            parts = self._differences([self._predict(model, self.seen[row]) for row in missing], np.array(missing))
            found.update(zip(missing, parts, strict=True))
        return np.array([found[row] for row in rows])

    def paths(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Differences where every row has its own values, [rows, parts]."""
        place = tuple(names), values.tobytes(), rows.tobytes()
        found = self._walked.get(place)
        if found is None:
            pairs = zip(self._models(names, values), rows, strict=True)
            found = self._differences([self._predict(model, self.seen[row]) for model, row in pairs], rows)
            if len(self._walked) >= KEPT:
                self._walked.pop(next(iter(self._walked)))
            self._walked[place] = found
        return found

    def _differences(self, predicted: Sequence[tuple[Outcome, float] | None], rows: np.ndarray) -> np.ndarray:
        found = Outcomes.of([None if one is None else one[0] for one in predicted], self.real.features.shape[1])
        own = np.array([np.nan if one is None else one[1] for one in predicted])
        return self.measure.many_differences(self.real.take(rows), found, self.scales, WORST, own)

    def _model(self, names: Sequence[str], vector: np.ndarray) -> PythonSimulator:
        values = dict(zip(names, np.asarray(vector, float).tolist(), strict=True))
        return self.simulator.with_parameters(values, self.laboratory)

    def _models(self, names: Sequence[str], values: np.ndarray) -> Iterator[PythonSimulator]:
        """A simulator for each of the `values`, to be used one after another: they may be one whose values change."""
        first = self._model(names, values[0])
        twin = getattr(first.call, "__self__", None)  # a function, which consists of its numbers, has none
        for vector in values:
            if twin is None or twin is self.laboratory or callable(getattr(twin, "with_parameters", None)):
                yield self._model(names, vector)
            else:
                found = resolve(dict(zip(names, vector.tolist(), strict=True)), self.simulator.parameters)
                forget(twin, self.simulator.memories)
                set_values(twin, self.laboratory, found, self.simulator.entry)
                yield first

    def _predict(self, model: PythonSimulator, sight: Sighting) -> tuple[Outcome, float] | None:
        """What a simulator predicts, and the user's own measure of its error; None if it cannot."""
        try:
            following, reward, over = model.call(sight.state, sight.action)
            own = np.nan if self.measure.own is None else float(self.measure.own(sight.following, following))
            return Outcome(self.simulator.quick_features(following), float(reward), bool(over)), own
        except Exception:  # other values than believed may break anything
            return None

    def _surprise(self, model: PythonSimulator, sight: Sighting) -> float:
        real = RealOutcome(sight.following, sight.real.reward, sight.real.terminal)
        return surprise(model, sight.state, sight.action, real, self.simulator.key, self.simulator.features)


def is_same(real: RealOutcome, key: Callable[[Any], Any]) -> Callable[[tuple[Any, float, bool]], bool]:
    """Tells whether an outcome is what happened, as far as that is known."""
    place = key(real.following)

    def same(outcome: tuple[Any, float, bool]) -> bool:
        return pays_and_ends(real, *outcome[1:]) and bool(key(outcome[0]) == place)

    return same


def pays_and_ends(real: RealOutcome, reward: float, over: bool) -> bool:
    """Whether a reward and an end are those that were seen, as far as that is known."""
    paid = real.reward is None or abs(real.reward - reward) <= 1e-6 * max(1.0, abs(reward))
    return bool(paid and (real.terminal is None or real.terminal == bool(over)))


def surprise(
    model: Any,
    state: Any,
    action: Any,
    real: RealOutcome,
    key: Callable[[Any], Any],
    features: Callable[[Any], np.ndarray],
) -> float:
    """-log of the probability that a random simulator gives to what happened; of the density, for a continuum."""
    try:
        if model_kind(model) == "outcomes":
            same = is_same(real, key)
            share = sum(chance for chance, outcome in model.outcomes(state, action) if same(outcome))
            return -math.log(max(float(share), IMPOSSIBLE))
        # The same draws everywhere would be off in the same direction everywhere; so many say little about a spread.
        rng = np.random.default_rng(zlib.crc32(features(state).tobytes()))
        drawn = [model.sample(state, action, rng) for _ in range(DRAWS)]
    except (SimulatorError, ValueError, TypeError, ArithmeticError):
        return -math.log(IMPOSSIBLE) + 1.0
    keys, place = [key(after) for after, _, _ in drawn], key(real.following)
    if len(set(keys)) < DRAWS // 2:
        hits = sum(one == place and pays_and_ends(real, *rest) for one, (_, *rest) in zip(keys, drawn, strict=True))
        return -math.log(max(hits / DRAWS, 0.5 / DRAWS))
    points = np.array([[*features(after), reward] for after, reward, _ in drawn], float)
    paid = points[:, -1].mean() if real.reward is None else real.reward
    point = np.array([*features(real.following), paid], float)
    spread = points.std(axis=0)
    moved = spread > 1e-12
    if not np.allclose(point[~moved], points[0][~moved], rtol=1e-6, atol=1e-9):
        return -math.log(IMPOSSIBLE)
    squares = ((point - points.mean(axis=0)) / np.where(moved, spread, 1.0)) ** 2
    squares[-1] = min(squares[-1], LARGEST_OF_REWARD)
    return float(np.mean(0.5 * np.minimum(squares[moved], 50.0) + np.log(spread[moved]))) if moved.any() else 0.0
