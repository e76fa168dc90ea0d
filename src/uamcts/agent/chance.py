"""Real transitions beside a random simulator: which of its outcomes happened, so that noise does not count as an error.

A real transition that is one of the outcomes of a simulator is right. One that is none of them is compared with the
outcome that is nearest. A simulator that can only `sample` is drawn from 64 times, which has limits: an outcome with a
probability of p is missing among the draws, and counts as an error, with probability (1 - p)^64 (4 % for p = 0.05).
Where no two draws are equal, as with continuous noise, a real state counts as right if it lies no farther from the
nearest draw than draws lie from one another; small errors within the noise are then not noticed.

That an outcome is possible does not make its probability right. Wrong probabilities are corrected by facts (see
`uamcts.corrections.mixture`) and are no part of U.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

FEWEST_SINGLES = 8
"""How many draws must differ from all others before they count as draws from a continuum."""

Outcome = tuple[Any, float, bool]
"""The next state, the reward and whether the episode is over."""


class RealOutcome(NamedTuple):
    """What really happened; None is unknown."""

    following: Any
    reward: float | None
    terminal: bool | None


def matching_outcome(
    real: RealOutcome,
    outcomes: Sequence[Outcome],
    features: Callable[[Any], np.ndarray],
    key: Callable[[Any], Hashable],
    drawn: bool,
) -> Outcome:
    """The outcome to compare with what happened: the nearest one, or what happened itself if it lies within the noise.

    Args:
        real: What happened.
        outcomes: What the simulator predicts: all outcomes that are possible, or draws.
        features: The numbers of a state.
        key: What tells a state from others.
        drawn: Whether `outcomes` are draws.
    """
    nearest, there = nearest_outcome(real, outcomes, features, key), features(real.following)
    following, reward, terminal = outcomes[nearest]
    if drawn:
        numbers = np.array([[*features(state), paid] for state, paid, _ in outcomes], float)
        ends = [end for _, _, end in outcomes]
        point = np.array([*there, reward if real.reward is None else real.reward], float)
        if (real.terminal is None or real.terminal in ends) and within_noise(point, numbers):
            paid = reward if real.reward is None else real.reward
            return real.following, paid, terminal if real.terminal is None else real.terminal
    return following, reward, terminal


def nearest_outcome(
    real: RealOutcome,
    outcomes: Sequence[Outcome],
    features: Callable[[Any], np.ndarray],
    key: Callable[[Any], Hashable],
) -> int:
    """The index of the outcome that is most like what happened: the same one, or the nearest."""
    place, there = key(real.following), features(real.following)

    def distance(index: int) -> tuple[bool, float, bool, float]:
        state, reward, terminal = outcomes[index]
        paid = 0.0 if real.reward is None else abs(real.reward - reward)
        apart = real.terminal is not None and real.terminal != terminal
        return key(state) != place, float(np.sum((features(state) - there) ** 2)), apart, paid

    return min(range(len(outcomes)), key=distance)


def within_noise(point: np.ndarray, draws: np.ndarray) -> bool:
    """Whether a point lies no farther from the nearest draw than draws from a continuum lie from one another."""
    counts = Counter(row.tobytes() for row in draws)
    singles = np.array([row for row in draws if counts[row.tobytes()] == 1])
    if len(singles) < FEWEST_SINGLES:
        return False
    spread = singles.std(axis=0)
    if np.any(point[spread == 0] != singles[0][spread == 0]):
        return False
    scaled, place = (singles / np.where(spread > 0, spread, 1.0), point / np.where(spread > 0, spread, 1.0))
    apart = np.sqrt(np.sum((scaled[:, None] - scaled[None]) ** 2, axis=-1))
    np.fill_diagonal(apart, np.inf)
    nearest: float = np.sqrt(np.sum((scaled - place) ** 2, axis=-1)).min()
    return bool(nearest <= apart.min(axis=1).max())
