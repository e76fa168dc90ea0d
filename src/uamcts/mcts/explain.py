"""Why a search chose what it chose, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Found: TypeAlias = Any
"""What a search found: a `uamcts.SearchResult` or a `uamcts.reference.Result`."""


class Explanation(NamedTuple):
    """Why a search chose what it chose."""

    head: str
    """A sentence."""
    notes: list[str]
    """What there is to say about each action."""
    tail: str
    """About the graph, if it was one."""


def explain(result: Found, action_names: Sequence[str] = ()) -> str:
    """A sentence and a table with a line per action; `result` is what `uamcts.search` or the plain engine returns."""
    head, notes, tail = explain_choice(result, action_names)
    visits, values, doubts = (np.asarray(part) for part in (result.visits, result.values, result.uncertainty))
    rows = [("action", "visits", "value", "uncertainty", "")]
    for action, name in enumerate(_names(visits.size, action_names)):
        value = "-" if np.isnan(values[action]) else f"{values[action]:.4g}"
        rows.append((name, str(visits[action]), value, f"{doubts[action]:.3g}", notes[action]))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        f"{row[0].ljust(widths[0])}  {'  '.join(row[k].rjust(widths[k]) for k in (1, 2, 3))}  {row[4]}".rstrip()
        for row in rows
    ]
    return "\n".join([head, *lines, *([tail] if tail else [])])


def explain_choice(result: Found, action_names: Sequence[str] = ()) -> Explanation:
    """The choice in words."""
    chosen, visits = int(result.action), np.asarray(result.visits)
    if visits.ndim != 1:
        raise ValueError(f"the result holds {visits.shape[0]} searches; explain one: jax.tree.map(lambda x: x[0], ...)")
    values, doubts, exists = (np.asarray(part) for part in (result.values, result.uncertainty, result.exists))
    sizes, notes = graph_sizes(getattr(result, "tree", None)), []
    for action in range(visits.size):
        if action == chosen:
            most = sizes is None and visits[action] == visits.max()
            usual = f"chosen: {'visited' if most else 'worth'} most"
            notes.append("chosen: it begins the best sequence found" if _has_sequence(result) else usual)
        elif not exists[action]:
            notes.append("deleted: the model is doubtful here" if doubts[action] > 0 else "not legal here")
        else:
            notes.append("doubtful" if doubts[action] > 0 else "")
    known = "known from earlier searches, which left nothing to visit"
    share = f"{visits[chosen]} of {visits.sum()} visits" if visits.sum() else known
    head = f"{_names(visits.size, action_names)[chosen]}: {share}"
    if not np.isnan(values[chosen]):
        head += f", worth {values[chosen]:.4g}"
    if doubts.max() > 0:
        head += f"; its own uncertainty is {doubts[chosen]:.3g}, the greatest here {doubts.max():.3g}"
    return Explanation(head, notes, "" if sizes is None else _describe_graph(*sizes))


def _has_sequence(result: Found) -> bool:
    """Whether the search looked for the best sequence of actions."""
    sequence = getattr(result, "sequence", None)
    return sequence is not None and len(sequence) > 0


def _names(count: int, action_names: Sequence[str]) -> list[str]:
    return [action_names[action] if action_names else str(action) for action in range(count)]


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
