"""Where actions act as others: ice in a part of a map, where elsewhere nothing slips.

`effective_actions` counts how often each action acts as another one, everywhere alike. Here the same is counted near a
state: transitions count the less the farther away they began. This is planned with once it has predicted better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from uamcts.arguments import real

MOST = 200
"""Transitions that are remembered."""
NEAR = 1.0
"""How many steps away a transition counts 60 %; two such steps away, 14 %."""
ALIKE = 1.0
"""Transitions that the share of slips in the whole world is worth."""
MARGIN = 3.0
"""Nats by which this must have predicted better than the same counts everywhere."""
MOST_SLIPS = 0.95
"""However slippery a place is, an action keeps the rest of its own effect."""


class SlipperyPlaces(NamedTuple):
    """Where the latest transitions began, and which of them slipped. Replaced, never changed."""

    points: tuple[tuple[float, ...], ...] = ()
    """Features of states."""
    slipped: tuple[float, ...] = ()
    """How probably the action has acted as another one."""
    ahead: float = 0.0
    """By how many nats this has predicted better than the same counts everywhere."""
    used: bool = False

    def add(self, point: np.ndarray, slipped: float, nats: float, keep: float) -> Self:
        """The same after a transition, of which this has predicted so many nats more; `keep` of the others count."""
        ahead = keep * self.ahead + nats
        used = ahead > (0.0 if self.used else MARGIN)
        points, rest = (*self.points, tuple(point.tolist())), (*self.slipped, slipped)
        return self._replace(points=points[-MOST:], slipped=rest[-MOST:], ahead=ahead, used=used)

    def table(self) -> Neighbours | None:
        """What is known of slips near a state; None while nothing has slipped."""
        if not any(self.slipped):
            return None
        points, slipped = np.array(self.points), np.array(self.slipped)
        apart = np.abs(np.diff(points, axis=0))
        units = np.array([np.median(column[column > 0]) if column.any() else 1.0 for column in apart.T])
        return Neighbours(points / units, units, slipped)

    def as_json(self) -> list[Any]:
        """All of it, to be saved."""
        return [[list(point) for point in self.points], list(self.slipped), self.ahead, self.used]

    @classmethod
    def from_json(cls, found: object) -> Self:
        """What `as_json` returned; raises a ValueError if it does not fit."""
        if not isinstance(found, list) or len(found) != 4:
            raise ValueError("the slippery places are missing or do not fit")
        points, slipped, ahead, used = found
        known = tuple(tuple(real("a feature", one) for one in point) for point in points)
        shares = tuple(
            real("slipped", one, "it must be between 0 and 1", lambda share: 0 <= share <= 1) for one in slipped
        )
        if len(known) != len(shares) or len({len(point) for point in known}) > 1 or not isinstance(used, bool):
            raise ValueError("the slippery places do not fit")
        return cls(known[-MOST:], shares[-MOST:], real("ahead", ahead), used)


class Neighbours(NamedTuple):
    """Slips near a state, in units of a step."""

    points: np.ndarray
    units: np.ndarray
    slipped: np.ndarray

    def odds(self, point: np.ndarray) -> float:
        """How many times as often as on average an action slips in a state."""
        if point.size != self.units.size:
            return 1.0
        weights = np.exp(-0.5 * np.sum((self.points - point / self.units) ** 2, axis=1) / NEAR**2)
        average = float(self.slipped.mean())
        return float((weights @ self.slipped + ALIKE * average) / (weights.sum() + ALIKE)) / average


def rescale(row: Sequence[tuple[float, int]], action: int, odds: float) -> list[tuple[float, int]]:
    """Effective actions with their probabilities where others than the one taken are so many times as probable."""
    others = sum(chance for chance, other in row if other != action)
    if not 0.0 < others < 1.0:
        return list(row)
    more = min(odds * others, max(MOST_SLIPS, others)) / others
    found = [(chance * more if other != action else 1.0 - more * others, other) for chance, other in row]
    return sorted(found, key=lambda one: -one[0])
