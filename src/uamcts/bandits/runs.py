"""The runs: all runs of a batch pull in lockstep.

UA-UCB_i(t) = x^_i + c sqrt(ln(t - 1) / N_i) (1 - delta_i)        after every arm was played once, in order

UCB is delta = 0. t counts pulls from 1. Equal scores go to the first arm. Arrays are [K, runs], runs contiguous; what
is carried from pull to pull are counts and sums of rewards, so memory does not grow with the number of pulls.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from uamcts.bandits.arguments import Arms, arms_of, enough_steps, exploration, notes_at, observed_arms, whole
from uamcts.bandits.arms import Bandit
from uamcts.randomness import GOLDEN, hash_word, seed_of, uniform


class State(NamedTuple):
    """Counts [K, runs] and sums of rewards [K, runs], in whole units: additions are exact, equal means are equal."""

    counts: jax.Array
    sums: jax.Array


@dataclass(frozen=True, eq=False)
class Regret:
    """Regret in real means after `checkpoints` [T] pulls, `regret` [T, runs]; and how often each arm was pulled."""

    checkpoints: np.ndarray
    regret: np.ndarray
    counts: np.ndarray
    """[runs, K], at the last checkpoint."""

    @property
    def mean(self) -> np.ndarray:
        """Over the runs, [T]."""
        return self.regret.mean(axis=1, dtype=np.float64)

    def interval(self, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Ends [T], [T] of the normal confidence interval of the mean."""
        if not 0 < confidence < 1 or self.regret.shape[1] < 2:
            raise ValueError(
                f"confidence is {confidence} and there are {self.regret.shape[1]} runs; an interval needs a confidence "
                "inside (0, 1) and at least 2 runs"
            )
        error = self.regret.std(axis=1, ddof=1, dtype=np.float64) / np.sqrt(self.regret.shape[1])
        reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
        return self.mean - reach, self.mean + reach


def score(mean: jax.Array, count: jax.Array, t: jax.Array, weight: jax.Array) -> jax.Array:
    """x^ + weight sqrt(ln(t - 1) / N), the score of an arm at pull t; weight = c (1 - delta)."""
    return mean + weight * jnp.sqrt(jnp.log(t - 1) / count)


def ucb(
    key: jax.Array, bandit: Bandit, steps: int, runs: int, c: float = 2**0.5, checkpoints: ArrayLike | None = None
) -> Regret:
    """UCB runs, which believe the observed rewards."""
    return play(key, bandit, steps, runs, c, 0.0, checkpoints)


def ua_ucb(
    key: jax.Array,
    bandit: Bandit,
    steps: int,
    runs: int,
    c: float = 2**0.5,
    checkpoints: ArrayLike | None = None,
    pairs: int | None = None,
) -> Regret:
    """UA-UCB runs, which explore an arm less the more its observed rewards are known to be wrong.

    With `pairs`, delta is unknown: before its first pull, each run estimates it from this many paired samples of every
    arm (see `estimate_delta`). These count neither as pulls nor as regret.
    """
    if pairs is None:
        return play(key, bandit, steps, runs, c, bandit.delta, checkpoints)
    delta = estimate_delta(jax.random.fold_in(key, 1), bandit, pairs, runs)
    return play(key, bandit, steps, runs, c, delta, checkpoints)


def play(
    key: jax.Array,
    bandit: Bandit,
    steps: int,
    runs: int,
    c: float = 2**0.5,
    delta: Any = 0.0,
    checkpoints: ArrayLike | None = None,
) -> Regret:
    """`runs` runs of `steps` pulls with any `delta`: a number, [K] or [runs, K]. Right or wrong, it damps exploration.

    `checkpoints` are the pulls after which regret is noted: ascending, from K to `steps`; by default about fifty,
    evenly spaced on a logarithmic scale. Run r draws the same words for its pulls in every call with the same key.
    """
    steps, runs = enough_steps(steps, bandit), whole("runs", runs)
    notes = notes_at(checkpoints, bandit.arms, steps)
    gaps, weight = jnp.asarray(bandit.gaps, jnp.float32), exploration(c, delta, bandit, runs)
    regret, counts = _regret(seed_of(key), observed_arms(bandit, steps), gaps, weight, jnp.asarray(notes), runs)
    return Regret(notes, np.asarray(regret), np.asarray(counts).T)


def arms_pulled(
    key: jax.Array, bandit: Bandit, steps: int, runs: int, c: float = 2**0.5, delta: ArrayLike = 0.0
) -> np.ndarray:
    """The arm of every pull of the same runs, [runs, steps], for inspection. Takes memory for every pull."""
    steps, runs = enough_steps(steps, bandit), whole("runs", runs)
    weight = exploration(c, delta, bandit, runs)
    later = np.asarray(_pulls(seed_of(key), observed_arms(bandit, steps), weight, runs, steps)).T
    return np.concatenate([np.tile(np.arange(bandit.arms, dtype=np.int32), (runs, 1)), later], axis=1)


def estimate_delta(key: jax.Array, bandit: Bandit, pairs: int, runs: int) -> np.ndarray:
    """Estimates delta from `pairs` paired samples of every arm, separately for each run, [runs, K].

    A pair is one observed and one real reward of the same arm, drawn independently. The estimate is what
    `delta_from_pairs` makes of them: its expectation is at least delta, and at delta = 0 it is of the order
    sqrt(variance / pairs).
    """
    pairs, runs = whole("pairs", pairs), whole("runs", runs)
    observed = observed_arms(bandit, pairs)
    real = arms_of(bandit.real, bandit.real_rewards, pairs)
    return np.asarray(_estimates(seed_of(key), observed, real, pairs, runs)).T


