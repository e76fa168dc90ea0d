"""Which transitions a residual of an action is fitted to: those of this action, or those of all actions.

Wind, drag and a magnet act whatever one does. Fitted to all actions together, such an error needs a fraction of the
transitions, and holds for actions that were hardly ever tried.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int

from uamcts.corrections.residual_border import fit_border
from uamcts.corrections.residual_fit import ActionFit, Matrix, fit_action

FEWEST = 4
"""Transitions of an action from which one can tell whether the residual of all actions holds for it."""
LEFT = 0.8
"""The residual of all actions holds for one if it leaves no more than this share of the errors."""


def fit_actions(
    inputs: Matrix, outputs: Matrix, actions: Int[np.ndarray, " rows"], num_actions: int
) -> dict[int, tuple[ActionFit, Bool[np.ndarray, " rows"]]]:
    """The fit of every action that has one, and the rows that it was made of.

    Args:
        inputs: Standardised features, in the order of time.
        outputs: Differences; those that are negligible are exactly 0.
        actions: Of each row.
        num_actions: The number of actions.
    """
    found: dict[int, tuple[ActionFit, Bool[np.ndarray, " rows"]]] = {}
    if not outputs.size:
        return found
    own = {action: rows for action in range(num_actions) if (rows := actions == action).any()}
    common = fit_action(inputs, outputs) if len(own) > 1 else None
    everything, holds = np.ones(len(actions), bool), []
    for action, rows in own.items():
        alone = fit_border(inputs[rows], outputs[rows]) or fit_action(inputs[rows], outputs[rows])
        shared = common is not None and _left(common, outputs, rows) < LEFT
        if rows.sum() >= FEWEST:
            holds.append(shared)
        if alone is not None and not (shared and _is_as_good(common, alone, outputs, rows)):
            found[action] = alone, rows
        elif common is not None and shared:
            found[action] = common, everything
    if common is not None and len(holds) > 1 and all(holds):
        for action in set(range(num_actions)) - set(own):
            found[action] = common, everything
    return found


def _left(fit: ActionFit, outputs: Matrix, rows: Bool[np.ndarray, " rows"]) -> float:
    """The share of the errors of some rows that a fit to all rows leaves."""
    assert fit.losses is not None  # noqa: S101 (only fits with a border have none)
    sizes = np.abs(outputs).mean(axis=0)
    before = float(np.sum(np.abs(outputs[rows]) / np.where(sizes > 0, sizes, 1)))
    return float(np.sum(fit.losses[rows] / np.where(sizes > 0, sizes, 1))) / before if before else 1.0


def _is_as_good(common: ActionFit | None, alone: ActionFit, outputs: Matrix, rows: Bool[np.ndarray, " rows"]) -> bool:
    """Whether the fit to all actions predicts held-out rows of one at least as well as its own."""
    if common is None or common.losses is None or alone.losses is None:
        return False
    sizes = np.maximum(np.abs(outputs).mean(axis=0), 1e-300)
    return bool(np.sum(common.losses[rows] / sizes) <= np.sum(alone.losses / sizes))
