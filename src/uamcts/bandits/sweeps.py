"""The data of the figures: regret over time, regret against delta, a case that UA-UCB loses, the worst case."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np
from numpy.typing import ArrayLike

from uamcts.bandits.arms import Bandit, bernoulli
from uamcts.bandits.runs import Regret, ua_ucb, ucb
from uamcts.bandits.theorem import bound, threshold

FAMILIES = ("shifted", "misleading")
"""How the instances depend on delta: see `regret_against_delta`."""


@dataclass(frozen=True, eq=False)
class Case:
    """One bandit played by both strategies; the bounds [T] are not a number where Theorem 1 does not hold.

    `estimated` is UA-UCB with a delta that each run estimates from paired samples, if requested.
    """

    bandit: Bandit
    c: float
    ucb: Regret
    ua_ucb: Regret
    ucb_bound: np.ndarray
    ua_ucb_bound: np.ndarray
    estimated: Regret | None = None


@dataclass(frozen=True)
class Growth:
    """How regret grows: least squares of a + b ln t and of a + b t, and the power of t between the ends."""

    logarithmic_error: float
    """Root mean square residual of a + b ln t, relative to the standard deviation of the regret."""
    linear_error: float
    exponent: float
    """ln of the ratio of the last regret to the first over ln of the ratio of their times: 1 if linear, towards 0 if
    logarithmic."""

    @property
    def kind(self) -> str:
        """The better of the two fits."""
        return "logarithmic" if self.logarithmic_error < self.linear_error else "linear"


@dataclass(frozen=True)
class SweepRow:
    """The worst instance of a sweep's cell, for one strategy: final mean regret, its interval, its growth."""

    algorithm: str
    delta: float
    gap: float
    arms: int
    c: float
    corrupted: str
    """Which arm, and how it looks: "best looks worse", "other looks better" ..."""
    regret: float
    low: float
    high: float
    exponent: float
    bound: float
    """Not a number where Theorem 1 does not hold for the worst instance."""


def growth(checkpoints: ArrayLike, regret: ArrayLike) -> Growth:
    """Growth of mean `regret` [T] over `checkpoints` [T]; give the part after the beginning, say the last decade."""
    times, regret = np.asarray(checkpoints, np.float64), np.asarray(regret, np.float64)
    if times.ndim != 1 or times.shape != regret.shape or len(times) < 3 or np.any(np.diff(times) <= 0):
        raise ValueError(
            f"checkpoints is {times.shape} and regret {regret.shape}; both must be as many, at least 3, in order"
        )
    if times[0] <= 0 or regret[0] <= 0:
        raise ValueError(f"checkpoints[0] is {times[0]} and regret[0] {regret[0]}; start where both are above 0")
    spread = max(float(np.std(regret)), 1e-12)

    def error(clock: np.ndarray) -> float:
        line = np.polynomial.Polynomial.fit(clock, regret, 1)
        return float(np.sqrt(np.mean((regret - line(clock)) ** 2))) / spread

    exponent = np.log(regret[-1] / regret[0]) / np.log(times[-1] / times[0])
    return Growth(error(np.log(times)), error(times), float(exponent))


def compare(
    key: jax.Array,
    bandit: Bandit,
    steps: int = 10_000,
    runs: int = 2_000,
    c: float = 2**0.5,
    checkpoints: ArrayLike | None = None,
    pairs: int | None = None,
) -> Case:
    """UCB and UA-UCB on one bandit with the same random words, both bounds and, with `pairs`, an estimated delta."""
    plain, adapted = (strategy(key, bandit, steps, runs, c, checkpoints) for strategy in (ucb, ua_ucb))
    estimated = None if pairs is None else ua_ucb(key, bandit, steps, runs, c, checkpoints, pairs)
    above_plain, above_adapted = (_bound_or_nan(bandit, plain.checkpoints, c, adapt) for adapt in (False, True))
    return Case(bandit, c, plain, adapted, above_plain, above_adapted, estimated)


def regret_over_time(
    key: jax.Array, steps: int = 10_000, runs: int = 2_000, c: float = 2**0.5, pairs: int | None = 20
) -> Case:
    """Both strategies over time on ten arms, nine of which are worse than they look (delta 0.3): UA-UCB wins."""
    bandit = bernoulli([0.8, *np.linspace(0.6, 0.4, 9)], [0.8, *np.linspace(0.3, 0.1, 9)])
    return compare(key, bandit, steps, runs, c, pairs=pairs)


def losing_case(
    key: jax.Array, steps: int = 10_000, runs: int = 2_000, c: float = 2**0.5, pairs: int | None = 20
) -> Case:
    """A case that UA-UCB loses: the corrupted arm is the best, looks only slightly better, and is explored less.

    delta = 0.4 lies below the threshold of 0.5 for the default c: both bounds hold.
    """
    return compare(key, bernoulli([0.6, 0.5, 0.5], [1.0, 0.5, 0.5]), steps, runs, c, pairs=pairs)


