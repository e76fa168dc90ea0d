"""The uncertainty that the plain search is given: doubt, or an estimator of U with a prediction cache."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from uamcts.agent.backend import State
from uamcts.agent.state_vectors import numbers_of
from uamcts.corrections.doubt import Doubt

if TYPE_CHECKING:
    from uamcts.agent.fitted_uncertainty import FittedUncertainty

Fitted: TypeAlias = "FittedUncertainty | Doubt"
"""What was fitted to experience: an estimator of U, or doubt."""
LARGEST_TABLE = 200_000
"""States in the prediction cache of a plain search; it is cleared when it is full."""


class Encoded(Protocol):
    """A Python simulator as an estimator of U sees it."""

    num_actions: int

    @property
    def plain_inputs(self) -> bool:
        """Whether the inputs of a state are its numbers."""
        ...

    def key(self, state: State) -> Hashable: ...

    def inputs(self, state: State) -> np.ndarray: ...


class CachedUncertainty:
    """The uncertainty that the plain search is given, with a prediction cache: all actions of a state at once.

    Transitions that are `known` have U = 0.
    """

    def __init__(self, fitted: Fitted, simulator: Encoded, known: Callable[[State, int], bool] | None = None):
        self.fitted, self.simulator, self.known = fitted, simulator, known
        self._doubt = fitted.table() if isinstance(fitted, Doubt) else None
        self.table: dict[Hashable, list[float]] = {}

    def __call__(self, state: State, action: int) -> float:
        return self.many([state], [action])[0]

    def many(self, states: Sequence[Any], actions: Sequence[int]) -> list[float]:
        """U-hat of many transitions; new states are evaluated together."""
        if len(self.table) > LARGEST_TABLE:
            self.table.clear()
        places: Sequence[int] = range(len(states))
        if self._doubt is not None:  # all other actions are certain
            places = [place for place, action in enumerate(actions) if action in self._doubt.doubted]
        keys = [self._key(states[place]) for place in places]
        new = {key: states[place] for key, place in zip(keys, places, strict=True) if key not in self.table}
        if new:
            self._fill(new)
        answers, table, known = [0.0] * len(states), self.table, self.known
        for key, place in zip(keys, places, strict=True):
            answer = table[key][actions[place]]
            if answer and not (known is not None and known(states[place], actions[place])):
                answers[place] = answer
        return answers

    def _key(self, state: State) -> Hashable:
        """Whole numbers stand for themselves, beside the keys of other states."""
        return state if type(state) is int else (self.simulator.key(state),)

    def _fill(self, states: dict[Any, Any]) -> None:
        inputs = np.stack([np.asarray(self.simulator.inputs(state), np.float32) for state in states.values()])
        if self._doubt is not None:
            self.table.update(zip(states, self._doubt(inputs, self.simulator.num_actions), strict=True))
            return
        from uamcts.agent.fitted_uncertainty import every_action

        rows = 1 << (len(inputs) - 1).bit_length()  # one program per power of two
        padded = np.concatenate([inputs, np.repeat(inputs[-1:], rows - len(inputs), axis=0)])
        actions = np.arange(self.simulator.num_actions, dtype=np.int32)
        answers = np.asarray(every_action(self.fitted, padded, actions))[: len(inputs)].tolist()
        self.table.update(zip(states, answers, strict=True))


class DoubtOfNumbers:
    """The doubt that the plain search is given where the inputs of a state are its numbers: without a cache, or arrays.

    Transitions that are `known` have U = 0.
    """

    def __init__(self, doubt: Doubt, simulator: Encoded, known: Callable[[State, int], bool] | None = None):
        self.simulator, self.known, self.doubt = simulator, known, doubt.table()

    def __call__(self, state: State, action: int) -> float:
        if action not in self.doubt.doubted:
            return 0.0
        try:
            if type(state) is not tuple:
                raise TypeError
            level = self.doubt.level(state, action)
        except (TypeError, ValueError):  # not a tuple of numbers
            level = self.doubt.level(tuple(numbers_of(state)), action)
        return 0.0 if level and self.known is not None and self.known(state, action) else level


def plain_uncertainty(
    fitted: Fitted, simulator: Encoded, known: Callable[[State, int], bool] | None
) -> CachedUncertainty | DoubtOfNumbers:
    """What the plain search is given."""
    if isinstance(fitted, Doubt) and simulator.plain_inputs:
        return DoubtOfNumbers(fitted, simulator, known)
    return CachedUncertainty(fitted, simulator, known)
