"""The actions that a planner chooses from."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from uamcts.arguments import integer, names, short_repr
from uamcts.gym import classic, toy_text
from uamcts.gym.probe import Unfit
from uamcts.gym.wrappers import Layers

if TYPE_CHECKING:
    from uamcts.types import Environment

MOST_ACTIONS = 4096


class ContinuousActions(list[Any]):
    """Some actions of a Box to try it with, by number; any other action of it stands for itself."""

    def __init__(self, space: spaces.Box):
        if np.isfinite(space.low).all() and np.isfinite(space.high).all() and int(np.prod(space.shape)) <= 3:
            tried = grid(space, 3)
        else:
            twin = copy.deepcopy(space)
            twin.seed(0)
            tried = [twin.sample() for _ in range(9)]
        super().__init__(tried)
        self.space = space

    def __getitem__(self, action: object) -> Any:
        if isinstance(action, (int, np.integer)):
            return super().__getitem__(int(action))
        given = np.asarray(action, self.space.dtype).reshape(self.space.shape)
        return np.clip(given, self.space.low, self.space.high)


def action_space(env: Environment) -> spaces.Space[Any]:
    """The action space of an environment."""
    space = getattr(env, "action_space", None)
    if not isinstance(space, spaces.Space):
        name = type(env.unwrapped).__name__
        raise Unfit(
            "actions", f"{name}.action_space is {short_repr(space)}; give it one, such as gymnasium.spaces.Discrete(4)"
        )
    return space


def env_actions(space: Any, actions: Sequence[Any] | None) -> list[Any]:
    """The actions to choose from."""
    if actions is not None:
        if isinstance(actions, (str, bytes, dict)) or not hasattr(actions, "__iter__"):
            raise Unfit("actions", f"actions is {short_repr(actions)}; give a list of actions of the space {space}")
        chosen = list(actions)
        bad = next((action for action in chosen if not space.contains(action)), None)
        if not chosen:
            raise Unfit("actions", "actions is empty; give at least one action")
        if bad is not None:
            raise Unfit("actions", f"actions has {short_repr(bad)}; every one must lie in the action space {space}")
        return chosen
    if isinstance(space, spaces.Discrete):
        if int(space.n) > MOST_ACTIONS:
            raise Unfit("actions", f"{space} has {space.n} actions; give those to choose from as actions=[...]")
        return [int(space.start) + number for number in range(int(space.n))]
    if isinstance(space, (spaces.MultiDiscrete, spaces.MultiBinary)):
        return _flattened_actions(space)
    if isinstance(space, spaces.Box):
        return ContinuousActions(space)
    raise Unfit(
        "actions",
        f"the action space is {space}, and the planner chooses from a list; give those to choose from as actions=[...]",
    )


def _flattened_actions(space: Any) -> list[Any]:
    if isinstance(space, spaces.MultiBinary):
        shape, ranges = space.shape, [range(2)] * int(np.prod(space.shape))
    else:
        starts, counts = np.ravel(space.start), np.ravel(space.nvec)
        shape, ranges = space.shape, [range(int(s), int(s + n)) for s, n in zip(starts, counts, strict=True)]
    many = int(np.prod([len(one) for one in ranges]))
    if many > MOST_ACTIONS:
        raise Unfit("actions", f"{space} has {many} actions; give those to choose from as actions=[...]")
    return [np.array(action, space.dtype).reshape(shape) for action in itertools.product(*ranges)]


def grid(space: spaces.Box, points: int | Sequence[int]) -> list[np.ndarray]:
    """A grid of actions for a continuous action space.

    Args:
        space: A bounded Box.
        points: The number of points along every dimension, or one number for each dimension.

    Returns:
        The actions, evenly spaced, with both bounds included.

    Raises:
        TypeError: `space` is not a Box.
        ValueError: The space is unbounded, or the grid would have more than 4096 actions.

    Example:
        ```python
        env = gymnasium.make("Pendulum-v1")
        simulator = uamcts.gym.Simulator(env, actions=uamcts.gym.grid(env.action_space, 5))
        ```
    """
    if not isinstance(space, spaces.Box):
        raise TypeError(f"space is {space!r}; a grid is laid over a gymnasium.spaces.Box")
    low, high = np.ravel(space.low).astype(float), np.ravel(space.high).astype(float)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ValueError(f"space is {space}; a grid needs finite bounds; list the actions yourself")
    one = integer(points)
    given = [one] * len(low) if one is not None else list(points) if isinstance(points, Sequence | np.ndarray) else []
    counts = [integer(point) or 0 for point in given]
    if len(counts) != len(low) or min(counts) < 1 or math.prod(counts) > MOST_ACTIONS:
        raise ValueError(
            f"points is {short_repr(points)}; give a whole number of at least 1 for each of {len(low)} dimensions, "
            f"{MOST_ACTIONS} actions in all at most"
        )
    lines = [
        np.linspace(a, b, count) if count > 1 else [(a + b) / 2] for a, b, count in zip(low, high, counts, strict=True)
    ]
    return [np.array(action, space.dtype).reshape(space.shape) for action in itertools.product(*lines)]


def name_actions(layers: Layers, actions: Sequence[Any] | None, given: Sequence[str] | None) -> tuple[str, ...]:
    """What the actions are called: by the user, by the environment, as it is known for, or like themselves."""
    if actions is None:
        if given is not None:
            raise ValueError(f"action_names is {short_repr(given)}, but actions are continuous; give actions=[...] too")
        return ()
    if given is not None:
        return names("action_names", given, len(actions))
    base: Any = layers.env.unwrapped
    known = getattr(base, "action_names", toy_text.ACTION_NAMES.get(type(base).__name__))
    for kind, usual in classic.ACTION_NAMES.items():
        known = usual if isinstance(base, kind) else known
    if hasattr(base, "get_action_meanings"):
        known = tuple(name.lower() for name in base.get_action_meanings())
    plain = isinstance(layers.env.action_space, spaces.Discrete) and not layers.actions
    if plain and known is not None and len(known) == len(actions):
        return tuple(known)
    numbers = [one if isinstance(one, int) else np.round(np.asarray(one, float), 3) for one in actions]
    return tuple(str(np.asarray(number).tolist()) for number in numbers)
