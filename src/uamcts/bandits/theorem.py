"""Theorem 1: an upper bound on the regret of UA-UCB.

R_n <= sum_i [4 beta_i ln(n - 1) / Delta^_i^2 + sum_{t=K+1..n} (4 (t - 1)^(-2 beta_i) + 4 (t - 1)^(-2 beta_{i^*}))]
             (Delta^_i + delta_i + mu_{i*} - mu^_{i^*})

with beta_i = c^2 (1 - delta_i)^2, i* the best real arm, i^* the best observed one and Delta^_i = mu^_{i^*} - mu^_i, as
in the paper's proof (its text has i* in the place of i^*; where the bound is valid they are the same arm).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from uamcts.bandits.arms import Bandit


def threshold(c: float = 2**0.5) -> float:
    """1 - sqrt(1 / (2 c^2)): the greatest delta for which beta >= 1/2 and the bound grows as the logarithm."""
    if not 0 < c < np.inf:
        raise ValueError(f"c is {c!r}; it must be a finite number above 0")
    return 1 - (1 / (2 * c**2)) ** 0.5


def exploration_weights(delta: ArrayLike, c: float = 2**0.5) -> np.ndarray:
    """beta_i = c^2 (1 - delta_i)^2; UCB's is c^2."""
    return c**2 * (1 - np.asarray(delta, np.float64)) ** 2


def linear_rate(bandit: Bandit) -> float:
    """The regret per pull in the long run, real mean of i* minus that of i^*: if it is not 0, regret is linear.

    Both strategies settle on the arm with the highest observed mean, whatever delta and c are.
    """
    return float(bandit.gaps[bandit.best_observed])


def bound(bandit: Bandit, steps: ArrayLike, c: float = 2**0.5, adapted: bool = True) -> Any:
    """Theorem 1's bound on the expected regret after `steps` pulls: a number, or an array for an array.

    `adapted` False is the same bound for UCB: beta_i = c^2. The arm i^* has no term: its regret per pull is 0 where the
    bound is valid, which is refused elsewhere: if i^* is not a best real arm, if a delta_i is above `threshold(c)`, and
    for n = 2, where ln(n - 1) = 0 and the printed bound is below the regret of playing both arms once.
    """
    numbers = np.asarray(steps)
    _refuse(bandit, numbers, c, adapted)
    weights = exploration_weights(bandit.delta if adapted else np.zeros(bandit.arms), c)
    last = int(numbers.max())
    best = bandit.best_observed
    tail = {weight: _tail(weight, bandit.arms, last) for weight in set(weights.tolist())}
    total = np.zeros(numbers.shape)
    for arm in np.flatnonzero(bandit.observed_gaps > 0):
        weight, gap = weights[arm], bandit.observed_gaps[arm]
        pulls = 4 * weight * np.log(numbers - 1) / gap**2
        pulls = pulls + (tail[weight] + tail[weights[best]])[numbers - bandit.arms]
        total = total + pulls * (gap + bandit.delta[arm] + bandit.real.max() - bandit.observed.max())
    return float(total) if total.ndim == 0 else total


def _tail(weight: float, arms: int, last: int) -> np.ndarray:
    """sum_{t=K+1..n} 4 (t - 1)^(-2 beta) for n = K .. last, [last - K + 1]."""
    terms = 4 * np.arange(arms, last, dtype=np.float64) ** (-2 * weight)
    return np.concatenate([[0.0], np.cumsum(terms)])


def _refuse(bandit: Bandit, numbers: np.ndarray, c: float, adapted: bool) -> None:
    limit = threshold(c)
    if not np.issubdtype(numbers.dtype, np.integer) or not numbers.size:
        raise ValueError(f"steps is {numbers.tolist()!r}; it must be a whole number, or an array of them")
    least = max(bandit.arms, 3)
    if numbers.min() < least:
        raise ValueError(
            f"steps is {numbers.min()}; with {bandit.arms} arms the bound holds from {least} pulls on, give more steps"
        )
    if limit < 0:
        raise ValueError(f"c is {c}; below sqrt(1/2) the bound is valid for no delta, not even 0: take a greater c")
    worst = int(np.argmax(bandit.delta))
    if adapted and bandit.delta[worst] > limit + 1e-12:
        raise ValueError(
            f"delta[{worst}] is {bandit.delta[worst]:.6g}, above 1 - sqrt(1/(2 c^2)) = {limit:.6g} for c = {c:.6g}: "
            "there Theorem 1 bounds nothing. Take a greater c or arms that are less corrupted"
        )
    for arm in np.flatnonzero(bandit.observed_gaps == 0):
        if bandit.gaps[arm] > 0:
            raise ValueError(
                f"arm {arm} is the best by its observed mean {bandit.observed[arm]:.6g} but not by its real one "
                f"({bandit.real[arm]:.6g}; arm {bandit.best} has {bandit.real[bandit.best]:.6g}): Theorem 1 would "
                "divide by its observed gap of 0, and regret grows linearly. See linear_rate()"
            )
