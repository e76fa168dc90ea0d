"""A graph in which equal states share a node, and Bellman sweeps over it."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.rules import Rules

ACCURACY = 1e-9
"""Sweeps end when no value changes by more than this times the greatest one."""
MOST_SWEEPS = 1000
"""With gamma = 1 values may never stand still (a cycle that pays); they are those of this many steps then."""
SWEEPS_BEFORE_SOLVING, MOST_SOLVED = 50, 1000
"""After how many sweeps values are found by solving linear equations, and of how many nodes at most."""
DECAY = 0.5
"""How much less a node attracts the search for every step that it is away from the next node to be expanded."""


class Edge:
    """An action at a node: Q(s, a), n(s, a), what the rule set notes about it, and its outcomes."""

    __slots__ = ("action", "bias", "chances", "child", "children", "draws", "keep", "reward", "uncertainty", "value",
                 "visited", "visits")  # fmt: skip

    def __init__(self, action: int, uncertainty: float):
        self.action = action
        self.uncertainty = uncertainty
        self.bias = 0.0
        self.keep = 1.0
        self.value = 0.0
        self.visits = 0
        self.reward = 0.0  # expected
        self.draws = 0  # how often the model was asked for outcomes
        self.children: list[GraphNode] = []
        self.child: GraphNode | None = None  # where there is only one
        self.chances: list[float] = []  # the probability of each child
        self.visited: list[int] = []  # how often the search went on to each child


class GraphNode:
    """A state, and whether there was doubt on the way to it; V(s), N(s), and its actions."""

    __slots__ = (
        "biased",
        "doubted",
        "edges",
        "index",
        "key",
        "other_value",
        "prior",
        "reach",
        "state",
        "successors",
        "terminal",
        "value",
        "visits",
    )

    def __init__(self, state: object, doubted: bool, terminal: bool, key: Hashable = None):
        self.state = state
        self.key = key  # the identity of the state
        self.doubted = doubted
        self.terminal = terminal
        self.reach = float(not terminal)  # DECAY ** (steps to a node that is not expanded), 0 where there is none
        self.value = 0.0
        self.other_value = 0.0  # a first value for the other node of the same state: see `copies`
        self.visits = 0
        self.edges: list[Edge] | None = None  # None: not expanded
        self.successors: list[GraphNode] = []  # of all actions
        self.biased = False  # whether the rule set treats its actions differently
        self.prior: list[float] | None = None
        self.index = 0


class Graph:
    """The nodes of a search by the identity of their state and by doubt; `expanded` are those with edges."""

    def __init__(self, root: GraphNode):
        self.root = root
        self.nodes: dict[Hashable, GraphNode] = {}
        self.expanded: list[GraphNode] = []
        self.end = GraphNode(None, False, True)
        """All transitions that end the episode lead here."""
        self.outdated: list[GraphNode] = []
        """Nodes whose outcomes have changed since they were expanded."""
        self.other_model = False
        """Whether those of any node may have: the model is another one."""
        self.inherited = 0
        """How many nodes an earlier search has expanded."""

    def forget(self, key: Hashable) -> None:
        """Has the node of a state, doubted or not, expanded anew by the next search: its outcomes have changed."""
        self.outdated += [node for node in map(self.nodes.get, ((key, False), (key, True))) if node and node.edges]

    def forget_all(self) -> None:
        """Has the next search ask the model about all nodes anew: it is another one."""
        self.other_model = True

    def measure_reach(self) -> None:
        """Finds out how far it is from each node to one that is not expanded."""
        parents: dict[GraphNode, list[GraphNode]] = {}
        layer = []
        for node in self.expanded:
            node.reach = 0.0
            for edge in node.edges or ():
                for child in edge.children:
                    if child.edges is None and child.reach:
                        node.reach = DECAY
                    else:
                        parents.setdefault(child, []).append(node)
            if node.reach:
                layer.append(node)
        reach = DECAY
        while layer:
            reach *= DECAY
            following = []
            for child in layer:
                for node in parents.get(child, ()):
                    if not node.reach:
                        node.reach = reach
                        following.append(node)
            layer = following

    def open_within(self, longest: int) -> None:
        """Finds out which nodes can be expanded at all: those that are less than `longest` steps from the root."""
        for node in self.nodes.values():
            node.reach = 0.0
        found, layer = {self.root}, [self.root]
        for _ in range(longest):
            if not layer:
                break
            for node in layer:
                node.reach = float(node.edges is None)
            layer = list({child: None for node in layer for child in node.successors if child not in found})
            layer = [child for child in layer if not child.terminal]
            found.update(layer)
        self.measure_reach()

    def keep_reachable(self, root: GraphNode) -> Graph:
        """The part of the graph below another root."""
        kept = Graph(root)
        kept.end = self.end
        found, waiting = {root}, [root]
        while waiting:
            for edge in waiting.pop().edges or ():
                new = [child for child in edge.children if child not in found]
                found.update(new)
                waiting += new
        kept.nodes = {key: node for key, node in self.nodes.items() if node in found}
        kept.expanded = [node for node in self.expanded if node in found]
        kept.inherited = len(kept.expanded)
        return kept


class Sweeper:
    """The expanded nodes of a graph as arrays, one entry per outcome, for sweeps of Bellman backups."""

    def __init__(self, graph: Graph, rules: Rules, config: SearchConfig):
        self.nodes, self.config = graph.expanded, config
        for index, node in enumerate(self.nodes):
            node.index = index
        self.edges = [edge for node in self.nodes for edge in node.edges or ()]
        others: dict[GraphNode, int] = {}
        children: list[int] = []
        chances: list[float] = []
        first_outcomes: list[int] = []
        first_edges: list[int] = []
        for node in self.nodes:
            first_edges.append(len(first_outcomes))
            for edge in node.edges or ():
                first_outcomes.append(len(children))
                chances += edge.chances
                for child in edge.children:
                    if not child.edges:
                        child.index = others.setdefault(child, len(self.nodes) + len(others))
                    children.append(child.index)
        self.values = np.array([node.value for node in (*self.nodes, *others)])
        self.children, self.chances = np.array(children, int), np.array(chances)
        self.first_outcomes, self.first_edges = np.array(first_outcomes, int), np.array(first_edges, int)
        self.rewards = np.array([edge.reward for edge in self.edges])
        keep = np.array([edge.keep for edge in self.edges])
        counts = np.diff(np.append(self.first_outcomes, len(children)))
        self.pieces = rules.pieces(0.0, np.repeat(keep, counts), config)
        if np.all(keep == 1.0):
            self.pieces = self.pieces[:1]

    def action_values(self) -> np.ndarray:
        """Q of every edge: the expected reward, and what the rule set lets through of the values below."""
        below = self.values[self.children]
        passed = [slope * below + offset for slope, offset in self.pieces]
        through = passed[0] if len(passed) == 1 else np.minimum(*passed)
        return self.rewards + np.add.reduceat(self.chances * through, self.first_outcomes)

    def sweep(self, most: int, endless: bool) -> np.ndarray:
        """Backs up all nodes at once, at most `most` times: values of as many steps. Returns Q of every edge.

        It starts from 0 and not from the values in the graph: a value that turned out too high can keep itself alive on
        a cycle. If play is `endless`, nodes that are not expanded have their estimates from the first sweep on, and
        values that are slow to stand still are solved for; else nothing is worth anything once no step is left.
        """
        count = len(self.nodes)
        exact = endless and self.config.gamma < 1 and count <= MOST_SOLVED
        estimates = self.values[count:].copy()
        self.values[:count] = 0.0
        if not endless:
            self.values[count:] = 0.0
        self.early = np.zeros(len(self.edges))
        for number in range(1, most + 1):
            found = self.action_values()
            self.values[count:] = estimates
            self.early += found
            values = np.maximum.reduceat(found, self.first_edges)
            change = np.max(np.abs(values - self.values[:count]))
            self.values[:count] = values
            if change <= ACCURACY * np.max(np.abs(values)) and number > 1:
                break
            if exact and number % SWEEPS_BEFORE_SOLVING == 0:
                self.values[:count] = self.greedy_values(found)
        return found

    def greedy_values(self, found: np.ndarray) -> np.ndarray:
        """The values of always taking the best action by `found`, Q of every edge: a step of policy iteration."""
        count, below = len(self.nodes), self.values[self.children]
        node_of_edge = np.repeat(np.arange(count), np.diff(self.first_edges, append=found.size))
        node_of = np.repeat(node_of_edge, np.diff(self.first_outcomes, append=below.size))
        edge_of = np.repeat(np.arange(found.size), np.diff(self.first_outcomes, append=below.size))
        at_best = np.flatnonzero(found == self.values[node_of_edge])[::-1]
        best = np.zeros(count, int)
        best[node_of_edge[at_best]] = at_best  # the first of equal ones is written last
        passed = np.array([slope * below + offset for slope, offset in self.pieces])
        slopes = np.array([np.broadcast_to(slope, below.shape) for slope, _ in self.pieces])
        through, slope = passed.min(axis=0), slopes[passed.argmin(axis=0), np.arange(below.size)]
        inside = (best[node_of] == edge_of) & (self.children < count)
        outside = (best[node_of] == edge_of) & ~inside
        matrix, constant = np.eye(count), self.rewards[best]
        np.add.at(matrix, (node_of[inside], self.children[inside]), -(self.chances * slope)[inside])
        np.add.at(constant, node_of[inside], (self.chances * (through - slope * below))[inside])
        np.add.at(constant, node_of[outside], (self.chances * through)[outside])
        return np.linalg.solve(matrix, constant)

    def settle(self) -> None:
        """Sweeps, and writes the values into the graph."""
        found = self.sweep(MOST_SWEEPS, endless=True)
        for edge, value in zip(self.edges, found.tolist(), strict=True):
            edge.value = value
        for node, value in zip(self.nodes, self.values.tolist(), strict=False):
            node.value = value
