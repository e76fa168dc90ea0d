"""UA-MCTS on plain Python objects, to be read beside the paper, and to plan with any Python simulator.

A model is any object with `step(state, action) -> (state, reward, terminal)` and `num_actions`. It may also offer
`legal_actions(state)`, a sequence of actions (none: a dead end), and `step_batch(states, actions)` for rollouts in
lockstep. States may be anything; a step must not change the state it is given. Nothing here copies states.

The same search, compiled and for JAX models, is `uamcts.search`; with the same random draws both build the same tree.
"""

from __future__ import annotations

import math
import numbers
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from uamcts.explain import explained
from uamcts.types import SearchConfig


class PythonModel(Protocol):
    """What a model must have. `step` is called with a state of yours and an action 0 .. num_actions - 1."""

    num_actions: int

    def step(self, state: Any, action: int) -> tuple[Any, float, bool]: ...


class Node:
    """A node v of the tree: S(v), r(v), U(v) of the transition into it, N(v), Q(v), and its children Ch(v)."""

    __slots__ = ("action", "children", "damping", "deleted", "doubted", "reward", "share", "state", "terminal",
                 "total", "uncertainty", "visits", "weight")  # fmt: skip

    def __init__(self, action: int | None, state: Any, reward: float, terminal: bool, uncertainty: float):
        self.action = action
        self.state = state
        self.reward = reward
        self.terminal = terminal
        self.uncertainty = uncertainty
        self.visits = 0
        self.total = 0.0
        self.weight = 0.0  # sum over the children of share * N
        self.damping = 1.0  # 1 - softmax(U / tau) among the siblings, if UA-Selection is on; trust: the penalty or 0
        self.share = 1.0  # softmax(-U / tau) among the siblings, if UA-Backpropagation is on; trust: 1 - rho or 1
        self.doubted = False  # trust: a transition on the way here counts less already
        self.children: list[Node] = []
        self.deleted: Node | None = None


class Result(NamedTuple):
    """What a search found; lists have one entry per action."""

    action: int
    visits: list[int]
    values: list[float]
    """The value of each action, its first reward included; NaN where it was never tried."""
    uncertainty: list[float]
    exists: list[bool]
    tree: Node
    iterations: int
    """How many iterations there was time for."""

    def explain(self, action_names: Sequence[str] = ()) -> str:
        """Why this action, in words: visits, value and uncertainty of every action, and what was deleted."""
        return explained(self, action_names)


