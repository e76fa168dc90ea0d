"""What a fit of the residual of an action is: a tree with a linear function in each leaf, or a single constant."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float, Int

DEPTH = 3
INNER, LEAVES = 2**DEPTH - 1, 2**DEPTH
"""Nodes that split and nodes that do not, in a complete tree: node i has the children 2 i + 1 and 2 i + 2."""
NO_SPLIT = -1
"""In place of the feature that a node looks at: every state goes left."""
FEWEST_EQUAL, EQUAL_SHARE, ROUNDING = 3, 0.8, 1e-4
"""So many rows that differ by the same number, a share of all of them, up to rounding, are no chance."""
PRUNED = 0.2
"""Slopes that move an output by less than this share of its usual error, for a usual difference of an input, are 0."""

Matrix: TypeAlias = Float[np.ndarray, "rows columns"]


class ActionFit(NamedTuple):
    """A tree and, in each leaf, what each output adds up to, in the units of the inputs and outputs given."""

    feature: Int[np.ndarray, " inner"]
    threshold: Float[np.ndarray, " inner"]
    coefficients: Float[np.ndarray, "leaves outputs columns"]
    low: Float[np.ndarray, "leaves outputs"]
    """The least prediction for a row that was seen."""
    high: Float[np.ndarray, "leaves outputs"]
    losses: Float[np.ndarray, "rows outputs"]
    """Absolute errors on held-out rows, bounded; of a constant or a border, on the rows that it was fitted to."""


def equal_differences(outputs: Matrix) -> Float[np.ndarray, " outputs"]:
    """The number that nearly all rows of an output are equal to, if that can be no chance, else 0."""
    middle = np.sort(outputs, axis=0)[(len(outputs) - 1) // 2]  # one that was seen
    same = np.sum(np.abs(outputs - middle) <= ROUNDING * np.abs(middle), axis=0)
    return np.where(same >= max(FEWEST_EQUAL, EQUAL_SHARE * len(outputs)), middle, 0)


def is_constant(fit: ActionFit, outputs: Matrix) -> bool:
    """Whether a fit adds the same in all states, and nearly all of these outputs are equal to that."""
    corrected = np.any(fit.coefficients[:, :, 0] != 0, axis=0)
    same = np.all(fit.low == fit.low[0]) and np.all(fit.low == fit.high)
    return bool(same and np.all(equal_differences(outputs)[corrected] != 0))


def prune(fit: ActionFit) -> Float[np.ndarray, "leaves outputs inputs"]:
    """The slopes of a fit without those that add less than a fraction of what it leaves: every one costs time."""
    slopes = fit.coefficients[:, :, 1:]
    least = 1e-6 * np.maximum(np.abs(fit.low), np.abs(fit.high)).max(axis=0)
    least = np.maximum(least, PRUNED * fit.losses.mean(axis=0))
    return np.where(np.abs(slopes) > least[:, None], slopes, 0.0)


def constant_fit(constants: Float[np.ndarray, " outputs"], outputs: Matrix, columns: int) -> ActionFit:
    """A fit that adds the same everywhere."""
    coefficients = np.zeros((LEAVES, len(constants), columns))
    coefficients[:, :, 0] = constants
    bounds = np.tile(constants, (LEAVES, 1))
    return ActionFit(
        np.zeros(INNER, int), np.full(INNER, np.inf), coefficients, bounds, bounds, np.abs(outputs - constants)
    )
