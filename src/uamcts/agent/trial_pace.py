"""Measures how long steps take, so that values with which a step never ends are neither tried nor used.

A loop such as `while t < 1: t += self.dt` never ends if `dt` is 0, and takes 100 times as long if it is a hundredth.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any

from uamcts.agent.python_simulator import PythonSimulator
from uamcts.corrections.links import WITH
from uamcts.errors import SimulatorError
from uamcts.runtime.watch import Watch

SLACK, FACTOR = 0.5, 20.0
"""Trial steps are ended after `SLACK` seconds plus `FACTOR` times what the simulator itself needs for them."""
SLOW, LEAST_SLOW = 50.0, 0.05
"""A value that makes steps `SLOW` times as slow is refused too, if its trial takes at least `LEAST_SLOW` seconds."""
LONGEST_STEP, LONGEST = 1.0, 100.0
"""A step of the corrected simulator is ended after `LONGEST_STEP` seconds plus `LONGEST` times the usual time."""
FORGIVEN = 6
"""How many values of a number, or of several together, may take too long before no more of them are tried."""
EVERYWHERE = (-math.inf, math.inf)
REMEMBERED = 15
"""Measurements of which the median is the usual time of a step."""


class OvertimeError(SimulatorError):
    """A step took too long."""


class Pace:
    """Knows which values make steps of a simulator take too long.

    Args:
        simulator: The simulator.
    """

    def __init__(self, simulator: PythonSimulator):
        self._simulator = simulator
        self.watch = Watch(error=OvertimeError)
        self._first, self._measured = 0.0, deque[float]([], REMEMBERED)
        self._ends: dict[str, tuple[float, float]] = {}
        """The values nearest to the believed one, below and above, that took too long."""
        self._turned: set[str] = set()
        """Numbers of which a value of the other sign than believed took too long."""
        self._impossible: set[frozenset[tuple[str, float]]] = set()
        self._counts: Counter[frozenset[str]] = Counter()
        """How many values of a number, or of several together, took too long."""
        self.start(0.0)

    def start(self, seconds: float) -> None:
        """Notes how long the first steps of the simulator took."""
        self._first = seconds
        self._measure(0.0)

    def _measure(self, seconds: float) -> None:
        """Notes how long a step of the simulator took."""
        self._measured.append(seconds)
        self.usual = max(self._first, statistics.median(self._measured))
        """The usual time of a step, in seconds."""
        self.watch.limit = LONGEST_STEP + LONGEST * self.usual

    def run(self, values: Mapping[str, float], steps: int, trial: Callable[[], Any]) -> Any:
        """What a trial of `steps` steps with these values returns; None if it takes too long."""
        changed = self._changed(values)
        if not changed:
            start = time.thread_time()
            found = trial()
            self._measure((time.thread_time() - start) / max(steps, 1))
            return found
        if self._is_impossible(changed):
            return None
        usual = self.usual * steps
        limit, slow = SLACK + FACTOR * usual, max(LEAST_SLOW, SLOW * usual)
        try:
            start = time.perf_counter()
            found = self.watch.call(limit, trial)
            if time.perf_counter() - start <= slow:
                return found
            start = time.thread_time()  # again: something may have been compiled, or the machine was busy
            found = self.watch.call(limit, trial)
            if time.thread_time() - start <= slow:
                return found
        except OvertimeError:
            self._refuse_beyond(changed)
        self._add(changed)
        return None

    def run_together(self, steps: int, trial: Callable[[], Any]) -> Any:
        """What a trial with several values returns; None if one of them takes too long, or has done so before."""
        if self._impossible:
            return None
        usual, start = self.usual * steps, time.perf_counter()
        try:
            found = self.watch.call(SLACK + FACTOR * usual, trial)
        except OvertimeError:
            return None
        return found if time.perf_counter() - start <= max(LEAST_SLOW, SLOW * usual) else None

    def allows(self, values: Mapping[str, float]) -> bool:
        """Whether these values are not known to take too long."""
        return not self._is_impossible(self._changed(values))

    def refuse(self, values: Mapping[str, float]) -> None:
        """Notes values with which a step took too long."""
        self._add(self._changed(values))

    def _add(self, changed: dict[str, float]) -> None:
        self._impossible.add(frozenset(changed.items()))
        self._counts[_numbers(changed)] += 1

    def _changed(self, values: Mapping[str, float]) -> dict[str, float]:
        believed = self._simulator.parameters
        return {name: value for name, value in values.items() if value != believed.get(name.partition(WITH)[0])}

    def _is_impossible(self, changed: dict[str, float]) -> bool:
        if not self._impossible:
            return False
        for name, value in changed.items():
            low, high = self._ends.get(name, EVERYWHERE)
            if not low < value < high:
                return True
        return self._counts[_numbers(changed)] >= FORGIVEN or frozenset(changed.items()) in self._impossible

    def _refuse_beyond(self, changed: dict[str, float]) -> None:
        """Refuses all values of a single number that are farther from the believed one than one that took too long."""
        if len(changed) > 1:
            return
        ((name, value),) = changed.items()
        believed = self._simulator.parameters.get(name.partition(WITH)[0])
        if believed is None:
            return
        if value * believed < 0.0:  # a second one of the other sign: none of this sign ends
            value = 0.0 if name in self._turned else value
            self._turned.add(name)
        low, high = self._ends.get(name, EVERYWHERE)
        self._ends[name] = (max(low, value), high) if value < believed else (low, min(high, value))


def _numbers(changed: Mapping[str, float]) -> frozenset[str]:
    """The names under which numbers are counted; elements of a table count together."""
    return frozenset(name.partition("[")[0].partition(WITH)[0] for name in changed)
