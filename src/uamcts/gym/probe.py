"""Tries an environment: can a saved state be restored, and does repeating a step give the same result?"""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import random
import time
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from uamcts.arguments import short_repr
from uamcts.errors import SimulatorError
from uamcts.gym.fingerprints import GENERATORS, changed_by_resets, fingerprints

if TYPE_CHECKING:
    from uamcts.types import Environment


class Unfit(SimulatorError):
    """An environment that you cannot plan with as it is; `kind` says why in one word."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


class Step(NamedTuple):
    """One step that the environment itself took."""

    before: Any
    rng_state: dict[str, Any]
    """The state of the random generators before the step."""
    action: int
    observation: object
    reward: float
    terminal: bool
    after: Any


class Trial(NamedTuple):
    """Steps of whole random episodes."""

    steps: list[Step]
    draws: frozenset[str]
    """The names of the generators that a step drew from."""
    changing: frozenset[str]
    """The attributes of the bare environment that a step changed, or that a reset draws."""
    counted: frozenset[str] = frozenset()
    """Those that a reset changes whatever its seed, such as a count of episodes."""

    @property
    def terminals(self) -> int:
        return sum(step.terminal for step in self.steps)


GLOBAL = ("random", "numpy.random")
"""The names of Python's and NumPy's global generators."""
DEEPEST, LARGEST = 4, 64
"""How deeply, and in containers of at most what size, an environment is searched for random generators."""
NO_STATE = ("action_space", "observation_space", "spec", "metadata")
"""Attributes that are not searched: steps do not draw from their generators."""


def generators(env: object, within: frozenset[str] | None = None) -> dict[str, Any]:
    """All random generators by name: those inside the environment, and the global ones of Python and NumPy.

    With `within`, only these attributes of the environment are searched: a transition table is large and holds none.
    """
    found: dict[str, Any] = {}
    for name, value in vars(env).items():
        if name not in NO_STATE and (within is None or name in within):
            _collect_generators(value, name, found, {id(env)}, 0)
    return {**found, "random": random._inst, "numpy.random": np.random.mtrand._rand}


def _collect_generators(value: object, name: str, found: dict[str, Any], above: set[int], depth: int) -> None:
    if isinstance(value, GENERATORS):
        found[name] = value
        return
    if id(value) in above or depth > DEEPEST or isinstance(value, (str, bytes, int, float, np.ndarray, type)):
        return
    inside: Any
    if isinstance(value, (dict, list, tuple)):
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        inside = list(inside) if len(value) <= LARGEST else []
    else:
        plain = hasattr(value, "__dict__") and not callable(value) and not isinstance(value, types.ModuleType)
        inside = list(vars(value).items()) if plain else []
    for part, held in inside:
        _collect_generators(held, f"{name}.{part}", found, above | {id(value)}, depth + 1)


def rng_state(env: object, within: frozenset[str] | None = None) -> dict[str, Any]:
    """The state of the random generators, searched for in all attributes or `within` some."""
    return {name: _where(source) for name, source in generators(env, within).items()}


def holders(states: dict[str, Any]) -> frozenset[str]:
    """The attributes in which generators were found."""
    return frozenset(name.partition(".")[0] for name in states)


def _where(source: Any) -> Any:
    if isinstance(source, np.random.Generator):
        return source.bit_generator.state
    return source.getstate() if isinstance(source, random.Random) else _legacy(source)


def _legacy(source: np.random.RandomState) -> tuple:
    """The state of NumPy's old generator, as something that compares with ==."""
    name, words, *rest = cast(tuple, source.get_state(legacy=True))
    return (name, words.tobytes(), *rest)


def set_rng_state(env: object, states: dict[str, Any]) -> None:
    """Restores the state of the generators in `states`."""
    for name, source in generators(env, holders(states)).items():
        if name in states:
            put_generator(source, states[name])


def put_generator(source: Any, state: Any) -> None:
    """Restores the state of one generator."""
    if isinstance(source, np.random.Generator):
        source.bit_generator.state = state
    elif isinstance(source, random.Random):
        source.setstate(state)
    else:
        source.set_state((state[0], np.frombuffer(state[1], np.uint32), *state[2:]))


def own_generators(env: object) -> tuple[str, ...] | None:
    """The attributes that are random generators; None if there are others, inside of attributes or of none."""
    found = [name for name in generators(env) if name not in GLOBAL]
    return tuple(found) if found and all(name in vars(env) for name in found) else None


def reseed(env: object, seed: int, global_too: bool = True, own: tuple[str, ...] | None = None) -> None:
    """Reseeds the random generators; `own`: they are known to be these attributes, and the global ones."""
    known: dict[str, Any] | None = None if own is None or global_too else {one: vars(env).get(one) for one in own}
    if known is None or not all(isinstance(source, GENERATORS) for source in known.values()):
        known = generators(env)
    for name, source in known.items():
        if name in GLOBAL and not global_too:
            continue
        if isinstance(source, np.random.Generator):
            source.bit_generator.state = type(source.bit_generator)(seed).state
        else:
            source.seed(seed)


