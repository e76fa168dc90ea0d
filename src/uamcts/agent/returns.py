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
        self.total = sum(gamma**step for step in range(span))
        """What a reward of 1 in every step amounts to, as far as a search looks ahead."""
        self.onward = self.total / sum(gamma**step for step in range(depth))
        self.least = 0.0
        self.recent: list[float] = []
        """Rewards of the present episode, the last ones."""
        self.place: Hashable = None
        """Where the present episode is; None if it is over."""

    @classmethod
    def of(cls, config: SearchConfig) -> Self:
        """Returns as a search counts them: down the tree, then a rollout."""
        return cls(float(config.gamma), config.depth, config.depth + min(config.iterations, config.tree_depth))

    def worst(self, mean_reward: float) -> float:
        """The return expected beyond a doubtful transition, never more than 0: the mean or the worst return seen.

        It must lie below all that a search can find, else doubtful transitions look better than known bad ones.
        """
        return min(self.least, mean_reward * self.total)

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
