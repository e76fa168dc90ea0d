"""Validates the arguments of the runs and converts them for the compiled programs."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from uamcts import arguments
from uamcts.bandits.arms import Bandit

MOST = 2**24
"""The most steps, pairs or runs: up to here counts are exact in float32, and sums of rewards fit into 32 bits."""


class Arms(NamedTuple):
    """What the compiled program knows of a bandit: `means` [K] if Bernoulli, else `units` [K, Q], rewards in units."""

    means: jax.Array
    units: jax.Array | None
    unit: jax.Array


def observed_arms(bandit: Bandit, steps: int) -> Arms:
    return arms_of(bandit.observed, bandit.observed_rewards, steps)


def arms_of(means: np.ndarray, rewards: object, steps: int) -> Arms:
    """Rewards in units so small that `steps` of them still fit a 32-bit sum: 2^-16 for 10,000 steps."""
    if rewards is None:
        return Arms(jnp.asarray(means, jnp.float32), None, jnp.float32(1))
    bits = min(24, 30 - steps.bit_length())
    units = np.rint(np.asarray(rewards) * 2.0**bits).astype(np.int32)
    return Arms(jnp.asarray(means, jnp.float32), jnp.asarray(units), jnp.float32(2.0**-bits))


def exploration(c: float, delta: ArrayLike, bandit: Bandit, runs: int) -> jax.Array:
    """c (1 - delta), [K, 1] or [K, runs]."""
    if not 0 <= c < np.inf:
        raise ValueError(f"c is {c!r}; it must be a finite number of at least 0")
    numbers = np.asarray(delta, np.float64)
    if numbers.shape not in ((), (bandit.arms,), (runs, bandit.arms)):
        raise ValueError(
            f"delta has the shape {numbers.shape}; it must be one number, one for each of the {bandit.arms} arms, or "
            f"[runs, arms] = {(runs, bandit.arms)}"
        )
    if not np.all((numbers >= 0) & (numbers <= 1)):
        raise ValueError(f"delta goes from {numbers.min()} to {numbers.max()}; it must lie in [0, 1]")
    damped = c * (1 - np.broadcast_to(numbers, (*numbers.shape[:-1], bandit.arms)))
    return jnp.asarray(np.atleast_2d(damped).T, jnp.float32)


def whole(name: str, value: object) -> int:
    return arguments.whole(name, value, 1, MOST)


def enough_steps(steps: object, bandit: Bandit) -> int:
    steps = whole("steps", steps)
    if steps < bandit.arms:
        raise ValueError(
            f"steps is {steps} and there are {bandit.arms} arms; every arm is played once, give more steps"
        )
    return steps


def notes_at(checkpoints: object, arms: int, steps: int) -> np.ndarray:
    if checkpoints is None:
        return np.unique(np.rint(np.geomspace(arms, steps, 50)).astype(np.int32))
    notes = np.asarray(checkpoints)
    listed = notes.ndim == 1 and notes.size and np.issubdtype(notes.dtype, np.integer)
    if not listed or np.any(np.diff(notes) <= 0) or notes[0] < arms or notes[-1] > steps:
        raise ValueError(
            f"checkpoints is {checkpoints!r}; it must be ascending whole numbers from {arms} (the arms) to {steps} "
            "(the steps)"
        )
    return notes.astype(np.int32)
