"""Search on a graph: equal states share a node, and values are Bellman backups."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterable
from dataclasses import replace
from operator import attrgetter

from uamcts.mcts.config import SearchConfig
from uamcts.reference.copies import Copier
from uamcts.reference.graph import ACCURACY, DECAY, Edge, Graph, GraphNode, Sweeper
from uamcts.reference.models import identity_of
from uamcts.reference.renewal import renew
from uamcts.reference.rollouts import Start
from uamcts.reference.setup import Setup
from uamcts.reference.tree import Result, check_reward, check_uncertainty

value_of, reach_of = attrgetter("value"), attrgetter("reach")  # in inner loops: faster than a comprehension


def edge_reaches(edges: Iterable[Edge]) -> list[float]:
    """How near each edge leads to a node that is not expanded: more is nearer."""
    return [edge.child.reach if edge.child else max(map(reach_of, edge.children)) for edge in edges]


class GraphSearch:
    """A search on a graph; `previous` is the result of an earlier one to go on from."""

    graph: Graph
    config: SearchConfig

    def __init__(self, setup: Setup, previous: Result | None):
        self.setup, self.previous = setup, previous
        self.rules, self.dynamics = setup.rules, setup.dynamics
        self.by_prior = setup.guides.prior is not None
        self.key = identity_of(setup.dynamics.model)
        self.copier = Copier(self)

    def search(self, state: object, end: float | None) -> Result:
        self.plant(state)
        iterations, measured, graph, root = 0, 0, self.graph, self.graph.root
        sweep_at, opened = 2 * len(graph.expanded), (0, 0)
        while iterations < self.config.iterations:
            if end is not None and iterations and time.perf_counter() >= end:
                break
            if not root.reach and opened != (len(graph.nodes), len(graph.expanded)):
                opened = len(graph.nodes), len(graph.expanded)
                graph.open_within(self.setup.longest)
            if not root.reach and self.dynamics.kind != "sample":
                break  # all that can be reached is expanded
            iterations += 1
            if not root.reach:  # the rest of the iterations draws more outcomes, node by node
                node = graph.expanded[iterations % len(graph.expanded)]
                self.ask(node, node.edges or [], iterations, 0)
                continue
            path, leaf = self.select(root)
            if leaf.edges is None and not leaf.terminal and len(path) < self.setup.longest:
                self.expand(leaf, iterations, len(path))
            elif measured < len(graph.expanded):
                measured = len(graph.expanded)
                graph.measure_reach()
            self.back_up(path)
            if len(graph.expanded) >= sweep_at:
                Sweeper(graph, self.rules, self.config).settle()
                sweep_at = 2 * len(graph.expanded)
        return self.result(iterations)

    def plant(self, state: object) -> None:
        """The graph to start with: a root, expanded, or what an earlier search left."""
        key = (self.key(state), False)
        if self.go_on(key):
            self.graph.open_within(self.setup.longest)
        else:
            self.setup.settle_worst(state)
            self.graph = Graph(GraphNode(state, False, False, key[0]))
            self.graph.nodes[key] = self.graph.root
        self.config = self.setup.config
        if self.graph.root.edges is None:
            self.expand(self.graph.root, 0, 0)
        if not self.graph.root.edges:
            raise ValueError("the root has no legal action")

    def go_on(self, key: tuple[Hashable, bool]) -> bool:
        """Goes on from an earlier search, if there is one that knows the root and still holds."""
        root: GraphNode | None = None if self.previous is None else self.previous.tree.nodes.get(key)
        if root is None or not root.edges or self.previous is None:
            return False
        asked = self.setup.config
        if asked.worst is None:
            self.setup.use(replace(asked, worst=self.previous.config.worst))
        self.graph, self.config = self.previous.tree, self.setup.config
        if renew(self, root):
            return True
        self.setup.use(asked)
        return False

    # Selection

    def select(self, root: GraphNode) -> tuple[list[tuple[GraphNode, Edge]], GraphNode]:
        """From the root down to a node that is not expanded, along the best scores and the outcomes visited least.

        A path that comes back to a node would go round in circles, around what the scores avoid or until something
        improbable happens. From there on it takes the shortest way to a node that is not expanded, so that no iteration
        is lost.
        """
        path: list[tuple[GraphNode, Edge]] = []
        node, longest, passed, circles = root, self.setup.longest, set(), False
        while node.edges and len(path) < longest:
            circles = circles or node in passed
            passed.add(node)
            if circles:
                reaches = edge_reaches(node.edges)
                edge = node.edges[reaches.index(max(reaches))]
            else:
                edge = self.best(node, node.edges)
            path.append((node, edge))
            node.visits += 1
            edge.visits += 1
            slot, visited = 0, edge.visited
            if len(visited) > 1:
                most = -1.0
                for place, child in enumerate(edge.children):
                    share = child.reach if circles else edge.chances[place] * child.reach / (visited[place] + 1)
                    if share > most:
                        slot, most = place, share
            visited[slot] += 1
            node = edge.children[slot]
        return path, node

    def best(self, node: GraphNode, edges: list[Edge]) -> Edge:
        """argmax of the score of Q + c d sqrt(ln N / n), Q scaled among siblings; ties: the first action.

        d is 1 for the action that leads to a node to be expanded in the fewest steps, and DECAY for each step more.
        With a prior P it is Q + c d P sqrt(N) / n. Every action counts as visited once before.
        """
        values, reaches = [edge.value for edge in edges], edge_reaches(edges)
        low, high, nearest = min(values), max(values), max(reaches) or 1.0
        scale, equal = (1.0 / (high - low), 0.0) if high > low else (0.0, 0.5)
        prior = self.prior(node, edges) if self.by_prior else ()
        explore = self.config.c / nearest * math.sqrt(node.visits if prior else math.log(node.visits + 1))
        sqrt, score_of = math.sqrt, self.rules.score
        best, best_score = edges[0], -math.inf
        for place in self.candidates(edges, values, reaches) if node.biased else range(len(edges)):
            edge, reach = edges[place], reaches[place]
            if reach:
                tries = edge.visits + 1
                bonus = explore * reach * (prior[place] / tries if prior else 1.0 / sqrt(tries))
                score = score_of((values[place] - low) * scale + equal, bonus, edge.bias)
                if score > best_score:
                    best, best_score = edge, score
        return best

    def candidates(self, edges: list[Edge], values: list[float], reaches: list[float]) -> list[int]:
        """The places of the actions that a rule set would choose among, or all if these lead nowhere new."""
        places = self.rules.plain_candidates(values, [edge.bias for edge in edges])
        return places if any(reaches[place] for place in places) else list(range(len(edges)))

    def prior(self, node: GraphNode, edges: list[Edge]) -> list[float]:
        """The prior probabilities of a node's actions."""
        if node.prior is None:
            node.prior = self.setup.guides.priors(node.state, [edge.action for edge in edges])
        return node.prior

    # Expansion

    def expand(self, node: GraphNode, iteration: int, depth: int) -> None:
        """Gives a node `depth` steps from the root all its actions and outcomes, and new successors a first value."""
        state, uncertainty, settings = node.state, self.setup.uncertainty, self.setup.settings(node.doubted)
        actions = self.dynamics.legal_actions(state)
        doubts = [check_uncertainty(0.0 if uncertainty is None else uncertainty(state, a)) for a in actions]
        node.edges = edges = [Edge(action, doubt) for action, doubt in zip(actions, doubts, strict=True)]
        if not edges:
            node.value = node.reach = 0.0  # a dead end
            return
        for edge, bias, keep in zip(edges, *self.rules.plain_edges(doubts, settings), strict=True):
            edge.bias, edge.keep = bias, keep
        self.ask(node, edges, iteration, depth)
        self.graph.expanded.append(node)
        if (other := self.copier.other(node)) is not None:
            self.copier.expand([other])

    def ask(self, node: GraphNode, edges: list[Edge], iteration: int, depth: int) -> None:
        """Asks the model for the outcomes of a node's actions. A model that draws them may be asked again."""
        new: list[GraphNode] = []
        for edge in edges:
            self.connect(node, edge, new, float(depth + 1 < self.setup.longest))
        self.evaluate(self.copier.take_over(new), iteration, self.setup.rollout_depth(depth + 1))
        self.settle(node, edges)

    def settle(self, node: GraphNode, edges: list[Edge]) -> None:
        """Gives a node and its actions the values that follow from their successors."""
        for edge in edges:
            edge.value = self.edge_value(edge)
            edge.child = edge.children[0] if len(edge.children) == 1 else None
        node.biased = any(edge.bias != edges[0].bias for edge in edges)
        node.value = max([edge.value for edge in edges])
        node.successors = list({child: None for edge in edges for child in edge.children})
        node.reach = DECAY * max([child.reach for child in node.successors])

    def connect(self, node: GraphNode, edge: Edge, new: list[GraphNode], reach: float) -> None:
        """Finds or makes the successors of an action; outcomes with the same successor count as one.

        `reach` is 0 where a path may not go on beyond them: they do not attract the search then.
        """
        nodes, doubted = self.graph.nodes, self.rules.follows_doubt and (node.doubted or edge.keep < 1.0)
        edge.draws += 1
        share = 1.0 / edge.draws  # of these outcomes; what was drawn before keeps the rest
        edge.reward *= 1.0 - share
        edge.chances = [chance * (1.0 - share) for chance in edge.chances]
        places = {child: place for place, child in enumerate(edge.children)}
        for chance, (following, reward, terminal) in self.dynamics.outcomes(node.state, edge.action):
            edge.reward += share * chance * check_reward(reward)
            child = self.graph.end
            if not terminal:
                key = (self.key(following), doubted)
                if key not in nodes:
                    child = nodes[key] = GraphNode(following, doubted, False, key[0])
                    child.reach = 0.0
                    new.append(child)
                child = nodes[key]
                if child.edges is None:
                    child.reach = max(child.reach, reach)
            place = places.setdefault(child, len(places))
            if place == len(edge.children):
                edge.children.append(child)
                edge.chances.append(0.0)
                edge.visited.append(0)
            edge.chances[place] += share * chance

    def evaluate(self, new: list[GraphNode], iteration: int, depth: int) -> None:
        """First values of new nodes, which share the rollouts of an iteration, of `depth` steps at most."""
        count = max(1, self.config.rollouts // max(1, len(new)))
        for place, child in enumerate(new):
            start = Start(child.state, iteration, range(place * count, (place + 1) * count), depth)
            child.value, child.other_value = self.copier.values(start, child.doubted)

    # Backups

    def edge_value(self, edge: Edge) -> float:
        """Q(s, a) = sum over outcomes of p [r + gamma P(V(s'))]."""
        if edge.keep == 1.0:
            if edge.child:
                return edge.reward + self.config.gamma * edge.child.value
            below = 0.0
            for chance, child in zip(edge.chances, edge.children, strict=True):
                below += chance * child.value
            return edge.reward + self.config.gamma * below
        passed = 0.0
        for chance, child in zip(edge.chances, edge.children, strict=True):
            passed += chance * self.rules.child_value(child.value, 0.0, edge.keep, self.config)
        return edge.reward + passed

    def back_up(self, path: list[tuple[GraphNode, Edge]]) -> None:
        """Bellman backups from the end of a path to the root."""
        gamma = self.config.gamma
        for node, edge in reversed(path):
            child = edge.child
            if child is not None and edge.keep == 1.0:  # most edges: `edge_value` without a call
                edge.value = edge.reward + gamma * child.value
            else:
                edge.value = self.edge_value(edge)
            node.value = max(map(value_of, node.edges or ()))
            node.reach = DECAY * max(map(reach_of, node.successors))

    # The move

    def choose(self, values: list[float], early: list[float]) -> int:
        """The place of the best value; of equal ones the one that pays earlier; of these, one is drawn.

        Without the second rule a search with gamma = 1 would put off what it can have at any time.
        """
        slack = ACCURACY * max(map(abs, values))
        ties = [place for place, value in enumerate(values) if value >= max(values) - slack]
        most = max(early[place] for place in ties)
        ties = [place for place in ties if early[place] >= most - ACCURACY * abs(most)]
        return ties[self.setup.draws.tie(len(ties))]

    def result(self, iterations: int) -> Result:
        root, edges = self.graph.root, self.graph.root.edges or []
        sweeper = Sweeper(self.graph, self.rules, self.config)
        sweeper.settle()
        here = slice(sweeper.first_edges[root.index], sweeper.first_edges[root.index] + len(edges))
        values = [edge.value for edge in edges]
        if self.setup.horizon is not None:
            values = sweeper.sweep(self.setup.horizon, endless=False)[here].tolist()
        chosen = edges[self.choose(values, sweeper.early[here].tolist())]
        found = {edge.action: (edge, value) for edge, value in zip(edges, values, strict=True)}
        actions = self.dynamics.actions
        return Result(
            action=chosen.action,
            visits=[found[a][0].visits if a in found else 0 for a in actions],
            values=[found[a][1] if a in found else math.nan for a in actions],
            uncertainty=[found[a][0].uncertainty if a in found else 0.0 for a in actions],
            exists=[a in found for a in actions],
            tree=self.graph,
            iterations=iterations,
            config=self.config,
        )
