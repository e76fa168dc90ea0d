"""Continuous actions: proposals are drawn, and a node gets more of them the more often it is visited."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from uamcts.arguments import function, short_repr
from uamcts.mcts.config import SearchConfig
from uamcts.reference.setup import Setup
from uamcts.reference.tree import Node, Result, check_uncertainty
from uamcts.reference.tree_search import TreeSearch

DRAWN_AT_ONCE = 1000


class Proposals:
    """Draws actions for a state: by the policy, by the model's `actions(state, rng)`, or within its bounds."""

    def __init__(self, model: object, policy: Callable | None, rng: np.random.Generator):
        function("policy", policy, "(state, rng) -> an action")
        self.rng, self.bounds = rng, action_bounds(getattr(model, "action_space", None))
        self.waiting: list[Any] = []
        self.draw: Callable | None = policy if policy is not None else getattr(model, "actions", None)
        if self.draw is None and (self.bounds is None or not np.all(np.isfinite(self.bounds))):
            raise ValueError(
                "model.num_actions is None, and nothing says what its actions are; give the model action_space = (low, "
                "high) with finite bounds, actions(state, rng), or the search a policy(state, rng)"
            )

    def __call__(self, state: object) -> Any:
        """A proposed action, within the bounds if there are any."""
        if self.draw is None:
            if not self.waiting:
                self.waiting = self.uniform_draws()
            return self.waiting.pop()
        action = self.draw(state, self.rng)
        if not np.all(np.isfinite(np.asarray(action, float))):
            raise ValueError(
                f"the action {short_repr(action)} was proposed for {short_repr(state)}; propose finite numbers"
            )
        return action if self.bounds is None else np.clip(action, *self.bounds)

    def uniform_draws(self) -> list[Any]:
        """Many draws at once, which is faster: uniform over twice the range, cut off at the bounds.

        Extreme actions are often the best ones; a quarter of the draws is at each end of a range.
        """
        assert self.bounds is not None  # noqa: S101 (checked before)
        low, high = np.asarray(self.bounds[0]), np.asarray(self.bounds[1])
        margin = (high - low) / 2
        drawn = self.rng.uniform(low - margin, high + margin, (DRAWN_AT_ONCE, *low.shape))
        return list(np.clip(drawn, low, high)) if low.ndim else np.clip(drawn, low, high).tolist()


def action_bounds(space: Any) -> tuple[Any, Any] | None:
    """The bounds of an action space given as (low, high) or as an object with `low` and `high`."""
    if space is None:
        return None
    try:
        low, high = (space.low, space.high) if hasattr(space, "low") else space
        low, high = np.broadcast_arrays(np.asarray(low, float), np.asarray(high, float))
        good = bool(np.all(low <= high))
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(
            f"model.action_space is {short_repr(space)}; give (low, high), two numbers or arrays with low <= high"
        )
    return (float(low), float(high)) if low.ndim == 0 else (low, high)


def check_widening(widening: Any) -> tuple[float, float]:
    """`widening` as (k, alpha)."""
    try:
        k, alpha = (float(number) for number in widening)
    except (TypeError, ValueError):
        k = alpha = math.nan
    if not (0.0 < k < math.inf and 0.0 <= alpha <= 1.0):
        raise ValueError(f"widening is {short_repr(widening)}; give (k, alpha), k above 0 and alpha in [0, 1]")
    return k, alpha


def refuse_finite_only(config: SearchConfig, prior: object, model: object) -> None:
    """Refuses what needs a finite number of actions."""
    what = None
    if config.graph:
        what = "graph is True"
    elif config.rules != "trust":
        what = f"rules is {config.rules!r}"
    elif config.follow:
        what = f"follow is {config.follow!r}"
    elif prior is not None:
        what = "prior is given"
    elif hasattr(model, "legal_actions"):
        what = "the model has legal_actions"
    if what is not None:
        raise ValueError(
            f"{what}, which needs a finite number of actions, and model.num_actions is None; search with graph=False, "
            "rules='trust', without follow, prior and legal_actions, or give the model num_actions"
        )


class WideningSearch(TreeSearch):
    """A search on a tree in which a node with n visits has up to ceil(k n^alpha) actions."""

    def __init__(self, setup: Setup, previous: Result | None, propose: Proposals, widening: tuple[float, float]):
        super().__init__(setup, previous)
        self.propose, (self.k, self.alpha) = propose, widening

    def choose(self, place: Node) -> Node:
        """A new action while a node has too few for its visits; else the best by the usual score."""
        if len(place.children) < math.ceil(self.k * max(1, place.visits) ** self.alpha):
            return self.widen(place)
        return super().choose(place)

    def expand(self, node: Node, expansion: int) -> None:
        self.widen(node)

    def widen(self, node: Node) -> Node:
        """Gives a node one more action."""
        state, uncertainty = node.state, self.setup.uncertainty
        action = self.propose(state)
        child = self.child(state, action, check_uncertainty(0.0 if uncertainty is None else uncertainty(state, action)))
        [child.bias], [child.keep] = self.rules.plain_edges([child.uncertainty], self.setup.settings(node.doubted))
        child.doubted = node.doubted or child.keep < 1.0
        for outcome in child.outcomes or ():
            outcome.doubted = child.doubted
        node.children.append(child)
        self.expanded.append((len(self.ended) + 1, node))
        return child

    def result(self, root: Node, iterations: int) -> Result:
        chosen, children = self.move(root), root.children
        return Result(
            action=chosen.action,
            visits=[child.visits for child in children],
            values=[self.child_value(child) if child.visits else math.nan for child in children],
            uncertainty=[child.uncertainty for child in children],
            exists=[True] * len(children),
            tree=root,
            iterations=iterations,
            config=self.config,
            actions=[child.action for child in children],
            expanded=self.expanded,
            ended=self.ended,
        )
