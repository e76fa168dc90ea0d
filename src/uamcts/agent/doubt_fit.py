"""Doubt of the corrected model, from the experience of an agent."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from uamcts.agent.experience import Experience
from uamcts.agent.measure import Measure
from uamcts.corrections.doubt import Doubt, doubtful


def fit_doubt(experience: Experience, measure: Measure, since: int) -> Doubt | None:
    """Balls around the transitions that are doubtful, as the world is since its last change; None without any."""
    if not experience.count:
        return None
    order = experience.latest(experience.count, since)
    wrong = doubtful(experience.evidence(measure, order), experience.slips)
    inputs, actions = (experience.column(name)[order] for name in ("inputs", "action"))
    return Doubt.fit(inputs, actions, experience.uncertainties(measure)[order], wrong)


def doubtful_errors(experience: Experience, measure: Measure, since: int) -> np.ndarray:
    """The observed U of every transition that is doubtful, 0 for the others."""
    errors = np.zeros(experience.count)
    if experience.count:
        order = experience.latest(experience.count, since)
        found = order[doubtful(experience.evidence(measure, order), experience.slips)]
        errors[found] = experience.uncertainties(measure)[found]
    return errors


def same_arrays(one: Any, other: Any) -> bool:
    """Whether two trees of arrays are equal."""
    if one is None or other is None or repr(jax.tree.structure(one)) != repr(jax.tree.structure(other)):
        return one is other
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(first, second) for first, second in pairs)
