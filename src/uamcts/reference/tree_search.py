"""Algorithm 1 on a tree of paths: its phases, each a method that reads like the paper."""

from __future__ import annotations

import functools
import math
import time
from dataclasses import replace
from typing import Any

from uamcts.reference.best_sequence import BestSequence
from uamcts.reference.reuse import reusable
from uamcts.reference.rollouts import Start
from uamcts.reference.setup import Setup
from uamcts.reference.tree import Node, Result, check_reward, check_uncertainty, first_above

Path = tuple[list[Node], list[Node]]
"""The nodes from the root on that have the statistics, and those that have the states. Where an action has one outcome
they are the same node; in a deterministic model they are the same list."""


class TreeSearch:
    """A search on a tree; `previous` is the result of an earlier one to go on from."""

    def __init__(self, setup: Setup, previous: Result | None):
        self.setup, self.previous = setup, previous
        self.rules, self.draws, self.dynamics = setup.rules, setup.draws, setup.dynamics
        self.config = setup.config
        self.expanded: list[tuple[int, Node]] = []
        self.ended: list[Node] = []
        self.best_sequence = None
        if setup.follows:
            carried = [] if previous is None else previous.sequence[1:]
            self.best_sequence, self.previous = BestSequence(float(self.config.follow), carried), None
        self.deletion_chance = 0.0
        if self.rules.deletion_scale is not None:
            scale = self.rules.deletion_scale if self.config.deletion_scale is None else self.config.deletion_scale
            self.deletion_chance = 1.0 - self.config.tau / scale

    def search(self, state: object, end: float | None) -> Result:
        root = self.plant(state)
        iteration = 0
        while iteration < self.config.iterations:
            if end is not None and root.children and time.perf_counter() >= end:
                break
            path, places = self.select(root) if self.descends(iteration) else ([root],) * 2
            leaf, place, grown = path[-1], places[-1], False
            if place.visits > 0 and not place.terminal and len(path) <= self.setup.longest and not place.children:
                self.expand(place, iteration + (2 if self.rules.expands_root else 1))
                grown = bool(place.children)
                if grown and self.rules.picks_at_random:
                    self.extend(path, places, place.children[self.draws.child(iteration, len(place.children))])
                elif grown:
                    self.extend(path, places, self.first(place.children))
            revisited = leaf.visits > 0 and not grown
            self.ended.append(places[-1])
            self.backpropagate(path, places, self.simulate(places[-1], iteration, len(path) - 1), revisited)
            if self.best_sequence is not None:
                self.best_sequence.update([node.action for node in path[1:]], functools.partial(self.climb, path))
            iteration += 1
        return self.result(root, iteration)

    def plant(self, state: object) -> Node:
        """The root, expanded if the rule set says so."""
        root = Node(None, state, 0.0, False, 0.0)
        before = None if self.previous is None else reusable(self.dynamics.model, self.previous.tree, state)
        if before is None or self.previous is None:
            self.setup.settle_worst(state)
        elif self.config.worst is None and self.previous.config.worst is not None:
            self.setup.use(replace(self.config, worst=self.previous.config.worst))  # values below were made with it
        self.config = self.setup.config
        if before is not None:
            root.visits, root.children, root.deleted, root.prior = (
                before.visits, before.children, before.deleted, before.prior,
            )  # fmt: skip
        elif self.rules.expands_root:
            self.expand(root, 1)
            root.visits = self.config.root_visits
        return root

    def descends(self, iteration: int) -> bool:
        """Begins an iteration. Whether it selects a leaf: those that roll out from the root do not."""
        if self.best_sequence is None:
            return True
        self.best_sequence.begin(iteration)
        return not self.best_sequence.rolls_from_root

    # Selection

    def select(self, root: Node) -> Path:
        """From the root down to a leaf, along the best scores; an unvisited child is taken at once."""
        path, place, longest = [root], root, self.setup.longest
        places = [root] if self.dynamics.random else path
        while place.children and len(path) <= longest:
            place = self.extend(path, places, self.choose(place))
        return path, places

    def choose(self, place: Node) -> Node:
        """The child of a node to go on to."""
        if self.setup.guides.prior is not None:
            return self.best_by_prior(place)
        unvisited = [child for child in place.children if child.visits == 0]
        return self.first(unvisited) if unvisited else self.best(place)

    def extend(self, path: list[Node], places: list[Node], child: Node) -> Node:
        """Adds a child to a path, and in a random model the outcome that is visited next."""
        path.append(child)
        if places is not path:
            child = child if child.outcomes is None else self.outcome(places[-1].state, child)
            places.append(child)
        return child

    def outcome(self, state: object, node: Node) -> Node:
        """The outcome of an action with the greatest p / (n + 1); draws come one a visit, up to `config.outcomes`."""
        outcomes, dynamics = node.outcomes, self.dynamics
        assert outcomes is not None  # noqa: S101 (the caller has looked)
        if dynamics.kind == "sample" and len(outcomes) < dynamics.drawn:
            outcomes.append(self.outcome_node(node, 1.0, dynamics.sample(state, node.action)))
            return outcomes[-1]
        return outcomes[0] if len(outcomes) == 1 else max(outcomes, key=lambda one: one.probability / (one.visits + 1))

    def first(self, children: list[Node]) -> Node:
        """The child to try first: in action order, beginning with `config.first`."""
        places = self.rules.plain_first_choice([child.bias for child in children])
        first, actions = self.config.first, self.dynamics.num_actions
        if first is None or self.dynamics.continuous:
            return children[places[0]]
        return children[min(places, key=lambda place: (children[place].action - first) % actions)]

    def best(self, node: Node) -> Node:
        """argmax of the score of x_i + c sqrt(ln N(v) / N(v_i)); ties: the first action."""
        c, log_visits = self.config.c, math.log(max(node.visits, 1))
        values = [self.child_value(child) for child in node.children]
        places = self.rules.plain_candidates(values, [child.bias for child in node.children])
        if self.rules.normalizes:
            low, high = min(values), max(values)
            values = [(value - low) / (high - low) if high > low else 0.5 for value in values]
        best, best_score = node.children[places[0]], -math.inf
        for place in places:
            child = node.children[place]
            score = self.rules.score(values[place], c * math.sqrt(log_visits / child.visits), child.bias)
            if score > best_score:
                best, best_score = child, score
        return best

    def best_by_prior(self, node: Node) -> Node:
        """argmax of the score of x_i + c P_i sqrt(N(v)) / (1 + N(v_i)), P the prior; ties: the first action.

        A child that was never visited has the mean (scaled) value of those that were.
        """
        children = node.children
        if node.prior is None:
            node.prior = self.setup.guides.priors(node.state, [child.action for child in children])
        visited = [self.child_value(child) for child in children if child.visits]
        low, high = (min(visited), max(visited)) if visited and self.rules.normalizes else (0.0, 1.0)
        scaled = [(value - low) / (high - low) if high > low else 0.5 for value in visited]
        mean, known = sum(scaled) / len(scaled) if scaled else 0.5, iter(scaled)
        best, best_score, explore = children[0], -math.inf, self.config.c * math.sqrt(node.visits)
        for child, prior in zip(children, node.prior, strict=True):
            value = next(known) if child.visits else mean
            score = self.rules.score(value, explore * prior / (1 + child.visits), child.bias)
            if score > best_score:
                best, best_score = child, score
        return best

    def child_value(self, node: Node) -> float:
        """x = r + gamma value(v) of a child."""
        value = self.rules.value(max(node.visits, 1), node.total, node.weight)
        return self.rules.child_value(value, node.reward, node.keep, self.config)

    # Expansion

    def expand(self, node: Node, expansion: int) -> None:
        """Makes all children; UA-Expansion deletes one, child i with probability U_i / sum U."""
        state, uncertainty = node.state, self.setup.uncertainty
        for action in self.dynamics.legal_actions(state):
            doubt = check_uncertainty(0.0 if uncertainty is None else uncertainty(state, action))
            node.children.append(self.child(state, action, doubt))
        if not node.children:
            return
        self.expanded.append((expansion - self.rules.expands_root, node))
        if self.rules.deletion_scale is not None:
            self.delete(node, *self.draws.deletion(expansion))
        settings = self.setup.settings(node.doubted)
        edges = self.rules.plain_edges([child.uncertainty for child in node.children], settings)
        for child, bias, keep in zip(node.children, *edges, strict=True):
            child.bias, child.keep = bias, keep
            child.doubted = self.rules.follows_doubt and (node.doubted or child.keep < 1.0)
            for outcome in child.outcomes or ():
                outcome.doubted = child.doubted

    def child(self, state: object, action: Any, uncertainty: float) -> Node:
        """A new child with its outcomes, if the model is random."""
        if not self.dynamics.random:
            following, reward, terminal = self.dynamics.model.step(state, action)
            return Node(action, following, check_reward(reward), terminal, uncertainty)
        listed = self.dynamics.kind == "outcomes"
        found = self.dynamics.outcomes(state, action) if listed else []
        if len(found) == 1:  # one outcome is no chance
            following, reward, terminal = found[0][1]
            return Node(action, following, check_reward(reward), terminal, uncertainty)
        node = Node(action, None, 0.0, False, uncertainty)
        node.outcomes = []
        if listed:
            node.outcomes = [self.outcome_node(node, probability, outcome) for probability, outcome in found]
        return node

    def outcome_node(self, node: Node, probability: float, outcome: tuple[Any, float, bool]) -> Node:
        """An outcome of a random transition."""
        following, reward, terminal = outcome
        found = Node(node.action, following, check_reward(reward), terminal, node.uncertainty)
        found.probability, found.doubted = probability, node.doubted
        return found

    def delete(self, node: Node, chance: float, place: float) -> None:
        """Deletes a child with the probability that UA-Expansion says; never the last one."""
        uncertainty = [child.uncertainty for child in node.children]
        total = sum(uncertainty)
        wanted = self.config.expansion and total > self.config.deletion_threshold and chance < self.deletion_chance
        if wanted and len(uncertainty) > 1:
            node.deleted = node.children.pop(first_above(uncertainty, place * total))

    # Simulation

    def simulate(self, node: Node, iteration: int, depth: int) -> float:
        """The value of a node `depth` transitions below the root."""
        if node.terminal:
            return 0.0
        start = Start(node.state, iteration, range(self.config.rollouts), self.setup.rollout_depth(depth), depth)
        if self.best_sequence is not None:
            start = start._replace(best=self.best_sequence, sequence=self.best_sequence.suggest(depth))
        return self.setup.simulator.simulate(start, self.setup.settings(node.doubted))

    # Backpropagation

    def backpropagate(self, path: list[Node], places: list[Node], value: float, revisited: bool) -> None:
        """N += 1, Q += value on the way up. A leaf that was `revisited` and did not grow was visited for itself."""
        rules, below = self.rules, 1.0 if revisited else 0.0
        for node, place in zip(reversed(path), reversed(places), strict=True):
            added = rules.credit(value, node.keep)
            node.visits += 1
            if place is not node:
                place.visits += 1
                node.reward += (place.reward - node.reward) / node.visits
            node.total += added
            node.weight += below
            below = node.keep
            value = self.pass_on(value, place.reward, node.keep)

    def pass_on(self, value: float, reward: float, keep: float) -> float:
        """A value above a transition."""
        return min(slope * value + offset for slope, offset in self.rules.pieces(reward, keep, self.config))

    def climb(self, path: list[Node], value: float) -> float:
        """What a value at the end of a path is worth at the root, in a deterministic model."""
        for node in reversed(path[1:]):
            value = self.pass_on(value, node.reward, node.keep)
        return value

    # The move

    def move(self, root: Node) -> Node:
        """The child of the root that begins the best sequence, if the search looks for one.

        Else the child with the most visits; ties by value if the rule set says so, else drawn.
        """
        if not root.children:
            raise ValueError("the root has no legal action, or the search was too short to try one")
        if self.best_sequence is not None and self.best_sequence.move is not None:
            return next(child for child in root.children if child.action == self.best_sequence.move)
        most = max(child.visits for child in root.children)
        ties = [child for child in root.children if child.visits == most]
        if self.rules.breaks_ties_by_value:
            best = max(self.child_value(child) for child in ties)
            ties = [child for child in ties if self.child_value(child) == best]
        return ties[self.draws.tie(len(ties))]

    def result(self, root: Node, iterations: int) -> Result:
        chosen = self.move(root)
        found = {child.action: child for child in root.children}
        everyone = found if root.deleted is None else {**found, root.deleted.action: root.deleted}
        actions = self.dynamics.actions
        return Result(
            action=chosen.action,
            visits=[found[a].visits if a in found else 0 for a in actions],
            values=[self.child_value(found[a]) if a in found and found[a].visits else math.nan for a in actions],
            uncertainty=[everyone[a].uncertainty if a in everyone else 0.0 for a in actions],
            exists=[a in found for a in actions],
            tree=root,
            iterations=iterations,
            config=self.config,
            expanded=self.expanded,
            ended=self.ended,
            sequence=[] if self.best_sequence is None else self.best_sequence.actions,
        )
