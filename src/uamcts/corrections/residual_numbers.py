"""Evaluates a residual with Python's floats, for steps of the plain search.

A step of a simulator in Python often takes a microsecond or two, and a residual is added to every step of every
rollout. For small states, arrays are slower than Python's floats, and a loop over features is slower than a line that
names them all. So there is a function each for states of at most two, four and six features, and one with a loop for
larger ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from uamcts.corrections.residual_leaves import INNER, NO_SPLIT

if TYPE_CHECKING:
    from uamcts.corrections.residual import Residual

Adder: TypeAlias = Callable[[Sequence[float], list[Any]], bool]
"""Adds the residual in a state, given by its features, to outputs in their places, and returns whether it did.

Only Python's floats are shifted: whole numbers stay. A TypeError for what is neither."""
Node: TypeAlias = Any
"""A node of a tree: (feature, threshold, left, right), or a list of rows for a leaf."""
ROUNDING = 1e-10
"""Rounding errors, as a share of the largest number of a row."""
Box: TypeAlias = list[tuple[float, float, float]]
"""For each feature the least and the largest value seen, and how far outside them the residual becomes 0."""


def adders(residual: Residual) -> list[Adder | None]:
    """For each action a function that adds the residual to the outputs; None where there is nothing to add."""
    found: list[Adder | None] = []
    size = residual.num_features
    padding = min((places - size for places in BY_SIZE if places >= size), default=0)
    shared: dict[Any, Any] = {}
    for action in range(residual.num_actions):
        root = _node(residual, action, 0, padding, shared)
        bounds = (bound.tolist() for bound in (residual.lower[action], residual.upper[action], residual.reach))
        box = [*zip(*bounds, strict=True), *[(0.0, 0.0, 1.0)] * padding]
        found.append(_adder(box, root, padding) if root else None)
    return found


def _node(residual: Residual, action: int, node: int, padding: int, shared: dict[Any, Any]) -> Node:
    """A node of a tree: (feature, threshold, left, right), or a list of rows for a leaf.

    Only nodes that split are kept, and equal parts are one object: a smaller tree is read faster.
    """
    if node >= INNER:
        rows = [_share(row, shared) for row in _leaf(residual, action, node - INNER, padding)]
        return shared.setdefault(("leaf", *rows), rows)
    split, left = int(residual.split[action, node]), _node(residual, action, 2 * node + 1, padding, shared)
    if split == NO_SPLIT:
        return left
    right = _node(residual, action, 2 * node + 2, padding, shared)
    return left if left is right else (split, float(residual.threshold[action, node]), left, right)


def _share(row: tuple[float, ...], shared: dict[Any, Any]) -> tuple[float, ...]:
    """The row, made of numbers that are shared with other rows."""
    numbers = tuple([shared.setdefault(one, one) if type(one) is float else one for one in row])
    return cast(tuple[float, ...], shared.setdefault(numbers, numbers))


def _leaf(residual: Residual, action: int, leaf: int, padding: int) -> list[tuple[float, ...]]:
    """What is added to outputs: a row for each, but one for two of them where one is a multiple of the other.

    A row is the place of an output, what is added where all features are 0, slopes, bounds, and place and factor of
    the other output; the factor is 0 where there is none. Where a position follows a speed, so do their errors.
    """
    slope, low, high = (array[action, leaf] for array in (residual.slope, residual.low, residual.high))
    start = residual.intercept[action, leaf] - slope @ residual.centre
    whole = np.column_stack([residual.intercept[action, leaf], slope, low, high])
    left = [place for place in range(residual.num_outputs) if low[place] or high[place]]
    rows = []
    while left:
        place = left.pop(0)
        follower, factor = next(
            ((other, factor) for other in left if (factor := _ratio(whole[other], whole[place]))), (0, 0.0)
        )
        left = [other for other in left if not (factor and other == follower)]
        slopes = [*slope[place].tolist(), *[0.0] * padding]
        rows.append((place, float(start[place]), *slopes, float(low[place]), float(high[place]), follower, factor))
    return rows


def _ratio(row: np.ndarray, other: np.ndarray) -> float:
    """The factor by which a row is a multiple of the other row, up to rounding; 0 if it is none."""
    largest = np.argmax(np.abs(other))
    ratio = float(row[largest] / other[largest])
    same = ratio > 0 and np.abs(row - ratio * other).max() <= ROUNDING * np.abs(row).max()
    return ratio if same else 0.0


def _adder(box: Box, root: Node, padding: int) -> Adder:
    function: Adder = BY_SIZE.get(len(box), _many)(box, root)
    if not padding:
        return function
    more = (0.0,) * padding
    return lambda values, outputs: function((*values, *more), outputs)


