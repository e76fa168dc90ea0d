"""Statistics of the runs of an experiment: means, intervals, p-values, learning curves.

A sample has one number for each run, [runs]. Intervals are 95% percentile bootstrap intervals from 2,000 resamples with
a fixed seed. A single run has no interval (NaN; in the rows None). If all runs are equal, the interval has width 0.
With few runs percentile intervals are too narrow: they cover 92% for 15 normal runs, less for skewed ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from uamcts.lab.analysis.groups import Group, Series, best_c, check_columns, group_runs, runs_of
from uamcts.lab.columns import Episodes

RESAMPLES = 2000
WINDOW = 50
"""Episodes in the paper's moving average."""
STEPS_COUNT = ("two_way", "icy")
"""Experiments whose figures show steps to the goal."""


def mean(sample: np.ndarray, axis: int = -1) -> Any:
    """The mean over `axis`."""
    return np.mean(sample, axis=axis)


def standard_deviation(sample: np.ndarray, axis: int = -1) -> Any:
    """The standard deviation over runs, divided by n and not by n - 1, as the paper's bars and bands show it.

    The paper does not say which; this is NumPy's default. The other is 0.5% larger at 100 runs and 3.5% at 15 runs.
    """
    return np.std(sample, axis=axis)


def interquartile_mean(sample: np.ndarray, axis: int = -1) -> Any:
    """The mean of the middle half: floor(n / 4) values are dropped at either end. Up to 3 values: their mean."""
    return stats.trim_mean(sample, 0.25, axis=axis)


