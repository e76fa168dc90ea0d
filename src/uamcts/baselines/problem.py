"""A deterministic way to a goal at a cost of 1 a step, as tables: what CMAX and its kin are made for."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Self

import jax
import numpy as np

from uamcts.domains.base import Domain


@dataclass(frozen=True, eq=False)
class Problem:
    """States are numbers 0 .. states - 1, and so are actions. Every step costs 1; at the goal nothing does."""

    world: np.ndarray
    """Where an action really leads, int [states, actions]."""
    model: np.ndarray
    """Where the planner believes that it leads."""
    goal: np.ndarray
    """Conditions [states]."""
    start: int
    heuristic: np.ndarray
    """A guess of the steps to the goal, float [states], 0 at the goal. The papers want it consistent in the model."""

    def __post_init__(self) -> None:
        if not self.goal.any():
            raise ValueError("goal holds nowhere; there must be a state to go to")
        if np.any(self.heuristic[self.goal] != 0):
            raise ValueError("heuristic is not 0 at the goal, where no step is left to be made")

    @classmethod
    def of(cls, domain: Domain) -> Self:
        """The problem of a gridworld: two features, row and column, and an end that is the goal.

        The heuristic is the number of rows and columns between: consistent where no believed move crosses two.
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
        """The fewest steps from each state to the goal by `table` (`world` or `model`); infinite without a way."""
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
