"""How a `Residual` is fitted: for each action a tree of depth 0 to 3 with robust ridge regressions in its nodes.

The tree is shared by all features of the next state. Each feature then chooses its own model by cross-validation:
nothing, a constant or a linear function, over all states or separately in the nodes of some depth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from uamcts.corrections.residual_leaves import DEPTH, INNER, LEAVES, ActionFit, Matrix, constant_fit, equal_differences

NOTHING, EDGE = 0.01, 0.05
"""A leaf adds nothing if it adds less than this share of its neighbour; how far into the gap between them that one
reaches."""
LEAST_ROWS = 8
"""Fewer rows of an action teach nothing but a constant that all of them share, and no leaf has fewer."""
FOLDS, FEWER_FOLDS, MANY_ROWS, BLOCKS = 4, 2, 200, 20
"""Consecutive rows are held out together, because neighbours in time resemble each other. Of many rows, half of them
are enough to fit to."""
RIDGES = (0.01, 1e-6)
"""Penalties of a squared slope in standard units, per row."""
KINDS = 1 + len(RIDGES)
"""Models in a node, simplest first: a constant, then one linear function per penalty."""
REWEIGHTINGS = 3
HUBER = 1.5
"""Rows whose error is above this many medians lose weight."""
NEGLIGIBLE = 1e-3
"""Where a linear fit leaves less than this of an output of unit size, the output asks for no split."""
CHANCE = 16
"""A split is not tried if it explains less than this / rows of every output: the best split of noise explains that."""
MOST_LOSS = 5
"""In units of the usual size of an output: larger errors are outliers."""
CREDIBLE = 2.5
"""Standard errors by which the loss must be below that of predicting 0; the referee asks for more later on."""
LEAST_GAIN_OF_A_CONSTANT, LEAST_GAIN = 0.01, 0.1
"""Fractions by which the loss must be below that of predicting 0 and, of other models, that of a constant too.

