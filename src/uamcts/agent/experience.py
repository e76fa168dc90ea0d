"""Real transitions beside what the simulator predicted: the samples that U is learned from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from uamcts.arguments import function, real, shown

PARTS = ("state", "reward", "terminal")
"""What a simulator may be wrong about. The paper compares states only."""

GREATEST = 1e30
"""A larger U counts as this, so that it fits into 32 bits."""


class Outcome(NamedTuple):
    """The outcome of a step: features of the next state, reward, and whether the episode ended; None is unknown."""

    features: np.ndarray
    reward: float | None
    terminal: bool | None


@dataclass(frozen=True)
class Measure:
    """How far apart two outcomes are: U, the sum of its `parts`.

    state     mean over the features of (difference / scale)^2, a feature's scale its standard deviation so far; or
              the user's own function
    reward    (difference / spread)^2, the spread of rewards from the least to the greatest one seen
    terminal  1 if the one is the end of the episode and the other is not
    """

    parts: Sequence[str] = PARTS
    own: Callable[[Any, Any], float] | None = None
    """Instead of the first part: a function of the real and the believed next state, at least 0."""
    tolerance: float = 1e-6
    """A U up to this counts as 0: simulators round."""

    def __post_init__(self) -> None:
        known = ", ".join(map(repr, PARTS))
        if isinstance(self.parts, str) or not isinstance(self.parts, Sequence) or not self.parts:
            raise ValueError(f"parts is {shown(self.parts)}; give a tuple of at least one of {known}")
        for part in self.parts:
            if part not in PARTS:
                raise ValueError(f"parts holds {shown(part)}; there are {known}")
        function("discrepancy", self.own, "of the real and the believed next state")
        real("tolerance", self.tolerance, "it must be a finite number of at least 0", lambda limit: limit >= 0)


@dataclass
class Experience:
    """Real transitions, each (state, action) once: how often it was seen, and how wrong the simulator was on average.

    Arrays with one row per transition, which grow; the first `count` rows mean something.
    """

    rows: dict[str, np.ndarray] = field(default_factory=dict)
    count: int = 0
    moments: np.ndarray | None = None
    """Number, mean and sum of squared deviations of every feature over all real states, [3, features]."""
    rewards: np.ndarray = field(default_factory=lambda: np.array([np.inf, -np.inf, 0.0, 0.0]))
    """The least and the greatest reward seen, real or believed; the sum of what was paid, and in how many steps."""
    _places: dict[bytes, int] = field(default_factory=dict)

    def copy(self) -> Self:
        """A copy that grows on its own."""
        rows = {name: array.copy() for name, array in self.rows.items()}
        moments = None if self.moments is None else self.moments.copy()
        return type(self)(rows, self.count, moments, self.rewards.copy(), dict(self._places))

    def add(
        self, features: np.ndarray, inputs: np.ndarray, action: int, believed: Outcome, real: Outcome, own: float
    ) -> None:
        """Adds a real transition; `own` is the value of the user's own function (NaN without one)."""
        place = self._places.setdefault(_key(features, inputs, action), self.count)
        if place == self.count:
            self._begin(features, inputs, action)
        rows = self.rows
        rows["times"][place] += 1
        weight = 1.0 / rows["times"][place]
        rows["square"][place] += weight * ((real.features - believed.features) ** 2 - rows["square"][place])
        rows["own"][place] += weight * (own - rows["own"][place])
        for name in ("reward", "terminal"):
            ours, theirs = getattr(real, name), getattr(believed, name)
            difference = 0.0 if ours is None else (float(ours) - float(theirs)) ** 2
            rows[f"{name}_square"][place] += weight * (difference - rows[f"{name}_square"][place])
        for kind, outcome in (("believed", believed), ("real", real)):
            rows[f"{kind}_features"][place] = outcome.features
            rows[f"{kind}_reward"][place] = np.nan if outcome.reward is None else outcome.reward
            rows[f"{kind}_terminal"][place] = np.nan if outcome.terminal is None else outcome.terminal
        self._record(features)
        self._record(real.features)
        known = [outcome.reward for outcome in (believed, real) if outcome.reward is not None]
        least, greatest, paid, steps = self.rewards
        self.rewards = np.array([min(least, *known), max(greatest, *known), paid + known[-1], steps + 1])

    @property
    def mean_reward(self) -> float:
        """The mean reward of a step; the predicted reward counts where the real one is unknown."""
        return float(self.rewards[2] / max(self.rewards[3], 1))

    def _begin(self, features: np.ndarray, inputs: np.ndarray, action: int) -> None:
        if not self.rows:
            wide, one = (8, features.size), (8,)
            self.rows = {
                "features": np.zeros(wide), "inputs": np.zeros((8, inputs.size), inputs.dtype),
                "action": np.zeros(one, np.int64), "times": np.zeros(one, np.int64),
                "square": np.zeros(wide), "own": np.zeros(one),
                **{f"{name}_square": np.zeros(one) for name in ("reward", "terminal")},
                **{f"{kind}_features": np.zeros(wide) for kind in ("believed", "real")},
                **{f"{kind}_{name}": np.zeros(one) for kind in ("believed", "real") for name in ("reward", "terminal")},
            }  # fmt: skip
        if self.count == len(self.rows["times"]):
            self.rows = {name: np.concatenate([rows, np.zeros_like(rows)]) for name, rows in self.rows.items()}
        self.rows["features"][self.count], self.rows["inputs"][self.count] = features, inputs
        self.rows["action"][self.count] = action
        self.count += 1

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
    def scales(self) -> np.ndarray:
        """The standard deviation of every feature so far; 1 for one that has never changed."""
        if self.moments is None:
            return np.ones(0)
        deviation = np.sqrt(self.moments[2] / np.maximum(self.moments[0], 1))
        return np.where(deviation > 1e-9, deviation, 1.0)

    def column(self, name: str) -> np.ndarray:
        """The used rows of one of the arrays."""
        return self.rows[name][: self.count]

    def uncertainties(self, measure: Measure) -> np.ndarray:
        """The mean observed U of every transition."""
        if not self.count:
            return np.zeros(0)
        total = np.zeros(self.count)
        if "state" in measure.parts:
            standardised = np.mean(self.column("square") / self.scales**2, axis=1) if self.scales.size else total
            total = total + (standardised if measure.own is None else self.column("own"))
        if "reward" in measure.parts:
            spread = self.rewards[1] - self.rewards[0]
            total = total + self.column("reward_square") / (spread**2 if spread > 0 else 1.0)
        if "terminal" in measure.parts:
            total = total + self.column("terminal_square")
        return np.where(total > measure.tolerance, np.minimum(total, GREATEST), 0.0)

    def outcome(self, kind: str, place: int) -> Outcome:
        reward, over = (float(self.rows[f"{kind}_{name}"][place]) for name in ("reward", "terminal"))
        features = self.rows[f"{kind}_features"][place].copy()
        return Outcome(features, None if np.isnan(reward) else reward, None if np.isnan(over) else bool(over))

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays, to be saved."""
        moments = np.zeros((3, 0)) if self.moments is None else self.moments
        return {**{name: rows[: self.count] for name, rows in self.rows.items()}, "moments": moments,
                "rewards": self.rewards}  # fmt: skip

    @classmethod
    def of(cls, arrays: dict[str, np.ndarray], num_actions: int) -> Self:
        """Restores what `arrays` returned; raises a ValueError that says what is wrong with other arrays."""
        _check(arrays, num_actions)
        rows = {name: array.copy() for name, array in arrays.items() if name not in ("moments", "rewards")}
        count = len(rows["times"]) if rows else 0
        columns = (rows["features"], rows["inputs"], rows["action"]) if rows else ((), (), ())
        places = {_key(*key): place for place, key in enumerate(zip(*columns, strict=True))}
        if len(places) != count:
            raise ValueError("a transition is in it twice")
        moments = arrays["moments"].copy() if arrays["moments"].size else None
        return cls(rows, count, moments, arrays["rewards"].copy(), places)


WIDE = ("features", "square", "believed_features", "real_features")
THIN = ("own", "reward_square", "terminal_square", "believed_reward", "believed_terminal", "real_reward",
        "real_terminal")  # fmt: skip


def _check(arrays: dict[str, np.ndarray], num_actions: int) -> None:
    """Refuses arrays that are not an experience: names, shapes, kinds of numbers and their ranges."""
    wanted = {"moments", "rewards"}
    if arrays.keys() - wanted:
        wanted |= {*WIDE, *THIN, "inputs", "action", "times"}
    if wanted != arrays.keys():
        odd = min(wanted ^ arrays.keys())
        raise ValueError(f"{odd} is {'missing' if odd in wanted else 'not part of it'}")
    count, size = arrays["features"].shape if len(wanted) > 2 and arrays["features"].ndim == 2 else (0, 0)
    shapes: dict[str, tuple[int, ...]] = {"moments": (3, size), "rewards": (4,), "action": (count,), "times": (count,)}
    shapes |= dict.fromkeys(WIDE, (count, size)) | dict.fromkeys(THIN, (count,))
    kinds: dict[str, tuple[type[np.generic], ...]] = dict.fromkeys(("action", "times"), (np.int64,))
    kinds["inputs"] = (np.uint8, np.float32, np.float64)
    for name, array in arrays.items():
        shape = shapes.get(name, (count, *array.shape[1:2]))
        if array.dtype not in kinds.get(name, (np.float64,)) or array.shape != shape:
            raise ValueError(f"{name} is {array.dtype}{list(array.shape)} and does not fit the others")
    if count:
        _check_ranges(arrays, num_actions)
    least, greatest, paid, steps = arrays["rewards"]
    if not (np.isfinite([paid, steps]).all() and steps >= 0 and (least <= greatest or not count)):
        raise ValueError(f"rewards are {arrays['rewards'].tolist()}")


def _check_ranges(arrays: dict[str, np.ndarray], num_actions: int) -> None:
    good = {
        "action": (arrays["action"] >= 0) & (arrays["action"] < num_actions),
        "times": arrays["times"] >= 1,
        "moments": np.isfinite(arrays["moments"]) & (arrays["moments"] >= [[1], [-np.inf], [0]]),
        "inputs": np.isfinite(arrays["inputs"]),
        **{name: np.isfinite(arrays[name]) for name in ("features", "believed_features", "real_features")},
        **{name: np.isfinite(arrays[name]) & (arrays[name] >= 0) for name in ("square", "reward_square")},
        "terminal_square": (arrays["terminal_square"] >= 0) & (arrays["terminal_square"] <= 1),
        "own": np.isnan(arrays["own"]) | ((arrays["own"] >= 0) & (arrays["own"] < np.inf)),
        **{f"{kind}_terminal": np.isnan(arrays[f"{kind}_terminal"]) | np.isin(arrays[f"{kind}_terminal"], (0, 1))
           for kind in ("believed", "real")},
        **{f"{kind}_reward": ~np.isinf(arrays[f"{kind}_reward"]) for kind in ("believed", "real")},
    }  # fmt: skip
    for name, condition in good.items():
        if not np.all(condition):
            raise ValueError(f"{name} holds numbers that it cannot hold")


class Returns:
    """The worst discounted return seen from any moment on, never more than 0.

    A moment counts once its episode has ended or `depth` steps have followed it. In the latter case the return is
    extrapolated to `span` steps, as far as a search looks ahead.
    """

    def __init__(self, gamma: float, depth: int, span: int):
        self.gamma, self.depth = gamma, depth
        self.onward = sum(gamma**step for step in range(span)) / sum(gamma**step for step in range(depth))
        self.least = 0.0
        self._recent: list[float] = []
        self._place: Hashable = None

    def add(self, before: Hashable, after: Hashable, reward: float, terminal: bool) -> None:
        """Adds a step between two places; one that does not start where the last one ended begins an episode."""
        if before != self._place:
            self._recent = []
        self._recent = [*self._recent, reward][-self.depth :]
        self._place = None if terminal else after
        returned = 0.0
        for steps, paid in enumerate(reversed(self._recent), 1):
            returned = paid + self.gamma * returned
            if terminal:
                self.least = min(self.least, returned)
            elif steps == self.depth:
                self.least = min(self.least, returned * self.onward)


def _key(features: np.ndarray, inputs: np.ndarray, action: int) -> bytes:
    """What tells samples of U apart: features, inputs and action."""
    return features.tobytes() + inputs.tobytes() + int(action).to_bytes(8, "little")
