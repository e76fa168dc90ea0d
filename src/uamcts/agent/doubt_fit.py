"""Doubt of the corrected model, from the experience of an agent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from uamcts.agent.experience import Experience, Row
from uamcts.agent.measure import Measure, Scales
from uamcts.corrections.doubt import Doubt, DoubtTable
from uamcts.corrections.evidence import are_cells, doubtful, usual_error
from uamcts.runtime.lazy_jax import is_a, jax

SMALL_SHARE = 0.1
"""An error below this share of a step, both squared, is no reason for doubt, unless states are whole numbers."""


COSTLY, DENSE = 0.1, 0.5
"""A transition costs something if the reward is off by a third of its spread or an end is; rewards are those of places
if more than this share of them differ."""


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


def fit_doubt(
    experience: Experience, measure: Measure, since: int, corrected: bool, by_chance: bool = False
) -> FittedDoubt:
    """Balls around the transitions that are doubtful, as the world is since its last change.

    `corrected`: whether the simulator is corrected by what was fitted; `by_chance`: whether it is random.
    """
    order = experience.latest(experience.count, since)
    if not order.size:
        return FittedDoubt(None)
    usual, wrong = _find_doubtful(experience, measure, order, corrected, by_chance)
    inputs, actions = (experience.column(name)[order] for name in ("inputs", "action"))
    found = Doubt.fit(inputs, actions, experience.uncertainties(measure)[order], wrong)
    return FittedDoubt(found, usual, None if found is None else found.table())


def _find_doubtful(
    experience: Experience, measure: Measure, order: np.ndarray, corrected: bool, by_chance: bool
) -> tuple[tuple[float, float], np.ndarray]:
    """What is usual for errors of the next state, and for others; and which transitions are doubtful.

    Where corrections have made most errors small, though not 0, one that would be usual for the simulator alone is no
    reason to avoid a transition. Where outcomes are random, neither is an unlisted next state with the expected reward
    and end: the agent learns what else may happen by going there.
    """
    evidence = experience.evidence(measure, order)
    alone = experience.simulator_errors(measure)[order]
    of_state = np.zeros(len(order))
    if "state" in measure.parts:
        of_state = experience.simulator_errors(replace(measure, parts=("state",)))[order]
    before = usual_error(of_state), usual_error(np.maximum(alone - of_state, 0.0))
    first, second = (
        max(now, then) if now > 0.0 else 0.0 for now, then in zip(evidence.usual_errors, before, strict=True)
    )
    if measure.own is None:
        small = evidence.state_errors <= SMALL_SHARE * experience.step_lengths()[order]
        evidence = evidence._replace(state_errors=np.where(small, 0.0, evidence.state_errors))
    paid = experience.column("real_reward")[order]
    if by_chance or (not are_cells(evidence.points) and _pays_everywhere(paid)):
        cheap = evidence.other_errors < COSTLY
        evidence = evidence._replace(
            state_errors=np.where(cheap, 0.0, evidence.state_errors),
            other_errors=np.where(cheap, 0.0, evidence.other_errors),
        )
    return (first, second), doubtful(evidence, experience.slips, (first, second), corrected)


def _pays_everywhere(rewards: np.ndarray) -> bool:
    """Whether nearly every state pays something else, as where rewards are distances.

    What an error costs is then seen at once: only a reward that is far off, or an end, is a reason to keep away. To
    keep away from all others costs more than to err: beyond a doubtful transition a search expects the worst.
    """
    known = rewards[np.isfinite(rewards)]
    return len(known) > 0 and len(np.unique(known)) > DENSE * len(known)


def doubtful_errors(
    experience: Experience, measure: Measure, since: int, corrected: bool, by_chance: bool = False
) -> np.ndarray:
    """The observed U of every transition that is doubtful, 0 for the others."""
    errors, order = np.zeros(experience.count), experience.latest(experience.count, since)
    if order.size:
        found = order[_find_doubtful(experience, measure, order, corrected, by_chance)[1]]
        errors[found] = experience.uncertainties(measure)[found]
    return errors


def same_arrays(one: Any, other: Any) -> bool:
    """Whether two trees of arrays are equal."""
    if isinstance(one, Doubt) and isinstance(other, Doubt):
        return all(map(np.array_equal, vars(one).values(), vars(other).values()))
    if one is None or other is None or repr(jax.tree.structure(one)) != repr(jax.tree.structure(other)):
        return one is other
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(first, second) for first, second in pairs)


def doubts_nothing(estimator: object) -> bool:
    """Whether an estimator says that U is 0 whatever is seen."""
    zero = is_a(estimator, "uamcts.uncertainty.estimator", "ZeroUncertainty")
    return estimator == "none" if isinstance(estimator, str) else zero
