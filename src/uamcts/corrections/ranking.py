"""Which sets of parameters would explain most if differences were linear in them."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

RANKED = 10
"""How many promising parameters sets are made of."""


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
