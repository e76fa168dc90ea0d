"""CMAX, CMAX++ and A-CMAX++: reaching a goal with a wrong model, by real-time search, without changing the model.

Vemula et al., "Planning and Execution using Inaccurate Models with Provable Guarantees", RSS 2020, and "CMAX++:
Leveraging Experience in Planning and Execution using Inaccurate Models", AAAI 2021. Written from the papers, in their
small-state-space form, with tables.

Before each real step a few expansions of A* in the model, then for every expanded state s, as RTAA* does,
    V(s) <- p(best) - g(s)         p(best) = g(best) + V(best), best the state that would be expanded next
and the first action on the way to `best`. X is the set of transitions (s, a) that were seen to lead elsewhere.
    CMAX      a transition of X costs |S| in the search
    CMAX++    it leads nowhere in the search and costs Q(s, a); each time it is made, Q(s, a) <- 1 + V(s'), s' as it was
    A-CMAX++  both, with values of their own: CMAX's action where V~(s) <= alpha_i V(s) in repetition i, else CMAX++'s
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from uamcts.baselines.problem import Problem

NOWHERE = -1
"""Stands for a state: the transition is not followed, and its cost is the whole cost to go."""
Edges = Callable[[int], Iterator[tuple[int, int, float]]]
"""The transitions out of a state as a search sees them: action, next state or NOWHERE, cost."""


class Lookahead(NamedTuple):
    """What a search of a few expansions found."""

    action: int
    values: dict[int, float]
    """V of the expanded states as it is now."""


def lookahead(problem: Problem, start: int, values: np.ndarray, edges: Edges, expansions: float) -> Lookahead:
    """A* from `start` with the heuristic `values`, and what it says about the states it expanded."""
    reached = {start: 0.0}
    expanded: dict[int, float] = {}
    queue: list[tuple[float, float, int, int, float, int]] = []
    count = 0

    def push(priority: float, cost: float, state: int, first: int) -> None:
        nonlocal count
        count += 1
        heapq.heappush(queue, (priority, -cost, -count, state, cost, first))  # of equals the deepest, then the newest

    push(values[start], 0.0, start, NOWHERE)
    while queue:
        priority, _, _, state, cost, first = heapq.heappop(queue)
        if state != NOWHERE and cost > reached[state]:
            continue  # a shorter way there was found in the meantime
        if state == NOWHERE or problem.goal[state] or len(expanded) >= expansions:
            return Lookahead(first, {each: priority - far for each, far in expanded.items()})
        expanded[state] = cost
        for action, following, price in edges(state):
            onward, begun = cost + price, action if first == NOWHERE else first
            if following == NOWHERE:
                push(onward, onward, NOWHERE, begun)
            elif onward < reached.get(following, math.inf):
                reached[following] = onward
                push(onward + values[following], onward, following, begun)
    raise ValueError(f"state {start} has no way to the goal in the model; use a model in which every state has one")


class Agent(Protocol):
    """Acts in a problem, step by step, and observes the outcome."""

    def begin(self, repetition: int) -> None: ...

    def act(self, state: int) -> int: ...

    def observe(self, state: int, action: int, following: int) -> None: ...


class PlainAstar:
    """Plans to the goal with A* in the model before each step. It learns nothing, so it may repeat a mistake forever.

    Args:
        problem: The problem to solve.
    """

    def __init__(self, problem: Problem):
        self.problem = problem

    def begin(self, repetition: int) -> None:
        """Nothing changes."""

    def act(self, state: int) -> int:
        return lookahead(self.problem, state, self.problem.heuristic, self.edges, math.inf).action

    def edges(self, state: int) -> Iterator[tuple[int, int, float]]:
        for action, following in enumerate(self.problem.model[state].tolist()):
            yield action, following, 1.0

    def observe(self, state: int, action: int, following: int) -> None:
        """It learns nothing."""


class Cmax:
    """CMAX: transitions seen to be wrong cost |S|. Reaches the goal if there is always a way without any of them.

    Args:
        problem: The problem to solve.
        expansions: States expanded before each real step.
    """

    def __init__(self, problem: Problem, expansions: int = 10):
        _check(expansions)
        self.problem, self.expansions = problem, expansions
        self.values = problem.heuristic.copy()
        """V, kept from one repetition to the next."""
        self.wrong: set[tuple[int, int]] = set()
        """X."""

    def begin(self, repetition: int) -> None:
        """What was learned stays."""

    def act(self, state: int) -> int:
        found = lookahead(self.problem, state, self.values, self.edges, self.expansions)
        _update(self.values, found)
        return found.action

    def edges(self, state: int) -> Iterator[tuple[int, int, float]]:
        for action, following in enumerate(self.problem.model[state].tolist()):
            yield action, following, float(self.problem.states) if (state, action) in self.wrong else 1.0

    def observe(self, state: int, action: int, following: int) -> None:
        if following != self.problem.model[state, action]:
            self.wrong.add((state, action))


class CmaxPlus:
    """CMAX++: transitions seen to be wrong have a learned value. It only needs some way to the goal to exist.

    Over repetitions the cost falls to the optimum if the model is optimistic: whatever part of X has been found, no
    state must look further from the goal than it is. An unknown transition that is better than the model predicts may
    never be tried.

    Args:
        problem: The problem to solve.
        expansions: States expanded before each real step.
    """

    def __init__(self, problem: Problem, expansions: int = 10):
        _check(expansions)
        self.problem, self.expansions = problem, expansions
        self.values = problem.heuristic.copy()
        """V, kept from one repetition to the next."""
        self.q: dict[tuple[int, int], float] = {}
        """Q of the transitions of X, and of no others."""

    def begin(self, repetition: int) -> None:
        """What was learned stays."""

    def act(self, state: int) -> int:
        found = lookahead(self.problem, state, self.values, self.edges, self.expansions)
        _update(self.values, found)
        return found.action

    def edges(self, state: int) -> Iterator[tuple[int, int, float]]:
        for action, following in enumerate(self.problem.model[state].tolist()):
            learned = self.q.get((state, action))
            yield (action, following, 1.0) if learned is None else (action, NOWHERE, learned)

    def observe(self, state: int, action: int, following: int) -> None:
        if (state, action) in self.q or following != self.problem.model[state, action]:
            self.q[state, action] = 1.0 + float(self.values[following])


def alpha_schedule(start: float = 10.0, factor: float = 0.5) -> Callable[[int], float]:
    """A schedule of alpha for A-CMAX++ that decays to 1, so that CMAX++ decides in the end.

    Args:
        start: alpha in repetition 0.
        factor: What alpha - 1 is multiplied by after each repetition.

    Returns:
        The function i -> 1 + (start - 1) * factor^i.
    """
    return lambda repetition: 1.0 + (start - 1.0) * factor**repetition


class AdaptiveCmaxPlus:
    """A-CMAX++: acts like CMAX as long as its path is not much longer, and like CMAX++ otherwise.

    Args:
        problem: The problem to solve.
        expansions: States expanded before each real step.
        alpha: By what factor, at least 1, CMAX's path may be longer in repetition i. By default
            `alpha_schedule()`.
    """

    def __init__(self, problem: Problem, expansions: int = 10, alpha: Callable[[int], float] | None = None):
        self.cautious, self.learned = Cmax(problem, expansions), CmaxPlus(problem, expansions)
        self.schedule = alpha_schedule() if alpha is None else alpha
        self.alpha = self.schedule(0)
        self.chosen = {"cmax": 0, "cmax_plus": 0}
        """How often each of the two decided."""

    def begin(self, repetition: int) -> None:
        self.alpha = self.schedule(repetition)
        if not self.alpha >= 1:
            raise ValueError(f"alpha is {self.alpha} in repetition {repetition}; it must be at least 1")

    def act(self, state: int) -> int:
        cautious, learned = self.cautious.act(state), self.learned.act(state)
        follows = self.cautious.values[state] <= self.alpha * self.learned.values[state]
        self.chosen["cmax" if follows else "cmax_plus"] += 1
        return cautious if follows else learned

    def observe(self, state: int, action: int, following: int) -> None:
        self.cautious.observe(state, action, following)
        self.learned.observe(state, action, following)


class Repetition(NamedTuple):
    """One attempt: its steps, and whether it reached the goal within the limit."""

    steps: int
    reached: bool


def repetitions(agent: Agent, problem: Problem, count: int, limit: int = 100_000) -> list[Repetition]:
    """Lets the same agent solve the same problem several times.

    Args:
        agent: One of the planners of this module.
        problem: The problem.
        count: The number of repetitions.
        limit: The most real steps of a repetition.

    Returns:
        One `Repetition` for each.
    """
    done = []
    for repetition in range(count):
        agent.begin(repetition)
        state, steps = problem.start, 0
        while not problem.goal[state] and steps < limit:
            action = agent.act(state)
            following = int(problem.world[state, action])
            agent.observe(state, action, following)
            state, steps = following, steps + 1
        done.append(Repetition(steps, bool(problem.goal[state])))
    return done


def _update(values: np.ndarray, found: Lookahead) -> None:
    for state, value in found.values.items():
        values[state] = value


def _check(expansions: int) -> None:
    if expansions < 1:
        raise ValueError(f"expansions is {expansions}; a search must expand at least 1 state")