class Draws:
    """The random choices of a search. Give another object with these methods to decide them yourself."""

    def __init__(self, rng: random.Random):
        self.random = rng.random

    def below(self, count: int) -> int:
        return int(self.random() * count)

    def deletion(self, expansion: int) -> tuple[float, float]:
        """Two numbers in [0, 1): whether a child is deleted, and which."""
        return self.random(), self.random()

    def child(self, iteration: int, count: int) -> int:
        return self.below(count)

    def tie(self, count: int) -> int:
        return self.below(count)

    def rollout(self, iteration: int, number: int) -> Callable[[int], int]:
        """A function that gives a number below its argument for each step of a rollout."""
        return self.below


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
        self.step = model.step
        self.actions = range(model.num_actions)
        self.legal: Callable[[Any], Sequence[int]] | None = getattr(model, "legal_actions", None)
        self.uncertainty = uncertainty
        self.released, self.trust = config.rules == "released", config.rules == "trust"
        self.root_first = self.released or self.trust
        scale = config.deletion_scale if config.deletion_scale is not None else (1.0 if self.released else 10.0)
        self.deletion_chance = 1.0 - config.tau / scale

    def search(self, state: Any, end: float | None) -> Result:
        root = Node(None, state, 0.0, False, 0.0)
        self.v_min = self.worst_return(root) if self.trust else 0.0
        if self.root_first:
            self.expand(root, 1)
            root.visits = self.config.root_visits
        iteration = 0
        while iteration < self.config.iterations:
            if end is not None and root.children and time.perf_counter() >= end:
                break
            path = self.select(root)
            leaf, grown = path[-1], False
            if leaf.visits > 0 and not leaf.terminal and len(path) <= self.config.tree_depth and not leaf.children:
                self.expand(leaf, iteration + (2 if self.root_first else 1))
                grown = bool(leaf.children)
                if grown and not self.root_first:
                    path.append(leaf.children[self.draws.child(iteration, len(leaf.children))])
                elif grown:
                    path.append(self.first(leaf.children))
            leaf.weight += leaf.visits > 0 and not grown  # a visit for itself: there is nothing below
            self.backpropagate(path, self.simulate(path[-1], iteration))
            iteration += 1
        return self.result(root, iteration)

    def worst_return(self, root: Node) -> float:
        """trust: V_min, which is `config.worst`, or the worst return of one simulation from the root, at most 0.

        A rollout that is cut at `depth` is taken to go on like that for as many steps as the search can look ahead.
        """
        config = self.config
        if config.worst is not None or self.uncertainty is None:
            return config.worst or 0.0
        fewest = 1 if self.legal is not None else max(1, len(self.actions) - 1)
        longest = min(config.iterations // fewest + 2, config.tree_depth)
        counts = [config.gamma**step for step in range(config.depth + longest)]
        rest = sum(counts) / sum(counts[: config.depth])
        worst = 0.0
        for number in range(config.rollouts):
            walk = list(self.walk(root.state, self.draws.rollout(config.iterations, number)))
            returned = sum(counts[step] * checked_reward(reward) for step, (_, _, reward, _) in enumerate(walk))
            cut = len(walk) == config.depth and not walk[-1][3]
            worst = min(worst, returned * (rest if cut else 1.0))
        return worst

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
        """The first of some children in action order; trust: of the certain ones."""
        return self.certain(children)[0] if self.trust else children[0]

    def certain(self, children: list[Node]) -> list[Node]:
        """trust: those with the least penalty, which are the certain ones, or all."""
        least = min(child.damping for child in children)
        return [child for child in children if child.damping == least]

    def best(self, node: Node) -> Node:
        """argmax of x_i + c sqrt(ln N(v) / N(v_i)), damped by 1 - softmax(U / tau)_i; ties: the first action.

        trust: a doubtful child's score is lowered by the penalty instead, and where all x_i are equal only the
        certain ones are looked at.
        """
        c, log_visits = self.config.c, math.log(max(node.visits, 1))
        values = [self.worth(child) for child in node.children]
        best, best_score = node.children[0], -math.inf
        if self.root_first:
            low, high = min(values), max(values)
            looked_at = self.certain(node.children) if self.trust and high == low else node.children
            values = [(value - low) / (high - low) if high > low else 0.5 for value in values]
        for child, value in zip(node.children, values, strict=True):
            if self.trust and child not in looked_at:
                continue
            exploration = c * math.sqrt(log_visits / child.visits)
            if self.trust:
                score = value + exploration - child.damping
            elif self.released:
                score = (value + exploration) * child.damping
            else:
                score = value + exploration * child.damping
            if score > best_score:
                best, best_score = child, score
        return best

    def value(self, node: Node) -> float:
        """Q over N; released: over 1 + sum of the children's share * N, which is N where every share is 1."""
        if self.released:
            return node.total / (1.0 + node.weight)
        return node.total / max(node.visits, 1)

    def worth(self, node: Node) -> float:
        """x = r + gamma value(v) of a child; trust: less of its value where it is doubtful."""
        value = self.value(node)
        return node.reward + self.config.gamma * (self.pessimistic(value, node.share) if self.trust else value)

    def pessimistic(self, value: float, kept: float) -> float:
        """trust: P(V, kept) = min(V, kept V + (1 - kept) V_min); a transition never gains by being doubtful."""
        return min(value, kept * value + (1.0 - kept) * self.v_min)

    # Expansion

    def expand(self, node: Node, expansion: int) -> None:
        """Makes all children; UA-Expansion deletes one, child i with probability U_i / sum U; trust deletes none."""
        config, state = self.config, node.state
        for action in self.actions if self.legal is None else sorted(self.legal(state)):
            following, reward, terminal = self.step(state, action)
            doubt = 0.0 if self.uncertainty is None else self.uncertainty(state, action)
            node.children.append(Node(action, following, checked_reward(reward), terminal, checked(doubt)))
        if self.trust:
            for child in node.children:
                doubtful = child.uncertainty > config.threshold and not node.doubted
                child.damping = config.penalty if config.selection and doubtful else 0.0
                child.share = 1.0 - config.rho if config.backpropagation and doubtful else 1.0
                child.doubted = node.doubted or child.share < 1.0
            return
        if not node.children:
            return
        doubts = [child.uncertainty for child in node.children]
        chance, place = self.draws.deletion(expansion)
        total = sum(doubts)
        if config.expansion and len(doubts) > 1 and total > config.deletion_threshold and chance < self.deletion_chance:
            index = first_above(doubts, place * total)
            node.deleted, _ = node.children.pop(index), doubts.pop(index)
        if config.selection:
            for child, alpha in zip(node.children, softmax(doubts, config.tau), strict=True):
                child.damping = 1.0 - alpha
        if config.backpropagation:
            for child, alpha in zip(node.children, softmax([-doubt for doubt in doubts], config.tau), strict=True):
                child.share = alpha

    # Simulation

    def simulate(self, node: Node, iteration: int) -> float:
        """N_S random rollouts: the mean of their returns, or UA-Simulation's softmax(-sigma / tau)-weighted sum.

        trust: the mean of returns that were already weighed step by step.
        """
        if node.terminal:
            return 0.0
        batched = hasattr(self.model, "step_batch") and self.legal is None
        if batched and (not self.config.simulation or self.uncertainty is None or hasattr(self.uncertainty, "batch")):
            returns, doubts = self.rollouts_in_lockstep(node, iteration)
        else:
            rollouts = self.rollouts(node, iteration)
            returns, doubts = [g for g, _ in rollouts], [sigma for _, sigma in rollouts]
        if not self.config.simulation or self.trust:
            return sum(returns) / len(returns)
        weights = softmax([-doubt for doubt in doubts], self.config.tau)
        return sum(weight * returned for weight, returned in zip(weights, returns, strict=True))

    def rollouts(self, node: Node, iteration: int) -> list[tuple[float, float]]:
        """g and sigma of each rollout. An uncertainty that has `many(states, actions)` is asked once for all."""
        state, rho = node.state, self.rho(node)
        streams = [self.draws.rollout(iteration, number) for number in range(self.config.rollouts)]
        uncertainty: Any = self.uncertainty if self.config.simulation else None
        if not hasattr(uncertainty, "many"):
            return [self.weighed(self.walk(state, below), uncertainty, rho) for below in streams]
        walks = [list(self.walk(state, below)) for below in streams]
        steps = [step for walk in walks for step in walk]
        answers = iter(uncertainty.many([step[0] for step in steps], [step[1] for step in steps]))
        return [self.weighed(walk, lambda state, action: next(answers), rho) for walk in walks]

    def walk(self, state: Any, below: Callable[[int], int]) -> Iterator[tuple[Any, int, float, bool]]:
        """Random steps from a state: the state before each, the action, the reward, and whether it was the last."""
        step, legal, count = self.step, self.legal, len(self.actions)
        for _ in range(self.config.depth):
            if legal is None:
                action = below(count)
            elif allowed := sorted(legal(state)):
                action = allowed[below(len(allowed))]
            else:
                return  # nothing can be done here: a dead end
            following, reward, terminal = step(state, action)
            yield state, action, reward, terminal
            if terminal:
                return
            state = following

    def weighed(
        self, walk: Iterable[tuple[Any, int, float, bool]], uncertainty: Callable | None, rho: float
    ) -> tuple[float, float]:
        """g = sum_k gamma^(k-1) r_k and sigma = sum_k gamma^(k-1) U(s_k, a_k), s_k the state before the step.

        trust: less of what comes after the first doubtful step, P(return after it, 1 - rho).
        """
        gamma, threshold = self.config.gamma, self.config.threshold
        returned, doubt, discount = 0.0, 0.0, 1.0
        before, onward = 0.0, 0.0  # trust: the return up to the first doubtful step, and the discount after it
        for state, action, reward, _ in walk:
            doubted = 0.0 if uncertainty is None else uncertainty(state, action)
            if doubted:
                doubt += discount * checked(doubted)
            if reward:
                returned += discount * reward
            discount *= gamma
            if rho and not onward and doubted > threshold:
                before, returned, onward = returned, 0.0, discount
        if onward:
            returned = before + self.after_doubt(returned, onward, rho)
        return checked_reward(returned), doubt

    def after_doubt(self, returned: float, discount: float, rho: float) -> float:
        """trust: what counts of the discounted return after a rollout's first doubtful step."""
        return min(returned, (1.0 - rho) * returned + rho * discount * self.v_min)

    def rho(self, node: Node) -> float:
        """trust: how much less counts what comes after a rollout's first doubtful step; nothing, if that was before."""
        return self.config.rho if self.trust and not node.doubted else 0.0

    def rollouts_in_lockstep(self, node: Node, iteration: int) -> tuple[list[float], list[float]]:
        """All rollouts at once. `step_batch` gets a list of equal states first, then what it returned last."""
        config, model, rho = self.config, self.model, self.rho(node)
        streams = [self.draws.rollout(iteration, number) for number in range(config.rollouts)]
        returns, doubts, over = ([zero] * config.rollouts for zero in (0.0, 0.0, False))
        doubtful = config.simulation and self.uncertainty is not None
        states, lanes = [node.state] * config.rollouts, range(config.rollouts)
        discount, before, onward = ([start] * config.rollouts for start in (1.0, 0.0, 0.0))
        for _ in range(config.depth):
            actions = [below(len(self.actions)) for below in streams]
            doubted = self.uncertainty.batch(states, actions) if doubtful else None  # type: ignore[union-attr]
            states, rewards, terminals = model.step_batch(states, actions)  # type: ignore[attr-defined]
            for lane in lanes:
                if not over[lane]:
                    doubt = checked(doubted[lane]) if doubted is not None else 0.0
                    returns[lane] += discount[lane] * checked_reward(rewards[lane])
                    doubts[lane] += discount[lane] * doubt
                    discount[lane] *= config.gamma
                    if rho and not onward[lane] and doubt > config.threshold:
                        before[lane], returns[lane], onward[lane] = returns[lane], 0.0, discount[lane]
                    over[lane] = bool(terminals[lane])
            if all(over):
                break
        for lane in lanes:
            if onward[lane]:
                returns[lane] = before[lane] + self.after_doubt(returns[lane], onward[lane], rho)
        return returns, doubts

    # Backpropagation

    def backpropagate(self, path: list[Node], value: float) -> None:
        """N += 1, Q += value on the way up. UA: released, the share scales what travels; printed, what is added.

        trust: the share scales what travels before the reward is added.
        """
        gamma, below = self.config.gamma, 0.0
        for node in reversed(path):
            node.visits += 1
            node.total += value if self.root_first else node.share * value
            node.weight += below
            below = node.share
            if self.trust:
                value = self.pessimistic(value, node.share)
            value = gamma * value + node.reward
            if self.released:
                value *= node.share

    # The move

    def result(self, root: Node, iterations: int) -> Result:
        if not root.children:
            raise ValueError("the root has no legal action, or the search was too short to try one")
        most = max(child.visits for child in root.children)
        ties = [child for child in root.children if child.visits == most]
        if self.trust:
            best = max(self.worth(child) for child in ties)
            ties = [child for child in ties if self.worth(child) == best]
        chosen = ties[self.draws.tie(len(ties))]
        found = {child.action: child for child in root.children}
        everyone = found if root.deleted is None else {**found, root.deleted.action: root.deleted}
        assert chosen.action is not None  # noqa: S101 (only the root has none)
        return Result(
            action=chosen.action,
            visits=[found[a].visits if a in found else 0 for a in self.actions],
            values=[self.worth(found[a]) if a in found and found[a].visits else math.nan for a in self.actions],
            uncertainty=[everyone[a].uncertainty if a in everyone else 0.0 for a in self.actions],
            exists=[a in found for a in self.actions],
            tree=root,
            iterations=iterations,
        )


def softmax(numbers: Sequence[float], tau: float) -> list[float]:
    """softmax(numbers / tau); the greatest is subtracted first, so that nothing overflows."""
    greatest = max(numbers)
    powers = [math.exp((number - greatest) / tau) for number in numbers]
    total = sum(powers)
    return [power / total for power in powers]


def first_above(numbers: Sequence[float], place: float) -> int:
    """The first index at which the running sum of `numbers` is above `place`."""
    running = 0.0
    for index, number in enumerate(numbers):
        running += number
        if running > place:
            return index
    return len(numbers) - 1


def checked(doubt: float) -> float:
    """`doubt`, or an error if it is no uncertainty."""
    if not 0.0 <= doubt < math.inf:
        raise ValueError(f"the uncertainty function returned {doubt!r}; it must be a finite number of at least 0")
    return doubt


def checked_reward(reward: float) -> float:
    """`reward`, or an error if it is not a finite number."""
    if not -math.inf < reward < math.inf:
        raise ValueError(f"the model returned a reward of {reward!r}; it must be a finite number")
    return reward
