"""Residuals with a border: a simulator that is exact on one side of it, and wrong on the other.

Where some transitions of an action are predicted exactly, a border that separates them from the others is evidence in
itself: that five wrong ones lie on one side and eight exact ones on the other hardly ever happens by chance. So a few
transitions suffice, where a regression would need many.
"""

from __future__ import annotations

import numpy as np

from uamcts.corrections.residual_fit import EDGE, fit_node, with_intercept
from uamcts.corrections.residual_leaves import FEWEST_EQUAL, INNER, LEAVES, ActionFit, Matrix, equal_differences

FEWEST_WRONG, FEWEST_EXACT = 5, 8
PURITY = 0.97
"""The share of transitions that must lie on their side of the border."""
LINEAR_ROWS, LINEAR_GAIN = 16, 0.5
"""A linear function on the wrong side needs so many rows, and must leave no more than this share of the differences."""


def fit_border(inputs: Matrix, outputs: Matrix) -> ActionFit | None:
    """A border between exact and wrong transitions of one action, and what is wrong beyond it; None without one.

    Args:
        inputs: Standardised features.
        outputs: Differences; those that are negligible are exactly 0.
    """
    wrong = np.any(outputs != 0, axis=1)
    equal = wrong.any() and bool(equal_differences(outputs[wrong]).any())
    fewest = FEWEST_EQUAL if equal else FEWEST_WRONG
    if wrong.sum() < fewest or (~wrong).sum() < FEWEST_EXACT:
        return None
    feature, threshold, above, share = _best_border(inputs, wrong)
    side = (inputs[:, feature] > threshold) == above
    if share < PURITY or (side & wrong).sum() < fewest:  # among many exact ones, a few on either side are no matter
        return None
    columns, there = with_intercept(inputs), outputs[side & wrong]
    kinds = fit_node(columns[side & wrong], there)
    constant, linear = (np.median(np.abs(there - columns[side & wrong] @ kinds[kind].T), axis=0) for kind in (0, 1))
    better = (linear < LINEAR_GAIN * constant) & (len(there) >= LINEAR_ROWS)
    chosen = np.where(better[:, None], kinds[1], kinds[0])
    predicted = columns[side & wrong] @ chosen.T
    coefficients = np.zeros((LEAVES, *chosen.shape))
    low, high = np.zeros((2, LEAVES, outputs.shape[1]))
    half = slice(LEAVES // 2, LEAVES) if above else slice(0, LEAVES // 2)
    coefficients[half], low[half], high[half] = chosen, predicted.min(axis=0), predicted.max(axis=0)
    features, thresholds = np.zeros(INNER, int), np.full(INNER, np.inf)
    features[0], thresholds[0] = feature, threshold
    losses = np.abs(outputs - side[:, None] * (columns @ chosen.T))
    return ActionFit(features, thresholds, coefficients, low, high, losses)


def _best_border(inputs: Matrix, wrong: np.ndarray) -> tuple[int, float, bool, float]:
    """Feature and threshold that separate wrong from exact best, whether wrong is above, and the share on its side."""
    best = (0, 0.0, True, 0.0)
    for feature in range(inputs.shape[1]):
        order = np.argsort(inputs[:, feature], kind="stable")
        ranked, there = inputs[order, feature], wrong[order]
        below = np.cumsum(there)[:-1]  # wrong ones up to each row
        number = np.arange(1, len(there))
        right_above = (number - below + there.sum() - below) / len(there)
        for above, shares in ((True, right_above), (False, 1.0 - right_above)):
            shares = np.where(ranked[:-1] < ranked[1:], shares, 0.0)
            place = int(np.argmax(shares))
            if shares[place] > best[3]:
                gap = ranked[place + 1] - ranked[place]
                edge = ranked[place + 1] - EDGE * gap if above else ranked[place] + EDGE * gap
                best = (feature, float(edge), above, float(shares[place]))
    return best
