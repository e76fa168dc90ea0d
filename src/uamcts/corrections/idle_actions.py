"""Actions that have no effect, which no other action explains: a dead button, a jump that fails."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from uamcts.arguments import real

FIRST, BELIEVED, OWN = 0.1, 2.0, 2.0
"""Prior counts: transitions without effect; transitions with one, for all actions together; and how many transitions
the rate of all actions is worth to a single one."""


class IdleActions(NamedTuple):
    """How often nothing happened after each action, discounted, and what that paid. Replaced, never changed."""

    times: tuple[float, ...] = ()
    """For each action; empty as long as all actions had an effect."""
    paid: tuple[float, ...] = ()
    """For each action, the sum of the rewards of these transitions."""

    def add(self, action: int, count: int, idle: bool, reward: float, keep: float) -> Self:
        """The counts after a transition of one of `count` actions; those before are multiplied by `keep`."""
        if not self.times and not idle:
            return self
        times, paid = (list(one) if one else [0.0] * count for one in self)
        times, paid = [keep * one for one in times], [keep * one for one in paid]
        times[action] += idle
        paid[action] += idle * reward
        return type(self)(tuple(times), tuple(paid))

    def shares(self, others: np.ndarray) -> np.ndarray:
        """The share of each action's transitions without effect; `others` are the counts of those with one."""
        times = np.array(self.times) if self.times else np.zeros(len(others))
        usual = (times.sum() + FIRST) / (times.sum() + others.sum() + BELIEVED + FIRST)
        return np.asarray((times + OWN * usual) / (times + others + OWN))

    def rewards(self) -> list[float]:
        """What each action pays if nothing happens; where that was never seen, what others pay then."""
        usual = sum(self.paid) / max(sum(self.times), 1e-9)
        return [
            (paid + FIRST * usual) / (times + FIRST) for times, paid in zip(self.times, self.paid, strict=True)
        ]  # fmt: skip

    @classmethod
    def from_json(cls, found: object, count: int) -> Self:
        """What was saved, as lists; raises a ValueError if it does not fit."""
        if not isinstance(found, list) or len(found) != 2 or any(not isinstance(one, list) for one in found):
            raise ValueError("the effective actions lack those after which nothing happens")
        lists: list[Any] = [tuple(real("effective actions", one) for one in part) for part in found]
        if {len(one) for one in lists} not in ({0}, {count}) or any(one < 0 for one in lists[0]):
            raise ValueError("the effective actions after which nothing happens do not fit")
        return cls(*lists)
