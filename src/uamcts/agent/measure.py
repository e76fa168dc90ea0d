"""Real transitions beside what the simulator predicted: the samples that U is learned from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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
        self, actual: Sequence[Outcome], predicted: Sequence[tuple[Outcome, float] | None], scales: Scales, worst: float
    ) -> np.ndarray:
        """The parts of U of many transitions, [transitions, parts]; where there is no prediction, U is `worst`."""
        none = (Outcome(np.full(actual[0].features.shape, np.nan), np.nan, None), np.nan)
        found = [none if one is None else one for one in predicted]
        parts = [np.zeros((len(actual), 0))]
        if "state" in self.parts and actual[0].features.size:
            apart = np.stack([one.features for one in actual]) - np.stack([one.features for one, _ in found])
            parts.append(apart / scales.features / np.sqrt(apart.shape[1]))
            if self.own is not None:
                parts[-1] = np.sqrt(np.array([[own] for _, own in found]))
        if "reward" in self.parts:
            pairs = [(real.reward, said.reward) for real, (said, _) in zip(actual, found, strict=True)]
            parts.append(np.array([[0.0 if a is None or b is None else (a - b) / scales.reward] for a, b in pairs]))
        if "terminal" in self.parts:
            ends = [(real.terminal, said.terminal) for real, (said, _) in zip(actual, found, strict=True)]
            parts.append(np.array([[0.0 if a is None or b is None else float(a) - float(b)] for a, b in ends]))
        all_parts = np.concatenate(parts, axis=1)
        bad = ~np.all(np.isfinite(all_parts), axis=1) | np.array([one is None for one in predicted])
        all_parts[bad] = np.sqrt(worst / max(all_parts.shape[1], 1))
        return np.clip(all_parts, -np.sqrt(worst), np.sqrt(worst))
