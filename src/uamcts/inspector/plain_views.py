"""Views of what the plain engine found: see `uamcts.inspector.views`."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

from uamcts.inspector.views import BelievedOutcome, Branch, CompiledGraphView, CompiledTreeView, View, with_outcomes
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.graph.graph import Graph as CompiledGraph
from uamcts.mcts.rules import find_rules
from uamcts.mcts.search import SearchResult
from uamcts.mcts.tree import Tree
from uamcts.reference.graph import Edge, Graph, GraphNode
from uamcts.reference.tree import Node, Result
from uamcts.types import PyTree


def view_of(result: SearchResult | Result, config: SearchConfig | None = None) -> View:
    """The view of a result. `config` is needed for a `SearchResult`, which does not hold its settings.

    Raises:
        TypeError: `result` is not that of a search, or holds a batch of searches.
    """
    tree = getattr(result, "tree", None)
    if isinstance(result, Result):
        return PlainGraphView(result) if isinstance(tree, Graph) else PlainTreeView(result)
    config = SearchConfig() if config is None else config
    if isinstance(tree, Tree) and tree.children.ndim == 2:
        worst = config.worst if result.worst is None else float(result.worst)
        return CompiledTreeView(tree, replace(config, worst=worst), result.ends)
    if isinstance(tree, CompiledGraph) and tree.row.ndim == 1:
        return CompiledGraphView(tree, config)
    raise TypeError(f"result is a {type(result).__name__} without the tree of one search; give what a search returned")


class PlainTreeView:
    """The tree of `uamcts.reference.search`. The handle of a place is its node."""

    kind = "tree"

    def __init__(self, result: Result):
        self._config, self._rules = result.config, find_rules(result.config.rules)
        self._continuous = result.actions is not None
        self._root: Node = result.tree
        self.root: Hashable = self._root
        self.visits = float(self._root.visits)
        self._born: dict[int, int] = {}
        self.iterations = result.iterations
        self.ends: Sequence[Hashable] = result.ended
        for number, node in result.expanded:
            self._born.setdefault(id(node), number)

    def branches(self, handle: Hashable) -> Sequence[Branch]:
        assert isinstance(handle, Node)  # noqa: S101 (it is one of this view)
        if handle.outcomes is not None:
            return [self._outcome(one) for one in handle.outcomes]
        found = [self._branch(place, child) for place, child in enumerate(handle.children)]
        if handle.deleted is not None:
            one = handle.deleted
            found.append(Branch(one.action, 0.0, math.nan, one.uncertainty, one.keep, deleted=True))
        return found

    def _branch(self, place: int, node: Node) -> Branch:
        value = math.nan
        if node.visits:
            value = self._rules.value(node.visits, node.total, node.weight)
            value = self._rules.child_value(value, node.reward, node.keep, self._config)
        branch = Branch(place if self._continuous else node.action, node.visits, value, node.uncertainty, node.keep)
        if node.outcomes is None:
            branch.below, branch.ends = node, node.terminal
            return branch
        return with_outcomes(branch, [self._outcome(one) for one in node.outcomes], node)

    def _outcome(self, node: Node) -> Branch:
        action = 0 if self._continuous else node.action
        return Branch(action, node.visits, keep=node.keep, ends=node.terminal, chance=node.probability, below=node)

    def born(self, handle: Hashable) -> int:
        return self._born.get(id(handle), 0)

    def state(self) -> PyTree:
        return self._root.state

    def outcomes(self, action: int) -> list[BelievedOutcome]:
        nodes = [*self._root.children, *([] if self._root.deleted is None else [self._root.deleted])]
        if self._continuous:
            nodes = nodes[action : action + 1]
        found = [place for node in nodes if self._continuous or node.action == action for place in _places(node)]
        total = sum(place.probability for place in found) or 1.0  # draws have no probabilities: each counts alike
        return [BelievedOutcome(one.probability / total, one.state, one.reward, one.terminal) for one in found]


def _places(node: Node) -> list[Node]:
    return [node] if node.outcomes is None else node.outcomes


class PlainGraphView:
    """The graph of `uamcts.reference.search`. The handle of a place is its node; an action's outcomes, its edge."""

    kind = "graph"

    def __init__(self, result: Result):
        graph: Graph = result.tree
        self._graph = graph
        self.root: Hashable = graph.root
        self.visits = float(sum(edge.visits for edge in graph.root.edges or ()))
        before = graph.inherited
        self.iterations = len(graph.expanded) - before
        self._born = {id(node): max(0, number - before) for number, node in enumerate(graph.expanded, 1)}
        self.ends: Sequence[Hashable] = ()

    def branches(self, handle: Hashable) -> Sequence[Branch]:
        if isinstance(handle, Edge):
            return self._outcomes(handle)
        assert isinstance(handle, GraphNode)  # noqa: S101 (it is one of this view)
        found = []
        for edge in handle.edges or ():
            branch = Branch(edge.action, edge.visits, edge.value, edge.uncertainty, edge.keep)
            found.append(with_outcomes(branch, self._outcomes(edge), edge))
        return found

    def _outcomes(self, edge: Edge) -> list[Branch]:
        parts = zip(edge.children, edge.chances, edge.visited, strict=True)
        return [
            Branch(edge.action, visits, keep=edge.keep, ends=child.terminal, chance=chance, below=child)
            for child, chance, visits in parts
        ]

    def born(self, handle: Hashable) -> int:
        return self._born.get(id(handle), 0)

    def state(self) -> PyTree:
        return self._graph.root.state

    def outcomes(self, action: int) -> list[BelievedOutcome]:
        edges = [edge for edge in self._graph.root.edges or () if edge.action == action]
        return [
            BelievedOutcome(chance, child.state, edge.reward, child.terminal)
            for edge in edges
            for child, chance in zip(edge.children, edge.chances, strict=True)
        ]
