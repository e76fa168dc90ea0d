"""Facts about transitions of Python simulators: what was seen of one (state, action)."""

from __future__ import annotations

import collections
import enum
import functools
import random
import struct
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from uamcts.arguments import short_repr
from uamcts.types import PyTree

State: TypeAlias = PyTree
"""A state of the user's own simulator: any object."""
MOST_FACTS, MOST_UNMET = 100_000, 10_000
"""Facts that are kept at most, and as long as hardly any transition is met again; those not seen for the longest time
go first. A fact takes about 1 kB."""
PATIENCE = 1000
"""After how many transitions a fact that contradicts the model is tried again; twice as many every time it holds."""
CHANGE = 0.02
"""A transition has changed if its latest outcomes are less probable than this as chance."""
DRIFTING = 100.0
"""A random model that follows a drift is worth so many times as much: most facts were seen in another world."""
DETERMINISTIC = 0.2
"""The share that a deterministic model keeps where what was seen once contradicts it, raised to the power of how often
it was seen. So a way that is lost by a single slip is tried again if nothing else leads on, and else avoided."""
FLOATS = np.dtype(np.float64).str
"""The type in the key of an array of floats."""
KNOWN = (tuple, list, dict, set, frozenset, collections.deque, np.ndarray, np.generic, enum.Enum, random.Random,
         np.random.Generator, type, str, bytes, int, float, complex)  # fmt: skip
"""Objects of these classes are not told apart by their attributes."""
MOST_REWARDS = 6
"""Different rewards of one outcome that are counted."""
NOISY = 3.0
"""Contradictions that no change explains, after which a world has chance. An earlier outcome that returns counts like
so many."""


class Recurrence(NamedTuple):
    """How many different transitions are known, how often they were seen, and how many had several outcomes."""

    facts: int
    times: int
    varied: int


class OutcomeCount(NamedTuple):
    """One outcome of a transition of a Python simulator."""

    following: State
    terminal: bool
    times: int
    reward: float
    """Its mean reward."""
    varied: bool
    """Whether its reward varied."""
    rewards: tuple[tuple[float, int], ...] = ()
    """How often it paid each of a few rewards; nothing if they are too many."""

    def again(self, following: State, reward: float) -> OutcomeCount:
        """The same, seen once more."""
        times, varied, kinds = self.times + 1, self.varied or reward != self.reward, dict(self.rewards)
        if len(self.rewards) > 0 or not self.times:
            kinds[reward] = kinds.get(reward, 0) + 1
        each = tuple(kinds.items()) if len(kinds) <= MOST_REWARDS else ()
        return OutcomeCount(following, self.terminal, times, self.reward + (reward - self.reward) / times, varied, each)

    def each_reward(self) -> tuple[tuple[float | None, int], ...]:
        """Its rewards and how often each was paid; None for one that is not known."""
        return self.rewards or ((None if self.varied else self.reward, self.times),)


class Streak(NamedTuple):
    """The latest outcomes of a transition that were all the same."""

    kind: Hashable
    length: int
    chance: float
    """How often transitions came out differently by chance, when the streak began."""


@dataclass(frozen=True)
class Fact:
    """All that was seen of one (state, action)."""

    state: State
    outcomes: dict[Hashable, OutcomeCount]
    """The latest one is the last."""
    streak: Streak
    agrees: bool = True
    """Whether the latest outcome is what the model predicts."""
    last: int = 0
    """When it was seen last."""
    confirmed: int = 0
    """How often it was tried again because it was old, and held."""
    stale: bool = False
    """Whether it is to be tried again: until then the model is believed."""

    @property
    def varied(self) -> bool:
        return len(self.outcomes) > 1 or any(count.varied for count in self.outcomes.values())

    @property
    def due(self) -> int:
        """When it is to be tried again, if it contradicts the model."""
        return self.last + (PATIENCE << min(self.confirmed, 20))

    @property
    def has_changed(self) -> bool:
        """Whether the latest outcomes, two or more, are improbable as chance."""
        kind, length, chance = self.streak
        only_now = self.outcomes[kind].times == length >= 2
        return len(self.outcomes) > 1 and only_now and chance**length < CHANGE

    def most_frequent(self) -> tuple[State, float, bool]:
        """The most frequent outcome, the latest of equally frequent ones."""
        best = self.outcomes[self.most_frequent_kind]
        return best.following, best.reward, best.terminal

    def latest(self) -> tuple[State, float, bool]:
        """The latest outcome."""
        last = self.outcomes[next(reversed(self.outcomes))]
        return last.following, last.reward, last.terminal

    @property
    def most_frequent_kind(self) -> Any:
        """Its place among the outcomes: the key of the next state and whether that is the end."""
        return max(reversed(self.outcomes), key=lambda kind: self.outcomes[kind].times)


