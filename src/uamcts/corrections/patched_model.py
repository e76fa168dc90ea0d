"""`PatchedModel`: facts for models of `uamcts.reference`, as dictionaries."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from uamcts.arguments import action_number, flag, real
from uamcts.corrections.facts import Recurrence
from uamcts.corrections.mixture import PRIOR_WEIGHT, Mixture, mix, model_kind, predicted_outcomes
from uamcts.reference import PythonModel
from uamcts.types import PyTree

State: TypeAlias = PyTree
"""A state of the user's own simulator: any object."""
PythonUncertainty: TypeAlias = Callable[[State, int], float]


class OutcomeCount(NamedTuple):
    """One outcome of a transition of a Python simulator."""

    following: State
    terminal: bool
    times: int
    reward: float
    """Its mean reward."""
    varied: bool
    """Whether its reward varied."""


@dataclass(frozen=True)
class Fact:
    """All that was seen of one (state, action)."""

    state: State
    outcomes: dict[Hashable, OutcomeCount]
    """The latest one is the last."""

    @property
    def varied(self) -> bool:
        return len(self.outcomes) > 1 or any(count.varied for count in self.outcomes.values())

    def most_frequent(self) -> tuple[State, float, bool]:
        """The most frequent outcome, the latest of equally frequent ones."""
        best = max(reversed(self.outcomes.values()), key=lambda count: count.times)
        return best.following, best.reward, best.terminal


class PatchedModel:
    """A model for `uamcts.reference.search` in which facts correct another model.

    A fact about a deterministic model (`step`) overrides it. One about a random model (`outcomes` or `sample`) is mixed
    with it: see `uamcts.corrections.mixture`.

    Args:
        model: The model to correct: any object with `num_actions` and `outcomes`, `sample` or `step`.
        key: Makes a hashable key of a state. By default the state itself is its key.
        prior_weight: How many real transitions the distribution of a random model is worth.

    Example:
        ```python
        model = uamcts.PatchedModel(simulator)
        model.remember(state, 1, next_state, reward=0.0, terminal=False)
        result = uamcts.reference.search(0, state, model, None, uamcts.SearchConfig())
        ```
    """

    def __init__(
        self,
        model: PythonModel | Any,
        key: Callable[[State], Hashable] | None = None,
        prior_weight: float = PRIOR_WEIGHT,
    ):
        self.model: Any = model
        self.num_actions = model.num_actions
        self.key = key if key is not None else lambda state: state
        self.prior_weight = real("prior_weight", prior_weight, "it must be above 0", lambda weight: weight > 0)
        self.facts: dict[tuple[Hashable, int], Fact] = {}
        self._planned: dict[tuple[Hashable, int], Any] = {}
        self.kind = model_kind(model)
        if (
            self.kind != "step"
        ):  # only what the model itself offers: a search takes the first of the three that it finds
            setattr(self, self.kind, {"outcomes": self._outcomes, "sample": self._sample}[self.kind])
        if hasattr(model, "legal_actions"):
            self.legal_actions = model.legal_actions
        if key is not None or hasattr(model, "identity"):
            self.identity = getattr(model, "identity", None) if key is None else key

    def remember(self, state: State, action: int, next_state: State, reward: float, terminal: bool) -> None:
        """Adds a real transition. In a deterministic model the most frequent of several outcomes is planned with.

        Args:
            state: The state before the step.
            action: The action taken.
            next_state: The state after the step.
            reward: The reward of the step.
            terminal: Whether the episode ended.

        Raises:
            ValueError: `action`, `reward` or `terminal` is not a legal value.
            TypeError: The state is not hashable, and there is no `key`.
        """
        number = action_number(action, self.num_actions, "the model")
        paid, over = real("reward", reward), flag("terminal", terminal)
        place, kind = self._place(state, number), (self._place(next_state, 0)[0], over)
        before = self.facts.get(place)
        outcomes = {} if before is None else dict(before.outcomes)
        count = outcomes.pop(kind, None) or OutcomeCount(next_state, over, 0, paid, False)
        times = count.times + 1
        mean, varied = count.reward + (paid - count.reward) / times, count.varied or paid != count.reward
        outcomes[kind] = OutcomeCount(next_state, over, times, mean, varied)
        self.place(state if before is None else before.state, number, outcomes)

    def place(self, state: State, action: int, outcomes: dict[Hashable, OutcomeCount]) -> None:
        """Stores all that was seen of one transition."""
        place = self._place(state, action)
        fact = Fact(state, outcomes)
        planned: Any = fact.most_frequent() if self.kind == "step" else self._mixture(fact, action)
        self.facts[place], self._planned[place] = fact, planned

    def _mixture(self, fact: Fact, action: int) -> Mixture:
        """What the model predicts and what was seen."""
        believed = predicted_outcomes(self.model, fact.state, action)
        return mix(believed, list(fact.outcomes.values()), self.key, self.kind, self.prior_weight)

    def twin(self) -> PatchedModel:
        """A copy that learns on its own."""
        other = PatchedModel(self.model, self.key, self.prior_weight)
        other.facts, other._planned = dict(self.facts), dict(self._planned)
        return other

    def recurrence(self) -> Recurrence:
        """Counts for a report."""
        facts = self.facts.values()
        times = sum(count.times for fact in facts for count in fact.outcomes.values())
        return Recurrence(len(facts), times, sum(fact.varied for fact in facts))

    def knows(self, state: State, action: int) -> bool:
        """Whether there is a fact about this transition."""
        return self._place(state, action) in self._planned

    def step(self, state: State, action: int) -> tuple[State, float, bool]:
        """One step in a deterministic model: the fact where there is one, else what the model predicts."""
        fact = self._planned.get(self._place(state, action))
        outcome: tuple[State, float, bool] = self.model.step(state, action) if fact is None else fact
        return outcome

    def _outcomes(self, state: State, action: int) -> Any:
        """All outcomes, the model's and those seen, with their probabilities."""
        mixture = self._planned.get(self._place(state, action))
        return self.model.outcomes(state, action) if mixture is None else mixture.outcomes

    def _sample(self, state: State, action: int, rng: np.random.Generator) -> Any:
        """A draw from the model, or from what was seen."""
        mixture = self._planned.get(self._place(state, action))
        if mixture is None or rng.random() < mixture.model_share:
            return self.model.sample(state, action, rng)
        return mixture.draw_seen(rng.random())

    def plans_with(self, state: State, action: int) -> Any:
        """What is planned with where there is a fact, to tell whether a new fact changed it; None without one."""
        return self._planned.get(self._place(state, action))

    def patch_uncertainty(self, uncertainty: PythonUncertainty) -> PythonUncertainty:
        """Corrects an uncertainty of the model.

        Args:
            uncertainty: A function `(state, action) -> U`.

        Returns:
            The same function, but 0 for transitions that are known.
        """
        return lambda state, action: 0.0 if self.knows(state, action) else uncertainty(state, action)

    def undoubted(self, uncertainty: PythonUncertainty) -> PythonUncertainty:
        """Deprecated: use `patch_uncertainty`."""
        warnings.warn("PatchedModel.undoubted is deprecated; use patch_uncertainty", DeprecationWarning, stacklevel=2)
        return self.patch_uncertainty(uncertainty)

    def _place(self, state: State, action: int) -> tuple[Hashable, int]:
        place = (self.key(state), int(action))
        try:
            hash(place)
        except TypeError:
            raise TypeError(
                f"state is {state!r}, which is not hashable; give PatchedModel a `key` that turns a state into "
                "something hashable, for example key=lambda state: state.tobytes()"
            ) from None
        return place
