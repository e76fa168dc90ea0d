"""A search as a record of the trace: its actions, its words, and the most visited part of its tree or graph."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from uamcts.arguments import shorten
from uamcts.inspector.plain_views import view_of
from uamcts.inspector.trace import Record
from uamcts.inspector.views import Branch, View
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.explain import explain_choice
from uamcts.mcts.search import SearchResult
from uamcts.reference.tree import Result

MOST_CHILDREN, MOST_NODES, MOST_LEVELS = 10, 300, 40
"""Of a search, the record keeps so many children of a node, nodes in all, and levels."""
LONGEST_LABEL, LONGEST_WORDS = 60, 4000
"""Characters of a continuous action, and of an explanation."""
MOST_REPLAYED = 1000
"""Longer searches are recorded without what each of their iterations did."""
DOUBTFUL, DELETED, ENDS, SHARED = 1, 2, 4, 8
"""Flags of a node: U is above 0, UA-Expansion deleted it, the episode is over, or it is shown elsewhere."""


def plan_record(
    result: SearchResult | Result,
    action_names: Sequence[str] = (),
    config: SearchConfig | None = None,
    note: str = "",
    nodes: int = MOST_NODES,
) -> Record:
    """What the inspector shows of a search. `config` is needed for a `SearchResult`, which does not hold its own."""
    view = view_of(result, config)
    labels: list[str] = []
    actions = getattr(result, "actions", None)
    if actions is not None:
        chosen = next(place for place, action in enumerate(actions) if action is result.action)
        result = result._replace(action=chosen)  # type: ignore[arg-type]
        labels = action_names = [shorten(str(np.round(action, 3)), LONGEST_LABEL) for action in actions]
    said = explain_choice(result, action_names)
    keep = {branch.action: branch.keep for branch in view.branches(view.root)}
    count = len(said.notes)
    return {
        "action": int(result.action),
        "labels": labels,
        "visits": [int(visits) for visits in np.asarray(result.visits).tolist()],
        "values": [rounded(value) for value in np.asarray(result.values).tolist()],
        "doubt": [rounded(doubt) or 0.0 for doubt in np.asarray(result.uncertainty).tolist()],
        "keep": [rounded(keep.get(action, 1.0)) for action in range(count)],
        "exists": [bool(exists) for exists in np.asarray(result.exists).tolist()],
        "notes": said.notes,
        "words": "\n".join(part for part in (said.head, said.tail, note) if part)[:LONGEST_WORDS],
        "kind": view.kind,
        **_Pruned(view, nodes, np.asarray(result.values).tolist()).record(),
    }


def rounded(number: float) -> float | None:
    """A number with four significant digits, short in JSON; None for one that is not finite."""
    if not math.isfinite(number):
        return None
    short = float(f"{number:.4g}")
    return int(short) if short == int(short) and abs(short) < 1e15 else short


@dataclass
class _Pruned:
    """The most visited nodes of a view, as columns; node 0 is the root and parents come before their children."""

    view: View
    most: int
    values: Sequence[float]
    """Those of the actions at the root, as the search itself compared them."""
    parent: list[int] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    more: list[int] = field(default_factory=list)
    level: list[int] = field(default_factory=list)
    shown: dict[Hashable, int] = field(default_factory=dict)
    shared: set[int] = field(default_factory=set)
    handles: dict[Hashable, int] = field(default_factory=dict)
    """The node at which a place of the search is found first."""

    def __post_init__(self) -> None:
        order, waiting = itertools.count(), list[tuple[float, int, int]]()
        self._add(-1, Branch(-1, self.view.visits, below=self.view.root))
        heapq.heappush(waiting, (-math.inf, next(order), 0))
        while waiting:
            node = heapq.heappop(waiting)[-1]
            for child in self._open(node):
                heapq.heappush(waiting, (-self.branches[child].visits, next(order), child))

    def _add(self, parent: int, branch: Branch) -> int:
        number = len(self.parent)
        self.parent.append(parent)
        self.branches.append(branch)
        self.more.append(0)
        self.level.append(0 if parent < 0 else self.level[parent] + 1)
        if branch.below is not None:
            self.handles.setdefault(branch.below, number)
        return number

    def _open(self, node: int) -> list[int]:
        """Adds the children of a node, as many as there is room for."""
        handle = self.branches[node].below
        if handle is None or self.branches[node].ends:
            return []
        if handle in self.shown:
            self.shared.add(node)
            return []
        self.shown[handle] = node
        found = sorted(self.view.branches(handle), key=lambda branch: (branch.deleted, -branch.visits))
        wanted = [one for one in found if one.visits or one.deleted or node == 0]
        for branch in wanted if node == 0 else ():
            branch.value = self.values[branch.action]
        room = MOST_CHILDREN if self.level[node] < MOST_LEVELS else 0
        room = min(room, self.most - len(self.parent))
        self.more[node] = len(wanted) - len(wanted[:room])
        return [self._add(node, branch) for branch in wanted[:room]]

    def _replay(self) -> tuple[list[int], list[int]]:
        """What every iteration did, in order: below which node of the record it expanded, and where its path ended.

        -1 stands for nothing, and for what nobody knows. What the record left out counts for the node above it.
        """
        expanded: dict[int, int] = {}
        nodes: dict[Hashable, int] = {}
        waiting: list[tuple[Hashable, int, bool]] = [(self.view.root, 0, False)]
        while waiting:
            handle, node, over = waiting.pop()
            if handle is None or handle in nodes:
                continue
            node = nodes[handle] = self.shown.get(handle, self.handles.get(handle, node))
            branches = [] if over else self.view.branches(handle)
            number = self.view.born(handle) if branches and math.isnan(branches[0].chance) else 0
            if number > 0:
                expanded[number] = node
            waiting += [(branch.below, node, branch.ends) for branch in branches]
        last = self.view.iterations if expanded or self.view.ends else 0
        if last > MOST_REPLAYED:
            return [], []
        expansions = [expanded.get(number, -1) for number in range(1, last + 1)]
        return expansions, [nodes.get(handle, -1) for handle in self.view.ends] or expansions

    def record(self) -> Record:
        """The columns."""
        flags = [
            DOUBTFUL * (one.doubt > 0) + DELETED * one.deleted + ENDS * bool(one.ends) + SHARED * (node in self.shared)
            for node, one in enumerate(self.branches)
        ]
        expansions, ends = self._replay()
        return {
            "nodes": {
                "parent": self.parent,
                "action": [one.action for one in self.branches],
                "visits": [int(one.visits) for one in self.branches],
                "value": [rounded(one.value) for one in self.branches],
                "doubt": [rounded(one.doubt) for one in self.branches],
                "chance": [rounded(one.chance) for one in self.branches],
                "flags": flags,
                "more": self.more,
            },
            "expansions": expansions,
            "ends": ends,
        }
