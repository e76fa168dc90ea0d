"""How to read and restore the state of an environment that belongs to no known family."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium
import numpy as np

if TYPE_CHECKING:
    from uamcts.types import Environment, PyTree

STATE_HOOKS = ("uamcts_state", "uamcts_restore")
"""Methods that an environment may offer to return its state and to restore it."""
OBSERVERS = ("_get_obs", "_get_ob", "_observe")
"""Common names of the method that returns an observation."""


class Saved:
    """An opaque state: what restores the environment, and the observation that came with it."""

    __slots__ = ("data", "observation")

    def __init__(self, data: PyTree, observation: object):
        self.data = data
        self.observation = observation

    def __deepcopy__(self, memo: dict[int, Any]) -> Saved:
        return self  # nobody changes it

    def __repr__(self) -> str:
        return f"<saved state {self.data!r}>"


class StateAccess:
    """Reads and restores the state of environments of one kind.

    `save` copies. `take` may share data with the environment, because a `restore` follows before anything else.
    """

    how: str
    whole = False
    """Whether states are complete and can be compared with =="""

    def save(self, env: object, observation: object = None) -> Any:
        raise NotImplementedError

    def take(self, env: object, observation: object) -> Any:
        return self.save(env, observation)

    def restore(self, env: object, state: Any) -> None:
        raise NotImplementedError

    def is_state(self, thing: object) -> bool:
        return isinstance(thing, Saved)

    def from_observation(self, observation: object) -> Any:
        """The state that an observation determines; None if it does not determine one."""
        return None

    def numbers(self, env: object, state: Any) -> np.ndarray | None:
        """The state as a vector; None if it is not numeric."""
        return None

    def with_numbers(self, state: Any, vector: np.ndarray) -> Any:
        """A state with other floats in place of its own; None if it does not simply hold numbers."""
        floats = type(state) is tuple and all(type(part) is float for part in state)
        return tuple(vector.tolist()) if floats and len(state) == len(vector) else None

    @property
    def number_names(self) -> tuple[str, ...]:
        """What the numbers of a state are called; nothing where that is not known."""
        return ()

    def identity(self, env: object, state: Any) -> Any:
        """What distinguishes a state from others."""
        numbers = None if self.whole else self.numbers(env, state)
        return getattr(state, "data", state) if numbers is None else numbers


Get: TypeAlias = Callable[[Any], Any]
"""The user's function that reads the state of an environment."""
Put: TypeAlias = Callable[[Any, Any], None]
"""The user's function that puts a state into an environment."""


class Hooks(StateAccess):
    """The user's functions, or the environment's own methods."""

    def __init__(self, get: Get, put: Put, how: str):
        self.get, self.put, self.how = get, put, how
        self.kind: type | None = None

    def save(self, env: Environment, observation: object = None) -> Any:
        state = self.get(env.unwrapped)
        self.kind = type(state)
        return state

    def restore(self, env: Environment, state: Any) -> None:
        self.put(env.unwrapped, state)

    def is_state(self, thing: object) -> bool:
        return self.kind is None or isinstance(thing, self.kind)

    def numbers(self, env: object, state: object) -> np.ndarray | None:
        plain = isinstance(state, (tuple, list)) and all(isinstance(n, (bool, int, float, np.generic)) for n in state)
        if not plain and not isinstance(state, (int, float, np.ndarray, np.generic)):
            return None
        vector = np.ravel(np.asarray(state))
        return vector.astype(float) if vector.dtype.kind in "biuf" else None


class Attributes(StateAccess):
    """The attributes that the user lists."""

    def __init__(self, env: Environment, names: Sequence[str]):
        missing = [name for name in names if not hasattr(env.unwrapped, name)]
        if missing:
            raise ValueError(f"attributes names {missing[0]!r}, which {type(env.unwrapped).__name__} does not have")
        self.names = tuple(names)
        self.how = "its attributes " + ", ".join(f"`{name}`" for name in names)

    def save(self, env: Environment, observation: object = None) -> Saved:
        return Saved({name: copy.deepcopy(getattr(env.unwrapped, name)) for name in self.names}, observation)

    def take(self, env: Environment, observation: object) -> Saved:
        return Saved({name: getattr(env.unwrapped, name) for name in self.names}, observation)

    def restore(self, env: Environment, state: Saved) -> None:
        for name, value in state.data.items():
            setattr(env.unwrapped, name, copy.deepcopy(value))

    def numbers(self, env: Environment, state: Saved) -> np.ndarray | None:
        try:
            return np.concatenate([np.ravel(np.asarray(state.data[name], float)) for name in self.names])
        except (TypeError, ValueError):
            return None


class Layered(StateAccess):
    """Access to the bare environment, and the attributes of the wrappers around it."""

    def __init__(self, inner: StateAccess, kept: Sequence[Any]):
        self.inner, self.kinds = inner, [type(wrapper) for wrapper in kept]
        names = ", ".join(kind.__name__ for kind in self.kinds)
        self.how = f"{inner.how}, and what the wrappers remember ({names})"

    def _memories(self, env: object) -> list[dict]:
        found, kinds = [], list(self.kinds)
        while isinstance(env, gymnasium.Wrapper):
            if kinds and type(env) is kinds[0]:
                kinds.pop(0)
                found.append(vars(env))
            env = env.env
        if kinds:
            raise TypeError(f"the environment lacks the wrapper {kinds[0].__name__} that the simulator has")
        return found

    def save(self, env: object, observation: object = None) -> Saved:
        memories = self._memories(env)
        held = [copy.deepcopy({k: v for k, v in memory.items() if k != "env"}) for memory in memories]
        return Saved((self.inner.save(env, observation), held), observation)

    def restore(self, env: Environment, state: Saved) -> None:
        inner, held = state.data
        self.inner.restore(env, inner)
        for memory, old in zip(self._memories(env), held, strict=True):
            memory.update(copy.deepcopy(old))

    def numbers(self, env: Environment, state: Saved) -> np.ndarray | None:
        return self.inner.numbers(env, state.data[0])

    def identity(self, env: Environment, state: Saved) -> Any:
        return self.inner.identity(env, state.data[0]), state.data[1]


def current_observation(env: object) -> Any:
    """The current observation of a bare environment; None if it has no method that returns it."""
    observer = next((getattr(env, name) for name in OBSERVERS if hasattr(env, name)), None)
    return observer() if observer is not None else None
