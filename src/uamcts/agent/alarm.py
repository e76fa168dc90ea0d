"""Warns an agent's user, once, when nearly everything that its corrected model predicts is wrong."""

from __future__ import annotations

import warnings
from typing import NamedTuple, Self

LATEST, MOST = 40, 0.8
"""A warning is given if more than this share of the latest transitions, so many, was predicted badly."""
BAD = 0.1
"""A U above this is bad: states are off by about a third of their spread, or rewards by as much of theirs."""


class Alarm(NamedTuple):
    """What was predicted badly lately."""

    latest: tuple[bool, ...] = ()
    sounded: bool = False

    def add(self, error: float) -> Self:
        """Takes note of the error of the corrected model in another transition."""
        return self._replace(latest=(*self.latest, error > BAD)[-LATEST:])

    def sound(self, name: str) -> Self:
        """Warns if that is due and was not done yet."""
        bad = sum(self.latest)
        if self.sounded or len(self.latest) < LATEST or bad <= MOST * LATEST:
            return self
        warnings.warn(
            f"{bad} of the latest {LATEST} transitions were not what {name} predicts, and no correction explains them; "
            "plans made in it are hardly better than guesses: check that observe is given the state before and after "
            "the same step, and that actions have the same numbers in both, or correct the simulator (see "
            "agent.report())",
            UserWarning,
            stacklevel=5,
        )
        return self._replace(sounded=True)
