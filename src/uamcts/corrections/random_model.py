"""`RandomModel`: a deterministic model that is corrected by facts, with chance where these came out in several ways."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from uamcts.corrections.mixture import Mixture, Outcome, outcome_at
from uamcts.corrections.python_facts import State

WHOLE = frozenset((int, bool, str))
"""Types whose equal values are the same to any model; those of floats are not: 0.0 equals -0.0."""
MOST_KEPT = 20_000
"""The most transitions that one search keeps: a few MB."""


class RandomModel:
    """A patched deterministic model as a random one: facts that came out in several ways are probabilities.

    It is made for one search, during which facts do not change, so what was looked up is kept. Where states are whole
    numbers or tuples of them, so are the predictions of the model.
    """

    def __init__(self, patched: Any):
        self.num_actions, self._step = patched.num_actions, patched.model.step
        self._effects, self._caution = patched.effects, patched.caution
        self._arrivals = patched.arrivals if patched.arrivals is not None and patched.arrivals.expects else None
        self._key, self._plans_at, self._glance = patched.key, patched.plans_at, patched.glance
        self._own_keys, self._firsts = self._glance.tells, self._glance.firsts
        self._last: tuple[Any, Hashable] = (None, None)
        """A state and its key: a rollout asks about a state as the end of a step, and then as the start of the next."""
        self._kept: dict[tuple[Any, int], Mixture | Outcome | None] = {}
        for name in ("legal_actions", "identity"):
            if hasattr(patched, name):
                setattr(self, name, getattr(patched, name))

    def outcomes(self, state: State, action: int) -> Sequence[tuple[float, Outcome]]:
        """All outcomes, the model's and those seen, with their probabilities."""
        planned = self._find(state, action)
        if planned is None:
            return self._expect(state, action)
        return planned.outcomes if isinstance(planned, Mixture) else [(1.0, planned)]

    def chance_stepper(self, chance: Callable[[], float]) -> Callable[[State, int], Outcome]:
        """A function that takes a step of a rollout, fast for states of whole numbers that were met before."""
        kept, outcome_at = self._kept, self.outcome_at

        def step(state: State, action: int) -> Outcome:
            kind = type(state)
            if kind is int or (kind is tuple and state and type(state[0]) is int):
                try:
                    planned = kept.get((state, action))
                except TypeError:  # a part of it cannot be hashed
                    planned = None
                if planned is not None:
                    place = chance()  # drawn for every step, so that equal draws follow
                    return planned.draw(place) if type(planned) is Mixture else planned  # type: ignore[return-value]
            return outcome_at(state, action, chance())

        return step

    def outcome_at(self, state: State, action: int, place: float) -> Outcome:
        """The outcome at `place` in [0, 1) of these probabilities: rollouts spend most of their time here."""
        planned = self._find(state, action)
        if planned is not None:
            return planned.draw(place) if type(planned) is Mixture else planned  # type: ignore[return-value]
        if self._effects is None:
            found = self._predict(state, action)
            if self._arrivals is None or not self._may_differ(found[0]):
                return found
            return outcome_at(self._arrivals.correct_all(state, [(1.0, found)]), place)
        if self._arrivals is None:
            return self._effects.outcome_at(state, action, place)  # type: ignore[no-any-return]
        return outcome_at(self._expect(state, action), place)

    def _may_differ(self, following: State) -> bool:
        """Whether anything is known about the state that a step is believed to lead to."""
        arrivals = self._arrivals
        if arrivals is None or arrivals.glance.excludes(following):
            return False
        return self._key_of(following) in arrivals.different

    def _key_of(self, state: State) -> Hashable:
        if self._last[0] is not state:
            self._last = state, self._key(state)
        return self._last[1]

    def _expect(self, state: State, action: int) -> Sequence[tuple[float, Outcome]]:
        """All outcomes of a step that was never seen."""
        effects = self._effects
        found = [(1.0, self._predict(state, action))] if effects is None else effects.outcomes(state, action)
        return found if self._arrivals is None else self._arrivals.correct_all(state, found)

    def _find(self, state: State, action: int) -> Mixture | Outcome | None:
        """What is planned with; None if the model is to be asked."""
        if self._own_keys and type(state) is tuple and state:
            first = state[0]
            if type(first) is float and first not in self._firsts and first == first:  # as `Glance.excludes`
                return None
        elif type(state) is not int and type(state) is not tuple:
            if self._glance.excludes(state):
                return None
            return self._plans_at(self._key_of(state), action)  # type: ignore[no-any-return]
        try:
            return self._kept[state, action]
        except (KeyError, TypeError):
            return self._look_up(state, action)

    def _predict(self, state: State, action: int) -> Outcome:
        """What the model predicts of a step that was never seen: it pays a little less."""
        following, reward, over = self._step(state, action)
        return following, reward - self._caution, over

    def _look_up(self, state: State, action: int) -> Mixture | Outcome | None:
        planned: Mixture | Outcome | None = self._plans_at(self._key_of(state), action)
        parts = kinds_of_parts(state)
        if planned is None and parts <= WHOLE and self._effects is None:
            planned = self._predict(state, action)
            planned = planned if self._arrivals is None else self._arrivals.correct_step(state, planned)
        elif planned is None and parts <= WHOLE and self._arrivals is not None:
            found = self._effects.outcomes(state, action)
            planned = Mixture(1.0, list(self._arrivals.correct_all(state, found)), [])
        if parts <= WHOLE | {float}:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[state, action] = planned
        return planned


def kinds_of_parts(state: State) -> set[type]:
    """The types of all parts of a tuple, and of tuples in it; of another state its own."""
    kinds = set(map(type, state)) if type(state) is tuple else {type(state)}
    if tuple in kinds:
        kinds = set().union(*map(kinds_of_parts, state))
    return kinds
