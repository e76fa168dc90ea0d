"""Trying a simulator out before it is planned with: does it repeat itself, do its states recur, what do steps pay?"""

from __future__ import annotations

import math
import random
import statistics
import time
import warnings
from collections.abc import Hashable
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from uamcts.arguments import flag, real, short_repr
from uamcts.errors import SimulatorError, SlowSimulator
from uamcts.reference.models import check_probabilities

SLOW = 0.5
"""Seconds a step above which a simulator is called slow."""
TRIES, SECONDS = 100, 0.5
"""How many steps are tried twice before a simulator is trusted, and how long that may take after the first state.

If a tenth of all steps slips, two tries of one step differ with a probability of 2 * 0.9 * 0.1 = 0.18, and a simulator
passes 100 pairs with a probability of 0.82^100, about 2e-9; if only every fifth step can slip at all, 2 %.
"""
FEWEST_STEPS, RECURRING = 8, 0.25
"""States recur if at least this share of so many different steps or more lead to states that were known already."""
MANY = 2
"""So many different rewards are remembered: they are not all alike."""
FEWEST_OF_FEW, MOST_OF_FEW = 4, 0.5
"""So do those of a world that is too small for so many steps, if a larger share of these does."""

Outcome: TypeAlias = tuple[Any, float, bool]
"""The next state, the reward and whether the episode is over."""
Predicted: TypeAlias = list[tuple[float, Outcome]]
"""What a simulator predicts for a step: outcomes with their probabilities, one if it is deterministic."""


class Tried(NamedTuple):
    """What trying a simulator out has shown."""

    known: int = 0
    """How often different steps led to states that were known already."""
    steps: int = 0
    """How many different steps went on."""
    survival: bool = False
    """Whether all that counts is to go on: every step pays the same, at least 0, and every end that was met pays less,
    or no more if steps pay more than 0."""

    @property
    def recurs(self) -> bool:
        """Whether it pays to let equal states share a node."""
        if self.steps < FEWEST_STEPS:
            return self.steps >= FEWEST_OF_FEW and self.known > MOST_OF_FEW * self.steps
        return self.known >= RECURRING * self.steps


class StepCounter:
    """Counts different steps, and those that lead to a state that was known already, and compares what steps pay.

    The same step taken twice counts once: in a deterministic simulator it always leads to the same state, which says
    nothing about whether different paths meet.
    """

    def __init__(self, start: Hashable):
        self._states: set[Hashable] = {start}
        self._steps: set[Hashable] = set()
        self._known = 0
        self._paid: set[float] = set()
        self._end = -math.inf

    def add(self, before: Hashable, action: Hashable, after: Hashable, reward: float, over: bool) -> None:
        """Adds a step."""
        if over:
            self._end = max(self._end, reward)
            return
        if len(self._paid) < MANY:
            self._paid.add(reward)
        step = (before, action, after)
        if step not in self._steps:
            self._steps.add(step)
            self._known += after in self._states
            self._states.add(after)

    @property
    def found(self) -> Tried:
        alike = len(self._paid) == 1 and len(self._steps) >= FEWEST_STEPS
        return Tried(self._known, len(self._steps), alike and self._ends_are_losses(max(self._paid)))

    def _ends_are_losses(self, paid: float) -> bool:
        """Whether an end takes away what steps would pay, or costs something where they pay nothing."""
        return paid > max(0.0, self._end - 1e-9) or (paid == 0.0 and -math.inf < self._end < 0.0)


def place_of(action: Any) -> Hashable:
    """An action as something hashable: continuous ones are numbers or arrays."""
    return action if isinstance(action, int) else np.asarray(action, float).tobytes()


