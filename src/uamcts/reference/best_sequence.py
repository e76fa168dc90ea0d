"""The best sequence of actions that a search has found: rollouts repeat part of it, and the move begins it.

See `uamcts.mcts.best_sequence`, which does the same for the compiled engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from uamcts.mcts.following import FROM_ROOT_EVERY, RANDOM_EVERY

Action = TypeVar("Action")


class BestSequence:
    """The actions of the best rollout so far, from the root on."""

    def __init__(self, chance: float, carried: Sequence[Any] = ()):
        self.actions = [*carried]
        """Before the first iteration: the rest of the sequence of an earlier search, which is tried at once."""
        self._follow, self._value = chance, -math.inf
        self._iteration, self._rolled, self._return = 0, list[Any](), 0.0

    @property
    def move(self) -> Any:
        """Its first action; None before the first iteration."""
        return self.actions[0] if self._value > -math.inf else None

    @property
    def chance(self) -> float:
        """How likely a step follows it. The first iteration finds out what a carried sequence is worth."""
        return self._follow if self._iteration else 1.0

    @property
    def rolls_from_root(self) -> bool:
        """Whether the iteration does not select a leaf: its rollouts start from the root."""
        return self._iteration % FROM_ROOT_EVERY == 0

    def begin(self, iteration: int) -> None:
        """Begins an iteration."""
        self._iteration, self._rolled, self._return = iteration, [], 0.0

    def suggest(self, depth: int) -> Sequence[Any]:
        """What it does after `depth` steps, if the rollouts of this iteration follow it."""
        return [] if self._iteration % RANDOM_EVERY == RANDOM_EVERY - 1 else self.actions[depth:]

    def note(self, returns: Sequence[float], walks: Sequence[Sequence[Any]]) -> None:
        """Keeps the best rollout of the iteration, the first one of equals."""
        best = max(range(len(returns)), key=lambda number: returns[number])
        self._rolled, self._return = [*walks[best]], returns[best]

    def weigh(self, value: float, weight: float) -> None:
        """Mixes the answer of a value function into the return of that rollout."""
        self._return = weight * value + (1.0 - weight) * self._return

    def update(self, path: Sequence[Any], climb: Callable[[float], float]) -> None:
        """Becomes that of the iteration if it is worth more; `climb` says what a return is worth at the root."""
        value = climb(self._return)
        if value > self._value:
            self._value, self.actions = value, [*path, *self._rolled]


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
