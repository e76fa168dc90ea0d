"""Python simulators with other parameters, and how well each predicts what was seen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from uamcts.agent.chance import RealOutcome
from uamcts.agent.measure import Measure, Outcome, Outcomes, Scales
from uamcts.agent.python_simulator import PythonSimulator
from uamcts.agent.simulator_probe import place_of
from uamcts.agent.surprise import DRAWS, NO_ANSWER, surprise
from uamcts.agent.trial_pace import Pace
from uamcts.corrections.links import resolve
from uamcts.corrections.memories import forget
from uamcts.corrections.parameters import set_values
from uamcts.corrections.trials import WORST
from uamcts.runtime.watch import PASSED_ON, attempt

if TYPE_CHECKING:
    from uamcts.agent.matched_trials import MatchedTrials

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
        pace: What is known about how long steps take.
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
        pace: Pace | None = None,
    ):
        self.pace = Pace(simulator) if pace is None else pace
        self.surprises: dict[Hashable, np.ndarray] = {} if surprises is None else surprises
        self.simulator, self.laboratory, self.seen = simulator, laboratory, seen
        self.measure, self.scales, self.floor = measure, scales, floor
        self.random, self.draws = simulator.kind != "step", simulator.kind == "sample"
        self.times = np.array([sight.times for sight in seen], float)
        self.real = Outcomes.of([one.real for one in seen], seen[0].real.features.size if seen else 0)
        self._known: dict[Hashable, tuple[dict[int, np.ndarray], PythonSimulator | None]] = {}
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
        models: list[PythonSimulator | None] = []
        columns = []
        for sight in (self.seen[row] for row in rows):
            place = asked, key(sight.state), place_of(sight.action), key(sight.following), *sight.real[1:]
            column = self.surprises.get(place)
            if column is None:
                models = models or [self._model(names, vector) for vector in values]
                column = self._surprises_of(names, values, models, sight)
                self.surprises[place] = column
            columns.append(sight.times * column)
        return np.stack(columns, axis=1)

    def _surprises_of(
        self, names: Sequence[str], values: np.ndarray, models: Sequence[PythonSimulator | None], sight: Sighting
    ) -> np.ndarray:
        """What each of some models says of a transition.

        Draws take time. Where the first, the middle and the last value of a grid say the same, the number does not
        matter to this transition, and the others are not asked.
        """

        count, steps = len(models), DRAWS if self.draws else 1
        if count > 1:
            each = self.pace.run_together(
                count * steps, lambda: self._column(lambda place: self._ask(models[place], sight), count)
            )
            if each is not None:
                return np.asarray(each)
        return self._column(lambda place: self._surprise(names, values[place], models[place], sight), count)

    def _column(self, nats: Callable[[int], float], count: int) -> np.ndarray:
        if not self.draws or count < FEWEST_MODELS:
            return np.array([nats(place) for place in range(count)])
        some = {place: nats(place) for place in (0, count // 2, count - 1)}
        if len(set(some.values())) == 1:
            return np.full(count, some[0])
        return np.array([some[place] if place in some else nats(place) for place in range(count)])

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
            parts = self._differences(self._predict_rows(names, values, model, missing), np.array(missing))
            found.update(zip(missing, parts, strict=True))
        return np.array([found[row] for row in rows])

    def paths(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Differences where every row has its own values, [rows, parts]."""
        place = tuple(names), values.tobytes(), rows.tobytes()
        found = self._walked.get(place)
        if found is None:
            found = self._differences(self._predict_path(names, values, rows.tolist()), rows)
            if len(self._walked) >= KEPT:
                self._walked.pop(next(iter(self._walked)))
            self._walked[place] = found
        return found

    def _predict_path(
        self, names: Sequence[str], values: np.ndarray, rows: Sequence[int]
    ) -> Sequence[tuple[Outcome, float] | None]:
        def together() -> list[tuple[Outcome, float] | None]:
            pairs = zip(self._models(names, values), rows, strict=True)
            return [None if model is None else self._predict(model, self.seen[row]) for model, row in pairs]

        said = self.pace.run_together(len(rows), together)
        if said is not None:
            found: list[tuple[Outcome, float] | None] = said
            return found
        each = zip(values, rows, strict=True)  # some of the values take too long
        return [self._predict_rows(names, vector, self._model(names, vector), [row])[0] for vector, row in each]

    def _differences(self, predicted: Sequence[tuple[Outcome, float] | None], rows: np.ndarray) -> np.ndarray:
        found = Outcomes.of([None if one is None else one[0] for one in predicted], self.real.features.shape[1])
        own = np.array([np.nan if one is None else one[1] for one in predicted])
        return self.measure.many_differences(self.real.take(rows), found, self.scales, WORST, own)

    def _model(self, names: Sequence[str], vector: np.ndarray) -> PythonSimulator | None:
        """The simulator with other values; None if it cannot have them."""
        values = dict(zip(names, np.asarray(vector, float).tolist(), strict=True))
        found: PythonSimulator | None = attempt(self.simulator.with_parameters, values, self.laboratory)
        return found

    def run(self, names: Sequence[str], vector: np.ndarray, steps: int, trial: Callable[[], Any]) -> Any:
        """What a trial of `steps` steps with these values returns; None if it takes too long."""
        return self.pace.run(dict(zip(names, np.asarray(vector, float).tolist(), strict=True)), steps, trial)

    def _models(self, names: Sequence[str], values: np.ndarray) -> Iterator[PythonSimulator | None]:
        """A simulator for each of the `values`, to be used one after another: they may be one whose values change."""
        first = self._model(names, values[0])
        twin = None if first is None else getattr(first.call, "__self__", None)  # functions consist of their numbers
        for vector in values:
            if twin is None or twin is self.laboratory or callable(getattr(twin, "with_parameters", None)):
                yield self._model(names, vector)
            else:
                found = resolve(dict(zip(names, vector.tolist(), strict=True)), self.simulator.parameters)
                forget(twin, self.laboratory, self.simulator.memories)
                yield first if attempt(_has_values, twin, self.laboratory, found, self.simulator.entry) else None

    def _predict_rows(
        self, names: Sequence[str], vector: np.ndarray, model: PythonSimulator | None, rows: Sequence[int]
    ) -> Sequence[tuple[Outcome, float] | None]:
        """What a simulator with these values predicts for some rows; None where it cannot, or takes too long."""
        none = [None] * len(rows)
        if model is None:
            return none
        said = self.run(names, vector, len(rows), lambda: [self._predict(model, self.seen[row]) for row in rows])
        return none if said is None else said

    def _predict(self, model: PythonSimulator, sight: Sighting) -> tuple[Outcome, float] | None:
        """What a simulator predicts, and the user's own measure of its error; None if it cannot."""
        try:
            following, reward, over = model.call(sight.state, sight.action)
            own = np.nan if self.measure.own is None else float(self.measure.own(sight.following, following))
            return Outcome(self.simulator.quick_features(following), float(reward), bool(over)), own
        except PASSED_ON:
            raise
        except BaseException:  # other values than believed may break anything, and some programs then exit
            return None

    def _surprise(
        self, names: Sequence[str], vector: np.ndarray, model: PythonSimulator | None, sight: Sighting
    ) -> float:
        steps = DRAWS if self.draws else 1
        found = self.run(names, vector, steps, lambda: self._ask(model, sight))
        return NO_ANSWER if found is None else float(found)

    def _ask(self, model: PythonSimulator | None, sight: Sighting) -> float:
        """How much a transition surprises a simulator."""
        real = RealOutcome(sight.following, sight.real.reward, sight.real.terminal)
        if model is None:
            return NO_ANSWER
        return surprise(model, sight.state, sight.action, real, self.simulator.key, self.simulator.features)


def _has_values(twin: object, owner: object, values: Mapping[str, float], entry: str) -> bool:
    """Sets values of a copy of a simulator, which may raise an error to refuse them."""
    set_values(twin, owner, values, entry)
    return True
