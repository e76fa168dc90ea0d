"""Real transitions beside what was predicted: what corrections and doubt are learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from uamcts.agent.experience_arrays import CAPACITY, SQUARES, THIN, TOTALS, WHOLE, WIDE, check_arrays
from uamcts.agent.measure import GREATEST, Measure, Outcome, Scales
from uamcts.corrections.evidence import Evidence
from uamcts.corrections.journal import Journal


class Row(NamedTuple):
    """A real transition, to be learned from."""

    state: Any
    action: Any
    """As the simulator takes it."""
    following: Any
    here: np.ndarray
    inputs: np.ndarray
    number: int
    """The number of the action; 0 for continuous ones."""
    real: Outcome
    believed: Outcome
    """What the simulator alone predicts."""
    used: Outcome
    """What the corrected model predicts."""
    own: tuple[float, float]
    """The user's own measure for both of them; NaN without one."""


@dataclass
class Experience:
    """Real transitions, each (state, action) once: how often it was seen, and how wrong simulator and corrections were.

    Arrays with one row per transition, at most `CAPACITY`; the first `count` rows mean something. `raw` holds state,
    action and next state of every row as they were given, so that corrections can be fitted to them and judged anew.
    """

    rows: dict[str, np.ndarray] = field(default_factory=dict)
    raw: list[tuple[Any, Any, Any]] = field(default_factory=list)
    count: int = 0
    seen: int = 0
    """How many different transitions were ever added."""
    steps: int = 0
    moments: np.ndarray | None = None
    """Number, mean and sum of squared deviations of every feature over all real states, [3, features]."""
    rewards: np.ndarray = field(default_factory=lambda: np.array([np.inf, -np.inf, 0.0, 0.0]))
    """The least and the greatest reward seen, real or believed; the sum of what was paid, and in how many steps."""
    repeats: np.ndarray = field(default_factory=lambda: np.zeros(2))
    """How often a transition was seen again, and how often it then came out differently from the time before."""
    _places: dict[bytes, int] = field(default_factory=dict)
    _scales: Scales | None = None
    """Those of the present rows, once they were asked for."""

    def copy(self) -> Self:
        """A copy that goes on by itself, as long as every change of it is written to a journal."""
        moments = None if self.moments is None else self.moments.copy()
        return replace(
            self, rows=dict(self.rows), moments=moments, rewards=self.rewards.copy(), repeats=self.repeats.copy()
        )

    def add(self, row: Row, measure: Measure, journal: Journal) -> int:
        """Adds a real transition; returns its place."""
        self._record(row.here)
        self._record(row.real.features)
        known = [outcome.reward for outcome in (row.believed, row.real) if outcome.reward is not None]
        least, greatest, paid, steps = self.rewards
        self.rewards = np.array([min(least, *known), max(greatest, *known), paid + known[-1], steps + 1])
        self.steps += 1
        self._scales = None
        key = _key(row.here, row.inputs, row.number)
        place = self._places.get(key)
        if place is None:
            place = self._begin(row, key, journal)
        else:
            self._keep(place, journal)
            self._count_repeat(place, row)
        self._write(place, row, measure)
        return place

    def _keep(self, place: int, journal: Journal) -> None:
        """Remembers a row that is about to change."""
        for array in self.rows.values():
            journal.keep_row(array, place)
        journal.keep_row(self.raw, place)

    def _write(self, place: int, row: Row, measure: Measure) -> None:
        rows, scales = self.rows, self.scales
        self.raw[place] = (row.state, row.action, row.following)
        rows["times"][place] += 1
        rows["last"][place] = self.steps
        self._mean_squares(rows, place, row.real, row.used, row.own[1], 1.0 / rows["times"][place])
        rows["believed_own"][place] = row.own[0]
        rows["deviations"][place] += measure.error(row.real, row.used, scales, row.own[1]) > 0
        for kind, outcome in (("believed", row.believed), ("real", row.real), ("used", row.used)):
            rows[f"{kind}_features"][place] = outcome.features
            rows[f"{kind}_reward"][place] = np.nan if outcome.reward is None else outcome.reward
            rows[f"{kind}_terminal"][place] = np.nan if outcome.terminal is None else outcome.terminal

    @staticmethod
    def _mean_squares(
        rows: dict[str, np.ndarray], place: int, real: Outcome, used: Outcome, own: float, weight: float
    ) -> None:
        """Takes a squared difference into the mean of a row, with this weight."""
        rows["square"][place] += weight * ((real.features - used.features) ** 2 - rows["square"][place])
        rows["own"][place] += weight * (own - rows["own"][place])
        for name in ("reward", "terminal"):
            ours, theirs = getattr(real, name), getattr(used, name)
            difference = 0.0 if ours is None or theirs is None else (float(ours) - float(theirs)) ** 2
            rows[f"{name}_square"][place] += weight * (difference - rows[f"{name}_square"][place])

    def _count_repeat(self, place: int, row: Row) -> None:
        before = self.outcome("real", place)
        ends = before.terminal is not None and row.real.terminal is not None and before.terminal != row.real.terminal
        self.repeats += [1.0, float(ends or not np.array_equal(before.features, row.real.features))]

    @property
    def slips(self) -> float:
        """How often a transition comes out differently, about: of two outcomes either may be the odd one."""
        return float(0.5 * self.repeats[1] / self.repeats[0]) if self.repeats[1] >= 2 else 0.0

    @property
    def mean_reward(self) -> float:
        """The mean reward of a step; the predicted reward counts where the real one is unknown."""
        return float(self.rewards[2] / max(self.rewards[3], 1))

    def _begin(self, row: Row, key: bytes, journal: Journal) -> int:
        """A place for a new transition: a free one, or that of the oldest."""
        if not self.rows:
            wide, one = (8, row.here.size), (8,)
            self.rows = {
                "inputs": np.zeros((8, row.inputs.size), row.inputs.dtype),
                **{name: np.zeros(one, np.int64) for name in WHOLE},
                **{name: np.zeros(wide) for name in WIDE}, **{name: np.zeros(one) for name in THIN},
            }  # fmt: skip
            self.raw = [None] * 8  # type: ignore[list-item]
        if self.count < CAPACITY:
            place = self.count
            if place == len(self.rows["times"]):
                self.rows = {name: np.concatenate([rows, np.zeros_like(rows)]) for name, rows in self.rows.items()}
                self.raw = [*self.raw, *[None] * place]  # type: ignore[list-item]
            self.count += 1
        else:
            place = int(np.argmin(self.rows["last"]))
            journal.drop(self._places, self._key_of(place))
            self._keep(place, journal)
        for array in self.rows.values():  # beyond the rows that are used, there is nothing to remember
            array[place] = 0
        self.rows["features"][place], self.rows["inputs"][place] = row.here, row.inputs
        self.rows["action"][place] = row.number
        self.seen += 1
        journal.put(self._places, key, place)
        return place

    def _key_of(self, place: int) -> bytes:
        rows = self.rows
        return _key(rows["features"][place], rows["inputs"][place], rows["action"][place])

    def _record(self, features: np.ndarray) -> None:
        """Welford's running mean and variance of the features."""
        if self.moments is None:
            self.moments = np.zeros((3, features.size))
        number, mean, deviations = self.moments
        number += 1
        before = features - mean
        mean += before / number
        deviations += before * (features - mean)

    @property
    def scales(self) -> Scales:
        """The standard deviation of every feature so far (1 for one that has never changed), the spread of rewards."""
        if self._scales is None:
            spread = float(self.rewards[1] - self.rewards[0])
            number, _, deviations = np.zeros((3, 0)) if self.moments is None else self.moments
            deviation = np.sqrt(deviations / np.maximum(number, 1))
            reward = spread if 0 < spread < np.inf else 1.0
            self._scales = Scales(np.where(deviation > 1e-9, deviation, 1.0), reward)
        return self._scales

    def column(self, name: str) -> np.ndarray:
        """The used rows of one of the arrays."""
        return self.rows[name][: self.count] if self.rows else np.zeros(0)

    def latest(self, most: int, since: int = 0) -> np.ndarray:
        """The places of the transitions seen last, after step `since`; the latest is the last."""
        last = self.column("last")
        places = np.argsort(last, kind="stable")[-most:]
        return places[last[places] > since]

    def judge_anew(self, predicted: Sequence[tuple[Outcome, float] | None], measure: Measure) -> None:
        """Computes what the corrected model gets wrong anew, after a correction has changed.

        What was seen several times with different outcomes is judged by its latest one.
        """
        rows = {name: array.copy() for name, array in self.rows.items()}
        scales = self.scales
        for place, one in enumerate(predicted):
            if one is None:
                continue
            outcome, own = one
            real = self.outcome("real", place)
            error = measure.error(real, outcome, scales, own)
            if error == 0.0 or rows["times"][place] == 1 or rows["deviations"][place] == rows["times"][place]:
                self._mean_squares(rows, place, real, outcome, own, 1.0)
                rows["deviations"][place] = rows["times"][place] if error > 0 else 0
            rows["used_features"][place] = outcome.features
            rows["used_reward"][place] = np.nan if outcome.reward is None else outcome.reward
            rows["used_terminal"][place] = np.nan if outcome.terminal is None else outcome.terminal
        self.rows = rows

    def uncertainties(self, measure: Measure) -> np.ndarray:
        """The mean observed U of every transition: what the corrected model gets wrong."""
        if not self.count:
            return np.zeros(0)
        squares = [self.column(name) for name in ("square", "own", *SQUARES)]
        return self._sum_parts(measure, *squares)

    def evidence(self, measure: Measure, order: np.ndarray) -> Evidence:
        """What was seen of some transitions, for `doubtful`."""
        states = self.uncertainties(replace(measure, parts=("state",))) if "state" in measure.parts else None
        total = self.uncertainties(measure)
        apart = np.zeros(self.count) if states is None else np.where(total > 0, states, 0.0)
        inputs, actions, times, deviations = (
            self.column(name)[order] for name in ("inputs", "action", "times", "deviations")
        )
        return Evidence(inputs, actions, apart[order], np.maximum(total - apart, 0.0)[order], times, deviations)

    def step_lengths(self) -> np.ndarray:
        """The mean squared length of every step, the real or the predicted one; 0 where states are whole numbers."""
        before, *after = (self.column(name) for name in ("features", "real_features", "used_features"))
        if not before.size or np.all(before == np.round(before)):
            return np.zeros(self.count)
        return np.asarray(np.mean(np.max((after - before) ** 2, axis=0) / self.scales.features**2, axis=1))

    def simulator_errors(self, measure: Measure) -> np.ndarray:
        """What the simulator alone gets wrong of every transition, the last time that it was seen."""
        if not self.count:
            return np.zeros(0)
        apart = {name: self.column(f"real_{name}") - self.column(f"believed_{name}")
                 for name in ("features", "reward", "terminal")}  # fmt: skip
        squares = [np.nan_to_num(apart[name] ** 2) for name in ("features", "reward", "terminal")]
        return self._sum_parts(measure, squares[0], self.column("believed_own"), *squares[1:])

    def _sum_parts(
        self, measure: Measure, square: np.ndarray, own: np.ndarray, reward: np.ndarray, terminal: np.ndarray
    ) -> np.ndarray:
        scales, total = self.scales, np.zeros(self.count)
        if "state" in measure.parts:
            standardised = np.mean(square / scales.features**2, axis=1) if scales.features.size else total
            total = total + (standardised if measure.own is None else own)
        if "reward" in measure.parts:
            total = total + reward / scales.reward**2
        if "terminal" in measure.parts:
            total = total + terminal
        return np.where(total > measure.tolerance, np.minimum(total, GREATEST), 0.0)

    def outcome(self, kind: str, place: int) -> Outcome:
        reward, over = (float(self.rows[f"{kind}_{name}"][place]) for name in ("reward", "terminal"))
        features = self.rows[f"{kind}_features"][place].copy()
        return Outcome(features, None if np.isnan(reward) else reward, None if np.isnan(over) else bool(over))

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays, to be saved."""
        moments = np.zeros((3, 0)) if self.moments is None else self.moments
        counts = np.array([self.seen, self.steps], np.int64)
        return {**{name: rows[: self.count] for name, rows in self.rows.items()}, "moments": moments,
                "rewards": self.rewards, "repeats": self.repeats, "counts": counts}  # fmt: skip

    @classmethod
    def of(cls, arrays: dict[str, np.ndarray], num_actions: int) -> Self:
        """Restores what `arrays` returned; raises a ValueError that says what is wrong with other arrays."""
        check_arrays(arrays, num_actions)
        rows = {name: array.copy() for name, array in arrays.items() if name not in TOTALS}
        count = len(rows["times"]) if rows else 0
        columns = (rows["features"], rows["inputs"], rows["action"]) if rows else ((), (), ())
        places = {_key(*key): place for place, key in enumerate(zip(*columns, strict=True))}
        if len(places) != count:
            raise ValueError("a transition is in it twice")
        moments = arrays["moments"].copy() if arrays["moments"].size else None
        seen, steps = arrays["counts"].tolist()
        raw: list[Any] = [None] * count
        return cls(rows, raw, count, seen, steps, moments, arrays["rewards"].copy(), arrays["repeats"].copy(), places)


def _key(features: np.ndarray, inputs: np.ndarray, action: int) -> bytes:
    """What tells samples of U apart: features, inputs and action."""
    return features.tobytes() + inputs.tobytes() + int(action).to_bytes(8, "little")
