"""Environments that belong to no known family: their state is a deep copy of their attributes."""

from __future__ import annotations

import copy
import enum
import warnings
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from uamcts.agent.identity import fields, place
from uamcts.gym.fingerprints import GENERATORS, SKIPPED, fingerprint
from uamcts.gym.probe import COPYING, Step, Trial, Unfit, uncopied
from uamcts.gym.state_access import Saved, StateAccess, current_observation

if TYPE_CHECKING:
    from uamcts.types import Environment, PyTree

ATOMS = frozenset((bool, int, float, str, type(None)))
"""What need not be copied."""


class DeepCopy(StateAccess):
    """A deep copy of all attributes, for unknown environments."""

    def __init__(self) -> None:
        self.how = "a deep copy of its attributes"
        self.changing: frozenset[str] = frozenset()
        self.clocks: frozenset[str] = frozenset()
        """Those of the changing attributes that have no effect, such as counters of steps."""
        self.template: Saved | None = None
        self.shown: list[int] | None = None
        """Where the numbers of a state stand in an observation; None if it does not show all of them."""
        self.home: Any = None
        self._unread: tuple[Any, dict[str, Any]] | None = None
        """The environment that was read last, by a weak reference, and its attributes that were not read."""
        self._warned = False
        self._counted: frozenset[str] = frozenset()
        self.fixed = False
        """Whether the changing attributes form a vector of fixed length, which then represents the state."""

    def learn(self, home: object, trial: Trial, states: Sequence[Saved]) -> None:
        """Learns from a trial which attributes change."""
        self.home, self.changing, self._counted = home, trial.changing, trial.counted
        self._look_at(states)

    def _look_at(self, states: Sequence[Saved]) -> None:
        self.fixed = True
        vectors = [self.numbers(self.home, state) for state in states]
        self.fixed = len({None if vector is None else len(vector) for vector in vectors}) == 1

    def leave_out(self, clocks: frozenset[str], states: Sequence[Saved]) -> None:
        """Tells states apart without attributes that have no effect."""
        if clocks:
            names = ", ".join(f"`{name}`" for name in sorted(clocks))
            self.clocks = clocks
            self.how += f", without {names}, which {'has' if len(clocks) == 1 else 'have'} no effect"
            self._look_at(states)

    def learn_observations(self, steps: Sequence[Step]) -> None:
        """Learns from a trial whether observations show all numbers of a state, to the precision of 32 bits."""
        vectors = [self.numbers(self.home, step.after) for step in steps]
        shown = [observed_numbers(step.observation) for step in steps]
        if any(one is None for one in (*vectors, *shown)) or len({len(one) for one in shown if one is not None}) != 1:
            return
        states, seen = np.array(vectors, np.float32), np.array(shown, np.float32)
        places = [np.flatnonzero((seen == column[:, None]).all(0)) for column in states.T]
        if all(len(place) for place in places):
            self.template, self.shown = steps[0].before, [int(place[0]) for place in places]
            try:
                self.from_observation(steps[0].observation)
            except TypeError:  # the numbers lie in objects, which may refer to each other
                self.shown = None

    def from_observation(self, observation: object) -> Saved | None:
        seen = observed_numbers(observation) if self.shown is not None else None
        if seen is None or self.shown is None or self.template is None or max(self.shown) >= len(seen):
            return None
        data, numbers = copy.deepcopy(self.template.data), iter(seen[self.shown].tolist())
        for name in self._telling():
            data[name] = refill(data[name], numbers)
        return Saved(data, observation)

    def with_numbers(self, state: Saved, vector: np.ndarray) -> Saved | None:
        if not self.fixed:
            return None
        data, numbers = dict(state.data), iter(vector.tolist())
        try:
            for name in self._telling():
                data[name] = refill(data[name], numbers, whole_too=False)
        except (TypeError, StopIteration):  # numbers inside of objects
            return None
        return Saved(data, state.observation)

    @property
    def number_names(self) -> tuple[str, ...]:
        if not self.fixed or self.home is None:
            return ()
        held = {name: vars(self.home).get(name) for name in self._telling()}
        return tuple(one for name, value in held.items() for one in element_names(name, value))

    def _telling(self) -> list[str]:
        """The attributes that tell a state from others."""
        return sorted(self.changing - self.clocks)

    def _attributes(self, env: object) -> dict[str, Any]:
        return {k: v for k, v in vars(env).items() if k not in SKIPPED and not isinstance(v, GENERATORS)}

    def save(self, env: Environment, observation: object = None) -> Saved:
        base = env.unwrapped
        held = self._attributes(base)
        if self.home is not None and base is not self.home:
            held = self._translate(base, held)
        observation = current_observation(base) if observation is None else observation
        try:
            return Saved(copy.deepcopy(held, {id(base): self.home or base}), observation)
        except Exception as problem:
            why = f"{uncopied(base)}{type(problem).__name__}: {problem}"
            raise Unfit("copy", f"a state of {type(base).__name__} cannot be copied ({why}); {COPYING}") from problem

    def _translate(self, env: object, theirs: dict[str, Any]) -> dict[str, Any]:
        """Another environment's state with our parameters, which are the attributes that no trial step changed."""
        ours = self._attributes(self.home)
        if not self._warned:
            known = self.changing | self._counted
            self._watch(env, {name: theirs[name] for name in ours if name in theirs and name not in known})
        return ours | {name: theirs[name] for name in self.changing if name in theirs}

    def _watch(self, env: object, unread: dict[str, Any]) -> None:
        """Warns, once, if what is not read has changed since the environment was read last: it may be state.

        Attributes with other values than ours are none of that: the simulator may be wrong about them.
        """
        now = {name: fingerprint(value) for name, value in unread.items()}
        before = self._unread[1] if self._unread is not None and self._unread[0]() is env else now
        self._unread = weakref.ref(env), now
        changed = [name for name in now if now[name] != before.get(name) and _holds_data(unread[name])]
        if changed:
            self._warned = True
            warnings.warn(
                f"`{'`, `'.join(changed)}` changed in your environment, but in no trial step of the simulator, and so "
                "is not read; if it belongs to the state, pass Simulator(env, attributes=[...]) with all names of it",
                stacklevel=5,
            )

    def take(self, env: Environment, observation: object) -> Saved:
        return Saved(self._attributes(env.unwrapped), observation)

    def restore(self, env: Environment, state: Saved) -> None:
        base = env.unwrapped
        held = vars(base)
        for name in held.keys() - state.data.keys():
            if name not in SKIPPED and not isinstance(held[name], GENERATORS):
                del held[name]
        held.update(state.data)
        parts = {name: value for name, value in state.data.items() if type(value) not in ATOMS}
        if parts:
            held.update(copy.deepcopy(parts, {id(base): base}))

    def identity(self, env: Environment, state: Saved) -> Any:
        numbers = self.numbers(env, state)
        return {name: state.data.get(name) for name in self._telling()} if numbers is None else numbers

    def numbers(self, env: Environment, state: Saved) -> np.ndarray | None:
        """All numbers in the attributes that change, by attribute name."""
        if not self.fixed:
            return None
        found: list[float] = []
        for name in self._telling():
            if name not in state.data or not collect(state.data[name], found):
                return None
        return np.array(found) if found else None


