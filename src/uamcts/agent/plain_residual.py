"""Python simulators with a residual: next states are shifted by it, or states before the step."""

from __future__ import annotations

import operator
from typing import Any

from uamcts.agent.python_simulator import PythonSimulator
from uamcts.agent.state_forms import UNLIKE, Form, form_of
from uamcts.agent.state_vectors import numbers_of, refill
from uamcts.agent.trial_pace import OvertimeError
from uamcts.corrections.residual import Residual
from uamcts.runtime.watch import PASSED_ON
from uamcts.types import PyTree

UNKNOWN = object()
"""Stands for the class of states until one was seen."""


class ResidualSimulator:
    """A deterministic simulator whose next states and rewards are shifted by a residual.

    States of the usual kinds are read and made quickly if they have the class that was met first.
    """

    kind = "step"

    def __init__(self, simulator: PythonSimulator, residual: Residual):
        self.simulator, self.residual, self._adders = simulator, residual, residual.adders
        self.num_actions, self.name = simulator.num_actions, simulator.name
        self.identity = self.key = simulator.key
        self._call, self._all_numbers, self._judges = simulator.call, simulator.all_numbers, simulator.judges
        self._pays = residual.num_outputs > residual.num_features
        self._class: Any = UNKNOWN
        self._read, self._make = NO_FORM
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
        add = self._adders[action]
        if add is None:
            return following, reward, over
        try:
            if type(following) is not self._class or type(state) is not self._class:
                self._find_form(following)
            moved = [*self._read(following), 0.0] if self._pays else [*self._read(following)]
            if not add(self._read(state), moved):
                return following, reward, over
            more = moved.pop() if self._pays else 0.0
            shifted = self._make(moved)
        except UNLIKE:  # of another kind
            shift = self._shift_of_numbers(state, action)
            if shift is None:
                return following, reward, over
            shifted, more = self._move(following, shift), shift[-1] if self._pays else 0.0
        if self._judges:
            reward, over = self.simulator.judge(state, action, shifted, reward, over)
        return shifted, reward + more, over

    def _find_form(self, state: PyTree) -> None:
        """Finds out how states of this class are read and made. A TypeError if it is not the first one."""
        if self._class is not UNKNOWN:
            raise TypeError
        self._class = type(state)
        self._read, self._make = (form_of(state) if self._all_numbers else None) or NO_FORM

    def _shift_of_numbers(self, state: PyTree, action: int) -> list[float] | None:
        """What the residual adds in a state of any kind; None if that is nothing."""
        numbers = numbers_of(state) if self._all_numbers else self.simulator.features(state).tolist()
        shift = self.residual.shift(numbers, action)
        return shift if shift is not None and any(shift) else None

    def _move(self, state: PyTree, shift: list[float]) -> Any:
        """A state whose features are shifted."""
        if self._all_numbers:
            return refill(state, map(operator.add, numbers_of(state), shift))
        features = self.simulator.features(state)
        return self.simulator.rebuild(state, features + shift[: features.size])


class EarlyResidualSimulator(ResidualSimulator):
    """A deterministic simulator that steps from states that are shifted by a residual, and judges the step itself."""

    def step(self, state: PyTree, action: int) -> tuple[Any, float, bool]:
        """One step from a shifted state; its reward is shifted as well."""
        add, moved, more = self._adders[action], state, 0.0
        if add is not None:
            try:
                if type(state) is not self._class:
                    self._find_form(state)
                values = self._read(state)
                numbers = [*values, 0.0] if self._pays else [*values]
                if add(values, numbers):
                    more = numbers.pop() if self._pays else 0.0
                    moved = self._make(numbers)
            except UNLIKE:  # of another kind
                shift = self._shift_of_numbers(state, action)
                if shift is not None:
                    moved, more = self._move(state, shift), shift[-1] if self._pays else 0.0
        try:
            following, reward, over = self._call(moved, action)
        except (OvertimeError, *PASSED_ON):
            raise
        except BaseException:  # the simulator says what is wrong
            following, reward, over = self.simulator.step(moved, action)
        return following, reward + more, over


def _refuse(state: Any) -> Any:
    """Raised if there is no quick way to read or to make a state."""
    raise TypeError


NO_FORM = Form(_refuse, _refuse)
