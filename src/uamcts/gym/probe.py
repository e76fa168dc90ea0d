"""Trying an environment out: does it come back to a saved state, and does the same step give the same again?"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import gymnasium
import numpy as np

from uamcts.errors import SimulatorError

GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)


class Unfit(SimulatorError):
    """An environment that cannot be planned with as it is; `kind` says in one word why."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


class Step(NamedTuple):
    """One step that the environment itself took."""

    before: Any
    rng_state: list[Any]
    """Where the random generators stood before the step."""
    action: int
    observation: Any
    reward: float
    terminal: bool
    after: Any


class Trial(NamedTuple):
    """Steps of whole random episodes."""

    steps: list[Step]
    draws: bool
    """Whether any step drew random numbers."""
    changing: frozenset[str]
    """The attributes of the bare environment that were seen to change."""

    @property
    def terminals(self) -> int:
        return sum(step.terminal for step in self.steps)


def generators(env: Any) -> Iterator[Any]:
    """Every source of random numbers in sight: the environment's own attributes, Python's and NumPy's global ones."""
    for value in vars(env).values():
        if isinstance(value, GENERATORS):
            yield value
    yield random._inst
    yield np.random.mtrand._rand


def rng_state(env: Any) -> list:
    """Where the random generators stand."""
    found: list = []
    for source in generators(env):
        if isinstance(source, np.random.Generator):
            found.append(source.bit_generator.state)
        else:
            found.append(source.getstate() if isinstance(source, random.Random) else _legacy(source))
    return found


def _legacy(source: np.random.RandomState) -> tuple:
    """The state of NumPy's old generator, as something that compares with ==."""
    name, words, *rest = cast(tuple, source.get_state(legacy=True))
    return (name, words.tobytes(), *rest)


def set_rng_state(env: Any, states: list[Any]) -> None:
    for source, state in zip(generators(env), states, strict=True):
        if isinstance(source, np.random.Generator):
            source.bit_generator.state = state
        elif isinstance(source, random.Random):
            source.setstate(state)
        else:
            source.set_state((state[0], np.frombuffer(state[1], np.uint32), *state[2:]))


def reseed(env: Any, seed: int) -> None:
    """Puts the random generators anywhere else."""
    for source in generators(env):
        if isinstance(source, np.random.Generator):
            source.bit_generator.state = type(source.bit_generator)(seed).state
        else:
            source.seed(seed)


def play(
    env: Any, save: Callable[[], Any], actions: list, size: tuple[int, float], ends: bool, look: bool = False
) -> Trial:
    """Random episodes of `env` itself: `size` is the most steps and, after the first twenty, the most seconds.

    With `look` it notes which attributes change.
    """
    steps, seconds = size
    rng, base = random.Random(0), env.unwrapped  # noqa: S311
    taken: list[Step] = []
    draws, changing, start, over, episode = False, set(), time.perf_counter(), True, 0
    while len(taken) < steps and (len(taken) < 20 or time.perf_counter() - start < seconds):
        if over:
            env.reset(seed=episode)
            episode += 1
        before, generators_at, old = save(), rng_state(base), _fingerprints(base) if look else {}
        action = rng.randrange(len(actions))
        observation, reward, terminated, truncated, _ = env.step(actions[action])
        over = bool(terminated or truncated)
        if look:
            changing |= {name for name, value in _fingerprints(base).items() if old.get(name) != value}
        draws = draws or any(a != b for a, b in zip(generators_at, rng_state(base), strict=True))
        terminal = bool(terminated or (ends and truncated))
        taken.append(
            Step(before, generators_at, action, copy_observation(observation), float(reward), terminal, save())
        )
    return Trial(taken, draws, frozenset(changing))


def _fingerprints(env: Any) -> dict[str, Any]:
    """Something to compare for every attribute that may belong to the state."""
    return {name: fingerprint(value) for name, value in vars(env).items() if not isinstance(value, GENERATORS)}


def fingerprint(value: Any, above: tuple[int, ...] = ()) -> Any:
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
    if hasattr(value, "__dict__") and not callable(value):
        return [type(value).__name__, fingerprint(vars(value), above)]
    return repr(value)


def copy_observation(observation: Any) -> Any:
    return observation.copy() if isinstance(observation, np.ndarray) else observation


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same, bit for bit; NaN is NaN."""
    if hasattr(one, "shape") or hasattr(other, "shape"):
        a, b = np.asarray(one), np.asarray(other)
        if a.shape != b.shape:
            return False
        return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc" and b.dtype.kind in "fc")
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)
