"""Python simulators with a residual: next states are shifted by it, or states before the step."""

from __future__ import annotations

from operator import add
from typing import Any

from uamcts.agent.python_simulator import PythonSimulator
from uamcts.agent.state_forms import Form, form_of
from uamcts.agent.state_vectors import FLOATS, numbers_of, refill
from uamcts.agent.trial_pace import OvertimeError
from uamcts.corrections.residual import Residual
from uamcts.runtime.watch import PASSED_ON
from uamcts.types import PyTree


class ResidualSimulator:
    """A deterministic simulator whose next states and rewards are shifted by a residual."""

    kind = "step"

    def __init__(self, simulator: PythonSimulator, residual: Residual):
        self.simulator, self.residual, self._shift = simulator, residual, residual.shift
        self.num_actions, self.name = simulator.num_actions, simulator.name
        self.identity = self.key = simulator.key
        self._call, self._all_numbers, self._judges = simulator.call, simulator.all_numbers, simulator.judges
        self._pays = residual.num_outputs > residual.num_features
        self._forms: dict[type, Form | None] = {}
        if hasattr(simulator, "legal_actions"):
            self.legal_actions = simulator.legal_actions

    def step(self, state: PyTree, action: int) -> tuple[Any, float, bool]:
        """One step: what the simulator predicts, shifted."""
        try:
            following, reward, over = self._call(state, action)
        except (OvertimeError, *PASSED_ON):
            raise
        except BaseException:  # the simulator says what is wrong
            following, reward, over = self.simulator.step(state, action)
        kind = type(following)
        form = self._forms[kind] if kind in self._forms else self._find_form(following)
        if form is not None and type(state) is kind and FLOATS.issuperset(map(type, numbers := form.read(following))):
            shift = self._shift(form.read(state), action)  # the usual case
            if shift is None:
                return following, reward, over
            shifted: Any = form.make(map(add, numbers, shift))
        else:
            shift = self._shift_of_numbers(state, action)
            if shift is None:
                return following, reward, over
            shifted = self._move(following, shift)
        if self._judges:
            reward, over = self.simulator.judge(state, action, shifted, reward, over)
        return shifted, reward + (shift[-1] if self._pays else 0.0), over

    def _find_form(self, state: PyTree) -> Form | None:
        """How states of this class are read and made, if there is a quick way."""
        form = self._forms[type(state)] = form_of(state) if self._all_numbers else None
        return form

    def _shift_of_numbers(self, state: PyTree, action: int) -> list[float] | None:
        """What the residual adds in a state of any kind; None if that is nothing."""
        numbers = numbers_of(state) if self._all_numbers else self.simulator.features(state).tolist()
        shift = self._shift(numbers, action)
        return shift if shift is not None and any(shift) else None

    def _move(self, state: PyTree, shift: list[float]) -> Any:
        """A state whose features are shifted."""
        if self._all_numbers:
            return refill(state, map(add, numbers_of(state), shift))
        features = self.simulator.features(state)
        return self.simulator.rebuild(state, features + shift[: features.size])


class EarlyResidualSimulator(ResidualSimulator):
    """A deterministic simulator that steps from states that are shifted by a residual, and judges the step itself."""

    def step(self, state: PyTree, action: int) -> tuple[Any, float, bool]:
        """One step from a shifted state; its reward is shifted as well."""
        kind = type(state)
        form = self._forms[kind] if kind in self._forms else self._find_form(state)
        if form is not None and FLOATS.issuperset(map(type, numbers := form.read(state))):
            shift = self._shift(numbers, action)
            moved: Any = state if shift is None else form.make(map(add, numbers, shift))
        else:
            shift = self._shift_of_numbers(state, action)
            moved = state if shift is None else self._move(state, shift)
        try:
            following, reward, over = self._call(moved, action)
        except (OvertimeError, *PASSED_ON):
            raise
        except BaseException:  # the simulator says what is wrong
            following, reward, over = self.simulator.step(moved, action)
        return following, reward + (shift[-1] if self._pays and shift is not None else 0.0), over
