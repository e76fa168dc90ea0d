"""Attributes of an environment without an effect: counters of steps, as for a time limit, and text that a reset draws.

With a counter in it, no state ever comes back: facts would never be met again, and no two paths would share a state.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from uamcts.gym.deep_copy import collect
from uamcts.gym.fingerprints import fingerprint
from uamcts.gym.probe import Step, Trial, same, set_rng_state
from uamcts.gym.state_access import Saved

Ask: TypeAlias = Callable[[Step], list[Any]]
"""Gives other values of an attribute, to repeat a step with."""
AHEAD = (1, 10, 100, 1000, 10_000)
"""By how many steps a counter is advanced to see whether anything else changes, besides being set back to its start."""
STEPS, FEWEST = 40, 10
"""Steps of the trial that are repeated with other values of a counter: at most, and at least."""


class Laboratory(NamedTuple):
    """What it takes to repeat a step of the trial from another state, with the same random numbers."""

    trial: Trial
    base: object
    take_step: Callable[[Any, int], tuple[Any, float, bool]]
    observation: Callable[[], object]
    """What the latest step showed."""

    def repeats(self, before: Saved, step: Step, clocks: frozenset[str]) -> bool:
        """Whether a step comes out as in the trial, but for `clocks`."""
        set_rng_state(self.base, step.rng_state)
        try:
            after, reward, terminal = self.take_step(before, step.action)
        except Exception:  # it may index a table by its counter
            return False
        shown = same(self.observation(), step.observation) and same(reward, step.reward) and terminal == step.terminal
        return shown and _fingerprints(after.data, clocks) == _fingerprints(step.after.data, clocks)


def find_clocks(
    trial: Trial,
    base: object,
    take_step: Callable[[Any, int], tuple[Any, float, bool]],
    observation: Callable[[], object],
    seconds: float,
) -> frozenset[str]:
    """The attributes whose value changes nothing that a step shows: counters of steps, and text that a reset draws.

    A counter grows by the same number at every step. It is one only if rewards, ends, observations and all other
    attributes are the same for any value of it that was tried, far beyond the values in the trial. What only ends
    episodes by `truncated` is no part of a state.
    """
    laboratory = Laboratory(trial, base, take_step, observation)
    clocks = {name: ask for name in sorted(trial.changing) if (ask := _other_values(trial, name)) is not None}
    end = time.perf_counter() + seconds
    while clocks:
        wrong = [name for name, ask in clocks.items() if not _is_idle(laboratory, name, ask, frozenset(clocks), end)]
        if not wrong:
            break
        clocks = {name: ask for name, ask in clocks.items() if name not in wrong}
    return frozenset(clocks) if set(clocks) < trial.changing else frozenset()


def _other_values(trial: Trial, name: str) -> Ask | None:
    """A function of a step that gives other values of a counter or of text; None if the attribute is neither."""
    start, by = trial.steps[0].before.data.get(name), _increment(trial, name)
    if by is not None:
        return lambda step: [start, *(step.before.data[name] + by * ahead for ahead in AHEAD)]
    pairs = [(step.before.data.get(name), step.after.data.get(name)) for step in trial.steps]
    if any(collect(before, []) or fingerprint(before) != fingerprint(after) for before, after in pairs):
        return None
    different = list({repr(fingerprint(before)): before for before, _ in pairs}.values())
    return lambda step: different[: len(AHEAD)]


def _increment(trial: Trial, name: str) -> float | None:
    """By how much an attribute grows at every step; None if it does not, or not always by the same number."""
    found = set()
    for step in trial.steps:
        values = step.before.data.get(name), step.after.data.get(name)
        if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in values):
            return None
        found.add(values[1] - values[0])
    return next(iter(found)) if len(found) == 1 and 0 not in found else None


def _is_idle(laboratory: Laboratory, name: str, ask: Ask, clocks: frozenset[str], end: float) -> bool:
    """Whether steps are the same for other values of an attribute, but for `clocks`."""
    steps = laboratory.trial.steps
    for number, step in enumerate(steps[:: len(steps) // STEPS + 1]):
        if time.perf_counter() > end:
            return number >= FEWEST
        for value in ask(step):
            before = Saved({**step.before.data, name: value}, step.before.observation)
            if not laboratory.repeats(before, step, clocks):
                return False
    return True


def _fingerprints(attributes: dict[str, Any], clocks: frozenset[str]) -> dict[str, Any]:
    return {name: fingerprint(value) for name, value in attributes.items() if name not in clocks}