def _holds_data(value: object) -> bool:
    """Whether a value is text or numbers; a window or a clock for drawing is not."""
    return isinstance(value, str) or collect(value, [])


def collect(value: object, found: list[float], above: tuple[int, ...] = ()) -> bool:
    """Appends all numbers in a value and in the objects inside of it; False if it holds anything else."""
    if isinstance(value, str):
        return False
    if isinstance(value, (bool, int, float, np.generic)):
        found.append(float(value))
        return True
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        found.extend(value.ravel().astype(float).tolist())
        return True
    if value is None or isinstance(value, SHARED) or id(value) in above:
        return True
    if isinstance(value, enum.Enum):
        found.append(place(value))
        return True
    above = (*above, id(value))
    return (parts := parts_of(value)) is not None and all(collect(part, found, above) for part in parts)


SHARED = (gymnasium.Env, gymnasium.Space, *GENERATORS)
"""What an object inside of a state may refer to without holding a part of the state."""


def parts_of(value: object) -> list[Any] | None:
    """What a container or an object of the user's own holds, in a fixed order; None for anything else."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, (list, tuple)):
        return list(value)
    try:
        return list(fields(value).values())
    except TypeError:
        return None


def element_names(name: str, value: object) -> list[str]:
    """What the numbers of an attribute are called."""
    found: list[float] = []
    collect(value, found)
    return [name] if len(found) == 1 else [f"{name}[{place}]" for place in range(len(found))]


def refill(value: PyTree, numbers: Iterator[float], whole_too: bool = True) -> Any:
    """A value like this one with other numbers, in the order in which `collect` finds them; a TypeError for objects.

    Without `whole_too`, whole numbers stay what they are.
    """
    if isinstance(value, np.ndarray):
        drawn = np.array([next(numbers) for _ in range(value.size)])
        whole = value.dtype.kind in "biu"
        if whole and not whole_too:
            return value
        return (np.rint(drawn) if whole else drawn).astype(value.dtype).reshape(value.shape)
    if isinstance(value, dict):
        return {key: refill(held, numbers, whole_too) for key, held in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [refill(part, numbers, whole_too) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if value is None:
        return None
    if isinstance(value, enum.Enum):
        member = round(next(numbers))
        return list(type(value))[member] if whole_too else value
    if not isinstance(value, (bool, int, float, np.generic)):
        raise TypeError(f"a {type(value).__name__} cannot be filled with numbers")
    number = next(numbers)
    whole = isinstance(value, (bool, int, np.bool_, np.integer))
    if whole and not whole_too:
        return value
    return type(value)(round(number) if whole else number)


def observed_numbers(observation: object) -> np.ndarray | None:
    """The numbers of an observation, which may be nested; None if it holds anything else, or if one is not finite."""
    found: list[float] = []
    plain = collect(observation, found) and found and np.isfinite(found).all()
    return np.array(found) if plain else None
