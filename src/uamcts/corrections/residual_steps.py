"""What a residual adds to a state, as Python functions: a search asks for it in every step of its rollouts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import add
from typing import Any, TypeAlias

from uamcts.corrections.residual_leaves import INNER, NO_SPLIT

OFTEN = 1000
"""So many questions about an action pay for a function of its own."""

Moved: TypeAlias = tuple[tuple[float, ...], float]
"""The numbers of a state with what is added to them, and what is added to the reward."""
Move: TypeAlias = Callable[[Sequence[float], Sequence[float]], Moved | None]
"""Moves the second numbers by what is added where the features are the first ones; None where that is nothing."""


class Moves(list[Move]):
    """A function for each action, in which those asked often are replaced by faster ones that say the same.

    A general function looks every number up. One that is made for an action has them in its code.

    Args:
        tables: What is added, for each action: see `action_tables`.
        pays: Whether the last number of what is added is that of the reward.
    """

    def __init__(self, tables: list[Any], pays: bool):
        super().__init__(self._general(action) if table else _nowhere for action, table in enumerate(tables))
        self.tables, self.pays = tables, pays

    def __reduce__(self) -> tuple[type[Moves], tuple[list[Any], bool]]:
        return Moves, (self.tables, self.pays)

    def _general(self, action: int) -> Move:
        """A function that looks its numbers up, until it was asked often."""
        asked = 0

        def move(values: Sequence[float], numbers: Sequence[float]) -> Moved | None:
            nonlocal asked
            asked += 1
            if asked == OFTEN:
                self[action] = compile_move(self.tables[action], self.pays)
            return look_up_move(self.tables[action], self.pays, values, numbers)

        return move


def _nowhere(values: Sequence[float], numbers: Sequence[float]) -> None:
    return None


def look_up_move(table: Any, pays: bool, values: Sequence[float], numbers: Sequence[float]) -> Moved | None:
    """Moves numbers by the table of an action."""
    shift = look_up_shift(table, values)
    return None if shift is None else (tuple(map(add, numbers, shift)), shift[-1] if pays else 0.0)


def look_up_shift(table: Any, values: Sequence[float]) -> list[float] | None:
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


def compile_move(table: Any, pays: bool) -> Move:
    """A function that does what `look_up_move` does with this table, to the last digit.

    Its source holds nothing but numbers, and names that are made here.
    """
    lowest, highest, _, node = table
    features = range(len(lowest))
    within = " and ".join(f"{lowest[place]!r} <= v{place} <= {highest[place]!r}" for place in features)
    lines = [
        "def move(values, numbers):",
        f" {''.join(f'v{place}, ' for place in features)} = values",
        f" if not ({within}):",
        "  return look_up_move(table, pays, values, numbers)",
        f" {''.join(f'n{place}, ' for place in features)} = numbers",
        *_source(node, pays, " "),
    ]
    known: dict[str, Any] = {
        "inf": math.inf,
        "nan": math.nan,
        "table": table,
        "pays": pays,
        "look_up_move": look_up_move,
    }
    exec("\n".join(lines), known)  # noqa: S102 (see above)
    found: Move = known["move"]
    return found


def _source(node: Any, pays: bool, indent: str) -> list[str]:
    """The lines that answer below a node of a tree."""
    if type(node) is tuple:
        split, threshold, left, right = node
        above, below = (_source(one, pays, f"{indent} ") for one in (right, left))
        return [f"{indent}if v{split} > {threshold!r}:", *above, f"{indent}else:", *below]
    if not node:
        return [f"{indent}return None"]
    lines, shift = [], []
    for place, (total, slopes, low, high) in enumerate(node):
        if not slopes:
            shift.append(repr(low if total < low else high if total > high else total))
            continue
        shift.append(f"s{place}")
        sums = "".join(f" + {slope!r} * v{feature}" for feature, slope in slopes)
        lines += [f"{indent}s{place} = {total!r}{sums}", f"{indent}if s{place} < {low!r}: s{place} = {low!r}"]
        lines += [f"{indent}elif s{place} > {high!r}: s{place} = {high!r}"]
    moved = "".join(f"n{place} + {one}, " for place, one in enumerate(shift[: len(shift) - pays]))
    return [*lines, f"{indent}return ({moved}), {shift[-1] if pays else 0.0}"]


def action_tables(residual: Any) -> list[Any]:
    """For each action what is needed to find what is added, as Python numbers: faster than arrays this small."""
    tables: list[Any] = []
    for action in range(residual.num_actions):
        root = _node_table(residual, action, 0)
        bounds = (bound.tolist() for bound in (residual.lower[action], residual.upper[action], residual.reach))
        tables.append((*bounds, root) if root else None)
    return tables


def _node_table(residual: Any, action: int, node: int) -> Any:
    """A node of a tree: (feature, threshold, left, right), or a list for a leaf; only nodes that split."""
    if node >= INNER:
        return _leaf_table(residual, action, node - INNER)
    split, left = int(residual.split[action, node]), _node_table(residual, action, 2 * node + 1)
    if split == NO_SPLIT:
        return left
    right = _node_table(residual, action, 2 * node + 2)
    return (split, float(residual.threshold[action, node]), left, right) if left or right else []


def _leaf_table(residual: Any, action: int, leaf: int) -> list[Any]:
    """Of each feature: what is added where all features are 0, slopes that are not 0, and bounds; or nothing."""
    slope, low, high = (array[action, leaf] for array in (residual.slope, residual.low, residual.high))
    if not (low.any() or high.any()):
        return []
    start = (residual.intercept[action, leaf] - slope @ residual.centre).tolist()
    slopes = [[(feature, one) for feature, one in enumerate(row) if one] for row in slope.tolist()]
    return list(zip(start, slopes, low.tolist(), high.tolist(), strict=True))
