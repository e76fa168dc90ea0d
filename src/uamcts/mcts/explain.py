"""Why a search chose what it chose, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def explain(result: Any, action_names: Sequence[str] = ()) -> str:
    """A sentence and a table with a line per action; `result` is what `uamcts.search` or the plain engine returns."""
    chosen, visits = int(result.action), np.asarray(result.visits)
    if visits.ndim != 1:
        raise ValueError(f"the result holds {visits.shape[0]} searches; explain one: jax.tree.map(lambda x: x[0], ...)")
    values, doubts, exists = (np.asarray(part) for part in (result.values, result.uncertainty, result.exists))
    sizes = graph_sizes(getattr(result, "tree", None))
    names = [action_names[a] if action_names else str(a) for a in range(visits.size)]
    notes = []
    for action in range(visits.size):
        if action == chosen:
            most = sizes is None and visits[action] == visits.max()
            notes.append(f"chosen: {'visited' if most else 'worth'} most")
        elif not exists[action]:
            notes.append("deleted: the model is doubtful here" if doubts[action] > 0 else "not legal here")
        elif doubts[action] > 0:
            notes.append("doubtful")
        else:
            notes.append("")
    rows = [("action", "visits", "value", "uncertainty", "")]
    for action, name in enumerate(names):
        value = "-" if np.isnan(values[action]) else f"{values[action]:.4g}"
        rows.append((name, str(visits[action]), value, f"{doubts[action]:.3g}", notes[action]))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        f"{row[0].ljust(widths[0])}  {'  '.join(row[k].rjust(widths[k]) for k in (1, 2, 3))}  {row[4]}".rstrip()
        for row in rows
    ]
    head = f"{names[chosen]}: {visits[chosen]} of {visits.sum()} visits"
    if not np.isnan(values[chosen]):
        head += f", worth {values[chosen]:.4g}"
    if doubts.max() > 0:
        head += f"; its own uncertainty is {doubts[chosen]:.3g}, the greatest here {doubts.max():.3g}"
    return "\n".join([head, *lines, *([] if sizes is None else [_describe_graph(*sizes)])])


def graph_sizes(tree: Any) -> tuple[int, int] | None:
    """How many nodes of a graph are expanded, and how many wait to be; None if the search was on a tree."""
    if hasattr(tree, "open"):  # of the compiled search
        return int(tree.rows), int(tree.open)
    if hasattr(tree, "expanded"):  # of the plain engine
        waiting = sum(node.edges is None and not node.terminal for node in tree.nodes.values())
        return len(tree.expanded), waiting
    return None


def _describe_graph(expanded: int, waiting: int) -> str:
    noun = "state was" if expanded == 1 else "states were"
    rest = f"{waiting} more can be reached from there" if waiting else "no other can be reached"
    return f"on a graph, where equal states share a node: {expanded} {noun} expanded, {rest}"
