"""Deterministic shortest-path problems as tables, for which CMAX and its variants were designed."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Self

import jax
import numpy as np

from uamcts.domains.base import Domain


@dataclass(frozen=True, eq=False)
class Problem:
    """A shortest-path problem whose model may be wrong. States and actions are numbers; every step costs 1.

    Raises:
        ValueError: There is no goal, or the heuristic is not 0 there.
    """

    world: np.ndarray
    """The real next states, int [states, actions]."""
    model: np.ndarray
    """The next states that the planner predicts."""
    goal: np.ndarray
    """Whether a state is a goal, bool [states]."""
    start: int
    heuristic: np.ndarray
    """An estimate of the steps to the goal, float [states], 0 at the goal. The papers require that it is consistent in
    the model."""

    def __post_init__(self) -> None:
        if not self.goal.any():
            raise ValueError("goal is False everywhere; at least one state must be a goal")
        if np.any(self.heuristic[self.goal] != 0):
            raise ValueError("heuristic is not 0 at the goal; no steps are left there")

    @classmethod
    def of(cls, domain: Domain) -> Self:
        """The problem of a gridworld. The heuristic is the Manhattan distance to the goal.

        Args:
            domain: A domain with two features, row and column, whose terminal states are the goal.

        Returns:
            The problem.

        Raises:
            ValueError: The domain does not have two features.
        """
        if domain.random:
            raise ValueError(f"domain is {domain.name}, whose steps are random; give a deterministic gridworld")
        low, high = domain.feature_bounds()
        if len(low) != 2:
            raise ValueError(f"domain is {domain.name}, which has {len(low)} features; give a gridworld, which has two")
        shape = tuple(int(count) for count in high - low + 1)
        cells = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1) + low
        states = jax.vmap(domain.from_features)(cells)
        actions = np.arange(domain.num_actions)

        def table(rules: object) -> np.ndarray:
            step = jax.vmap(
                jax.vmap(lambda s, a: domain.features(domain.step(rules, s, a).state), (None, 0)), (0, None)
            )
            return np.ravel_multi_index(
                tuple(np.moveaxis(np.asarray(jax.jit(step)(states, actions)) - low, 2, 0)), shape
            )

        goal = np.asarray(jax.vmap(domain.arrival)(states)[1])
        apart = np.abs(cells[:, None] - cells[goal][None]).sum(axis=2).min(axis=1).astype(float)
        start = np.asarray(domain.features(domain.reset(jax.random.key(0)))) - low
        where = int(np.ravel_multi_index(tuple(start), shape))
        return cls(table(domain.world_rules), table(domain.model_rules), goal, where, apart)

    @property
    def states(self) -> int:
        return self.world.shape[0]

    def cost_to_go(self, table: np.ndarray) -> np.ndarray:
        """The fewest steps from each state to the goal in a table.

        Args:
            table: `world` or `model`.

        Returns:
            Steps, float [states]; infinite where there is no way.
        """
        before: list[list[int]] = [[] for _ in range(self.states)]
        for state, row in enumerate(table.tolist()):
            for following in row:
                before[following].append(state)
        cost = np.full(self.states, np.inf)
        queue = deque(np.flatnonzero(self.goal).tolist())
        cost[self.goal] = 0
        while queue:
            following = queue.popleft()
            for state in before[following]:
                if cost[state] == np.inf:
                    cost[state] = cost[following] + 1
                    queue.append(state)
        return cost

    def optimum(self) -> float:
        """The fewest real steps from the start to the goal."""
        return float(self.cost_to_go(self.world)[self.start])
