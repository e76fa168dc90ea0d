"""Unwraps an environment: which wrappers matter for planning, and a private copy of those that do."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium
from gymnasium import wrappers

from uamcts.gym.probe import COPYING, Unfit, uncopied

if TYPE_CHECKING:
    from uamcts.types import Environment

PLAIN = (
    wrappers.TimeLimit,
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.Autoreset,
    wrappers.RecordEpisodeStatistics,
    wrappers.RecordVideo,
    wrappers.RenderCollection,
    wrappers.HumanRendering,
    wrappers.AddWhiteNoise,
    wrappers.ObstructView,
    wrappers.DelayObservation,
    wrappers.TimeAwareObservation,
    wrappers.FrameStackObservation,
    wrappers.NormalizeObservation,
)
"""Wrappers that do not affect states, rewards, actions or termination. Planning skips them."""

REFUSED: dict[Any, str] = {
    wrappers.NormalizeReward: (
        "scales rewards by what it has seen so far, so that planning would change them; plan without it: "
        "give the environment inside (its .env) and keep the wrapper for the one you act in"
    ),
}

STATEFUL = (wrappers.StickyAction,)
"""Action wrappers that are stateful or random: what they do does not depend on the action alone."""

SHARED = ("spec", "metadata", "_cached_spec")
"""Attributes that are never modified, so that copies of an environment share them."""


@dataclass(frozen=True)
class Layers:
    """An environment without the wrappers that do not matter for planning."""

    env: Environment
    """The wrappers that matter around the bare environment; a private copy, unless `taken_over`."""
    kept: tuple[Any, ...]
    """Wrappers with their own `step`, outermost first. Their attributes are part of the state."""
    rewards: tuple[Callable[[float], float], ...]
    """The functions of reward wrappers, in the order in which they are applied."""
    actions: tuple[Callable[[Any], Any], ...]
    observed: bool
    """Whether a wrapper changes the observations."""
    taken_over: bool


def is_function(wrapper: object) -> str | None:
    """'observation', 'reward' or 'action' if a wrapper changes nothing else."""
    kinds: tuple[tuple[Any, str], ...] = (
        (gymnasium.ObservationWrapper, "observation"),
        (gymnasium.RewardWrapper, "reward"),
        (gymnasium.ActionWrapper, "action"),
    )
    if isinstance(wrapper, STATEFUL):
        return None
    for kind, name in kinds:
        if isinstance(wrapper, kind) and type(wrapper).step is kind.step:
            return name
    return None


def copy_layers(env: Environment) -> Any:
    """A copy of an environment and of the wrappers around it."""
    if not isinstance(env, gymnasium.Wrapper):
        return private(env, may_take_over=False)[0]
    twin = duplicate(env, skip=("env",))
    twin.env = copy_layers(env.env)
    return twin


def peel(env: object, may_take_over: bool) -> Layers:
    """Unwraps an environment, or raises an error that names the wrapper that prevents it."""
    stack = []
    while isinstance(env, gymnasium.Wrapper):
        stack.append(env)
        env = env.env
    matter, observed = [], False
    for wrapper in stack:
        if type(wrapper) in REFUSED:
            raise Unfit("wrapper", f"the wrapper {type(wrapper).__name__} {REFUSED[type(wrapper)]}")
        plain = isinstance(wrapper, PLAIN)
        seen = is_function(wrapper) == "observation"
        observed |= seen or (plain and type(wrapper).__module__.endswith("stateful_observation"))
        if not plain and not seen:
            matter.append(wrapper)
    base, taken_over = private(env, may_take_over)
    for wrapper in reversed(matter):
        inner = base
        base = duplicate(wrapper, skip=("env",))
        base.env = inner
    return Layers(base, *_parts(base), observed, taken_over)


def _parts(env: object) -> tuple[tuple, tuple, tuple]:
    """Wrappers with their own `step`, reward functions (innermost first) and action functions (outermost first)."""
    stack: list[Any] = []
    while isinstance(env, gymnasium.Wrapper):
        stack.append(env)
        env = env.env
    kept = tuple(wrapper for wrapper in stack if is_function(wrapper) is None)
    rewards = tuple(wrapper.reward for wrapper in reversed(stack) if is_function(wrapper) == "reward")
    actions = tuple(wrapper.action for wrapper in stack if is_function(wrapper) == "action")
    return kept, rewards, actions


def private(env: object, may_take_over: bool) -> tuple[Any, bool]:
    """A copy of a bare environment, so that planning never steps the original; and whether it is the original."""
    try:
        if hasattr(env, "ale"):  # the emulator lies outside Python: made anew from the same arguments
            return copy.deepcopy(env), False
        return duplicate(env), False
    except Exception as problem:
        if may_take_over:
            return env, True
        why = f"{uncopied(env)}{type(problem).__name__}: {problem}"
        raise Unfit("copy", f"{type(env).__name__} cannot be copied ({why}); {COPYING}") from problem


def duplicate(thing: object, skip: tuple[str, ...] = ()) -> Any:
    """A deep copy of an object that includes changes made after its construction.

    Gymnasium copies some environments by calling the constructor again, which loses such changes.
    """
    twin: Any = object.__new__(type(thing))
    memo = {id(thing): twin}
    for name, value in vars(thing).items():
        if name not in skip:
            twin.__dict__[name] = value if name in SHARED else copy.deepcopy(value, memo)
    return twin
