"""What a residual adds to a state, as Python functions: a search asks for it in every step of its rollouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from uamcts.corrections.residual_leaves import INNER, NO_SPLIT

if TYPE_CHECKING:
    from uamcts.corrections.residual import Residual

Output: TypeAlias = tuple[float, list[tuple[int, float]], float, float]
"""What is added to one number where all features are 0, slopes that are not 0, and the bounds of the sum."""
Table: TypeAlias = tuple[list[float], list[float], list[float], Any]
"""Where an action was seen, how far beyond that it is corrected, and the tree of what is added: see `_node_table`."""
Moved: TypeAlias = tuple[tuple[float, ...], float]
"""The numbers of a state with what is added to them, and what is added to the reward."""
Move: TypeAlias = Callable[[Sequence[float], Sequence[float]], Moved | None]
"""Moves the second numbers by what is added where the features are the first ones; None where that is nothing."""


class Moves(list[Move]):
    """A function for each action.

    Args:
        tables: What is added, for each action: see `action_tables`.
        pays: Whether the last number of what is added is that of the reward.
    """

    def __init__(self, tables: list[Table | None], pays: bool):
        super().__init__(_move_by(table, pays) if table else _nowhere for table in tables)
        self.tables, self.pays = tables, pays

    def __reduce__(self) -> tuple[type[Moves], tuple[list[Table | None], bool]]:
        return Moves, (self.tables, self.pays)


def _nowhere(values: Sequence[float], numbers: Sequence[float]) -> None:
    return None


def _move_by(table: Table, pays: bool) -> Move:
    """A function that adds what `look_up_shift` finds, to the last digit, and makes no list of it on the way."""
    lowest, highest, _, root = table

    def move(values: Sequence[float], numbers: Sequence[float]) -> Moved | None:
        for value, lower, upper in zip(values, lowest, highest, strict=True):
            if not lower <= value <= upper:
                shift = look_up_shift(table, values)
                return None if shift is None else (tuple(map(add, numbers, shift)), shift[-1] if pays else 0.0)
        node = root
        while type(node) is tuple:
            split, threshold, left, right = node
            node = right if values[split] > threshold else left
        if not node:
            return None
        moved = []
        for number, (total, slopes, low, high) in zip(numbers, node, strict=False):
            if slopes:
                for feature, slope in slopes:
                    total += slope * values[feature]
                total = low if total < low else high if total > high else total
            moved.append(number + total)
        return tuple(moved), _added(node[-1], values) if pays else 0.0

    return move


def _added(output: Output, values: Sequence[float]) -> float:
    """What a leaf adds to one number."""
    total, slopes, low, high = output
    for feature, slope in slopes:
        total += slope * values[feature]
    return float(low if total < low else high if total > high else total)


def look_up_shift(table: Table, values: Sequence[float]) -> list[float] | None:
    """What is added, by the table of an action."""
    lowest, highest, reaches, node = table
    weight = 1.0
    for value, lower, upper, reach in zip(values, lowest, highest, reaches, strict=True):
        if not lower <= value <= upper:
            weight = min(1 - (lower - value if value < lower else value - upper) / reach, weight)
            if not weight > 0:
                return None
    while type(node) is tuple:
        split, threshold, left, right = node
        node = right if values[split] > threshold else left
    if not node:
        return None
    result = []
    for total, slopes, low, high in node:
        for feature, slope in slopes:
            total += slope * values[feature]
        result.append(low if total < low else high if total > high else total)
    return result if weight == 1.0 else [weight * one for one in result]


def action_tables(residual: Residual) -> list[Table | None]:
    """For each action what is needed to find what is added, as Python numbers: faster than arrays this small."""
    tables: list[Table | None] = []
    for action in range(residual.num_actions):
        root = _node_table(residual, action, 0)
        bounds = (bound.tolist() for bound in (residual.lower[action], residual.upper[action], residual.reach))
        tables.append((*bounds, root) if root else None)
    return tables


def _node_table(residual: Residual, action: int, node: int) -> Any:
    """A node of a tree: (feature, threshold, left, right), or a list for a leaf; only nodes that split."""
    if node >= INNER:
        return _leaf_table(residual, action, node - INNER)
    split, left = int(residual.split[action, node]), _node_table(residual, action, 2 * node + 1)
    if split == NO_SPLIT:
        return left
    right = _node_table(residual, action, 2 * node + 2)
    return (split, float(residual.threshold[action, node]), left, right) if left or right else []


def _leaf_table(residual: Residual, action: int, leaf: int) -> list[Output]:
    """Of each feature: what is added where all features are 0, slopes that are not 0, and bounds; or nothing."""
    slope, low, high = (array[action, leaf] for array in (residual.slope, residual.low, residual.high))
    if not (low.any() or high.any()):
        return []
    start = residual.intercept[action, leaf] - slope @ residual.centre
    start = np.where(slope.any(axis=1), start, np.clip(start, low, high))
    slopes = [[(feature, one) for feature, one in enumerate(row) if one] for row in slope.tolist()]
    return list(zip(start.tolist(), slopes, low.tolist(), high.tolist(), strict=True))
