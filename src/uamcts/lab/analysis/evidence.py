"""From runs to a verdict: which runs a claim is judged by, the margin by which it holds, and that margin's interval.

A claim is expressed as margins, each a weighted sum of means that is above 0 if the claim is true. It *holds* if the
95% interval of every margin lies above 0, *does not hold* if one lies below, and is *too close to call* otherwise.

A claim that a mean is about a number is judged by an equivalence test (two one-sided tests at 5%), with a tolerance
stated in advance and smaller than the effect in question. It *holds* if the 90% interval of our mean lies within the
tolerance around the number, *does not hold* if the 95% interval lies outside, and is *too close to call* otherwise.

Either way the probability of a wrong verdict is at most 5%. Its p-value is the smallest level at which it still stands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from uamcts.lab.analysis.groups import Group, best_c
from uamcts.lab.analysis.statistics import chance_above, interval, mean, standard_deviation
from uamcts.presets import BEST_C, ONLINE, OnlineSettings

HOLDS, FAILS, CLOSE, MISSING = "holds", "does not hold", "too close to call", "not measured"

NEAR, FAR, POOR = 0.75, 0.5, 0.25
"""Shares of the distance from the wrong model's mean to the true model's. The paper has words; the numbers are ours:
"almost", "close to", "approach": at least NEAR; "far better", "very good": at least FAR; "poor": at most POOR."""
SELDOM = 0.05
"""An agent that "never" finds the goal finds it in a smaller share of episodes; one that does, in a larger one."""
LEAST_RUNS = 5
"""With fewer runs on any side nothing is decided: resampling so few says too little."""
PAPER_RUNS = 100
"""Offline runs behind each of the paper's means."""
_TAU = {"icy": 10.0}
_OFFLINE_TAU = 0.1


class Finding(NamedTuple):
    """The result of a judge: verdict, the numbers used, the interval of the deciding margin, the fewest runs used."""

    verdict: str
    numbers: dict[str, float]
    interval: tuple[float, float] | None
    runs: int
    p: float | None = None
    """The smaller of two p-values, that the claim holds and that it does not; None if nothing was tested."""


NOTHING = Finding(MISSING, {}, None, 0)


@dataclass(frozen=True)
class Source:
    """A quantity ("reward", "steps" or "goal") of the runs of an algorithm in a scenario."""

    scenario: str
    algorithm: str
    quantity: str = "reward"
    learner: str | None = None
    """The learner online. None: the paper's learner of U in the domain."""

    @property
    def name(self) -> str:
        learner = "" if self.learner in (None, "none") else self.learner
        quantity = "" if self.quantity == "reward" else self.quantity
        return " ".join(part for part in (self.scenario, self.algorithm, learner, quantity) if part)


@dataclass(frozen=True)
class Margin:
    """constant + sum of weight times the mean of a source; above 0 if the claim is true."""

    name: str
    terms: tuple[tuple[float, Source], ...]
    constant: float = 0.0


@dataclass(frozen=True)
class Evidence:
    """What claims are judged by: the groups of one rule set, and the bandit's figures."""

    groups: Sequence[Group]
    bandit: Mapping[str, Any] | None = None
    best: Mapping[Any, float] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "best", best_c(self.groups))

    def group(self, experiment: str, source: Source) -> Group | None:
        """The runs to judge by, if there are any. Offline: fresh seeds at the chosen c, else the sweep at that c."""
        tau = _TAU.get(experiment, _OFFLINE_TAU)
        mine = [group for group in self.groups if (group.experiment, group.algorithm) == (experiment, source.algorithm)]
        offline = [
            group for group in mine if group.scenario == "offline" and math.isclose(group.tau, tau, rel_tol=1e-5)
        ]
        sweep = [group for group in offline if group.purpose == "sweep"]
        if source.scenario == "offline":
            chosen = [group for group in sweep if group.c == self.best[group.series]]
            fresh = [group for group in offline if group.purpose == "fresh"]
            known = [group for group in fresh if chosen and group.c == chosen[0].c]
            candidates = known or chosen or fresh
        else:
            candidates = [
                group for group in mine if group.scenario == "online" and group.learner == _learner(group, source)
            ]
        wanted = self.best[sweep[0].series] if sweep else None
        return min(candidates, key=lambda group: abs(group.c - _c(group, wanted)), default=None)

    def at_the_papers_c(self, experiment: str, source: Source) -> Group | None:
        """The runs of the sweep at the c of the paper's number; without them, what `group` returns."""
        best = self.group(experiment, source)
        if best is None or source.scenario != "offline":
            return best
        wanted = BEST_C.get(best.domain, {}).get(source.algorithm, best.c)
        like = [group for group in self.groups if group.series == best.series and group.purpose == "sweep"]
        return next((group for group in like if math.isclose(group.c, wanted, rel_tol=1e-5)), best)


def decide(*margins: Margin) -> Callable[[Evidence, str], Finding]:
    """A judge of a claim that all `margins` are above 0; the weakest decides."""

    def judge(evidence: Evidence, experiment: str) -> Finding:
        sources = dict.fromkeys(source for margin in margins for _, source in margin.terms)
        found = {source: evidence.group(experiment, source) for source in sources}
        used = {source: group for source, group in found.items() if group is not None}
        if len(used) < len(found):
            return NOTHING
        numbers = _numbers(used)
        runs = min(group.runs for group in used.values())
        verdicts, tests = [], []
        for margin in margins:
            middle, error, (low, high) = _margin(margin, used)
            numbers[f"margin: {margin.name}"] = middle
            verdicts.append((verdict_of(low, high, runs), middle, (low, high)))
            tests.append((middle, error))
        verdict, _, ends = weakest(verdicts)
        p = p_of_margins(tests, runs) if runs >= LEAST_RUNS else None
        return Finding(verdict, numbers, None if runs < 2 else ends, runs, p)

    return judge


