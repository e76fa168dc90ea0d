"""Which transitions a residual of an action is fitted to: those of this action, or those of all actions.

Wind, drag and a magnet act whatever one does. Fitted to all actions together, such an error needs a fraction of the
transitions, and holds for actions that were hardly ever tried. An action may differ from the others by a constant: it
costs more, or pushes less. Or all of them do less than believed, each by the same share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int

from uamcts.corrections.residual_border import fit_border
from uamcts.corrections.residual_fit import fit_action
from uamcts.corrections.residual_gain import fit_gain
from uamcts.corrections.residual_leaves import ActionFit, Matrix, constant_fit

FEWEST = 4
"""Transitions of an action from which one can tell whether the residual of all actions holds for it."""
LEFT, LITTLE = 0.8, 0.15
"""The residual of all actions holds for one if it leaves no more than the first share of the errors. If it leaves no
more than the second, the action needs none of its own."""
DEVIATIONS, LEAST_SHIFT = 2.0, 0.2
"""An action differs by a constant if that is so many standard errors, and so large a share of the usual difference."""

Selection: TypeAlias = Bool[np.ndarray, " rows"]


def fit_actions(
    inputs: Matrix,
    outputs: Matrix,
    actions: Int[np.ndarray, " rows"],
    num_actions: int,
    effects: Float[np.ndarray, "actions outputs"] | None = None,
) -> dict[int, tuple[ActionFit, Selection]]:
    """The fit of every action that has one, and the rows that it was made of.

    Args:
        inputs: Standardised features, in the order of time.
        outputs: Differences; those that are negligible are exactly 0.
        actions: Of each row.
        num_actions: The number of actions.
        effects: What each action adds to each output, if that is the same everywhere.
    """
    found: dict[int, tuple[ActionFit, Selection]] = {}
    if not outputs.size:
        return found
    own = {action: rows for action in range(num_actions) if (rows := actions == action).any()}
    common, moved = _fit_together(inputs, outputs, own)
    shares = {} if effects is None else fit_gain(inputs, outputs, actions, effects, _fit_alone)
    everything, holds = np.ones(len(actions), bool), []
    rare = np.zeros(len(actions), bool)
    for action, rows in own.items():
        shared, left = _best_shared((common, moved.get(action), shares.get(action)), outputs, rows)
        alone = None
        if left > LITTLE:
            alone = _fit_alone(inputs[rows], outputs[rows])
        if rows.sum() >= FEWEST:
            holds.append(left < LEFT and shared is common)
        else:
            rare |= rows
        if alone is not None and not (left < LEFT and _left(alone.losses, outputs[rows]) >= left):
            found[action] = alone, rows
        elif shared is not None and left < LEFT:
            found[action] = shared, everything
    if common is not None and rare.sum() >= FEWEST:  # one by one they say nothing
        holds += [_left(common.losses[rare], outputs[rare]) < LEFT] * len(np.unique(actions[rare]))
    if common is not None and len(holds) > 1 and all(holds):
        for action in set(range(num_actions)) - set(own):
            found[action] = common, everything
    for action, share in shares.items():
        rows = own.get(action)
        if action not in found and (rows is None or not (outputs[rows].any() or share.losses[rows].any())):
            found[action] = share, everything
    return found


def _fit_alone(inputs: Matrix, outputs: Matrix) -> ActionFit | None:
    """A fit to rows as if they were of one action: a border, unless that leaves much and a regression less."""
    border = fit_border(inputs, outputs)
    if border is not None and _left(border.losses, outputs) <= LITTLE:
        return border
    found = fit_action(inputs, outputs)
    if found is None or border is None:
        return found or border
    return found if _left(found.losses, outputs) < _left(border.losses, outputs) else border


def _fit_together(
    inputs: Matrix, outputs: Matrix, own: dict[int, Selection]
) -> tuple[ActionFit | None, dict[int, ActionFit]]:
    """A fit to all actions, and for actions that differ by a constant one in which each may do so."""
    if len(own) < 2:
        return None, {}
    shifts = _shifts(outputs, own)
    common = _fit_alone(inputs, outputs)
    if not shifts:
        return common, {}
    level = outputs.copy()
    for action, shift in shifts.items():
        level[own[action]] -= shift
    level[np.abs(level) <= 1e-9 * np.abs(outputs)] = 0.0
    base = fit_action(inputs, level) or constant_fit(np.zeros(outputs.shape[1]), level, 1 + inputs.shape[1])
    return common, {action: _move(base, shift) for action, shift in shifts.items()}


def _shifts(outputs: Matrix, own: dict[int, Selection]) -> dict[int, Float[np.ndarray, " outputs"]]:
    """By how much the outputs of actions differ from those of most; only actions for which that is credible."""
    many = {action: rows for action, rows in own.items() if rows.sum() >= FEWEST}
    if len(many) < 2:
        return {}
    middles = {action: np.median(outputs[rows], axis=0) for action, rows in many.items()}
    usual, found = np.median(list(middles.values()), axis=0), {}
    for action, rows in many.items():
        shift = middles[action] - usual
        spread = 1.4826 * np.median(np.abs(outputs[rows] - middles[action]), axis=0) / np.sqrt(rows.sum())
        clear = (np.abs(shift) > DEVIATIONS * spread) & (np.abs(shift) > LEAST_SHIFT * np.abs(outputs).mean(axis=0))
        if clear.any():
            found[action] = np.where(clear, shift, 0.0)
    return found


def _move(fit: ActionFit, shift: Float[np.ndarray, " outputs"]) -> ActionFit:
    """A fit that adds a constant more."""
    coefficients = fit.coefficients.copy()
    coefficients[:, :, 0] += shift
    return fit._replace(coefficients=coefficients, low=fit.low + shift, high=fit.high + shift)


def _best_shared(fits: Sequence[ActionFit | None], outputs: Matrix, rows: Selection) -> tuple[ActionFit | None, float]:
    """The fit to all actions that leaves the smallest share of the errors in some rows, and that share."""
    left = [(1.0 if fit is None else _left(fit.losses[rows], outputs[rows]), fit) for fit in fits]
    share, best = min(left, key=lambda one: one[0])
    return best, share


def _left(losses: Matrix, outputs: Matrix) -> float:
    """The share of the errors of some rows that a fit leaves, whose losses on these rows are given."""
    sizes = np.abs(outputs).mean(axis=0)
    sizes = np.where(sizes > 0, sizes, 1)
    before = float(np.sum(np.abs(outputs) / sizes))
    return float(np.sum(losses / sizes)) / before if before else 1.0
