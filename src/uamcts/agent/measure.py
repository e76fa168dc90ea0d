"""Real transitions beside what the simulator predicted: the samples that U is learned from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from uamcts.arguments import function, real, short_repr

PARTS = ("state", "reward", "terminal")
"""What a simulator may be wrong about. The paper compares states only."""

GREATEST = 1e30
"""A larger U counts as this, so that it fits into 32 bits."""


class Outcome(NamedTuple):
    """The outcome of a step: features of the next state, reward, and whether the episode ended; None is unknown."""

    features: np.ndarray
    reward: float | None
    terminal: bool | None


class Outcomes(NamedTuple):
    """Many outcomes; NaN is unknown, and an infinite reward marks a prediction that could not be made."""

    features: np.ndarray
    """[..., outcomes, features]"""
    rewards: np.ndarray
    """[..., outcomes]"""
    ends: np.ndarray
    """1 where the episode ended, 0 where it went on: [..., outcomes]."""

    @classmethod
    def of(cls, outcomes: Sequence[Outcome | None], size: int) -> Self:
        """From outcomes, with so many features each; None is a prediction that could not be made."""
        features, (rewards, ends) = np.full((len(outcomes), size), np.nan), np.full((2, len(outcomes)), np.nan)
        for place, one in enumerate(outcomes):
            if one is None or one.features.size != size:
                rewards[place] = np.inf
            else:
                features[place] = one.features
                rewards[place] = np.nan if one.reward is None else one.reward
                ends[place] = np.nan if one.terminal is None else one.terminal
        return cls(features, rewards, ends)

    def take(self, rows: np.ndarray) -> Outcomes:
        """Those of some rows."""
        return Outcomes(*(part[rows] for part in self))


class Scales(NamedTuple):
    """In which units differences are measured."""

    features: np.ndarray
    reward: float


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
            raise ValueError(f"parts is {short_repr(self.parts)}; give a tuple of at least one of {known}")
        for part in self.parts:
            if part not in PARTS:
                raise ValueError(f"parts holds {short_repr(part)}; there are {known}")
        function("discrepancy", self.own, "of the real and the believed next state")
        real("tolerance", self.tolerance, "it must be a finite number of at least 0", lambda limit: limit >= 0)

    def own_error(self, following: Any, predicted: Any) -> float:
        """The user's own measure of a difference between next states; NaN without one."""
        if self.own is None:
            return float("nan")
        remedy = "it must be a finite number of at least 0"
        return real("discrepancy", self.own(following, predicted), remedy, lambda u: u >= 0, "returned")

    def differences(self, actual: Outcome, predicted: Outcome, scales: Scales, own: float = np.nan) -> np.ndarray:
        """The parts of U as differences, whose squares sum to U."""
        found = [np.zeros(0)]
        if "state" in self.parts and actual.features.size:
            if self.own is None:
                apart = (actual.features - predicted.features) / scales.features
                found.append(apart / np.sqrt(apart.size))
            else:
                found.append(np.array([np.sqrt(own)]))
        if "reward" in self.parts:
            known = actual.reward is not None and predicted.reward is not None
            found.append(np.array([((actual.reward or 0.0) - (predicted.reward or 0.0)) / scales.reward * known]))
        if "terminal" in self.parts:
            known = actual.terminal is not None and predicted.terminal is not None
            found.append(np.array([float(known and actual.terminal != predicted.terminal)]))
        return np.concatenate(found)

    def error(self, actual: Outcome, predicted: Outcome, scales: Scales, own: float = np.nan) -> float:
        """U of one transition."""
        parts = self.differences(actual, predicted, scales, own)
        total = float(parts @ parts)
        return min(total, GREATEST) if total > self.tolerance else 0.0

    def many_differences(
        self, actual: Outcomes, predicted: Outcomes, scales: Scales, worst: float, own: np.ndarray | None = None
    ) -> np.ndarray:
        """The parts of U of many transitions, [..., transitions, parts]; without a valid prediction, U is `worst`.

        `own`: what the user's own measure says of the states.
        """
        parts = [np.zeros((*predicted.rewards.shape, 0))]
        if "state" in self.parts and actual.features.size:
            if self.own is None:
                apart = (actual.features - predicted.features) / scales.features
                parts.append(apart / np.sqrt(apart.shape[-1]))
            else:
                parts.append(np.sqrt(np.asarray(own))[..., None])
        if "reward" in self.parts:
            missed = (actual.rewards - predicted.rewards) / scales.reward
            parts.append(np.where(np.isnan(actual.rewards), 0.0, missed)[..., None])
        if "terminal" in self.parts:
            parts.append(np.where(np.isnan(actual.ends), 0.0, actual.ends - predicted.ends)[..., None])
        found = np.concatenate(parts, axis=-1)
        bad = ~np.all(np.isfinite(found), axis=-1) | np.isinf(predicted.rewards)
        found[bad] = np.sqrt(worst / max(found.shape[-1], 1))
        return np.asarray(np.clip(found, -np.sqrt(worst), np.sqrt(worst)))
