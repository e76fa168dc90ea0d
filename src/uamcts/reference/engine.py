"""Algorithm 1 and its phases, each a method that reads like the paper."""

from __future__ import annotations

import math
import numbers
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from uamcts.arguments import legal_actions
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.rules import find_rules
from uamcts.mcts.search import longest_path
from uamcts.reference.rollouts import Simulator
from uamcts.reference.tree import Draws, Node, PythonModel, Result, check_reward, check_uncertainty


def search(
    rng: random.Random | Draws | int,
    state: Any,
    model: PythonModel,
    uncertainty: Callable[[Any, int], float] | None,
    config: SearchConfig,
    budget_seconds: float | None = None,
) -> Result:
    """Algorithm 1. Stops after `config.iterations`, or after `budget_seconds` where that comes first."""
    if budget_seconds is not None and not budget_seconds > 0:
        raise ValueError(f"budget_seconds is {budget_seconds!r}; it must be above 0")
    if isinstance(rng, numbers.Integral):
        rng = random.Random(int(rng))  # noqa: S311 (planning, not secrets)
    elif not isinstance(rng, (random.Random, Draws)) and not hasattr(rng, "deletion"):
        raise TypeError(f"rng is {rng!r}; give a whole number, a random.Random or an object like reference.Draws")
    run = _Search(Draws(rng) if isinstance(rng, random.Random) else rng, model, uncertainty, config)
    end = None if budget_seconds is None else time.perf_counter() + budget_seconds
    return run.search(state, end)


