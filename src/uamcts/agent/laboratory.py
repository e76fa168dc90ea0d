"""Makes copies of a Python simulator with other values: those for trials, and the one that the agent plans in."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from uamcts.agent.python_simulator import PythonSimulator
from uamcts.agent.quiet import Quiet
from uamcts.agent.trial_pace import Pace
from uamcts.corrections.memories import find_memories
from uamcts.corrections.mixture import predicted_outcomes
from uamcts.corrections.parameters import laboratory
from uamcts.errors import SimulatorError
from uamcts.runtime.watch import PASSED_ON, Guarded

COMPARED = 4
"""How many steps are compared to see whether a simulator answers alike without what it remembers."""


class Laboratory:
    """Where a simulator is tried with other values.

    Args:
        simulator: The simulator.
    """

    def __init__(self, simulator: PythonSimulator):
        self.simulator = simulator
        self.pace = Pace(simulator)
        """How long its steps take."""
        self.quiet = Quiet()
        self.owner: Any = None
        """A copy of the user's object, for trials; None before the first one."""
        self.ready = False

    def prepare(self, asked: Sequence[tuple[Any, Any]], key: Callable[[Any], Hashable]) -> None:
        """Makes the copy for trials, and asks it for these states and actions to find out what its steps remember."""
        self.quiet.begin()
        if self.ready:
            return
        self.ready, own = True, self.simulator
        self.owner = laboratory(own.holder)
        if own.owner is None or callable(getattr(own.owner, "with_parameters", None)):
            return

        def same(one: object, other: object) -> bool:
            return bool(_said(own, one, asked, key) == _said(own, other, asked, key))

        own.memories = find_memories(self.owner, own.before, same)

    def corrected(self, values: dict[str, float], shifted: bool) -> PythonSimulator:
        """The simulator with other values. A step that takes too long with these or from `shifted` states is ended."""
        own, pace = self.simulator, self.pace
        if not (values or shifted):
            return own
        call: Any = _Impossible(f"steps take too long with other parameters: {values}")
        if pace.allows(values):
            try:
                call = Guarded(pace.watch, own.with_parameters(values).call, functools.partial(pace.refuse, values))
            except PASSED_ON:
                raise
            except BaseException as error:
                call = _Impossible(f"other parameters, {values}, raised {type(error).__name__}: {error}")
        found = copy.copy(own)
        found.call, found.normalises = call, bool(values)
        return found.bind()


class _Impossible:
    """Stands for a step with values that the simulator cannot have."""

    def __init__(self, why: str):
        self.why = why

    def __call__(self, *given: object) -> Any:
        raise SimulatorError(self.why)


def _said(own: PythonSimulator, model: object, asked: Sequence[tuple[Any, Any]], key: Callable[[Any], Hashable]) -> Any:
    """What a model predicts, for comparisons."""
    twin = copy.copy(own)
    twin.call = getattr(model, own.entry)
    twin.bind()
    found = [predicted_outcomes(twin, *pair) for pair in asked]
    return [(share, key(after), paid, over) for one in found for share, (after, paid, over) in one]
