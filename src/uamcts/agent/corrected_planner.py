"""What a corrector needs of the planner whose simulator it corrects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

import numpy as np

from uamcts.agent.chance import RealOutcome
from uamcts.agent.experience import Experience
from uamcts.agent.measure import Measure, Outcome, Scales
from uamcts.corrections.outcome_tilt import Seen
from uamcts.corrections.trials import Trials
from uamcts.types import PyTree

AnyResidual: TypeAlias = Any
"""A `Residual`, `OutcomeRates` or an `OutcomeTilt` of a random simulator, or None."""


class CorrectedPlanner(Protocol):
    """A planner that knows the parameters of its simulator and builds variants of it.

    What a variant is, only the planner knows.
    """

    name: str
    num_actions: Any
    """The number of actions; None if they are continuous."""
    action_names: tuple[str, ...]

    @property
    def deterministic(self) -> bool:
        """Whether the simulator is."""
        ...

    @property
    def can_shift(self) -> bool:
        """Whether next states can be shifted by a residual."""
        ...

    @property
    def can_shift_early(self) -> bool:
        """Whether states can be shifted before the step, so that the simulator judges it."""
        ...

    @property
    def lists_outcomes(self) -> bool:
        """Whether the simulator lists outcomes, so that one can tell which of them has happened."""
        ...

    @property
    def judges_rewards(self) -> bool:
        """Whether the simulator says itself what a corrected next state pays."""
        ...

    @property
    def quiet(self) -> AbstractContextManager[Any]:
        """A context manager within which trials give no warnings and leave random generators alone."""
        ...

    def parameters(self) -> dict[str, float]:
        """The parameters of the simulator and their believed values."""
        ...

    def elements(self) -> dict[str, float]:
        """The numbers in tables of the simulator, and their believed values; nothing if they cannot be fitted."""
        ...

    def variant(self, values: dict[str, float], residual: AnyResidual) -> Any:
        """The simulator with other parameters and a residual; the rates of its outcomes, if it is random."""
        ...

    def listed(self, state: PyTree, action: PyTree, real: RealOutcome) -> tuple[list[float], list[bool]] | None:
        """The probabilities that the simulator lists, and which outcomes are what happened; None if it lists none."""
        ...

    def seen_outcomes(self, most: int) -> list[Seen]:
        """The latest facts about transitions with several outcomes, with what the simulator lists for them."""
        ...

    def seen_outcome(self, state: PyTree, action: int) -> Seen | None:
        """The fact about one transition; None if there is none, or if it says nothing about probabilities."""
        ...

    def trials(
        self,
        raw: Sequence[tuple[PyTree, Any, PyTree]],
        experience: Experience,
        rows: Sequence[int],
        measure: Measure,
        floor: float,
        latest: bool = False,
    ) -> Trials | None:
        """What was seen, for fits of parameters; `latest`: of random outcomes only the latest one of each row."""
        ...

    def recent_trials(
        self, seen: Sequence[tuple[PyTree, Any, RealOutcome]], experience: Experience, measure: Measure, floor: float
    ) -> Trials | None:
        """The same for transitions in their order, each on its own; None if the simulator lists no outcomes."""
        ...

    def expected_surprise(self, state: PyTree, action: PyTree, variant: object) -> tuple[float, float]:
        """Mean and variance of the surprise, in nats, that a variant that lists outcomes expects."""
        ...

    def choices(self, state: PyTree) -> Iterable[int]:
        """The legal actions of a state."""
        ...

    def predict_next(
        self, raw: Sequence[tuple[PyTree, Any, PyTree]], variant: Any, shifts: np.ndarray | None = None
    ) -> Sequence[np.ndarray]:
        """The features of the next states, rewards and ends that a variant predicts, from states that are shifted."""
        ...

    def score(
        self, state: PyTree, action: Any, real: RealOutcome, outcome: Outcome, variant: Any, measure: Measure,
        scales: Scales, floor: float,
    ) -> tuple[float, float]:  # fmt: skip
        """How badly a variant predicts a transition: in nats, and as a squared error."""
        ...

    def feature_names(self, state: PyTree) -> list[str]:
        """What the features of a state are called."""
        ...