def interval(statistic: Callable[..., Any], *samples: np.ndarray, seed: int = 0, level: float = 0.95) -> np.ndarray:
    """The bootstrap interval of a statistic.

    Args:
        statistic: Called as `statistic(*samples, axis=-1)`.
        samples: Arrays [..., runs]. They may differ in their numbers of runs; each is resampled by itself.
        seed: The seed of the resampling.
        level: The level of the interval.

    Returns:
        The ends of the interval, [..., 2].
    """
    arrays = tuple(np.asarray(sample, np.float64) for sample in samples)
    if any(array.shape[-1] == 0 for array in arrays):
        raise ValueError(f"samples are {[array.shape for array in arrays]}; each needs at least one run")
    if any(array.shape[-1] == 1 for array in arrays):
        return np.full((*arrays[0].shape[:-1], 2), math.nan)
    size = max(array.size for array in arrays)
    found = stats.bootstrap(
        arrays,
        statistic,
        n_resamples=RESAMPLES,
        batch=max(1, min(RESAMPLES, 4_000_000 // size)),  # at most 32 MB of resampled numbers at a time
        vectorized=True,
        axis=-1,
        confidence_level=level,
        method="percentile",
        rng=np.random.default_rng(seed),
    )
    return np.stack([found.confidence_interval.low, found.confidence_interval.high], axis=-1)


def chance_above(estimate: float, error: float, runs: int) -> float:
    """The p-value of a one-sided t-test: how likely an estimate of this size or more is if the truth is 0.

    Args:
        estimate: The estimate.
        error: Its standard error. If it is 0, an estimate above 0 cannot be chance, and another one says nothing.
        runs: The size of the smallest sample behind it.
    """
    if error == 0:
        return 0.0 if estimate > 0 else 1.0
    return float(stats.t.sf(estimate / error, runs - 1))


def holm(chances: Sequence[float]) -> list[float]:
    """P-values adjusted for their number by Holm's method.

    The smallest is multiplied by their number n, the next by n - 1, and so on; none is smaller than the one before.
    """
    adjusted = [0.0] * len(chances)
    least = 0.0
    for place, index in enumerate(sorted(range(len(chances)), key=lambda index: chances[index])):
        least = max(least, min(1.0, (len(chances) - place) * chances[index]))
        adjusted[index] = least
    return adjusted


def summarise(episodes: Episodes) -> list[dict[str, Any]]:
    """A row of plain numbers for each group: its setting, and mean, std, intervals, steps and goal share over its runs.

    `best` is true for an algorithm's best c in the sweep. Values that are not numbers are None.
    """
    found = group_runs(episodes)
    best = best_c(found)
    intervals = _intervals(found)
    return [_row(group, best, *ends) for group, ends in zip(found, intervals, strict=True)]


def moving_average(values: np.ndarray, window: int = WINDOW) -> np.ndarray:
    """The mean of the last `window` values at every place, [..., n]; at the start, of those so far."""
    if window < 1:
        raise ValueError(f"window is {window}; it must be at least 1")
    values = np.asarray(values, np.float64)
    total = np.cumsum(values, axis=-1)
    before = np.concatenate([np.zeros_like(total[..., :window]), total[..., :-window]], axis=-1)
    return (total - before) / np.minimum(np.arange(1, values.shape[-1] + 1), window)


def curves(episodes: Episodes) -> list[dict[str, Any]]:
    """Learning curves of the online groups: the moving average of each run, then mean and std over runs, [episodes].

    `real_steps` counts the real steps of a run up to the end of each episode, on average over runs. Curves end with the
    shortest run. The gridworlds have two, of `reward` and of `steps`; the games one, of `reward`.
    """
    check_columns(episodes)
    if len(episodes["reward"]) == 0:
        return []
    group, run, count = runs_of(episodes)
    online = np.asarray(episodes["scenario"]) == "online"
    order = np.lexsort((episodes["episode"], run))
    order = order[online[order]]
    found = []
    for index in range(count):
        rows = order[group[order] == index]
        if len(rows) == 0:
            continue
        first = np.flatnonzero(np.diff(run[rows], prepend=-1))
        shared = int(np.min(np.diff(np.append(first, len(rows)))))
        table = rows[first[:, None] + np.arange(shared)]
        quantities = ("reward", "steps") if episodes["experiment"][rows[0]] in STEPS_COUNT else ("reward",)
        found += [_curve(episodes, table, quantity) for quantity in quantities]
    return found


def plain(value: float) -> float | None:
    """A number for JSON: None if it is not finite."""
    return float(value) if math.isfinite(value) else None


def plain_pair(ends: Sequence[float] | np.ndarray) -> list[float | None]:
    """Both ends of an interval for JSON."""
    return [plain(ends[0]), plain(ends[1])]


def _intervals(found: list[Group]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The intervals of mean and interquartile mean of each group; groups of equal size are computed together."""
    ends: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for runs in {group.runs for group in found}:
        same = [index for index, group in enumerate(found) if group.runs == runs]
        samples = np.stack([found[index].reward for index in same])
        both = (interval(mean, samples), interval(interquartile_mean, samples))
        ends.update((index, pair) for index, *pair in zip(same, *both, strict=True))  # type: ignore[misc]
    return [ends[index] for index in range(len(found))]


def _row(group: Group, best: dict[Series, float], ends: np.ndarray, middle_ends: np.ndarray) -> dict[str, Any]:
    return {
        "experiment": group.experiment,
        "domain": group.domain,
        "scenario": group.scenario,
        "algorithm": group.algorithm,
        "learner": group.learner,
        "rules": group.rules,
        "c": plain(group.c),
        "tau": plain(group.tau),
        "purpose": group.purpose,
        "runs": group.runs,
        "episodes": group.episodes,
        "mean": plain(mean(group.reward)),
        "std": plain(standard_deviation(group.reward)),
        "ci95": plain_pair(ends),
        "iqm": plain(interquartile_mean(group.reward)),
        "iqm_ci95": plain_pair(middle_ends),
        "steps": plain(mean(group.steps)),
        "goal_share": plain(mean(group.goal)),
        "best": group.purpose == "sweep" and best[group.series] == group.c,
    }


def _curve(episodes: Episodes, table: np.ndarray, quantity: str) -> dict[str, Any]:
    """The curve of a quantity; `table` holds the row numbers of the episodes, [runs, episodes]."""
    averages = moving_average(np.asarray(episodes[quantity])[table])
    lengths = np.cumsum(np.asarray(episodes["steps"], np.float64)[table], axis=1)
    row = table[0, 0]
    setting = {name: str(episodes[name][row]) for name in ("experiment", "algorithm", "learner", "rules")}
    return {
        **setting,
        "c": plain(episodes["c"][row]),
        "episode": np.asarray(episodes["episode"])[table[0]].tolist(),
        "real_steps": np.mean(lengths, axis=0).tolist(),
        "mean": np.mean(averages, axis=0).tolist(),
        "std": standard_deviation(averages, axis=0).tolist(),
        "quantity": quantity,
    }