Noisy sensors make errors depend on the state: a reading that is too high is followed by a lower one. A model that
explains no more than that describes the sensor and not the simulator. A constant cannot fall for it.
"""
CLEARLY = 1
"""Standard errors by which a model must be better than simpler ones to be preferred."""
EQUAL = 1e-3
"""Losses that differ by less than this fraction of the loss of predicting 0 count as equal."""


class Tree(NamedTuple):
    """The split of each inner node, and the models of all nodes."""

    feature: Int[np.ndarray, " inner"]
    threshold: Float[np.ndarray, " inner"]
    """A row goes left if its feature is at most this; infinity where nothing is split."""
    coefficients: Float[np.ndarray, "nodes kinds outputs columns"]
    """Of the intercept and the inputs."""

    def nodes(self, inputs: Matrix, depth: int) -> Int[np.ndarray, " rows"]:
        """The node at a depth that each row of inputs falls into."""
        node = np.zeros(len(inputs), int)
        for _ in range(depth):
            right = inputs[np.arange(len(inputs)), self.feature[node]] > self.threshold[node]
            node = 2 * node + 1 + right
        return node


def fit_action(inputs: Matrix, outputs: Matrix) -> ActionFit | None:
    """Fits the rows of one action. None if predicting 0 is as good for every output.

    Args:
        inputs: Standardised features, in the order of time.
        outputs: Differences. Those that are exactly 0 say nothing about their usual size.
    """
    equal = equal_differences(outputs)
    if len(inputs) < LEAST_ROWS:
        return constant_fit(equal, outputs, 1 + inputs.shape[1]) if equal.any() else None
    if not outputs.any():
        return None
    sizes = np.array([np.median(np.abs(output[output != 0])) if output.any() else 1.0 for output in outputs.T])
    outputs = outputs / sizes
    losses = held_out_losses(inputs, outputs)
    chosen = [choose(one) for one in np.moveaxis(losses, 2, 0)]
    chosen = [choice or int(constant != 0) for choice, constant in zip(chosen, equal, strict=True)]
    if not any(chosen):
        return None
    held_out = np.stack([losses[:, choice, output] for output, choice in enumerate(chosen)], axis=1)
    depths = [(choice - 1) // KINDS if choice else 0 for choice in chosen]
    tree = grow(inputs, outputs, max(depths))
    columns = with_intercept(inputs)
    leaves = np.arange(INNER, INNER + LEAVES)
    coefficients = np.zeros((LEAVES, outputs.shape[1], columns.shape[1]))
    low, high = np.zeros((2, LEAVES, outputs.shape[1]))
    for output, (choice, depth) in enumerate(zip(chosen, depths, strict=True)):
        if choice:
            ancestors = ((leaves + 1) >> (DEPTH - depth)) - 1
            coefficients[:, output] = tree.coefficients[ancestors, (choice - 1) % KINDS, output]
            place = tree.nodes(inputs, depth)
            for leaf, node in enumerate(ancestors):
                seen = columns[place == node] @ coefficients[leaf, output]
                if seen.size:  # there are no rows in a node that nothing is sent to
                    low[leaf, output], high[leaf, output] = seen.min(), seen.max()
    move_borders(tree, inputs, np.abs(np.stack([low, high])).max(axis=(0, 2)))
    return ActionFit(
        tree.feature, tree.threshold, coefficients * sizes[:, None], low * sizes, high * sizes, held_out * sizes
    )


def move_borders(tree: Tree, inputs: Matrix, sizes: Float[np.ndarray, " leaves"]) -> None:
    """Moves splits between leaves that add something and leaves that add nothing to the edge of what was off.

    In a gap between the two the simulator may be right: believed to be wrong there, it would never be found out.

    Args:
        tree: Its thresholds are changed.
        inputs: The rows that it was fitted to.
        sizes: The largest of what each leaf adds, in any output.
    """
    for node in np.flatnonzero(np.isfinite(tree.threshold)).tolist():
        first, count = node, 1
        while first < INNER:
            first, count = 2 * first + 1, 2 * count
        left, right = (sizes[start : start + count // 2].max() for start in (first - INNER, first - INNER + count // 2))
        depth = (node + 1).bit_length() - 1
        values = inputs[tree.nodes(inputs, depth) == node, tree.feature[node]]
        below, above = values[values <= tree.threshold[node]], values[values > tree.threshold[node]]
        if below.size and above.size and min(left, right) <= NOTHING * max(left, right):
            gap = above.min() - below.max()
            tree.threshold[node] = below.max() + EDGE * gap if left > right else above.min() - EDGE * gap


def choose(losses: Float[np.ndarray, "rows candidates"]) -> int:
    """The simplest candidate that is nearly as good as the best; 0 if none is credibly better than predicting 0."""
    mean = losses.mean(axis=0)
    zero, constant = mean[:2]
    enough = mean < (1 - LEAST_GAIN) * min(zero, constant)
    enough[:2] = [False, constant < (1 - LEAST_GAIN_OF_A_CONSTANT) * zero]
    credible = zero - mean > CREDIBLE * standard_errors(losses[:, :1] - losses)
    candidates = np.flatnonzero(enough & credible)
    if not candidates.size:
        return 0
    best = candidates[np.argmin(mean[candidates])]
    tolerance = np.maximum(CLEARLY * standard_errors(losses - losses[:, [best]]), EQUAL * zero)
    return int(candidates[np.argmax((mean - mean[best] <= tolerance)[candidates])])


def standard_errors(values: Float[np.ndarray, "rows candidates"]) -> Float[np.ndarray, " candidates"]:
    """Of the means, from the means of blocks of consecutive rows."""
    blocks = min(BLOCKS, len(values))
    starts = np.arange(blocks) * len(values) // blocks
    sizes = np.diff(starts, append=len(values))
    means = np.add.reduceat(values, starts) / sizes[:, None]
    return np.asarray(means.std(axis=0, ddof=1) / np.sqrt(blocks))


def held_out_losses(inputs: Matrix, outputs: Matrix) -> Float[np.ndarray, "rows candidates outputs"]:
    """Absolute errors of all candidates on rows that they were not fitted to.

    Candidates, simplest first: 0, then the kinds of models at depth 0, at depth 1, and so on. Absolute errors, because
    a few large ones must not decide; for the same reason they are bounded.
    """
    rows = len(inputs)
    folds = FOLDS if rows < MANY_ROWS else FEWER_FOLDS
    fold = np.arange(rows) * min(BLOCKS, rows) // rows % folds
    losses = np.empty((rows, 1 + (DEPTH + 1) * KINDS, outputs.shape[1]))
    losses[:, 0] = np.abs(outputs)
    for held_out in range(folds):
        test = fold == held_out
        tree = grow(inputs[~test], outputs[~test], DEPTH)
        columns = with_intercept(inputs[test])
        for depth in range(DEPTH + 1):
            place = tree.nodes(inputs[test], depth)
            for node in np.unique(place):
                there = place == node
                predicted = np.einsum("kof,rf->rko", tree.coefficients[node], columns[there])
                errors = np.abs(outputs[test][there, None] - predicted)
                losses[np.flatnonzero(test)[there], 1 + depth * KINDS : 1 + (depth + 1) * KINDS] = errors
    return np.minimum(losses, MOST_LOSS)


def grow(inputs: Matrix, outputs: Matrix, depth: int) -> Tree:
    """A tree whose splits reduce what is left of the outputs after a linear fit in each node."""
    columns = with_intercept(inputs)
    tree = Tree(
        np.zeros(INNER, int),
        np.full(INNER, np.inf),
        np.zeros((INNER + LEAVES, KINDS, outputs.shape[1], columns.shape[1])),
    )
    rows = {0: np.arange(len(inputs))}
    for node in range(INNER + LEAVES):
        if node not in rows:  # its parent was not split, and stands for it
            tree.coefficients[node] = tree.coefficients[(node - 1) // 2]
            continue
        here = rows[node]
        tree.coefficients[node] = fit_node(columns[here], outputs[here])
        if node >= 2**depth - 1 or len(here) < 2 * LEAST_ROWS:
            continue
        left_over = outputs[here] - columns[here] @ tree.coefficients[node, -1].T
        split = best_split(inputs[here], comparable(left_over))
        if split is not None:
            tree.feature[node], tree.threshold[node] = split
            left = inputs[here, tree.feature[node]] <= tree.threshold[node]
            rows[2 * node + 1], rows[2 * node + 2] = here[left], here[~left]
    return tree


def fit_node(columns: Matrix, outputs: Matrix) -> Float[np.ndarray, "kinds outputs columns"]:
    """A median, and linear functions by least squares with less and less weight for outliers (Huber's)."""
    rows, size = columns.shape
    if not rows:  # all rows of a part of the tree may be held out
        return np.zeros((KINDS, outputs.shape[1], size))
    products = (columns[:, :, None] * columns[:, None, :]).reshape(rows, -1)
    slopes = np.diag(np.arange(size) > 0)
    targets = np.ascontiguousarray(outputs.T)
    coefficients = np.zeros((KINDS, outputs.shape[1], size))
    middles = (rows - 1) // 2, rows // 2
    coefficients[0, :, 0] = np.partition(targets, middles, axis=1)[:, middles].mean(axis=1)
    weights = np.ones_like(targets)
    for step in range(REWEIGHTINGS + 1):
        if step:
            left_over = np.abs(targets - coefficients[1] @ columns.T)
            usual = np.partition(left_over, rows // 2, axis=1)[:, rows // 2, None] + 1e-12
            weights = 1 / np.maximum(left_over / (HUBER * usual), 1)
        total = weights.sum(axis=1)[:, None]
        grams = (weights @ products / total).reshape(-1, size, size)
        moments = ((weights * targets) @ columns / total)[..., None]
        for kind, ridge in enumerate(RIDGES if step == REWEIGHTINGS else RIDGES[:1], start=1):
            coefficients[kind] = np.linalg.solve(grams + ridge * slopes, moments)[..., 0]
    return coefficients


def comparable(left_over: Matrix) -> Matrix:
    """Clips each output's outliers, centres it and divides by its spread. What is negligible becomes 0."""
    ordered = np.sort(left_over, axis=0)
    tail = len(ordered) // 25
    clipped = np.clip(left_over, ordered[tail], ordered[-1 - tail])
    clipped -= clipped.mean(axis=0)
    spread = np.sqrt(np.square(clipped).mean(axis=0))
    return np.where(spread > NEGLIGIBLE, clipped / np.maximum(spread, NEGLIGIBLE), 0)


def best_split(inputs: Matrix, outputs: Matrix) -> tuple[int, float] | None:
    """The feature and the threshold that explain most, unless they look like chance for every output.

    Both sides are fitted by lines over the feature: a split of means would find steps, but no kinks and curves.
    """
    outputs = outputs[:, outputs.any(axis=0)]
    rows = len(inputs)
    if not outputs.size or rows < 2 * LEAST_ROWS:
        return None
    order = np.argsort(inputs, axis=0)
    ordered = np.take_along_axis(inputs, order, axis=0)
    explained = explained_by_lines(ordered, outputs[order])[LEAST_ROWS - 1 : rows - LEAST_ROWS]
    below, above = ordered[LEAST_ROWS - 1 : rows - LEAST_ROWS], ordered[LEAST_ROWS : rows - LEAST_ROWS + 1]
    total = np.where(below < above, explained.sum(axis=2), -1)
    cut, feature = np.unravel_index(np.argmax(total), total.shape)
    if total[cut, feature] <= 0 or explained[cut, feature].max() < min(CHANCE / rows, 0.1):
        return None
    return int(feature), float((below[cut, feature] + above[cut, feature]) / 2)


def explained_by_lines(
    inputs: Float[np.ndarray, "rows features"], outputs: Float[np.ndarray, "rows features outputs"]
) -> Float[np.ndarray, "rows_but_one features outputs"]:
    """What two lines explain of outputs with mean 0 and variance 1, one up to each row and one for the rows after."""
    rows = len(inputs)
    x = inputs[:, :, None]
    sums = [np.cumsum(values, axis=0) for values in (x, x * x, outputs, x * outputs)]
    number = np.arange(1, rows).reshape(-1, 1, 1)

    def side(count: np.ndarray, x: np.ndarray, xx: np.ndarray, y: np.ndarray, xy: np.ndarray) -> np.ndarray:
        """The sum of squares that a line explains, from the sums over its rows."""
        mean = x / count
        spread = xx - x * mean
        xy = xy - y * mean
        return np.asarray(y * y / count + np.where(spread > 1e-9 * count, 1 / np.maximum(spread, 1e-9), 0) * xy * xy)

    left = side(number, *(total[:-1] for total in sums))
    right = side(rows - number, *(total[-1] - total[:-1] for total in sums))
    return np.asarray((left + right) / rows)


def with_intercept(inputs: Matrix) -> Matrix:
    return np.concatenate([np.ones((len(inputs), 1)), inputs], axis=1)
