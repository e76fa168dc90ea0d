"""A state has two nodes in a graph, because doubt counts once on a path: one with doubt on the way to it, one without.

The actions of both lead to the same states for the same rewards. When one is expanded, so is the other, without asking
the model again or spending an iteration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uamcts.reference.graph import Edge, GraphNode
from uamcts.reference.rollouts import Start

if TYPE_CHECKING:
    from uamcts.reference.graph_search import GraphSearch


class Copier:
    """Expands nodes from the other nodes of their states.

    Args:
        search: The search whose graph grows.
    """

    def __init__(self, search: GraphSearch):
        self.search, self.rules = search, search.rules
        self.works = self.rules.follows_doubt and search.dynamics.kind != "sample"
        """False where outcomes are drawn: each node has draws of its own."""

    def other(self, node: GraphNode) -> GraphNode | None:
        """The other node of the same state, if there is one."""
        return self.search.graph.nodes.get((node.key, not node.doubted)) if self.works else None

    def values(self, start: Start, doubted: bool) -> list[float]:
        """First values of the two nodes of a state, by the same rollouts; the one for `doubted` comes first."""
        setup = self.search.setup
        if not self.works or setup.uncertainty is None:
            return [setup.simulator.simulate(start, setup.settings(doubted))] * 2
        return setup.simulator.values(start, setup.settings(doubted), setup.settings(not doubted))

    def take_over(self, new: list[GraphNode]) -> list[GraphNode]:
        """Copies values and edges to new nodes from the other nodes of their states. Returns those that have none."""
        known = {node: other for node in new if (other := self.other(node)) is not None}
        if not known:
            return new
        for node, other in known.items():
            node.value, node.other_value = other.other_value, other.value
        self.expand(list(known))
        return [node for node in new if node not in known]

    def expand(self, waiting: list[GraphNode]) -> None:
        """Expands nodes if the other nodes of their states are expanded, and likewise their successors."""
        while waiting:
            node = waiting.pop()
            other = self.other(node)
            if other is not None and other.edges is not None and node.edges is None:
                self._copy(node, other.edges, waiting)

    def _copy(self, node: GraphNode, known: list[Edge], waiting: list[GraphNode]) -> None:
        """Gives a node the actions of the other node of its state; its new successors are appended to `waiting`."""
        node.edges = []
        if not known:
            node.value = node.reach = 0.0  # a dead end
            return
        settings = self.search.setup.settings(node.doubted)
        noted = self.rules.plain_edges([edge.uncertainty for edge in known], settings)
        for edge, bias, keep in zip(known, *noted, strict=True):
            copied, doubted = Edge(edge.action, edge.uncertainty), node.doubted or keep < 1.0
            copied.bias, copied.keep = bias, keep
            copied.reward, copied.draws, copied.chances = edge.reward, edge.draws, list(edge.chances)
            copied.children = [self._successor(child, doubted, waiting) for child in edge.children]
            copied.visited = [0] * len(copied.children)
            node.edges.append(copied)
        self.search.graph.expanded.append(node)
        self.search.settle(node, node.edges)

    def _successor(self, child: GraphNode, doubted: bool, waiting: list[GraphNode]) -> GraphNode:
        """The node of the same state that has doubt on the way to it, or has none."""
        if child.terminal or child.doubted == doubted:
            return child
        nodes = self.search.graph.nodes
        found = nodes.get((child.key, doubted))
        if found is None:
            found = nodes[child.key, doubted] = GraphNode(child.state, doubted, False, child.key)
            found.value, found.other_value, found.reach = child.other_value, child.value, child.reach
            waiting.append(found)
        return found
