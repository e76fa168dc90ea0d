"""Which sets of parameters would explain most if differences were linear in them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from uamcts.corrections.trials import Trials

RANKED = 10
"""How many promising parameters sets are made of."""
JUMP = 0.4
"""A difference that changes by more than this for a tiny change of a parameter changes in a jump."""


class Ranked(NamedTuple):
    """A set of parameters."""

    score: float
    """What it leaves unexplained, as a logarithm, and a little more for larger sets."""
    chosen: tuple[int, ...]
    """The places of its parameters."""
    steps: np.ndarray
    """The change of each, in its unit."""


def rank_sets(jacobian: np.ndarray, apart: np.ndarray, home: np.ndarray, most: int) -> list[Ranked]:
    """Sets of up to `most` parameters, the most promising first.

    Args:
        jacobian: Derivatives of the differences by the parameters, in their units: [differences, parameters].
        apart: Differences at the present values.
        home: The way from these to the believed values.
        most: Parameters in a set at most.
    """
    apart = apart + jacobian @ home  # with every parameter at what is believed
    gram, slope = jacobian.T @ jacobian, jacobian.T @ apart
    size = np.diag(gram)
    gains = np.where(size > 1e-18, slope**2 / np.maximum(size, 1e-18), 0.0)
    promising = [int(place) for place in np.argsort(-gains)[:RANKED] if size[place] > 1e-18]
    total, found = float(apart @ apart), []
    for count in range(1, most + 1):
        for chosen in itertools.combinations(promising, count):
            places = list(chosen)
            ridge = 1e-9 * np.diag(size[places])
            steps = -np.linalg.solve(gram[np.ix_(chosen, chosen)] + ridge, slope[places])
            left = math.log(max(total + steps @ slope[places], 1e-12 * total) + 1e-30)
            found.append(Ranked(left + 0.5 * count, chosen, steps + home[places]))
    return sorted(found, key=lambda one: one.score)


def slopes_of(
    trials: Trials, names: Sequence[str], vector: np.ndarray, rows: np.ndarray, units: np.ndarray, step: float,
    base: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Derivatives of the differences `base`, [rows, parts, names]: the trials' own, or by steps of so many units.

    An end that comes or goes is no slope, nor is a step that fails because a number is a place in a list.
    """
    own = getattr(trials, "jacobian", None)
    if own is not None:
        return np.asarray(own(names, vector, rows, units))
    moved = vector + np.diag(step * units)
    changes = np.stack([trials.residuals(names, one, rows) - base for one in moved], axis=-1)
    return np.where(np.abs(changes) > JUMP, 0.0, changes) / (step * units)