def global_rng_state() -> tuple[Any, Any]:
    """The state of the global generators."""
    return random.getstate(), _legacy(np.random.mtrand._rand)


def set_global_rng_state(state: tuple[Any, Any]) -> None:
    """Restores the state of the global generators."""
    random.setstate(state[0])
    put_generator(np.random.mtrand._rand, state[1])


@contextlib.contextmanager
def preserve_global_rng() -> Iterator[None]:
    """Leaves the global generators as they were."""
    before = global_rng_state()
    try:
        yield
    finally:
        set_global_rng_state(before)


def play(
    env: Environment, save: Callable[[], Any], actions: list, size: tuple[int, float], ends: bool, look: bool = False
) -> Trial:
    """Random episodes of `env` itself: `size` is the most steps and, after the first twenty, the most seconds.

    With `look`, it records which attributes change.
    """
    steps, seconds = size
    rng, base = random.Random(0), env.unwrapped  # noqa: S311
    taken: list[Step] = []
    draws: set[str] = set()
    changing, start, over, episode = set(), time.perf_counter(), True, 0
    within: frozenset[str] | None = None
    while len(taken) < steps and (len(taken) < 20 or time.perf_counter() - start < seconds):
        if over:
            env.reset(seed=episode)
            episode, within = episode + 1, None
        before, generators_at, old = save(), rng_state(base, within), fingerprints(base) if look else {}
        action = rng.randrange(len(actions))
        observation, reward, terminated, truncated, _ = five(env.step(actions[action]), base)
        over = bool(terminated or truncated)
        if look:
            changing |= {name for name, value in fingerprints(base).items() if old.get(name) != value}
        after = rng_state(base, within)
        within = holders(after)  # a step or a reset may create generators: the first step of an episode shows where
        draws |= {name for name, state in after.items() if generators_at.get(name) != state}
        terminal = bool(terminated or (ends and truncated))
        taken.append(
            Step(before, generators_at, action, copy_observation(observation), float(reward), terminal, save())
        )
    drawn, counted = changed_by_resets(functools.partial(_reset_all, env)) if look else (frozenset(), frozenset())
    return Trial(taken, frozenset(draws), frozenset(changing | drawn), counted)


def _reset_all(env: Environment, seed: int) -> Any:
    reseed(env.unwrapped, seed)
    env.reset(seed=seed)
    return env.unwrapped


def five(answer: object, base: object) -> tuple[Any, ...]:
    """What a step returned, if it is what Gymnasium says."""
    if isinstance(answer, tuple) and len(answer) == 5:
        return answer
    raise Unfit(
        "interface",
        f"step of {type(base).__name__} returned {short_repr(answer)}; in Gymnasium it returns a tuple (observation, "
        "reward, terminated, truncated, info)",
    )


def first_reset(env: Environment) -> None:
    """Resets an environment for the first time, and refuses one with another interface than Gymnasium's."""
    name, remedy = type(env.unwrapped).__name__, "in Gymnasium, reset(*, seed=None, options=None) returns a tuple ("
    remedy += "observation, info) and begins with super().reset(seed=seed)"
    try:
        answer: Any = env.reset(seed=0)
    except Exception as problem:
        said = f"reset(seed=0) of {name} raised {type(problem).__name__}: {problem}"
        raise Unfit("interface", f"{said}; {remedy}" if isinstance(problem, TypeError) else said) from problem
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise Unfit("interface", f"reset of {name} returned {short_repr(answer)}; {remedy}")


COPYING = (
    "make it without a render_mode, keep what cannot be copied out of its attributes, or give get= and set=, functions "
    "that read its state and put it back"
)
"""What to do about an environment that cannot be copied."""


def uncopied(env: object) -> str:
    """Which attribute of an environment cannot be copied, for a message."""
    for name, value in vars(env).items():
        try:
            copy.deepcopy(value, {id(env): env})
        except Exception:
            return f"its attribute `{name}`: "
    return ""


def copy_observation(observation: object) -> Any:
    """An observation that does not change when the environment does; what cannot be copied is returned as it is."""
    with contextlib.suppress(Exception):
        return copy.deepcopy(observation)
    return observation


def same(one: object, other: object) -> bool:
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


def refuse_random_emulator(env: Environment) -> None:
    """Refuses ALE games with random settings: their randomness lies outside Python, where a trial may miss it."""
    if not hasattr(env, "ale"):
        return
    if env.ale.getFloat("repeat_action_probability") > 0:
        raise Unfit("stochastic", "ALE repeats actions at random; make the game with repeat_action_probability=0.0")
    if isinstance(env._frameskip, tuple):
        raise Unfit("stochastic", "ALE skips a random number of frames; make the game with frameskip=4")


def microseconds(seconds: float) -> str:
    """A short time in words."""
    return f"{seconds * 1e6:.2g} us" if seconds < 1e-4 else f"{seconds * 1e6:.0f} us"
