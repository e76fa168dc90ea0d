"""`EffectiveModel`: planning where actions may act as others (`uamcts.corrections.effective_actions`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

import numpy as np

from uamcts.corrections.mixture import Outcome, merge
from uamcts.corrections.python_facts import State
from uamcts.corrections.slippery_places import rescale

MOST_NEAR = 50_000
"""How many states' probabilities are kept."""


class Steps(Protocol):
    """A deterministic model."""

    def step(self, state: State, action: int) -> Outcome:
        """What an action leads to."""
        ...


class EffectiveModel:
    """A deterministic model in which actions may act as others.

    Args:
        model: The model, with `step`.
        planned: How probably each action acts as each, [taken, effective].
        key: Makes a hashable key of a state.
        legal: The legal actions of a state; None if all are. No action acts as an illegal one.
        odds: How many times as often as elsewhere actions act as others in a state; None if the same everywhere.
        idle: What each action pays if nothing happens.
    """

    def __init__(
        self,
        model: Steps,
        planned: np.ndarray,
        key: Callable[[State], Hashable],
        legal: Callable[[State], Sequence[int]] | None = None,
        odds: Callable[[State], float] | None = None,
        idle: Sequence[float] = (),
    ):
        self._model, self._key, self._legal, self._odds = model.step, key, legal, odds
        self._nothing, self._idle = len(planned), idle
        self._near: dict[tuple[Hashable, int], list[tuple[float, int]]] = {}
        order = np.argsort(-planned, axis=1, kind="stable")
        self._chances = [
            [(float(row[other]), int(other)) for other in places if row[other] > 0.0]
            for row, places in zip(planned, order, strict=True)
        ]
        """The effective actions of each action with their probabilities, the most probable first."""

    def outcomes(self, state: State, action: int) -> list[tuple[float, Outcome]]:
        """All outcomes of an action."""
        found = self._effects(state, action)
        return merge([(1.0, [(chance, self._step(state, other, action)) for chance, other in found])], self._key)

    def outcome_at(self, state: State, action: int, place: float) -> Outcome:
        """The outcome at `place` in [0, 1) of these probabilities, which takes a single step."""
        for chance, other in (found := self._effects(state, action)):
            place -= chance
            if place < 0.0:
                return self._step(state, other, action)
        return self._step(state, found[0][1], action)

    def _step(self, state: State, other: int, action: int) -> Outcome:
        """What an action leads to if it acts as another one, or has no effect."""
        return (state, self._idle[action], False) if other == self._nothing else self._model(state, other)

    def _effects(self, state: State, action: int) -> list[tuple[float, int]]:
        found = self._chances[action] if self._odds is None else self._effects_near(state, action)
        if self._legal is None:
            return found
        legal = {*self._legal(state), self._nothing}
        allowed = [(chance, other) for chance, other in found if other in legal]
        total = sum(chance for chance, _ in allowed)
        return [(chance / total, other) for chance, other in allowed] if allowed else [(1.0, action)]

    def _effects_near(self, state: State, action: int) -> list[tuple[float, int]]:
        """The effective actions in a state, kept for the next time."""
        place = self._key(state), action
        found = self._near.get(place)
        if found is None and self._odds is not None:
            if len(self._near) >= MOST_NEAR:
                self._near.clear()
            found = self._near[place] = rescale(self._chances[action], action, self._odds(state))
        return self._chances[action] if found is None else found