class Probe:
    """Tries a simulator on every action of a state, and on steps of random walks from there."""

    def __init__(self, simulator: Any):
        self.simulator, self.name, self.kind = simulator, simulator.name, simulator.kind
        self.seconds = 0.0
        """The usual time of a step that is taken for the first time."""

    def run(self, state: Any, depth: int, steps_a_move: int, budget_seconds: float | None) -> Tried:
        """Raises an error for what cannot be planned with, and warns of slowness."""
        actions = self.simulator.choices(state)
        if not actions:
            raise SimulatorError(
                f"{self.name}: there is no legal action in state {short_repr(state)}; an agent needs one"
            )
        begin, counter, times = time.perf_counter(), StepCounter(self.simulator.key(state)), []
        for action in actions:
            start = time.perf_counter()
            first = self.repeat(state, action, 1)
            times.append(seconds := time.perf_counter() - start)
            self.seconds = statistics.median(times)
            if seconds > SLOW:
                self._warn(seconds, steps_a_move, budget_seconds)
                return counter.found
            self.refuse_difference(state, action, first, self.repeat(state, action, 1))
            self._count(counter, state, action, first)
        rng, here, walked = random.Random(0), state, 0  # noqa: S311 (any walk will do)
        for number in range(TRIES):
            if time.perf_counter() - begin > SECONDS:
                break
            choices, over, following = self.simulator.choices(here), True, state
            if choices:
                action, start = rng.choice(choices), time.perf_counter()
                found = self.repeat(here, action, 2, number)
                times.append(time.perf_counter() - start)
                self._count(counter, here, action, found)
                weights = [probability for probability, _ in found]
                following, _, over = found[0][1] if len(found) == 1 else rng.choices(found, weights)[0][1]
            walked += 1
            here, walked = (state, 0) if over or walked >= depth else (following, walked)
        self.seconds = statistics.median(times)
        return counter.found

    def _count(self, counter: StepCounter, state: Any, action: int, found: Predicted) -> None:
        key = self.simulator.key
        for probability, (following, reward, over) in found:
            if probability > 0.0:
                counter.add(key(state), place_of(action), key(following), reward, over)

    def repeat(self, state: Any, action: int, times: int, seed: int = 0) -> Predicted:
        """Asks for a step several times; the answer must be the same every time, and leave the state alone."""
        key, features = self.simulator.key, self.simulator.features
        before, text, numbers = key(state), short_repr(state), features(state)
        first: Predicted | None = None
        for _ in range(times):
            found = self.predict(state, action, seed)
            now = features(state)
            if key(state) != before or (now.size == numbers.size and not np.array_equal(numbers, now)):
                raise SimulatorError(
                    f"{self.name}: {self.kind} changed the state it was given ({text} became {short_repr(state)} after "
                    f"action {action}); return a new state and leave the old one alone"
                )
            first = found if first is None else first
            self.refuse_difference(state, action, first, found)
        assert first is not None  # noqa: S101 (it is asked at least once)
        return first

    def refuse_difference(self, state: Any, action: int, first: Predicted, second: Predicted) -> None:
        """Raises an error if two answers differ: in a probability, a whole state, a reward or an end."""
        key = self.simulator.key
        if len(first) == len(second) and all(
            a == b and one[1:] == two[1:] and key(one[0]) == key(two[0])
            for (a, one), (b, two) in zip(first, second, strict=True)
        ):
            return
        answers = (first, second) if self.kind == "outcomes" else (first[0][1], second[0][1])
        raise SimulatorError(difference_message(self.kind, self.name, state, action, *answers))

    def predict(self, state: Any, action: int, seed: int = 0) -> Predicted:
        """What the simulator predicts, checked; for a sampler, the draw of a generator with this seed."""
        model = self.simulator
        if self.kind == "step":
            return [(1.0, self.check(state, action, model.step(state, action)))]
        if self.kind == "sample":
            drawn = model.sample(state, action, np.random.default_rng(seed))
            return [(1.0, self.check(state, action, drawn))]
        found = model.outcomes(state, action)
        try:
            check_probabilities(found, state, action)
        except (TypeError, ValueError) as error:
            raise SimulatorError(f"{self.name}: {error}") from None
        return [(float(probability), self.check(state, action, outcome)) for probability, outcome in found]

    def check(self, state: Any, action: int, outcome: Outcome) -> Outcome:
        """An outcome whose reward, end and next state were checked."""
        following, reward, terminal = outcome
        where = f"(state {short_repr(state)}, action {action})"
        if isinstance(reward, Decimal):  # which Python does not add to floats
            raise SimulatorError(f"{self.name}: the reward is {reward!r}; return float(reward) {where}")
        try:
            number = real(f"{self.name}: the reward", reward, f"it must be a finite number {where}")
            over = flag(f"{self.name}: terminal", terminal, f"it must be True or False {where}")
        except ValueError as error:
            raise SimulatorError(str(error)) from None
        for what in ("features", "inputs"):
            sizes = getattr(self.simulator, what)(state).size, getattr(self.simulator, what)(following).size
            if sizes[0] != sizes[1] and not self.simulator.compare_whole(state, following):
                raise SimulatorError(
                    f"{self.name}: state {short_repr(following)} has {sizes[1]} {what} where the state before it had "
                    f"{sizes[0]} {where}; every state must have as many (pass features= if the states cannot)"
                )
        return following, number, over

    def _warn(self, seconds: float, steps_a_move: int, budget_seconds: float | None) -> None:
        if budget_seconds is None:
            remedy = f"a move of up to {steps_a_move} steps may take {duration(seconds * steps_a_move)}: give "
            remedy += "budget_seconds=..., or fewer iterations and rollouts in config"
        else:
            remedy = f"budget_seconds={budget_seconds:g} leaves room for {int(budget_seconds / seconds)} steps a move"
        warnings.warn(f"{self.name}: one step took {seconds:.1f} s; {remedy}", SlowSimulator, stacklevel=6)


def duration(seconds: float) -> str:
    for limit, unit, size in ((120, "s", 1), (7200, "min", 60), (math.inf, "h", 3600)):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    raise AssertionError


def difference_message(kind: str, name: str, state: Any, action: int, first: Any, second: Any) -> str:
    """The message about a simulator that gave two answers for one step."""
    what = f"(state {short_repr(state)}, action {action}: {short_repr(first)} and {short_repr(second)})"
    if kind == "sample":
        return (
            f"{name}: sample gave two results for two generators with the same seed {what}; draw from `rng` alone, not "
            "from a generator of the simulator or a global one, and remember nothing"
        )
    if kind == "outcomes":
        return f"{name}: outcomes gave two lists for the same step {what}; list every outcome with its probability"
    return (
        f"{name}: the simulator is random: the same step gave two results {what}; instead of step, offer "
        "outcomes(state, action), a list of (probability, (state, reward, terminal)), or sample(state, action, rng), "
        "which draws from `rng` alone; a simulator that is not random must not remember what it was asked"
    )
