"""Errors that are a share of what actions do: a motor that is weaker than believed, or has a load to move.

What an action does is how the state that it leads to differs from where other actions lead. Where that is the same
everywhere, one share explains the errors of all actions, and a few transitions of each of two of them suffice.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from uamcts.corrections.residual_fit import Tree, with_intercept
from uamcts.corrections.residual_leaves import DEPTH, INNER, ActionFit, Matrix

FEWEST_WRONG, FEWEST_ACTIONS, FEWEST_IDLE = 4, 2, 3
"""A share is fitted if so many transitions are wrong. They must be of so many actions with different effects. Otherwise
so many transitions of an action without effect must be exact where the others are wrong, which rules out a wind."""
LEFT = 0.15
"""It must leave no more than this part of the errors of any action."""
EXACT, SAME = 1e-3, 1e-6
"""An action is no reference if it is wrong by more than this part of the usual error; effects that differ by no more
than the second part of the largest are equal."""

Effects = Float[np.ndarray, "actions outputs"]


def fit_gain(
    inputs: Matrix, outputs: Matrix, actions: Int[np.ndarray, " rows"], effects: Effects,
    fit: Callable[[Matrix, Matrix], ActionFit | None],
) -> dict[int, ActionFit]:  # fmt: skip
    """For every action a fit that adds a share of what it does; nothing if that does not explain what was seen.

    Args:
        inputs: Standardised features, in the order of time.
        outputs: Differences; those that are negligible are exactly 0.
        actions: Of each row.
        effects: What each action adds to each output, up to a constant that all actions share.
        fit: Fits the share, as if it were the difference of a single action.
    """
    sizes = np.abs(outputs).mean(axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    affected = np.ptp(effects, axis=0) > 0  # the others cannot be explained by what actions do
    scaled = np.where(affected, outputs / sizes, 0.0)
    moved = _from_reference(scaled, actions, effects / sizes)
    squares = np.square(moved).sum(axis=1)
    does = squares > SAME**2 * squares.max(initial=0.0)
    moved, rows = np.where(does[:, None], moved, 0.0), does[actions]
    wrong = {action for action in np.unique(actions[rows]).tolist() if scaled[actions == action].any()}
    if scaled[rows].any(axis=1).sum() < FEWEST_WRONG:
        return {}
    share, missed = np.zeros((2, len(actions), 1))
    share[rows, 0] = (scaled * moved[actions]).sum(axis=1)[rows] / squares[actions[rows]]
    found = fit(inputs[rows], share[rows])
    if found is None:
        return {}
    missed[rows] = found.losses
    losses = np.abs(moved[actions]) * missed + np.abs(scaled - moved[actions] * share)
    if any(losses[actions == action].sum() > LEFT * np.abs(scaled[actions == action]).sum() for action in wrong):
        return {}
    idle = ~rows & (_shares(found, inputs) != 0.0)
    if _count_different(moved, wrong) < FEWEST_ACTIONS and (idle.sum() < FEWEST_IDLE or scaled[idle].any()):
        return {}
    losses = np.where(affected, losses * sizes, np.abs(outputs))
    return {action: _times(found, moved[action] * sizes, losses) for action in range(len(effects))}


def _from_reference(outputs: Matrix, actions: Int[np.ndarray, " rows"], effects: Effects) -> Effects:
    """What actions do beyond one that is predicted exactly; where there is none, beyond the mean of all."""
    usual = np.abs(outputs).sum(axis=1).mean()
    seen = np.unique(actions).tolist()
    errors = {action: float(np.abs(outputs[actions == action]).sum(axis=1).mean()) for action in seen}
    best = min(errors, key=errors.__getitem__)
    reference = effects[best] if errors[best] <= EXACT * usual else effects.mean(axis=0)
    return np.asarray(effects - reference)


def _shares(fit: ActionFit, inputs: Matrix) -> Float[np.ndarray, " rows"]:
    """The share in each row."""
    leaf = Tree(fit.feature, fit.threshold, fit.coefficients).nodes(inputs, DEPTH) - INNER
    return np.asarray((with_intercept(inputs) * fit.coefficients[leaf, 0]).sum(axis=1))


def _count_different(effects: Effects, actions: set[int]) -> int:
    """How many different effects some actions have."""
    scale = SAME * max(float(np.abs(effects).max()), 1e-300)
    return len({tuple(np.round(effects[action] / scale).tolist()) for action in actions})


def _times(share: ActionFit, effect: Float[np.ndarray, " outputs"], losses: Matrix) -> ActionFit:
    """The fit of a share, times an effect on every output."""
    bounds = np.stack([share.low * effect, share.high * effect])
    return share._replace(
        coefficients=share.coefficients * effect[:, None], low=bounds.min(axis=0), high=bounds.max(axis=0),
        losses=losses,
    )  # fmt: skip
