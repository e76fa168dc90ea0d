"""The best sequence of actions that a search has found, which its rollouts repeat in part.

See `uamcts.mcts.best_sequence`, which does the same for the compiled engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from uamcts.mcts.config import RANDOM_EVERY, SearchConfig

Action = TypeVar("Action")


class BestSequence:
    """What the best iteration of a search so far did, from the root on."""

    def __init__(self, chance: float):
        self.chance = chance
        """How likely a step follows it."""
        self.rolled: Sequence[object] = ()
        """The actions of the best rollout of the last simulation."""
        self._actions: list[object] = []
        self._value = -math.inf

    @classmethod
    def of(cls, config: SearchConfig, random: bool) -> BestSequence | None:
        """An empty one; None in a search whose rollouts do not follow one."""
        return None if random or not config.follow else cls(float(config.follow))

    def suggest(self, iteration: int, depth: int) -> Sequence[object]:
        """What it does after `depth` steps, if the rollouts of this iteration follow it."""
        self.rolled = ()
        return [] if iteration % RANDOM_EVERY == RANDOM_EVERY - 1 else self._actions[depth:]

    def note(self, returns: Sequence[float], walks: Sequence[Sequence[object]]) -> None:
        """Keeps the actions of the best rollout, the first one of equals."""
        self.rolled = walks[max(range(len(returns)), key=lambda number: returns[number])]

    def update(self, value: float, path: Sequence[object]) -> None:
        """Becomes the sequence of an iteration after which the best value that reached the root is `value`."""
        if value > self._value:
            self._value, self._actions = value, [*path, *self.rolled]


def follower(
    sequence: Sequence[Action], draw: Callable[[], float], chance: float, allows: Callable[[object, Action], bool]
) -> Callable[[int, object, Action], Action]:
    """A function of the number of a step, its state and the action that was drawn, which gives the action to take."""

    def follow(step: int, state: object, action: Action) -> Action:
        takes = draw() < chance  # drawn at every step, whether or not there is something to follow
        if not takes or step >= len(sequence) or not allows(state, sequence[step]):
            return action
        return sequence[step]

    return follow