class _Search:
    """One search: what its four phases share."""

    def __init__(self, draws: Any, model: PythonModel, uncertainty: Callable | None, config: SearchConfig):
        self.draws, self.model, self.config = draws, model, config
        self.rules = find_rules(config.rules)
        self.actions = range(model.num_actions)
        self.legal = self.check_legal(getattr(model, "legal_actions", None))
        self.uncertainty = uncertainty
        self.simulator = Simulator(draws, model, uncertainty, self.legal, self.rules, config)
        self.below_doubt = self.rules.below_doubt(config, True)
        self.deletion_chance = 0.0
        if self.rules.deletion_scale is not None:
            scale = self.rules.deletion_scale if config.deletion_scale is None else config.deletion_scale
            self.deletion_chance = 1.0 - config.tau / scale

    def check_legal(self, legal: Callable[[Any], Any] | None) -> Callable[[Any], list[int]] | None:
        """The model's `legal_actions`, whose answers are checked and sorted."""
        return None if legal is None else lambda state: legal_actions(legal(state), len(self.actions))

    def search(self, state: Any, end: float | None) -> Result:
        root = Node(None, state, 0.0, False, 0.0)
        self.settle_worst(state)
        if self.rules.expands_root:
            self.expand(root, 1)
            root.visits = self.config.root_visits
        iteration = 0
        while iteration < self.config.iterations:
            if end is not None and root.children and time.perf_counter() >= end:
                break
            path = self.select(root)
            leaf, grown = path[-1], False
            if leaf.visits > 0 and not leaf.terminal and len(path) <= self.config.tree_depth and not leaf.children:
                self.expand(leaf, iteration + (2 if self.rules.expands_root else 1))
                grown = bool(leaf.children)
                if grown and self.rules.picks_at_random:
                    path.append(leaf.children[self.draws.child(iteration, len(leaf.children))])
                elif grown:
                    path.append(self.first(leaf.children))
            leaf.weight += leaf.visits > 0 and not grown  # a visit for itself: there is nothing below
            end_of_path = path[-1]
            value = self.simulator.simulate(end_of_path, iteration, self.settings(end_of_path))
            self.backpropagate(path, value)
            iteration += 1
        return self.result(root, iteration)

    def settle_worst(self, state: Any) -> None:
        """Finds V_min where a rule set needs it and it is not given."""
        if not self.config.reads("worst") or self.config.worst is not None or self.uncertainty is None:
            return
        longest = longest_path(self.config, len(self.actions), self.legal is not None)
        self.config = replace(self.config, worst=self.simulator.worst_return(state, longest))
        self.simulator = self.simulator._replace(config=self.config)
        self.below_doubt = self.rules.below_doubt(self.config, True)

    def settings(self, node: Node) -> SearchConfig:
        """The settings below a node."""
        return self.below_doubt if node.doubted else self.config

    # Selection

    def select(self, root: Node) -> list[Node]:
        """From the root down to a leaf, along the best scores; an unvisited child is taken at once."""
        path, node = [root], root
        while node.children and len(path) <= self.config.tree_depth:
            unvisited = [child for child in node.children if child.visits == 0]
            node = self.first(unvisited) if unvisited else self.best(node)
            path.append(node)
        return path

    def first(self, children: list[Node]) -> Node:
        """The child to try first, in action order."""
        return children[self.rules.plain_first_choice([child.bias for child in children])[0]]

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

    def child_value(self, node: Node) -> float:
        """x = r + gamma value(v) of a child."""
        value = self.rules.value(max(node.visits, 1), node.total, node.weight)
        return self.rules.child_value(value, node.reward, node.keep, self.config)

    # Expansion

    def expand(self, node: Node, expansion: int) -> None:
        """Makes all children; UA-Expansion deletes one, child i with probability U_i / sum U."""
        state = node.state
        for action in self.actions if self.legal is None else self.legal(state):
            following, reward, terminal = self.model.step(state, action)
            uncertainty = 0.0 if self.uncertainty is None else self.uncertainty(state, action)
            child = Node(action, following, check_reward(reward), terminal, check_uncertainty(uncertainty))
            node.children.append(child)
        if not node.children:
            return
        if self.rules.deletion_scale is not None:
            self.delete(node, *self.draws.deletion(expansion))
        edges = self.rules.plain_edges([child.uncertainty for child in node.children], self.settings(node))
        for child, child.bias, child.keep in zip(node.children, *edges, strict=True):
            child.doubted = self.rules.follows_doubt and (node.doubted or child.keep < 1.0)

    def delete(self, node: Node, chance: float, place: float) -> None:
        """Deletes a child with the probability that UA-Expansion says; never the last one."""
        uncertainty = [child.uncertainty for child in node.children]
        total = sum(uncertainty)
        wanted = self.config.expansion and total > self.config.deletion_threshold and chance < self.deletion_chance
        if wanted and len(uncertainty) > 1:
            node.deleted = node.children.pop(first_above(uncertainty, place * total))

    # Backpropagation

    def backpropagate(self, path: list[Node], value: float) -> None:
        """N += 1, Q += value on the way up."""
        below = 0.0
        for node in reversed(path):
            node.visits += 1
            node.total += self.rules.credit(value, node.keep)
            node.weight += below
            below = node.keep
            pieces = self.rules.pieces(node.reward, node.keep, self.config)
            value = min(slope * value + offset for slope, offset in pieces)

    # The move

    def result(self, root: Node, iterations: int) -> Result:
        if not root.children:
            raise ValueError("the root has no legal action, or the search was too short to try one")
        most = max(child.visits for child in root.children)
        ties = [child for child in root.children if child.visits == most]
        if self.rules.breaks_ties_by_value:
            best = max(self.child_value(child) for child in ties)
            ties = [child for child in ties if self.child_value(child) == best]
        chosen = ties[self.draws.tie(len(ties))]
        found = {child.action: child for child in root.children}
        everyone = found if root.deleted is None else {**found, root.deleted.action: root.deleted}
        assert chosen.action is not None  # noqa: S101 (only the root has none)
        return Result(
            action=chosen.action,
            visits=[found[a].visits if a in found else 0 for a in self.actions],
            values=[self.child_value(found[a]) if a in found and found[a].visits else math.nan for a in self.actions],
            uncertainty=[everyone[a].uncertainty if a in everyone else 0.0 for a in self.actions],
            exists=[a in found for a in self.actions],
            tree=root,
            iterations=iterations,
        )


def first_above(numbers: Sequence[float], place: float) -> int:
    """The first index at which the running sum of `numbers` is above `place`."""
    running = 0.0
    for index, number in enumerate(numbers):
        running += number
        if running > place:
            return index
    return len(numbers) - 1