@functools.cache
def _first_field(kind: type) -> str | None:
    """The first field of a dataclass that tells its objects apart; None if there is none."""
    fields = getattr(kind, "__dataclass_fields__", {}).values()
    return next((field.name for field in fields if field.compare), None)


@functools.cache
def _shows_fields(kind: type) -> bool:
    """Whether objects of a class are told apart by their attributes, as `Identity` does with the user's own classes."""
    made = any("__call__" in vars(one) or "__array__" in vars(one) for one in kind.__mro__)
    own = kind.__hash__ not in (None, object.__hash__)  # type: ignore[comparison-overlap]
    return not (made or own or issubclass(kind, KNOWN)) and kind.__dictoffset__ != 0


class Glance:
    """Rules out facts about a state without making its key, by the first numbers of all states that have facts.

    It works for tuples, lists, arrays, dictionaries, dataclasses and objects of floats that are told apart by their
    numbers alone; of a dictionary or object, it looks at one field. Numbers of dropped facts may remain.
    """

    def __init__(self, tells: bool, field: Hashable = None) -> None:
        self.tells, self.field = tells, field
        self.firsts: set[Hashable] = set()

    def add(self, key: Hashable) -> None:
        """Adds the key of a state that has a fact."""
        if self.tells and type(key) is tuple and key:
            if isinstance(key[0], type) and len(key) == 2 and type(key[1]) is tuple and key[1]:  # of an object
                key = key[1]
            if key[0] == "dict" and len(key) == 2 and type(key[1]) is frozenset:
                self._add_fields(key[1])
            self.firsts.add(key[0])
            if len(key) == 4 and type(key[3]) is bytes and key[1] == FLOATS:  # of an array
                self.firsts.update(struct.unpack_from("d", key[3]) if key[3] else ())

    def _add_fields(self, pairs: frozenset[Any]) -> None:
        """Adds the field that is looked at: the first one by name of the first state that has a float there."""
        held = dict(pairs)
        if self.field is None:
            self.field = min((name for name, value in held.items() if type(value) is float), key=str, default=None)
        self.firsts.add(held.get(self.field))

    def excludes(self, state: State) -> bool:
        """Whether there is no fact about a state; False if a glance does not tell."""
        if not self.tells:
            return False
        kind: Any = type(state)
        if kind is tuple or kind is list:
            first = state[0] if state else None
        elif kind is dict:
            first = state.get(self.field)
        elif kind is np.ndarray:
            first = state.item(0) if state.dtype.kind == "f" and state.ndim and state.size else None
        elif (name := _first_field(kind)) is not None:
            first = getattr(state, name)
        elif self.field is not None and _shows_fields(kind):
            first = state.__dict__.get(self.field)
        else:
            return False
        return type(first) is float and first == first and first not in self.firsts  # NaN has another key

    def renew(self, keys: Iterable[Hashable], most: int) -> Glance:
        """A glance with these keys alone, if it holds more than `most` numbers; otherwise itself."""
        if len(self.firsts) <= most:
            return self
        found = Glance(self.tells, self.field)
        for key in keys:
            found.add(key)
        return found


class Change(NamedTuple):
    """A transition of the real world that is no longer what it was."""

    when: int
    """How many transitions had been seen."""
    state: State
    action: int


def describe_changes(changes: Sequence[Change], action_names: Sequence[str]) -> list[str]:
    """A sentence about each of the latest changes."""
    return [
        f"the world changed at about step {change.when}: {name_action(change.action, action_names)} in "
        f"{short_repr(change.state)} leads elsewhere now"
        for change in changes[-3:]
    ]


def name_action(action: int, names: Sequence[str]) -> str:
    """What an action is called in a sentence."""
    return repr(names[action]) if names and names[action] != str(action) else f"action {action}"
