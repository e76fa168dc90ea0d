"""Terms that describe the outcomes of a random simulator, so that those of different states can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from uamcts.types import PyTree

MOST_TERMS, MOST_SLOTS, MOST_PARTNERS = 64, 12, 12
"""The most terms, the longest list whose places are terms, and the most numbers that others are compared with."""
SAME = 1e-9
"""Numbers that differ by less count as equal."""


class Listed(NamedTuple):
    """The outcomes that a simulator lists for one transition."""

    chances: np.ndarray
    """[outcomes]"""
    before: np.ndarray
    """The numbers of the state, [numbers]."""
    after: np.ndarray
    """Those of the next states, [outcomes, numbers]."""
    rewards: np.ndarray
    ends: np.ndarray
    action: int

    @classmethod
    def of(
        cls, features: Callable[[Any], np.ndarray], state: PyTree, action: int, outcomes: Sequence[tuple[float, Any]]
    ) -> Self:
        """What a simulator lists, as arrays."""
        chances = np.array([chance for chance, _ in outcomes], float)
        after = np.array([features(one[0]) for _, one in outcomes], float)
        rewards, ends = (np.array([one[part] for _, one in outcomes], float) for part in (1, 2))
        return cls(chances, features(state), after, rewards, ends, action)


class Term(NamedTuple):
    """One number that describes an outcome."""

    kind: str
    """"value": a number of the next state; "stays": whether it did not change; "apart", "equal": the distance of two
    numbers, and whether they are equal; "reward"; "end"; "slot": whether the outcome has place `second` in a list of
    length `first`, for one action or (-1) all."""
    first: int = -1
    second: int = -1
    action: int = -1

    def describe(self, names: Sequence[str], action_names: Sequence[str], more: bool) -> str:
        """Describes outcomes in which the term is larger (`more`) or smaller."""
        one, two = (names[number] if 0 <= number < len(names) else f"state[{number}]" for number in self[1:3])
        name = action_names[self.action] if 0 <= self.action < len(action_names) else f"action {self.action}"
        slot = f"outcomes in place {self.second} of {self.first}" if more else f"outcomes not in place {self.second}"
        return {
            "value": f"outcomes with a {'larger' if more else 'smaller'} {one}",
            "stays": f"outcomes in which {one} {'stays' if more else 'changes'}",
            "apart": f"outcomes in which {one} moves {'away from' if more else 'towards'} {two}",
            "equal": f"outcomes in which {one} {'equals' if more else 'differs from'} {two}",
            "reward": f"outcomes that pay {'more' if more else 'less'}",
            "end": f"outcomes that {'end' if more else 'do not end'} the episode",
            "slot": slot if self.action < 0 else f"{slot} after {name}",
        }[self.kind]


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms in use, and the units in which they are measured."""

    chosen: tuple[Term, ...]
    scales: np.ndarray
    """[terms]"""

    @classmethod
    def choose(cls, rows: Sequence[Listed], names: Sequence[str]) -> Self | None:
        """The terms in which listed outcomes differ; None if there are none."""
        possible = tuple(_possible(rows, names))
        if not possible:
            return None
        every = cls(possible, np.ones(len(possible)))
        squares, times = np.zeros(len(possible)), np.zeros(len(possible))
        for row in rows:
            phi = every.describe(row)[row.chances > 0.0]
            spread = phi.var(axis=0)
            squares, times = squares + spread, times + (spread > SAME)
        places = np.flatnonzero(times)[:MOST_TERMS]
        if not places.size:
            return None
        return cls(tuple(possible[place] for place in places), np.sqrt(squares[places] / times[places]))

    def describe(self, listed: Listed) -> np.ndarray:
        """All terms of listed outcomes, [outcomes, terms]."""
        after, count = listed.after, len(listed.chances)
        found = np.zeros((count, len(self.chosen)))
        for kind, (columns, one, two) in self._numbered.items():
            if kind == "value":
                found[:, columns] = after[:, one]
            elif kind == "stays":
                found[:, columns] = np.abs(after[:, one] - listed.before[one]) <= SAME
            else:
                apart = np.abs(after[:, one] - after[:, two])
                found[:, columns] = apart if kind == "apart" else apart <= SAME
        for column, slot in self._slots.get((count, -1), ()):
            found[slot, column] = 1.0
        for column, slot in self._slots.get((count, listed.action), ()):
            found[slot, column] = 1.0
        for kind, numbers in (("reward", listed.rewards), ("end", listed.ends)):
            if kind in self._single:
                found[:, self._single[kind]] = numbers
        return np.asarray(found / self.scales)

    @cached_property
    def _numbered(self) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For each kind of terms that are about numbers of a state: columns, first and second numbers."""
        found = {}
        for kind in ("value", "stays", "apart", "equal"):
            rows = [(column, term.first, term.second) for column, term in enumerate(self.chosen) if term.kind == kind]
            if rows:
                columns, one, two = np.array(rows).T
                found[kind] = columns, one, two
        return found

    @cached_property
    def _slots(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """Columns and places, by the length of the list and the action."""
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for column, term in enumerate(self.chosen):
            if term.kind == "slot":
                found.setdefault((term.first, term.action), []).append((column, term.second))
        return found

    @cached_property
    def _single(self) -> dict[str, int]:
        return {term.kind: column for column, term in enumerate(self.chosen) if term.kind in ("reward", "end")}


def _possible(rows: Sequence[Listed], names: Sequence[str]) -> Iterator[Term]:
    """Terms that may differ among the outcomes of some row, the simplest first."""
    size, shared = rows[0].before.size, Counter(names)
    numbers = [place for place in range(size) if len(names) != size or shared[names[place]] == 1]
    varied = np.any([np.ptp(row.after[row.chances > 0.0], axis=0) > SAME for row in rows], axis=0)
    moving = [place for place in numbers if varied[place]]
    yield from (Term("reward"), Term("end"))
    for place in moving:
        yield Term("value", place)
        yield Term("stays", place)
    lists = sorted({(len(row.chances), row.action) for row in rows})
    for count in sorted({count for count, _ in lists}):
        yield from (Term("slot", count, slot) for slot in range(count if count <= MOST_SLOTS else 0))
    partners = numbers if len(numbers) <= MOST_PARTNERS else moving[:MOST_PARTNERS]
    pairs = [(one, two) for one in moving for two in partners if one != two and not (two in moving and two < one)]
    for kind in ("apart", "equal"):
        yield from (Term(kind, one, two) for one, two in pairs)
    for count, action in lists:
        yield from (Term("slot", count, slot, action) for slot in range(count if count <= MOST_SLOTS else 0))
