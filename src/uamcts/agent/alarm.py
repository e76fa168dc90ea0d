"""What an agent warns of, once: its corrected model predicts nearly everything wrongly, or moves take seconds."""

from __future__ import annotations

import warnings
from typing import NamedTuple, Self

from uamcts.errors import SlowSimulator

LATEST, MOST = 40, 0.8
"""A warning is given if more than this share of the latest transitions, so many, was predicted badly."""
BAD = 0.1
"""A U above this is bad: states are off by about a third of their spread, or rewards by as much of theirs."""

SLOW_MOVE = 2.0
"""A move that takes more seconds is slow."""


class SlowMoves:
    """Warns of the second slow move in a row: a single one, and the first of all, may have been compiled.

    Args:
        usual: Whether the search has the default length; who has chosen one knows what it costs.
    """

    def __init__(self, usual: bool):
        self.watches, self.before = usual, 0.0

    def add(self, seconds: float, name: str, iterations: int) -> None:
        """Takes note of how long a move took."""
        if self.watches and min(seconds, self.before) > SLOW_MOVE:
            self.watches = False
            warnings.warn(
                f"{name}: a move took {seconds:.1f} s; pass fewer iterations= (now {iterations}) or budget_seconds=, "
                "or make the simulator's step faster",
                SlowSimulator,
                stacklevel=4,
            )
        self.before = seconds


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
