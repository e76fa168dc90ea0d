"""What an agent makes of the unknown: it prefers what it knows, unless nothing that is known leads on.

A simulator may deny a way that exists: a door that is open, or left and right swapped. Nothing contradicts it as long
as nobody goes there, and a planner that finds no other way paces about for ever. Where all actions are worth the same,
it costs nothing, as far as is known, to go and see.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from typing import Any, Protocol

import numpy as np

from uamcts.corrections.patched_model import PatchedModel
from uamcts.corrections.python_facts import Fact
from uamcts.types import PyTree

PACED = 8
"""Steps in a row, all of them known before, after which an agent may be pacing about."""
EQUAL = 0.02
"""Values that differ by less than this share of the spread of rewards, or of the largest value, are equal."""
WORSE = 0.05
"""By how much of that spread the reward of a step may lie below the mean on the way out."""
FARTHEST = 2000
"""States that are looked at, at most."""

CAUTION = 0.05
"""How much less a step pays that was never seen, of the spread of rewards, where all that was seen was wrong."""


class Surroundings(Protocol):
    """What a planner knows about the states around."""

    def choices(self, state: PyTree) -> Iterable[int]:
        """The legal actions of a state."""
        ...

    def key(self, state: PyTree) -> Hashable:
        """What tells a state from others."""
        ...

    def foresee(self, state: PyTree, action: int) -> tuple[float, bool]:
        """The reward that the corrected model predicts, and whether the episode ends."""
        ...


def is_denied(facts: PatchedModel) -> bool:
    """Whether a way may exist that the model denies: it is deterministic and known to be wrong, in a certain world."""
    random = facts.kind != "step" or facts.noisy or facts.plans_effects
    return not random and facts.planned_model() is not facts.model


def be_cautious(facts: PatchedModel | None, spread: float) -> None:
    """Has steps that were never seen pay a little less, in proportion to how often the model was wrong.

    Of ways that are worth the same, the next search then takes one that is known.
    """
    if facts is not None:
        facts.caution = CAUTION * facts.wrong_share * spread


def is_hopeless(plan: Any, spread: float) -> bool:
    """Whether all actions that a search has tried are worth the same, and there are several."""
    values = np.asarray(plan.values, float)
    values = values[np.isfinite(values)]
    return bool(values.size > 1 and np.ptp(values) <= EQUAL * max(spread, float(np.max(np.abs(values)))))


def find_way_out(
    planner: Surroundings,
    facts: dict[tuple[Hashable, int], Fact],
    state: PyTree,
    usual: float,
    spread: float,
) -> int | None:
    """The first action on the shortest known way to one that was never tried; None without any.

    Steps that end the episode or pay clearly less than usual are left out.

    Args:
        planner: What knows about states.
        facts: All that was seen, by the keys of states and the actions.
        state: Where the agent is.
        usual: The mean reward of a step.
        spread: The spread of rewards.
    """
    least = usual - WORSE * spread
    start = planner.key(state)
    waiting: deque[tuple[Hashable, PyTree, int | None]] = deque([(start, state, None)])
    met = {start}
    while waiting and len(met) < FARTHEST:
        key, here, first = waiting.popleft()
        for action in planner.choices(here):
            fact = facts.get((key, int(action)))
            step = int(action) if first is None else first
            if fact is None:
                reward, over = planner.foresee(here, int(action))
                if not over and reward >= least:
                    return step
                continue
            following, reward, over = fact.most_frequent()
            place = planner.key(following)
            if not over and reward >= least and place not in met:
                met.add(place)
                waiting.append((place, following, step))
    return None