def about(source: Source, number: float, tolerance: float) -> Callable[[Evidence, str], Finding]:
    """A judge of a claim that a mean is the paper's `number`: an equivalence test, see above.

    The number is taken as printed. It is itself a mean of 100 runs, whose spread the paper does not state; its standard
    error by our spread is among the numbers. The interval is the 95% interval of our mean minus the number.
    """

    def judge(evidence: Evidence, experiment: str) -> Finding:
        group = evidence.at_the_papers_c(experiment, source)
        if group is None:
            return NOTHING
        sample = getattr(group, source.quantity)
        error = float(standard_deviation(sample)) / math.sqrt(PAPER_RUNS)
        numbers = {**_numbers({source: group}), "paper": number, "paper's standard error": error}
        if group.runs < LEAST_RUNS:
            return Finding(CLOSE, numbers, None, group.runs)
        narrow, wide = (interval(mean, sample, level=level) - number for level in (0.9, 0.95))
        numbers |= {"margin: tolerance": tolerance, "margin: 90 % low": narrow[0], "margin: 90 % high": narrow[1]}
        middle, spread = float(np.mean(sample)) - number, _standard_error(sample)
        p = p_of_equivalence(middle, spread, tolerance, group.runs)
        return Finding(equivalence(narrow, wide, tolerance), numbers, (float(wide[0]), float(wide[1])), group.runs, p)

    return judge


def equivalence(narrow: np.ndarray, wide: np.ndarray, tolerance: float) -> str:
    """The verdict on a difference that should be about 0, from its 90% and its 95% interval."""
    if -tolerance <= narrow[0] and narrow[1] <= tolerance:
        return HOLDS
    return FAILS if wide[0] > tolerance or wide[1] < -tolerance else CLOSE


def p_of_equivalence(difference: float, error: float, tolerance: float, runs: int) -> float:
    """The smaller of two p-values: that a difference is within the tolerance, and that it is not."""
    inside = max(chance_above(tolerance + sign * difference, error, runs) for sign in (1, -1))
    outside = min(chance_above(sign * difference - tolerance, error, runs) for sign in (1, -1))
    return min(1.0, inside, 2 * outside)


def p_of_margins(margins: Sequence[tuple[float, float]], runs: int) -> float:
    """The smaller of two p-values: that all margins (given with standard errors) are above 0, and that one is below.

    The first is that of the least certain margin. The second is multiplied by the number of margins.
    """
    above = max(chance_above(middle, error, runs) for middle, error in margins)
    below = min(chance_above(-middle, error, runs) for middle, error in margins)
    return min(1.0, 2 * above, 2 * len(margins) * below)


def verdict_of(low: float, high: float, runs: int = LEAST_RUNS) -> str:
    """The verdict on a margin with this interval."""
    if runs < LEAST_RUNS:
        return CLOSE
    return HOLDS if low > 0 else FAILS if high < 0 else CLOSE


def weakest(verdicts: list[tuple[str, float, tuple[float, float]]]) -> tuple[str, float, tuple[float, float]]:
    """The (verdict, margin, interval) that decides: one that fails, then one too close to call, then the smallest."""
    return min(verdicts, key=lambda one: ((FAILS, CLOSE, HOLDS).index(one[0]), one[1]))


def _margin(margin: Margin, used: Mapping[Source, Group]) -> tuple[float, float, tuple[float, float]]:
    """The margin, its standard error and its interval. A margin never combines two quantities of the same group."""
    weights = [weight for weight, _ in margin.terms]
    samples = [getattr(used[source], source.quantity) for _, source in margin.terms]

    def value(*samples: np.ndarray, axis: int = -1) -> Any:
        means = [weight * np.mean(sample, axis=axis) for weight, sample in zip(weights, samples, strict=True)]
        return margin.constant + sum(means)

    low, high = interval(value, *samples)
    errors = [weight * _standard_error(sample) for weight, sample in zip(weights, samples, strict=True)]
    return float(value(*samples)), math.hypot(*errors), (float(low), float(high))


def _standard_error(sample: np.ndarray) -> float:
    """The standard error of the mean; NaN for a single run."""
    return float(np.std(sample, ddof=1)) / math.sqrt(len(sample)) if len(sample) > 1 else math.nan


def _numbers(used: Mapping[Source, Group]) -> dict[str, float]:
    numbers = {}
    for source, group in used.items():
        numbers[source.name] = float(np.mean(getattr(group, source.quantity)))
        numbers[f"{source.name}, c"] = group.c
    return numbers


def _learner(group: Group, source: Source) -> str:
    return source.learner or ONLINE.get(group.domain, OnlineSettings()).estimator


def _c(group: Group, chosen: float | None) -> float:
    """The c that was chosen offline, else the paper's."""
    return BEST_C.get(group.domain, {}).get(group.algorithm, group.c) if chosen is None else chosen
