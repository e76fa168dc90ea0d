"""What a residual is fitted to: rows that are checked, and differences of angles that are wrapped."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int

TURN = 2 * math.pi

Matrix: TypeAlias = Float[np.ndarray, "rows columns"]


def find_angles(differences: Matrix, before: Matrix, after: Matrix) -> Bool[np.ndarray, " columns"]:
    """Which features are angles that jump by a whole turn at the ends of their interval.

    These stay in an interval of length 2 pi and are seen to leave it at one end and to come back at the other, in the
    real world or in the simulator; few steps are about half a turn long.

    Args:
        differences: Real - believed features of the next state.
        before: Features of the state.
        after: Real features of the next state.
    """
    if not len(before):
        return np.zeros(before.shape[1], bool)
    values = np.concatenate([before, after, after - differences])
    steps = np.abs(np.concatenate([after - before, after - differences - before]))
    # Single precision rounds pi, so an interval may be a little longer.
    in_a_turn = np.ptp(values, axis=0) <= TURN * (1 + 1e-5)
    jumps = (steps > 0.75 * TURN).any(axis=0)
    halfway = ((steps > 0.25 * TURN) & (steps <= 0.75 * TURN)).mean(axis=0)
    return np.asarray(in_a_turn & jumps & (halfway < 0.1))


def wrap_differences(
    differences: Matrix, before: Matrix, after: Matrix, angles: Bool[np.ndarray, " columns"] | None = None
) -> Matrix:
    """Differences with those of angles brought between -pi and pi; `angles` are found if not given."""
    which = find_angles(differences, before, after) if angles is None else angles
    return np.where(which, differences - TURN * np.round(differences / TURN), differences)


def check_rows(
    features: Any, actions: Any, differences: Any, num_actions: int, scale: Any
) -> tuple[Matrix, Int[np.ndarray, " rows"], Matrix]:
    """The rows that are finite, as arrays of numbers."""
    features, actions, differences = np.asarray(features, float), np.asarray(actions), np.asarray(differences, float)
    columns = (features.shape[-1], features.shape[-1] + 1)
    fits = features.ndim == differences.ndim == 2 and len(differences) == len(features)
    if not fits or differences.shape[1] not in columns or actions.shape != features.shape[:1]:
        raise ValueError(
            "features should be [rows, features], differences the same or with one column more for the reward, and "
            "actions [rows], but their shapes are "
            f"{features.shape}, {differences.shape} and {actions.shape}"
        )
    if actions.size and not (actions.dtype.kind in "iu" and actions.min() >= 0 and actions.max() < num_actions):
        raise ValueError(f"actions should be integers from 0 to {num_actions - 1}, but they are {np.unique(actions)}")
    if scale is not None and (np.shape(scale) != features.shape[1:] or not np.all(np.isfinite(scale) & (scale >= 0))):
        raise ValueError(f"previous_scale should be {features.shape[1]} numbers that are at least 0, but it is {scale}")
    finite = np.isfinite(features).all(axis=1) & np.isfinite(differences).all(axis=1)
    return features[finite], actions[finite], differences[finite]
