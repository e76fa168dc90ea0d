"""What a fit of parameters needs to know about a simulator, and what it returns."""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized
from typing import NamedTuple, Protocol

import numpy as np

from uamcts.corrections.parameters import Choice

WORST = 1e4
"""The squared error of a prediction that could not be made."""
PRIOR = 4.0
"""Transitions that the believed value of a probability is worth."""


class Trials(Protocol):
    """Real transitions beside a simulator whose parameters can be set."""

    random: bool
    """Whether outcomes are random: `losses` are then negative log-likelihoods, and there are no `residuals`."""
    floor: float
    """A squared error up to this is as good as none."""
    small_step: float
    """By how much of its size a parameter is changed to see what that changes."""

    @property
    def times(self) -> np.ndarray:
        """How often each was seen; the losses of random outcomes count as often."""
        ...

    @property
    def seen(self) -> Sized:
        """The transitions."""
        ...

    def losses(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """How badly a simulator with each of the `values` [G, names] predicts the `rows`: nats [G, rows]."""
        ...

    def residuals(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Differences for one set of values, so scaled that their squares sum to the squared errors: [rows, ...]."""
        ...

    def paths(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The same where every row has its own values [rows, names]."""
        ...


class WithValues:
    """Trials of a random simulator some of whose parameters have other values than believed."""

    random = True

    def __init__(self, trials: Trials, values: dict[str, float]):
        self.trials, self.values = trials, values
        self.times, self.seen, self.floor, self.small_step = trials.times, trials.seen, trials.floor, trials.small_step
        self.draws = getattr(trials, "draws", False)

    def losses(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Nats [G, rows], as those of the trials themselves."""
        rest = [name for name in self.values if name not in names]
        fixed = np.tile([self.values[name] for name in rest], (len(values), 1))
        return self.trials.losses([*names, *rest], np.concatenate([values, fixed], axis=1), rows)

    def residuals(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        raise NotImplementedError("random simulators are fitted by likelihood")

    paths = residuals


class Rival(NamedTuple):
    """A single parameter that explains the same as another one, so far."""

    name: str
    value: float
    tried: bool = False
    """Whether it was planned with for a while."""


class Fit(NamedTuple):
    """Values of parameters that explain what was seen."""

    values: dict[str, float]
    ranges: dict[str, tuple[float, float]]
    """About 95 % of where a value may lie, given the rest of the fit."""
    instead: tuple[str, ...] = ()
    """Parameters that explain the same as the single one that was fitted."""
    rivals: tuple[Rival, ...] = ()
    """These with their values, as long as they may turn out to be the right ones."""


def unless_same(found: Fit | None, before: Fit | None) -> Fit | None:
    """A new fit, or the one before if it is about the same: as long as a model holds, searches go on from it."""
    if found is None or before is None or found.values.keys() != before.values.keys():
        return found
    for name, (low, high) in found.ranges.items():
        value = found.values[name]
        if abs(value - before.values[name]) > max(0.1 * (high - low), 1e-6 * abs(value)):
            return found
    return before._replace(ranges=found.ranges)


def least_gain(count: int) -> float:
    """The mean gain in nats on `count` transitions that one more parameter brings by chance."""
    return max(0.1, (3.0 * math.log(count) + 4.0) / count)


def credible(count: int, gain: float) -> bool:
    """Whether a mean gain of so many nats on `count` transitions is more than one more parameter brings by chance."""
    return gain > least_gain(count)


class HopelessError(Exception):
    """A fit explains nothing and is not worth more steps of the simulator."""


class Patience:
    """Watches a fit, and ends it by a `HopelessError` if it explains next to nothing.

    Args:
        hopeful: The loss, in nats per transition, below which a fit may go on.
        floor: A squared error up to this is as good as none.
        trials: How many sets of values are tried before.
    """

    def __init__(self, hopeful: float, floor: float, trials: int):
        self.hopeful, self.floor, self.left = hopeful, floor, trials
        self.hopeless = True

    def watch(self, parts: np.ndarray) -> np.ndarray:
        """Looks at the differences [rows, parts] for a set of values, and returns them."""
        if self.hopeless:
            self.hopeless = float(np.mean(np.log(np.sum(parts**2, axis=1) + self.floor))) >= self.hopeful
            self.left -= 1
            if self.hopeless and self.left <= 0:
                raise HopelessError
        return parts


def log_prior(choice: Choice, name: str, grid: np.ndarray) -> np.ndarray:
    """What is believed counts like a few transitions, so that the first ones do not rule a plan.

    Of a probability that the user has named, every value is equally likely at first: it is said to be off.
    """
    believed = choice.believed[name]
    if 0.0 < believed < 1.0 and choice.bounds(name) == (0.0, 1.0):
        if choice.named:
            return np.zeros(len(grid))
        inside = np.clip(grid, 1e-6, 1.0 - 1e-6)
        return np.asarray(PRIOR * (believed * np.log(inside) + (1.0 - believed) * np.log(1.0 - inside)))
    return np.asarray(-0.5 * ((grid - believed) / max(abs(believed), 1.0)) ** 2)
