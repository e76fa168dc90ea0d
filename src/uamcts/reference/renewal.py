"""Goes on from an earlier search on a graph although what the model predicts has changed.

Nodes that have changed are expanded anew, and all values are backed up. So the values of expanded nodes are those of
the present model; only the first values of the other ones, means of rollouts, remain those of the earlier model. A
graph in which much has changed is therefore given up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uamcts.reference.graph import Edge, GraphNode, Sweeper

if TYPE_CHECKING:
    from uamcts.reference.graph_search import GraphSearch

MOST_CHANGED = 0.1
"""By how much outcomes may have changed on average: the probability that is another one, and the change of rewards as a
share of their spread."""


def renew(search: GraphSearch, root: GraphNode) -> bool:
    """Has the graph of a search hold for the present model below a new root, and drops the rest.

    Returns False if too much has changed.
    """
    graph = search.graph
    if graph.other_model:
        before: dict[GraphNode, list[Edge]] = {}
        while others := [node for node in graph.keep_reachable(root).expanded if node not in before]:
            before.update(expand_anew(search, others))
        if mean_change(before) > MOST_CHANGED:
            return False
        for node, edges in before.items():
            keep_visits(edges, node.edges or [])
    elif graph.outdated:
        expand_anew(search, list(dict.fromkeys(graph.outdated)))
    search.graph = graph.keep_reachable(root)
    if graph.other_model or graph.outdated:
        Sweeper(search.graph, search.rules, search.config).settle()
    return True


def expand_anew(search: GraphSearch, nodes: list[GraphNode]) -> dict[GraphNode, list[Edge]]:
    """Expands nodes anew. Returns the edges that they had."""
    before, graph = {node: node.edges or [] for node in nodes}, search.graph
    graph.expanded = [node for node in graph.expanded if node not in before]
    for node in nodes:
        search.expand(node, 0, 0)
    return before


def mean_change(before: dict[GraphNode, list[Edge]]) -> float:
    """By how much the outcomes of all actions have changed, from edges `before` to those that nodes have now."""
    pairs = [pair for node, edges in before.items() for pair in match_edges(edges, node.edges or [])]
    rewards = [edge.reward for edges in before.values() for edge in edges]
    spread = max(rewards, default=0.0) - min(rewards, default=0.0)
    total = 0.0
    for old, new in pairs:
        chances = dict(zip(old.children, old.chances, strict=True))
        same = sum(min(chances.get(one, 0.0), now) for one, now in zip(new.children, new.chances, strict=True))
        change = abs(new.reward - old.reward)
        total += min(1.0, 1.0 - same + (change / max(spread, change) if change else 0.0))
    return total / max(len(pairs), 1)


def keep_visits(before: list[Edge], now: list[Edge]) -> None:
    """Has actions and outcomes count as visited as often as before."""
    for old, new in match_edges(before, now):
        visited = dict(zip(old.children, old.visited, strict=True))
        new.visits, new.visited = old.visits, [visited.get(child, 0) for child in new.children]


def match_edges(before: list[Edge], now: list[Edge]) -> list[tuple[Edge, Edge]]:
    """The edges of the same actions."""
    known = {edge.action: edge for edge in before}
    return [(known[edge.action], edge) for edge in now if edge.action in known]
