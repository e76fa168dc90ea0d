"""The part of a planner that learns which action each action acts as (`uamcts.corrections.effective_actions`)."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from uamcts.agent.chance import RealOutcome, matching_outcome
from uamcts.agent.measure import Outcome
from uamcts.agent.simulator_probe import Tried
from uamcts.corrections.effective_actions import MOST_ACTIONS, EffectiveActions
from uamcts.corrections.patched_model import PatchedModel
from uamcts.types import PyTree


class NoEffects:
    """A planner that learns neither effective actions nor elements of tables, with trials that are quiet anyway."""

    @property
    def quiet(self) -> AbstractContextManager[Any]:
        """A context manager for trials, which does nothing: they are quiet anyway."""
        return nullcontext()

    def elements(self) -> dict[str, float]:
        """The numbers in tables of the simulator, and their believed values; nothing if they cannot be fitted."""
        return {}

    @property
    def plans_effects(self) -> bool:
        """Whether actions are planned with that may act as others."""
        return False

    def predict_effect(self, state: PyTree, action: int, real: RealOutcome) -> tuple[PyTree, Outcome] | None:
        """What matches the real outcome best of what is predicted where actions may act as others; else None."""
        return None

    def describe_effects(self) -> list[str]:
        """Which actions act as others, and which states are others than believed, in plain words."""
        return []


class Effects(NoEffects):
    """A planner that does, in a deterministic simulator whose states recur: elsewhere, plans with chance cost most."""

    patched: PatchedModel | None
    action_names: tuple[str, ...]
    tried: Tried

    def features(self, state: PyTree) -> np.ndarray:
        """The numbers of a state."""
        raise NotImplementedError

    def key(self, state: PyTree) -> Hashable:
        """What tells a state from others."""
        raise NotImplementedError

    def _learn_effects(self) -> None:
        """Learns from now on which action each action acts as, if that is possible."""
        facts = self.patched
        if facts is None or facts.effective is not None or facts.kind != "step" or not self.tried.recurs:
            return
        if facts.num_actions and facts.num_actions <= MOST_ACTIONS:
            facts.learn_effects(EffectiveActions.for_actions(facts.num_actions))

    @property
    def plans_effects(self) -> bool:
        return self.patched is not None and self.patched.plans_effects

    def predict_effect(self, state: PyTree, action: int, real: RealOutcome) -> tuple[PyTree, Outcome] | None:
        if self.patched is None or not self.patched.plans_effects:
            return None
        possible = [one for _, one in self.patched.believe(state, action)]
        outcome = matching_outcome(real, possible, self.features, self.key, False)
        return outcome[0], Outcome(self.features(outcome[0]), *outcome[1:])

    def describe_effects(self) -> list[str]:
        if self.patched is None:
            return []
        effective, arrivals = self.patched.effective, self.patched.arrivals
        found = [] if effective is None else effective.describe(self.action_names)
        return found + ([] if arrivals is None else arrivals.describe())
