"""Corrupted K-armed bandits: the observed and the real rewards of each arm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

BETA_REWARDS = 1024
"""How many equally likely rewards stand for a Beta distribution."""


@dataclass(frozen=True, eq=False)
class Bandit:
    """K arms. Arm i pays from the observed distribution (mean mu^_i); regret counts its real mean mu_i.

    `observed`, `real` and `delta` [K]: mu^, mu and delta_i = |mu^_i - mu_i|. If you give `delta`, it must agree with
    the means. `observed_rewards` and `real_rewards` [K, Q]: equally likely rewards, one of which is drawn; None:
    Bernoulli.
    """

    observed: Any
    real: Any
    delta: Any = None
    observed_rewards: Any = None
    real_rewards: Any = None

    def __post_init__(self) -> None:
        observed, real = (_means(name, getattr(self, name)) for name in ("observed", "real"))
        if observed.shape != real.shape:
            raise ValueError(f"real has {real.size} means and observed {observed.size}; give one of each for every arm")
        delta = np.abs(observed - real)
        if self.delta is not None:
            _matches(np.asarray(self.delta, np.float64), delta)
        for name, means in (("observed", observed), ("real", real)):
            _pays(f"{name}_rewards", getattr(self, f"{name}_rewards"), means)
        for name, value in (("observed", observed), ("real", real), ("delta", delta)):
            value.flags.writeable = False
            object.__setattr__(self, name, value)

    @property
    def arms(self) -> int:
        """K."""
        return self.observed.size

    @property
    def best(self) -> int:
        """i*, the arm with the highest real mean; the first of several."""
        return int(np.argmax(self.real))

    @property
    def best_observed(self) -> int:
        """i^*, the arm with the highest observed mean; the first of several."""
        return int(np.argmax(self.observed))

    @property
    def gaps(self) -> np.ndarray:
        """Delta_i = mu_{i*} - mu_i: what one pull of arm i costs, [K]."""
        return self.real.max() - self.real

    @property
    def observed_gaps(self) -> np.ndarray:
        """Delta^_i = mu^_{i^*} - mu^_i, as in the paper's proof, [K]."""
        return self.observed.max() - self.observed


def bernoulli(observed: ArrayLike, real: ArrayLike, delta: ArrayLike | None = None) -> Bandit:
    """Arms that pay 1 with probability `observed` [K], in reality with probability `real` [K], and otherwise 0."""
    return Bandit(observed, real, delta)


def beta(observed: ArrayLike, real: ArrayLike, concentration: float = 4.0, delta: ArrayLike | None = None) -> Bandit:
    """Arms that pay Beta(m v, (1 - m) v) with means m = `observed` and, in reality, `real`; v is the concentration.

    Each distribution is cut into 1,024 equally likely pieces and a draw is the mean of one of them. This keeps the
    mean and loses the variance within the pieces, about a millionth of the whole. A pull costs one lookup more than a
    Bernoulli pull.
    """
    if not 0 < concentration < np.inf:
        raise ValueError(f"concentration is {concentration!r}; it must be a finite number above 0")
    checked = Bandit(observed, real, delta)
    return Bandit(
        checked.observed,
        checked.real,
        checked.delta,
        _beta_rewards(checked.observed, concentration),
        _beta_rewards(checked.real, concentration),
    )


def from_rewards(observed: ArrayLike, real: ArrayLike, delta: ArrayLike | None = None) -> Bandit:
    """Arms with given rewards: `observed` [K, Q] and `real` [K, Q'] list rewards in [0, 1], all equally likely.

    They may be samples, quantiles or, with Q = 1, constant rewards. They determine the means.
    """
    tables = {}
    for name, value in (("observed", observed), ("real", real)):
        table = np.asarray(value, np.float64)
        if table.ndim != 2 or not table.size:
            raise ValueError(f"{name} has the shape {table.shape}; it must be [arms, rewards], a row for each arm")
        if not np.all((table >= 0) & (table <= 1)):
            worst = table.ravel()[np.argmax(np.nan_to_num(np.abs(table - 0.5), nan=np.inf))]
            raise ValueError(f"{name} contains the reward {worst}; rewards must lie in [0, 1], rescale them")
        tables[name] = table
    seen, true = tables["observed"], tables["real"]
    return Bandit(seen.mean(axis=1), true.mean(axis=1), delta, seen, true)


def _means(name: str, value: object) -> np.ndarray:
    means = np.array(value, np.float64)
    if means.ndim != 1:
        raise ValueError(f"{name} has the shape {means.shape}; it must be a list of one mean for each arm")
    if means.size < 2:
        raise ValueError(f"{name} has {means.size} mean(s); a bandit needs at least 2 arms")
    for arm, mean in enumerate(means.tolist()):
        if not 0 <= mean <= 1:
            raise ValueError(f"{name}[{arm}] is {mean}; means must lie in [0, 1], rescale the rewards")
    return means


def _matches(given: np.ndarray, delta: np.ndarray) -> None:
    if given.shape != delta.shape:
        raise ValueError(f"delta has the shape {given.shape}; it must be {delta.shape}, a number for each arm")
    for arm, (number, true) in enumerate(zip(given.tolist(), delta.tolist(), strict=True)):
        if not abs(number - true) <= 1e-6:
            raise ValueError(
                f"delta[{arm}] is {number}, but |observed - real| is {true:.6g} there; leave delta out and it is "
                "computed, or give a wrong one to play() to see what it does"
            )


def _pays(name: str, rewards: ArrayLike | None, means: np.ndarray) -> None:
    """Refuses rewards whose means differ from the given ones by more than about 1e-4, the error of a table."""
    if rewards is None:
        return
    shape = np.shape(rewards)
    if (
        len(shape) != 2
        or shape[0] != means.size
        or not np.allclose(np.mean(np.asarray(rewards), axis=1), means, atol=1e-4)
    ):
        raise ValueError(
            f"{name} ({shape}) must be [arms, rewards] with the means {means.tolist()}; use from_rewards()"
        )


def _beta_rewards(means: np.ndarray, concentration: float) -> np.ndarray:
    """The mean of each of BETA_REWARDS equally likely pieces of Beta(m v, (1 - m) v), [K, BETA_REWARDS].

    The integral of x over a piece of Beta(a, b) is its mean times the mass that Beta(a + 1, b) has there.
    """
    from scipy.special import betainc, betaincinv  # comes with JAX, and only these arms need it

    inside = np.clip(means, 1e-6, 1 - 1e-6)[:, None]
    a, b = inside * concentration, (1 - inside) * concentration
    edges = betaincinv(a, b, np.linspace(0, 1, BETA_REWARDS + 1)[None, :])
    pieces = inside * np.diff(betainc(a + 1, b, edges), axis=1) * BETA_REWARDS
    pieces = np.clip(
        pieces, edges[:, :-1], edges[:, 1:]
    )  # where edges round to 0 or 1 the masses between them are lost
    at_an_end = (means == 0) | (means == 1)
    return np.where(at_an_end[:, None], means[:, None], pieces)
