"""How much a real transition surprises a random simulator."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from uamcts.agent.chance import RealOutcome
from uamcts.corrections.mixture import model_kind
from uamcts.runtime.watch import PASSED_ON

DRAWS = 32
"""Draws that stand for the distribution of a simulator that can only `sample`."""
IMPOSSIBLE = 1e-3
"""The least probability of an outcome, because a simulator may be wrong about what is possible."""
NORMAL = 0.5 * math.log(2.0 * math.pi)
"""Added to densities, so that whole numbers are as surprising by their density as by how often they are drawn."""
NO_ANSWER = 1.0 - math.log(IMPOSSIBLE)
"""The surprise where a simulator has no answer."""
LARGEST_OF_REWARD = 9.0
"""The squared deviation of a reward, in units of its spread, that counts at most: rewards jump where states do not."""


def is_same(real: RealOutcome, key: Callable[[Any], Any]) -> Callable[[tuple[Any, float, bool]], bool]:
    """Tells whether an outcome is what happened, as far as that is known."""
    place = key(real.following)

    def same(outcome: tuple[Any, float, bool]) -> bool:
        return pays_and_ends(real, *outcome[1:]) and bool(key(outcome[0]) == place)

    return same


def pays_and_ends(real: RealOutcome, reward: float, over: bool) -> bool:
    """Whether a reward and an end are those that were seen, as far as that is known."""
    paid = real.reward is None or abs(real.reward - reward) <= 1e-6 * max(1.0, abs(reward))
    return bool(paid and (real.terminal is None or real.terminal == bool(over)))


def surprise(
    model: Any,
    state: Any,
    action: Any,
    real: RealOutcome,
    key: Callable[[Any], Any],
    features: Callable[[Any], np.ndarray],
) -> float:
    """-log of the probability of what happened in a random simulator; of the density, if draws are continuous."""
    try:
        if model_kind(model) == "outcomes":
            same = is_same(real, key)
            share = sum(chance for chance, outcome in model.outcomes(state, action) if same(outcome))
            return -math.log(max(float(share), IMPOSSIBLE))
        # The same draws everywhere would be off in the same direction everywhere; so many say little about a spread.
        rng = np.random.default_rng(zlib.crc32(features(state).tobytes()))
        drawn = [model.sample(state, action, rng) for _ in range(DRAWS)]
    except PASSED_ON:
        raise
    except BaseException:
        return NO_ANSWER
    keys, place = [key(after) for after, _, _ in drawn], key(real.following)
    if len(set(keys)) < DRAWS // 2:
        hits = sum(one == place and pays_and_ends(real, *rest) for one, (_, *rest) in zip(keys, drawn, strict=True))
        return -math.log(max(hits / DRAWS, 0.5 / DRAWS))
    points = np.array([[*features(after), reward] for after, reward, _ in drawn], float)
    paid = points[:, -1].mean() if real.reward is None else real.reward
    point = np.array([*features(real.following), paid], float)
    spread = points.std(axis=0)
    moved = spread > 1e-12
    if not np.allclose(point[~moved], points[0][~moved], rtol=1e-6, atol=1e-9):
        return -math.log(IMPOSSIBLE)
    squares = ((point - points.mean(axis=0)) / np.where(moved, spread, 1.0)) ** 2
    squares[-1] = min(squares[-1], LARGEST_OF_REWARD)
    nats = 0.5 * np.minimum(squares[moved], 50.0) + np.log(spread[moved]) + NORMAL
    return float(np.mean(nats)) if moved.any() else 0.0