def regret_against_delta(
    key: jax.Array,
    deltas: Sequence[float],
    family: str = "shifted",
    steps: int = 100_000,
    runs: int = 500,
    c: float = 1.0,
) -> list[Case]:
    """Both strategies for each of `deltas`, on two arms.

    "shifted": both arms look better than they are by delta, (0.9, 0.8) against (0.9 - delta, 0.8 - delta). Their order
    and what is observed stay the same, so UCB's regret does too; UA-UCB is UCB with c (1 - delta), which is too
    little in the end.
    "misleading": the best arm, worth 0.9, looks worse by delta; the other is worth 0.9 - threshold(c) and looks it. At
    the threshold the observed order flips; beyond it, the wrong arm looks best to both.
    """
    if family not in FAMILIES:
        raise ValueError(f"family is {family!r}; there are {', '.join(map(repr, FAMILIES))}")
    greatest = 0.8 if family == "shifted" else 0.9
    if not all(0 <= delta <= greatest for delta in deltas):
        raise ValueError(f"deltas is {list(deltas)}; in the family {family!r} they must lie in [0, {greatest}]")
    other = 0.9 - threshold(c)
    if family == "misleading" and not 0 <= other < 0.9:
        raise ValueError(
            f"c is {c}; its threshold must lie in (0, 0.9] for the misleading family: take c from 0.71 to 7"
        )
    cases = []
    for delta in deltas:
        if family == "shifted":
            bandit = bernoulli([0.9, 0.8], [0.9 - delta, max(0.8 - delta, 0.0)])
        else:
            bandit = bernoulli([max(0.9 - delta, 0.0), other], [0.9, other])
        cases.append(compare(key, bandit, steps, runs, c))
    return cases


def worst_case(
    key: jax.Array,
    deltas: Sequence[float],
    gaps: Sequence[float] = (0.1, 0.3),
    arms: Sequence[int] = (2, 10),
    cs: Sequence[float] = (1.0, 2**0.5, 2.0),
    steps: int = 10_000,
    runs: int = 200,
) -> list[SweepRow]:
    """For every delta, gap, K and c the instance with the most regret, for each strategy.

    The real means are 0.5 + gap / 2 for one arm and 0.5 - gap / 2 for the others. One arm is corrupted by delta: the
    best or another one, looking better or worse, wherever the observed mean stays in [0, 1].
    """
    rows = []
    for count, gap, c, delta in itertools.product(arms, gaps, cs, deltas):
        cases = {name: compare(key, bandit, steps, runs, c) for name, bandit in _placements(count, gap, delta)}
        if not cases:
            raise ValueError(f"deltas contains {delta} and gaps {gap}; no observed mean stays in [0, 1], take less")
        for algorithm in ("ucb", "ua_ucb"):
            name = max(cases, key=lambda name: getattr(cases[name], algorithm).mean[-1])
            rows.append(_row(cases[name], algorithm, name, delta, gap))
    return rows


def _placements(count: int, gap: float, delta: float) -> list[tuple[str, Bandit]]:
    real = np.array([0.5 + gap / 2] + [0.5 - gap / 2] * (count - 1))
    found = []
    for (which, arm), (look, sign) in itertools.product((("best", 0), ("other", 1)), (("better", 1), ("worse", -1))):
        observed = real.copy()
        observed[arm] += sign * delta
        if 0 <= observed[arm] <= 1:
            found.append((f"{which} looks {look}", bernoulli(observed, real)))
    return found


def _row(case: Case, algorithm: str, corrupted: str, delta: float, gap: float) -> SweepRow:
    regret: Regret = getattr(case, algorithm)
    low, high = regret.interval()
    late = regret.checkpoints >= regret.checkpoints[-1] / 10
    return SweepRow(
        algorithm=algorithm,
        delta=float(delta),
        gap=float(gap),
        arms=case.bandit.arms,
        c=float(case.c),
        corrupted=corrupted,
        regret=float(regret.mean[-1]),
        low=float(low[-1]),
        high=float(high[-1]),
        exponent=growth(regret.checkpoints[late], regret.mean[late]).exponent,
        bound=float(getattr(case, f"{algorithm}_bound")[-1]),
    )


def _bound_or_nan(bandit: Bandit, checkpoints: np.ndarray, c: float, adapted: bool) -> np.ndarray:
    """The bound at the checkpoints; NaN where it does not hold."""
    values = np.full(len(checkpoints), np.nan)
    covered = checkpoints >= max(bandit.arms, 3)
    try:
        values[covered] = bound(bandit, checkpoints[covered], c, adapted)
    except ValueError:  # Theorem 1 says nothing about this bandit
        return values
    return values