def delta_from_pairs(observed: ArrayLike, real: ArrayLike) -> np.ndarray:
    """|mean of the observed rewards - mean of the real ones| of each arm, [K]; both are [pairs, K]."""
    observed, real = np.asarray(observed, np.float64), np.asarray(real, np.float64)
    if observed.ndim != 2 or observed.shape != real.shape or not len(observed):
        raise ValueError(f"observed is {observed.shape} and real {real.shape}; both must be [pairs, arms], alike")
    for name, rewards in (("observed", observed), ("real", real)):
        if not np.all((rewards >= 0) & (rewards <= 1)):
            raise ValueError(f"{name} has rewards from {rewards.min()} to {rewards.max()}; they must lie in [0, 1]")
    return np.abs(np.mean(observed - real, axis=0))


# The compiled programs.


@partial(jax.jit, static_argnames="runs")
def _regret(
    seed: jax.Array, arms: Arms, gaps: jax.Array, weight: jax.Array, checkpoints: jax.Array, runs: int
) -> tuple[jax.Array, jax.Array]:
    """Regret [T, runs] at the checkpoints and the counts [K, runs] at the last."""
    start, state = _begin(seed, arms, runs)

    def pull(t: jax.Array, state: State) -> State:
        return _pull(seed, start, arms, weight, t, state)[0]

    def stretch(carry: tuple[jax.Array, State], checkpoint: jax.Array) -> tuple[tuple[jax.Array, State], jax.Array]:
        done, state = carry
        state = jax.lax.fori_loop(done + 1, checkpoint + 1, pull, state)
        return (checkpoint, state), jnp.sum(gaps[:, None] * state.counts, axis=0)

    (_, state), regret = jax.lax.scan(stretch, (jnp.int32(len(gaps)), state), checkpoints)
    return regret, state.counts


@partial(jax.jit, static_argnames=("runs", "steps"))
def _pulls(seed: jax.Array, arms: Arms, weight: jax.Array, runs: int, steps: int) -> jax.Array:
    """The arms of the pulls after the first K, [steps - K, runs]."""
    start, state = _begin(seed, arms, runs)

    def pull(state: State, t: jax.Array) -> tuple[State, jax.Array]:
        return _pull(seed, start, arms, weight, t, state)

    return jax.lax.scan(pull, state, jnp.arange(len(arms.means) + 1, steps + 1, dtype=jnp.int32))[1]


def _begin(seed: jax.Array, arms: Arms, runs: int) -> tuple[jax.Array, State]:
    """Each run's word [runs], and the state after every arm was played once."""
    start = hash_word(seed[1] + jnp.arange(runs, dtype=jnp.uint32) * GOLDEN)
    count = len(arms.means)
    sums = [_reward(arms, jnp.full(runs, arm), _word(seed, start, jnp.int32(arm + 1))) for arm in range(count)]
    return start, State(jnp.ones((count, runs), jnp.int32), jnp.stack(sums))


def _pull(
    seed: jax.Array, start: jax.Array, arms: Arms, weight: jax.Array, t: jax.Array, state: State
) -> tuple[State, jax.Array]:
    """Pull t of every run: the state after it, and the arms [runs]."""
    arm = _choose(state, arms.unit, weight, t)
    reward = _reward(arms, arm, _word(seed, start, t))
    pulled = jnp.arange(len(arms.means))[:, None] == arm
    return State(state.counts + pulled, state.sums + jnp.where(pulled, reward, 0)), arm


def _choose(state: State, unit: jax.Array, weight: jax.Array, t: jax.Array) -> jax.Array:
    """The first arm with the greatest score, [runs]. Written out over the arms: XLA's argmax is slow on a CPU."""
    best, arm = jnp.float32(-jnp.inf), jnp.int32(0)
    for place in range(len(state.counts)):
        count = state.counts[place].astype(jnp.float32)
        mean = state.sums[place].astype(jnp.float32) * unit / count
        found = score(mean, count, t.astype(jnp.float32), weight[place])
        arm, best = jnp.where(found > best, place, arm), jnp.maximum(found, best)
    return arm


def _word(seed: jax.Array, start: jax.Array, t: jax.Array) -> jax.Array:
    """The random words of pull t, [runs]: a function of seed, run and t alone."""
    return hash_word(hash_word(seed[0] + t.astype(jnp.uint32) * GOLDEN) ^ start)


def _reward(arms: Arms, arm: jax.Array, word: jax.Array) -> jax.Array:
    """The rewards of `arm` [runs] that `word` [runs] draws, in units."""
    if arms.units is None:
        return (uniform(word) < arms.means[arm]).astype(jnp.int32)
    kinds = arms.units.shape[1]
    place = jnp.minimum((uniform(word) * kinds).astype(jnp.int32), kinds - 1)
    return arms.units.ravel()[arm * kinds + place]


@partial(jax.jit, static_argnames="runs")
def _estimates(seed: jax.Array, observed: Arms, real: Arms, pairs: int, runs: int) -> jax.Array:
    """|sum of observed - sum of real| / pairs, [K, runs]."""
    start = hash_word(seed[1] + jnp.arange(runs, dtype=jnp.uint32) * GOLDEN)
    count = len(observed.means)
    zero = jnp.zeros((count, runs), jnp.int32)

    def pair(number: jax.Array, sums: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        added = []
        for side, arms in enumerate((observed, real)):
            index = (number * count + jnp.arange(count)) * 2 + side
            words = jax.vmap(_word, (None, None, 0))(seed, start, index)
            added.append(_reward(arms, jnp.broadcast_to(jnp.arange(count)[:, None], zero.shape), words))
        return sums[0] + added[0], sums[1] + added[1]

    seen, true = jax.lax.fori_loop(0, pairs, pair, (zero, zero))
    return jnp.minimum(jnp.abs(seen * observed.unit - true * real.unit) / pairs, 1.0)
