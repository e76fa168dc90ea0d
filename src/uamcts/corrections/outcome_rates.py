"""How often the outcomes that a random simulator lists really happen: a correction that all states share.

Simulators list outcomes in an order that means something: where a step should go, a slip to the left, a slip to the
right. So the place in the list tells the kind of outcome. For lists of each length, every kind has a rate: how often it
has happened, relative to how often the simulator says it should. Probabilities are multiplied by these rates. Each
action has rates of its own, which stay close to those of all actions until it was seen often. Older transitions count
less and less, so that rates follow a world that drifts.

That rates hold in all states alike is a claim of its own. It is judged by how well rates predict a transition that were
counted on all others (`without`): one that is seen again and again would otherwise speak for itself, where facts know
as much.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from uamcts.arguments import whole
from uamcts.types import PyTree

MEMORY = 80.0
"""Transitions that rates remember, about."""
PRIOR, SHARED = 4.0, 20.0
"""Transitions that the simulator is worth, and for the rates of an action those of all actions."""
FORGOTTEN = 5
"""After so many times that memory, it is forgotten which transition something was counted on."""
LEAST = 0.01
"""What an outcome with a listed probability of 0 counts as."""
CHANGE = 0.1
"""By how many nats a rate must change before searches plan with another one."""


class Sums(NamedTuple):
    """What has happened and what should have, of each kind, at a time."""

    happened: tuple[float, ...]
    listed: tuple[float, ...]
    at: int

    def later(self, now: int) -> tuple[list[float], list[float]]:
        """Both at a later time."""
        keep = (1.0 - 1.0 / MEMORY) ** (now - self.at)
        return [keep * one for one in self.happened], [keep * one for one in self.listed]


@dataclass(frozen=True)
class OutcomeRates:
    """Discounted sums of what has happened and of what should have, for each kind of outcome."""

    sums: dict[str, Sums]
    """By the number of listed outcomes ("3"), and by this and the action ("3 0"). Replaced, never changed."""
    now: int = 0
    """How many transitions were added."""
    own: dict[str, Sums] = field(default_factory=dict)
    """What of this was counted on each transition, by the number of outcomes, the action and the place."""

    def add(self, chances: Sequence[float], matches: Sequence[bool], action: int, place: int = 0) -> Self:
        """The rates after a transition: what was listed, and which of the outcomes are what happened.

        The `place` is a number that tells the state from others.
        """
        count = len(chances)
        if count < 2 or not any(matches):
            return self
        tilted = self.tilt(chances, action)
        # what is listed with a probability of 0 may happen all the same
        found = [max(chance, 1e-9) if match else 0.0 for chance, match in zip(tilted, matches, strict=True)]
        total, now, sums, none = sum(found), self.now + 1, dict(self.sums), Sums((0.0,) * count, (0.0,) * count, 0)
        own = {key: one for key, one in self.own.items() if one.at > now - FORGOTTEN * MEMORY}
        for table, key in ((sums, f"{count}"), (sums, f"{count} {action}"), (own, f"{count} {action} {place}")):
            happened, listed = table.get(key, none).later(now)
            table[key] = Sums(
                tuple(old + new / total for old, new in zip(happened, found, strict=True)),
                tuple(old + new for old, new in zip(listed, chances, strict=True)), now,
            )  # fmt: skip
        return type(self)(sums, now, own)

    def without(self, count: int, action: int, place: int) -> Self:
        """The rates of so many outcomes that were counted on all other transitions."""
        counted, sums = self.own.get(f"{count} {action} {place}"), dict(self.sums)
        if counted is None:
            return self
        less = counted.later(self.now)
        for key in (f"{count}", f"{count} {action}"):
            rest = [
                tuple(max(all_ - one, 0.0) for all_, one in zip(*parts, strict=True))
                for parts in zip(sums[key].later(self.now), less, strict=True)
            ]
            sums[key] = Sums(rest[0], rest[1], self.now)
        return type(self)(sums, self.now)

    def rates(self, count: int, action: int) -> list[float]:
        """The rate of each of so many outcomes."""
        rates = [1.0] * count
        for key, prior in ((f"{count}", PRIOR), (f"{count} {action}", SHARED)):
            if key not in self.sums:
                break
            happened, listed = self.sums[key].later(self.now)
            total = sum(listed) or 1.0
            for place in range(count):
                share = prior * max(listed[place] / total, LEAST)
                rates[place] = (happened[place] + share * rates[place]) / (max(listed[place], LEAST * total) + share)
        return rates

    def tilt(self, chances: Sequence[float], action: int) -> list[float]:
        """The probabilities of listed outcomes, corrected."""
        count = len(chances)
        if count < 2 or f"{count}" not in self.sums:
            return list(chances)
        pairs = zip(chances, self.rates(count, action), strict=True)
        found = [max(chance, LEAST if rate > 1.0 else 0.0) * rate for chance, rate in pairs]
        total = sum(found)
        return [one / total for one in found]

    def differs(self, other: Self) -> bool:
        """Whether some rate is clearly another one."""
        for key in self.sums:
            count, _, action = key.partition(" ")
            ours, theirs = (one.rates(int(count), int(action or -1)) for one in (self, other))
            if any(abs(math.log(max(a, 1e-3) / max(b, 1e-3))) > CHANGE for a, b in zip(ours, theirs, strict=True)):
                return True
        return False

    def describe(self, names: Sequence[str] = (), action_names: Sequence[str] = ()) -> str:
        """The corrected probabilities of all actions, in words."""
        said = []
        for key, (_, listed, _) in self.sums.items():
            if " " not in key:
                believed = [one / sum(listed) for one in listed]
                really = ", ".join(f"{one:.2g}" for one in self.tilt(believed, -1))
                said.append(f"{really}, not {', '.join(f'{one:.2g}' for one in believed)}")
        return "; ".join(said)

    def arrays(self) -> dict[str, np.ndarray]:
        """All sums, to be saved."""
        return {"rates": np.frombuffer(json.dumps([self.sums, self.now, self.own]).encode(), np.uint8)}

    @classmethod
    def of(cls, arrays: dict[str, np.ndarray]) -> Self:
        """Restores what `arrays` returned; raises a ValueError if it does not fit."""
        if arrays.keys() != {"rates"} or arrays["rates"].dtype != np.uint8 or arrays["rates"].ndim != 1:
            raise ValueError("the rates of outcomes are missing or do not fit")
        (*found, own), tables = json.loads(arrays["rates"].tobytes().decode()), []
        for table in (found[0], own):
            sums: dict[str, Sums] = {}
            for key, (*pair, at) in table.items():
                count = int(key.partition(" ")[0])
                happened, listed = (tuple(float(one) for one in part) for part in pair)
                good = len(happened) == len(listed) == count and all(0 <= one < 1e9 for one in happened + listed)
                if not good or not 0 <= whole("at", at, 0) <= whole("now", found[1], 0):
                    raise ValueError(f"the rates of {key} outcomes do not fit")
                sums[key] = Sums(happened, listed, at)
            tables.append(sums)
        return cls(tables[0], found[1], tables[1])


ListsOutcomes: TypeAlias = Any
"""A simulator with `outcomes`, as a planner sees it."""


class RatedSimulator:
    """A random simulator with `outcomes` whose probabilities are corrected."""

    kind = "outcomes"

    def __init__(self, simulator: ListsOutcomes, rates: OutcomeRates):
        self.simulator, self.applied = simulator, rates
        self.num_actions, self.name = simulator.num_actions, simulator.name
        self.identity = self.key = simulator.key
        self._tilted: dict[Any, list[float]] = {}
        if hasattr(simulator, "legal_actions"):
            self.legal_actions = simulator.legal_actions

    def outcomes(self, state: PyTree, action: int) -> list[tuple[float, Any]]:
        """All outcomes of a step."""
        found: list[tuple[float, Any]] = self.simulator.outcomes(state, action)
        if not found:
            return found
        chances, after = zip(*found, strict=True)
        tilted = self._tilted.get((chances, action))
        if tilted is None:
            tilted = self._tilted[chances, action] = self.applied.tilt(chances, action)
            if len(self._tilted) > 1000:
                self._tilted = {}
        return [*zip(tilted, after, strict=True)]
