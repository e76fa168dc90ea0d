"""Doubt of the corrected model, from the experience of an agent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np

from uamcts.agent.experience import Experience, Row
from uamcts.agent.measure import Measure, Scales
from uamcts.corrections.doubt import Doubt, DoubtTable
from uamcts.corrections.evidence import Evidence, doubtful


class FittedDoubt(NamedTuple):
    """Doubt, and the errors up to which a transition is no reason for any."""

    doubt: Doubt | None
    usual: tuple[float, float] = (0.0, 0.0)
    """Of the next state, and of the rest."""
    table: DoubtTable | None = None

    def covers(self, row: Row) -> bool:
        """Whether a transition is doubtful."""
        return self.table is not None and self.table.level(tuple(row.inputs.tolist()), row.number) > 0

    def is_usual(self, row: Row, measure: Measure, scales: Scales) -> bool:
        """Whether the error of a transition is within what is usual."""
        total = measure.error(row.real, row.used, scales, row.own[1])
        if total == 0.0 or self.usual == (0.0, 0.0):
            return total == 0.0
        of_state = replace(measure, parts=("state",)) if "state" in measure.parts else None
        state = 0.0 if of_state is None else of_state.error(row.real, row.used, scales, row.own[1])
        return state <= self.usual[0] and total - state <= self.usual[1] + 1e-9 * total


def fit_doubt(experience: Experience, measure: Measure, since: int, corrected: bool) -> FittedDoubt:
    """Balls around the transitions that are doubtful, as the world is since its last change.

    `corrected`: whether the simulator is corrected by what was fitted.
    """
    order = experience.latest(experience.count, since)
    if not order.size:
        return FittedDoubt(None)
    evidence = experience.evidence(measure, order)
    usual = _usual_errors(experience, measure, order, evidence)
    wrong = doubtful(evidence, experience.slips, usual, corrected)
    inputs, actions = (experience.column(name)[order] for name in ("inputs", "action"))
    found = Doubt.fit(inputs, actions, experience.uncertainties(measure)[order], wrong)
    return FittedDoubt(found, usual, None if found is None else found.table())


def _usual_errors(
    experience: Experience, measure: Measure, order: np.ndarray, evidence: Evidence
) -> tuple[float, float]:
    """What is usual for errors of the next state, and for others.

    Where corrections have made most errors small, though not 0, one that is no larger than what the simulator alone
    gets wrong usually is no reason to avoid a transition.
    """
    usual, alone = evidence.usual_errors, experience.simulator_errors(measure)[order]
    of_state = np.zeros(len(order))
    if "state" in measure.parts:
        of_state = experience.simulator_errors(replace(measure, parts=("state",)))[order]
    before = np.median(of_state), np.median(np.maximum(alone - of_state, 0.0))
    first, second = (max(now, float(then)) if now > 0.0 else 0.0 for now, then in zip(usual, before, strict=True))
    return first, second


def doubtful_errors(experience: Experience, measure: Measure, since: int, corrected: bool) -> np.ndarray:
    """The observed U of every transition that is doubtful, 0 for the others."""
    errors, order = np.zeros(experience.count), experience.latest(experience.count, since)
    if order.size:
        evidence = experience.evidence(measure, order)
        usual = _usual_errors(experience, measure, order, evidence)
        found = order[doubtful(evidence, experience.slips, usual, corrected)]
        errors[found] = experience.uncertainties(measure)[found]
    return errors


def same_arrays(one: Any, other: Any) -> bool:
    """Whether two trees of arrays are equal."""
    if one is None or other is None or repr(jax.tree.structure(one)) != repr(jax.tree.structure(other)):
        return one is other
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(first, second) for first, second in pairs)
