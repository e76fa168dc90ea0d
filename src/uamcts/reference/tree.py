"""The parts of a plain search: models, nodes, results and random draws."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.explain import explain


class PythonModel(Protocol):
    """What a model must have. `step` is called with a state of yours and an action 0 .. num_actions - 1.

    A random model has `outcomes` or `sample` instead: see `uamcts.reference`.
    """

    num_actions: int

    def step(self, state: object, action: int) -> tuple[Any, float, bool]: ...


class Node:
    """A node v of the tree: S(v), r(v), U(v) of the transition into it, N(v), Q(v), and its children Ch(v).

    In a random model N, Q and U belong to the action: its node has no state and no children of its own but `outcomes`,
    nodes that have them and their own N, and its r is the mean over visits.
    """

    __slots__ = ("action", "bias", "children", "deleted", "doubted", "keep", "outcomes", "prior", "probability",
                 "reward", "state", "terminal", "total", "uncertainty", "visits", "weight")  # fmt: skip

    def __init__(self, action: Any, state: object, reward: float, terminal: bool, uncertainty: float):
        self.action = action
        self.state = state
        self.reward = reward
        self.terminal = terminal
        self.uncertainty = uncertainty
        self.visits = 0
        self.total = 0.0
        self.weight = 0.0  # sum over the children of keep * N
        self.bias = 1.0  # how selection corrects the score: see Rules.score
        self.keep = 1.0  # which fraction of a value passes through the transition into the node: see Rules.pieces
        self.doubted = False  # whether some transition on the way here keeps less than all
        self.children: list[Node] = []
        self.deleted: Node | None = None
        self.prior: list[float] | None = None  # of the children, if there is one
        self.outcomes: list[Node] | None = None  # None: the transition into the node is deterministic
        self.probability = 1.0  # of an outcome


class Result(NamedTuple):
    """What a search found; lists have one entry per action."""

    action: Any
    """A number, or a continuous action itself."""
    visits: list[int]
    values: list[float]
    """The value of each action, its first reward included; NaN where it was never tried."""
    uncertainty: list[float]
    exists: list[bool]
    tree: Any
    """The root `Node`, or the `Graph` of a graph search: give the whole result to the next search as `tree=`."""
    iterations: int
    """How many iterations there was time for."""
    config: SearchConfig
    """The settings of the search, with what was found out about them."""
    actions: list[Any] | None = None
    """The proposed actions if actions are continuous: the other lists have one entry for each of them."""
    expanded: Sequence[tuple[int, Node]] = ()
    """On a tree: the nodes that this search gave children to, and in which iteration, from 1 on; 0 is before the
    first. Nodes with children that are not among them come from the search before."""
    ended: Sequence[Node] = ()
    """On a tree: the node at which each iteration ended its path, and from which its rollouts started."""
    sequence: Sequence[Any] = ()
    """With `config.follow`: the best sequence of actions that was found. `action` begins it."""

    def explain(self, action_names: Sequence[str] = ()) -> str:
        """Why this action, in words: visits, value and uncertainty of every action, and what was deleted."""
        if self.actions is None:
            return explain(self, action_names)
        chosen = next(place for place, action in enumerate(self.actions) if action is self.action)
        return explain(self._replace(action=chosen), [str(np.round(action, 3)) for action in self.actions])


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

    def follow(self, iteration: int, number: int) -> Callable[[], float]:
        """A function that gives a number in [0, 1) for each step of a rollout: see `SearchConfig.follow`."""
        return self.random

    # The rest is asked for only if the model or the policy is random.

    def chance(self, iteration: int, number: int) -> Callable[[], float]:
        """A function that gives a number in [0, 1) for each random outcome in a rollout."""
        return self.random

    def generator(self) -> np.random.Generator:
        """What `sample` and `policy` draw from."""
        return np.random.default_rng(int(self.random() * 2**53))


def check_uncertainty(uncertainty: float) -> float:
    """`uncertainty`, or an error if it is none."""
    if not 0.0 <= uncertainty < math.inf:
        raise ValueError(f"the uncertainty function returned {uncertainty!r}; it must be a finite number of at least 0")
    return uncertainty


def check_reward(reward: float) -> float:
    """`reward`, or an error if it is not a finite number."""
    if not -math.inf < reward < math.inf:
        raise ValueError(f"the model returned a reward of {reward!r}; it must be a finite number")
    return reward


def first_above(numbers: Sequence[float], place: float) -> int:
    """The first index at which the running sum of `numbers` is above `place`."""
    running = 0.0
    for index, number in enumerate(numbers):
        running += number
        if running > place:
            return index
    return len(numbers) - 1
