"""Which attributes of an environment change: in a step, or from reset to reset."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from uamcts.agent.identity import attributes

GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
SKIPPED = ("action_space", "observation_space", "spec", "metadata", "render_mode", "_np_random", "_np_random_seed")
"""Attributes that every environment may have, and that do not belong to its state."""


def fingerprints(env: object) -> dict[str, Any]:
    """Something to compare for every attribute that may belong to the state."""
    held = vars(env).items()
    return {k: fingerprint(v) for k, v in held if k not in SKIPPED and not isinstance(v, GENERATORS)}


def changed_by_resets(reset: Callable[[int], object]) -> tuple[frozenset[str], frozenset[str]]:
    """Which attributes a reset changes.

    Args:
        reset: Resets an environment and all generators that it draws from with a seed; returns the bare environment.

    Returns:
        What it draws, such as a goal or a map: it differs from seed to seed, and is the same again with the first one.
        And what else differs from reset to reset, such as a count of episodes.
    """
    first, *others, again = (fingerprints(reset(seed)) for seed in (0, 1, 2, 0))
    changed = {name for name, value in first.items() if any(other.get(name) != value for other in others)}
    drawn = frozenset(name for name in changed if again.get(name) == first[name])
    return drawn, frozenset(changed - drawn)


def fingerprint(value: object, above: tuple[int, ...] = ()) -> Any:
    """Plain data that differ where two values, or anything inside of them, differ."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.shape, value.tobytes()
    if id(value) in above or isinstance(value, (*GENERATORS, gymnasium.Env)) or len(above) > 6:
        return None
    above = (*above, id(value))
    if isinstance(value, dict):
        return [(repr(key), fingerprint(held, above)) for key, held in value.items()]
    if isinstance(value, (list, tuple)):
        return [fingerprint(held, above) for held in value]
    if not callable(value):
        with contextlib.suppress(TypeError):  # it does not show what it holds
            return [type(value).__name__, fingerprint(attributes(value), above)]
    return repr(value)