def _fade(values: Sequence[float], box: Box) -> float:
    """The share of a residual that is added: 1 within the box, 0 or less far from it."""
    weight = 1.0
    for value, (lower, upper, reach) in zip(values, box, strict=True):
        if not lower <= value <= upper:
            weight = min(1 - (lower - value if value < lower else value - upper) / reach, weight)
            if not weight > 0:  # never above 0 for what is not a number
                return 0.0
    return weight


def _shift(outputs: list[Any], place: int, by: float) -> None:
    """Shifts an output that is not a Python float; whole numbers stay."""
    number = outputs[place]
    if isinstance(number, float):
        outputs[place] = type(number)(number + by)
    elif not isinstance(number, (int, np.integer, np.bool_)):
        raise TypeError(f"{number!r} is a {type(number).__name__}")


def _two(box: Box, root: Node) -> Adder:
    (a0, a1, _), (b0, b1, _) = box

    def add(values: Sequence[float], outputs: list[Any]) -> bool:
        a, b = values
        weight, node = 1.0, root
        if not (a0 <= a <= a1 and b0 <= b <= b1):
            weight = _fade(values, box)
        while type(node) is tuple:
            split, threshold, left, right = node
            node = right if values[split] > threshold else left
        if not (weight and node):
            return False
        for place, total, p, q, low, high, follower, factor in node:
            total = total + p * a + q * b
            total = weight * (low if total < low else high if total > high else total)
            if type(number := outputs[place]) is float:
                outputs[place] = number + total
            else:
                _shift(outputs, place, total)
            if factor:
                if type(number := outputs[follower]) is float:
                    outputs[follower] = number + factor * total
                else:
                    _shift(outputs, follower, factor * total)
        return True

    return add


def _four(box: Box, root: Node) -> Adder:
    (a0, a1, _), (b0, b1, _), (c0, c1, _), (d0, d1, _) = box

    def add(values: Sequence[float], outputs: list[Any]) -> bool:
        a, b, c, d = values
        weight, node = 1.0, root
        if not (a0 <= a <= a1 and b0 <= b <= b1 and c0 <= c <= c1 and d0 <= d <= d1):
            weight = _fade(values, box)
        while type(node) is tuple:
            split, threshold, left, right = node
            node = right if values[split] > threshold else left
        if not (weight and node):
            return False
        for place, total, p, q, r, s, low, high, follower, factor in node:
            total = total + p * a + q * b + r * c + s * d
            total = weight * (low if total < low else high if total > high else total)
            if type(number := outputs[place]) is float:
                outputs[place] = number + total
            else:
                _shift(outputs, place, total)
            if factor:
                if type(number := outputs[follower]) is float:
                    outputs[follower] = number + factor * total
                else:
                    _shift(outputs, follower, factor * total)
        return True

    return add


def _six(box: Box, root: Node) -> Adder:
    (a0, a1, _), (b0, b1, _), (c0, c1, _), (d0, d1, _), (e0, e1, _), (f0, f1, _) = box

    def add(values: Sequence[float], outputs: list[Any]) -> bool:
        a, b, c, d, e, f = values
        weight, node = 1.0, root
        if not (
            a0 <= a <= a1 and b0 <= b <= b1 and c0 <= c <= c1 and d0 <= d <= d1 and e0 <= e <= e1 and f0 <= f <= f1
        ):
            weight = _fade(values, box)
        while type(node) is tuple:
            split, threshold, left, right = node
            node = right if values[split] > threshold else left
        if not (weight and node):
            return False
        for place, total, p, q, r, s, t, u, low, high, follower, factor in node:
            total = total + p * a + q * b + r * c + s * d + t * e + u * f
            total = weight * (low if total < low else high if total > high else total)
            if type(number := outputs[place]) is float:
                outputs[place] = number + total
            else:
                _shift(outputs, place, total)
            if factor:
                if type(number := outputs[follower]) is float:
                    outputs[follower] = number + factor * total
                else:
                    _shift(outputs, follower, factor * total)
        return True

    return add


def _many(box: Box, root: Node) -> Adder:
    def add(values: Sequence[float], outputs: list[Any]) -> bool:
        weight, node = _fade(values, box), root
        while type(node) is tuple:
            split, threshold, left, right = node
            node = right if values[split] > threshold else left
        if not (weight and node):
            return False
        for place, total, *slopes, low, high, follower, factor in node:
            for slope, value in zip(slopes, values, strict=True):
                total += slope * value
            total = weight * (low if total < low else high if total > high else total)
            _shift(outputs, place, total)
            if factor:
                _shift(outputs, follower, factor * total)
        return True

    return add


BY_SIZE: dict[int, Callable[[Box, Node], Adder]] = {2: _two, 4: _four, 6: _six}
