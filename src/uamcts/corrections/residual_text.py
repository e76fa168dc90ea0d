"""What a `Residual` corrects, in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from uamcts.corrections.python_facts import name_action
from uamcts.corrections.residual_leaves import INNER, NO_SPLIT

if TYPE_CHECKING:
    from uamcts.corrections.residual import Residual

MOST = 4
"""Places that are mentioned at most."""
NEGLIGIBLE = 0.05
"""Terms below this fraction of the largest are not mentioned."""
TRACE = 0.002
"""Neither are features that are corrected by less than this fraction of the largest correction."""


def describe(residual: Residual, names: Sequence[str] = (), action_names: Sequence[str] = ()) -> str:
    """What is added to which feature, and where: "x by -0.12, y by +0.02 after 'push' where y > 0.02", for example."""
    size = residual.num_features
    known = [*names[:size], *(f"feature {number}" for number in range(len(names), size)), "reward"]
    actions: dict[tuple[str, str], list[int]] = {}
    for action in range(residual.num_actions):
        for output in _important_outputs(residual):
            for text, place in _regions(residual, action, output, known):
                actions.setdefault((f"{known[output]} by {text}", place), []).append(action)
    shifts: dict[tuple[str, str], list[str]] = {}
    for (text, place), after in actions.items():
        listed = ", ".join(name_action(action, action_names) for action in after)
        which = f" {'before' if residual.early else 'after'} {listed}" if len(after) < residual.num_actions else ""
        shifts.setdefault((which, place), []).append(text)
    lines = [f"{', '.join(texts)}{which}{place}" for (which, place), texts in shifts.items()]
    if len(lines) > MOST + 1:
        lines = [*lines[:MOST], f"and {len(lines) - MOST} more"]
    return "; ".join(lines)


def _important_outputs(residual: Residual) -> list[int]:
    """The features, and perhaps the reward, that are corrected by more than a trace of the largest correction."""
    sizes = np.maximum(np.abs(residual.low), np.abs(residual.high)).max(axis=(0, 1))
    return np.flatnonzero(sizes > TRACE * sizes.max(initial=0.0)).tolist()


def _regions(
    residual: Residual, action: int, output: int, names: Sequence[str], node: int = 0, place: str = ""
) -> Iterator[tuple[str, str]]:
    """The function and the place of each region below a node in which the feature is corrected."""
    leaves = slice(*_leaves_below(node))
    intercepts, slopes = residual.intercept[action, leaves, output], residual.slope[action, leaves, output]
    if (intercepts == intercepts[0]).all() and (slopes == slopes[0]).all():
        if text := _formula(residual, float(intercepts[0]), slopes[0], names):
            yield text, place
        return
    split, limit = int(residual.split[action, node]), float(residual.threshold[action, node])
    left, right = place, None
    if split != NO_SPLIT:
        joined = f"{place} and" if place else " where"
        left, right = f"{joined} {names[split]} <= {limit:.2g}", f"{joined} {names[split]} > {limit:.2g}"
    yield from _regions(residual, action, output, names, 2 * node + 1, left)
    if right is not None:
        yield from _regions(residual, action, output, names, 2 * node + 2, right)


def _formula(residual: Residual, intercept: float, slopes: Float[np.ndarray, " features"], names: Sequence[str]) -> str:
    """A function in words, without terms that hardly matter; empty if it is 0."""
    sizes = np.abs(slopes) * residual.scale
    matter = sizes > NEGLIGIBLE * max(sizes.max(initial=0), abs(intercept))
    if not matter.any():
        return f"{intercept:+.2g}" if intercept else ""
    constant = float(intercept - slopes[matter] @ residual.centre[matter])
    terms = [f"{slopes[number]:+.2g} * {names[number]}" for number in np.flatnonzero(matter).tolist()]
    if abs(constant) > NEGLIGIBLE * sizes.max():
        terms.insert(0, f"{constant:+.2g}")
    return re.sub(r" ([+-])", r" \1 ", " ".join(terms).removeprefix("+"))


def _leaves_below(node: int) -> tuple[int, int]:
    """The first leaf below a node and the one after the last."""
    first = last = node
    while first < INNER:
        first, last = 2 * first + 1, 2 * last + 2
    return first - INNER, last - INNER + 1
