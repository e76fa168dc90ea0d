"""Planners compared seed by seed: every two of an experiment that met the same fresh seeds.

A seed decides how an episode starts and, in a drawn world, the world itself. What a seed contributes to both planners
cancels in their difference, which is therefore resampled as a whole.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from uamcts.lab.analysis.statistics import chance_above, holm, interval, mean, plain, plain_pair
from uamcts.lab.columns import Episodes


class Planner(NamedTuple):
    """A planner, as far as it decides what can be compared."""

    algorithm: str
    rules: str
    tau: float


class Pair(NamedTuple):
    """Two planners of an experiment, and the first one's reward minus the second one's, [seeds]."""

    experiment: str
    domain: str
    first: Planner
    second: Planner
    more: np.ndarray


def differences(episodes: Episodes) -> list[dict[str, Any]]:
    """The mean difference in reward, its 95% interval and p-values, for every two planners on the same fresh seeds.

    `p` comes from a two-sided paired t-test; `p_holm` is adjusted for the number of differences in this list.
    """
    pairs = [pair for pair in _pairs(episodes) if len(pair.more) >= 2]
    ends = _intervals([pair.more for pair in pairs])
    chances = [_two_sided(pair.more) for pair in pairs]
    return [
        {
            "experiment": pair.experiment,
            "domain": pair.domain,
            **{f"first_{name}": value for name, value in pair.first._asdict().items()},
            **{f"second_{name}": value for name, value in pair.second._asdict().items()},
            "runs": len(pair.more),
            "mean": plain(np.mean(pair.more)),
            "ci95": plain_pair(own),
            "p": chance,
            "p_holm": adjusted,
        }
        for pair, own, chance, adjusted in zip(pairs, ends, chances, holm(chances), strict=True)
    ]


def _pairs(episodes: Episodes) -> list[Pair]:
    """Every two planners of every experiment; the one declared later is the first."""
    fresh = np.flatnonzero(np.asarray(episodes["purpose"]) == "fresh")
    places: dict[tuple[str, str], dict[Planner, list[int]]] = {}
    for row in fresh.tolist():
        place = (str(episodes["experiment"][row]), str(episodes["domain"][row]))
        planner = Planner(str(episodes["algorithm"][row]), str(episodes["rules"][row]), float(episodes["tau"][row]))
        places.setdefault(place, {}).setdefault(planner, []).append(row)
    found = []
    for place, rows in places.items():
        for second, first in combinations(rows, 2):
            if first.rules == second.rules or "trust" in (first.rules, second.rules):  # trust has rules of its own
                found.append(Pair(*place, first, second, _reward_differences(episodes, rows[first], rows[second])))
    return found


def _reward_differences(episodes: Episodes, first: list[int], second: list[int]) -> np.ndarray:
    """The reward of the first rows minus that of the second rows, on every seed that both have."""
    seeds = np.asarray(episodes["seed"])
    _, one, other = np.intersect1d(seeds[first], seeds[second], return_indices=True)
    reward = np.asarray(episodes["reward"], np.float64)
    return reward[np.asarray(first)[one]] - reward[np.asarray(second)[other]]


def _two_sided(sample: np.ndarray) -> float:
    """The two-sided p-value of the mean being 0."""
    error = float(np.std(sample, ddof=1)) / math.sqrt(len(sample))
    return min(1.0, 2 * chance_above(abs(float(np.mean(sample))), error, len(sample)))


def _intervals(samples: list[np.ndarray]) -> list[np.ndarray]:
    """The intervals of the means; samples of equal size are computed together."""
    ends: dict[int, np.ndarray] = {}
    for runs in {len(sample) for sample in samples}:
        same = [index for index, sample in enumerate(samples) if len(sample) == runs]
        ends.update(zip(same, interval(mean, np.stack([samples[index] for index in same])), strict=True))
    return [ends[index] for index in range(len(samples))]
