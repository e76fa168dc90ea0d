"""The worst return that an agent has seen."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Self

from uamcts.mcts.config import SearchConfig


class Returns:
    """The worst discounted return seen from any moment on, never more than 0.

    A moment counts once its episode has ended or `depth` steps have followed it. In the latter case the return is
    extrapolated to `span` steps, as far as a search looks ahead.
    """

    def __init__(self, gamma: float, depth: int, span: int):
        self.gamma, self.depth = gamma, depth
        self.onward = sum(gamma**step for step in range(span)) / sum(gamma**step for step in range(depth))
        self.least = 0.0
        self.recent: list[float] = []
        """Rewards of the present episode, the last ones."""
        self.place: Hashable = None
        """Where the present episode is; None if it is over."""

    @classmethod
    def of(cls, config: SearchConfig, span: int) -> Self:
        """Returns as a search counts them."""
        return cls(float(config.gamma), config.depth, span)

    def add(self, before: Hashable, after: Hashable, reward: float, terminal: bool) -> None:
        """Adds a step between two places; one that does not start where the last one ended begins an episode."""
        if before != self.place:
            self.recent = []
        self.recent = [*self.recent, reward][-self.depth :]
        self.place = None if terminal else after
        returned = 0.0
        for steps, paid in enumerate(reversed(self.recent), 1):
            returned = paid + self.gamma * returned
            if terminal:
                self.least = min(self.least, returned)
            elif steps == self.depth:
                self.least = min(self.least, returned * self.onward)
