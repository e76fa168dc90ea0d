"""Residuals with borders: a simulator that is exact on one side of each, and wrong on the other.

Where some transitions of an action are predicted exactly, a border that separates them from the others is evidence in
itself: five wrong ones on one side and eight exact ones on the other are hardly ever a coincidence. So a few
transitions suffice, where a regression would need many. Two or three borders enclose a region, such as a gust of wind.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from uamcts.corrections.residual_fit import EDGE, fit_node, with_intercept
from uamcts.corrections.residual_leaves import DEPTH, FEWEST_EQUAL, INNER, LEAVES, ActionFit, Matrix, equal_differences

FEWEST_WRONG, FEWEST_EXACT = 5, 8
PURITY = 0.97
"""The share of transitions that must lie on their side of the border."""
FEWEST_ENCLOSED = 8
"""The fewest wrong transitions in a region, unless all differ by the same number. Each of its borders must exclude at
least FEWEST_EXACT exact ones that no other border does."""
LINEAR_ROWS, LINEAR_GAIN = 16, 0.5
"""A linear function on the wrong side needs so many rows, and must leave no more than this share of the differences."""


class Border(NamedTuple):
    """Transitions are wrong above a threshold of a feature, or below it."""

    feature: int
    threshold: float
    above: bool

    def side(self, inputs: Matrix) -> np.ndarray:
        """Which rows lie on the wrong side."""
        return np.asarray((inputs[:, self.feature] > self.threshold) == self.above)


def fit_border(inputs: Matrix, outputs: Matrix) -> ActionFit | None:
    """Borders between exact and wrong transitions of one action, and what is wrong beyond them; None without any.

    Args:
        inputs: Standardised features.
        outputs: Differences; those that are negligible are exactly 0.
    """
    wrong = np.any(outputs != 0, axis=1)
    equal = wrong.any() and bool(equal_differences(outputs[wrong]).any())
    fewest = FEWEST_EQUAL if equal else FEWEST_WRONG
    if wrong.sum() < fewest or (~wrong).sum() < FEWEST_EXACT:
        return None
    borders = _separate(inputs, wrong) or _enclose(inputs, wrong)
    side = np.all([border.side(inputs) for border in borders], axis=0) if borders else np.zeros(len(wrong), bool)
    if len(borders) > 1:
        fewest = FEWEST_WRONG if equal else FEWEST_ENCLOSED
    if (side & wrong).sum() < fewest:  # among many exact ones, PURITY allows for a few on either side
        return None
    columns, there = with_intercept(inputs), outputs[side & wrong]
    kinds = fit_node(columns[side & wrong], there)
    constant, linear = (np.median(np.abs(there - columns[side & wrong] @ kinds[kind].T), axis=0) for kind in (0, 1))
    better = (linear < LINEAR_GAIN * constant) & (len(there) >= LINEAR_ROWS)
    chosen = np.where(better[:, None], kinds[1], kinds[0])
    predicted = columns[side & wrong] @ chosen.T
    features, thresholds, leaves = _tree(borders)
    coefficients = np.zeros((LEAVES, *chosen.shape))
    low, high = np.zeros((2, LEAVES, outputs.shape[1]))
    coefficients[leaves], low[leaves], high[leaves] = chosen, predicted.min(axis=0), predicted.max(axis=0)
    losses = np.abs(outputs - side[:, None] * (columns @ chosen.T))
    return ActionFit(features, thresholds, coefficients, low, high, losses)


def _tree(borders: list[Border]) -> tuple[np.ndarray, np.ndarray, slice]:
    """The splits of a tree with these borders, and its leaves on the wrong side of all of them."""
    features, thresholds = np.zeros(INNER, int), np.full(INNER, np.inf)
    node, first, count = 0, 0, LEAVES
    for feature, threshold, above in borders:
        features[node], thresholds[node] = feature, threshold
        node, count = 2 * node + 1 + above, count // 2
        first += count * above
    return features, thresholds, slice(first, first + count)


def _separate(inputs: Matrix, wrong: np.ndarray) -> list[Border]:
    """One border with nearly all wrong transitions on one side, and nearly all exact ones on the other."""
    border, share = _best_border(inputs, wrong)
    return [border] if share >= PURITY else []


def _enclose(inputs: Matrix, wrong: np.ndarray) -> list[Border]:
    """Borders that hold nearly all wrong transitions, and shut out nearly all exact ones."""
    borders: list[Border] = []
    inside = np.ones(len(wrong), bool)
    while len(borders) < DEPTH and (inside & ~wrong).any():
        held = inputs[inside & wrong]
        spare = int((1.0 - PURITY) * wrong.sum() / DEPTH)
        if len(held) <= spare:
            return []
        ordered = np.sort(held, axis=0)
        found = [
            Border(feature, float(ordered[spare, feature] if above else ordered[-1 - spare, feature]), above)
            for feature in range(inputs.shape[1])
            for above in (True, False)
        ]
        found = [_beside(border, inputs[inside & ~wrong, border.feature]) for border in found]
        best = max(found, key=lambda border: int((inside & ~wrong & ~border.side(inputs)).sum()))
        if (inside & ~wrong & ~best.side(inputs)).sum() < FEWEST_EXACT:
            return []
        borders.append(best)
        inside &= best.side(inputs)
    return borders if (inside & wrong).sum() >= PURITY * wrong.sum() and (inside == wrong).mean() >= PURITY else []


def _beside(border: Border, exact: np.ndarray) -> Border:
    """A border at the outermost wrong transition, moved by a part of the way to the nearest exact one beyond it."""
    edge = border.threshold
    beyond = exact[exact < edge] if border.above else exact[exact > edge]
    gap = 0.0 if not beyond.size else float(np.abs(beyond - edge).min())
    return border._replace(threshold=edge - EDGE * gap if border.above else edge + EDGE * gap)


def _best_border(inputs: Matrix, wrong: np.ndarray) -> tuple[Border, float]:
    """The border that separates wrong from exact best, and the share of transitions on their side of it."""
    best = Border(0, 0.0, True), 0.0
    for feature in range(inputs.shape[1]):
        order = np.argsort(inputs[:, feature], kind="stable")
        ranked, there = inputs[order, feature], wrong[order]
        below = np.cumsum(there)[:-1]  # wrong ones up to each row
        number = np.arange(1, len(there))
        right_above = (number - below + there.sum() - below) / len(there)
        for above, shares in ((True, right_above), (False, 1.0 - right_above)):
            shares = np.where(ranked[:-1] < ranked[1:], shares, 0.0)
            place = int(np.argmax(shares))
            if shares[place] > best[1]:
                gap = ranked[place + 1] - ranked[place]
                edge = ranked[place + 1] - EDGE * gap if above else ranked[place] + EDGE * gap
                best = Border(feature, float(edge), above), float(shares[place])
    return best
