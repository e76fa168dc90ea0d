"""`uamcts play --algorithm agent`: `uamcts.Agent` plays, learns, and is shown with the U that it has learned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from uamcts.agent import Agent
from uamcts.agent.backend import Plan
from uamcts.agent.scenes import DomainAgentScene
from uamcts.domains import make
from uamcts.domains.base import Domain
from uamcts.episodes.offline import LONGEST, Move, compiled_begin, compiled_step
from uamcts.inspector.domain_scene import DomainScene
from uamcts.inspector.plain_views import view_of
from uamcts.inspector.views import BelievedOutcome
from uamcts.lab.console.player import Player
from uamcts.types import PyTree

KEY = "agent"


class AgentPlayer(Player):
    """An agent that plays an episode, and others before it if it is to `practice`."""

    learns = True

    def __init__(self, name: str, seed: int, steps: int | None, settings: dict[str, Any], practice: int = 0):
        self.domain: Domain = make(name)
        own = {} if settings.get("c") is None else {"c": settings["c"]}
        self.agent = Agent(self.domain, seed=seed, **own)
        backend: Any = self.agent.backend
        self.inspected: DomainAgentScene = DomainAgentScene(backend, self.domain)
        self._believed: tuple[list[BelievedOutcome], list[list[float]]] = [], []
        self._learned: np.ndarray | None = None
        limit = steps or self.domain.time_limit or LONGEST
        self.limit = limit if settings.get("steps_left") else None
        for number in range(practice):
            for _ in self._moves(jax.random.fold_in(jax.random.key(seed), number), limit):
                pass
        super().__init__(KEY, self.domain, backend.config, self._moves(jax.random.key(seed), limit))

    def _moves(self, key: jax.Array, limit: int) -> Iterator[Move]:
        """The moves of an episode, with the luck that all players have on this key."""
        state, key = compiled_begin(key, self.domain)
        for step in range(limit):
            left = None if self.limit is None else self.limit - step
            action = int(self.agent.act(state) if left is None else self.agent.act(state, steps_left=left))
            plan: Any = self.agent.last_plan
            self._look(state, action, plan)
            after = compiled_step(key, self.domain, state, action, step)
            reward, over = float(after.reward), bool(after.terminal)
            self.agent.observe(state, action, after.state, reward=reward, terminal=over)
            yield Move(state, plan, action, reward, after.state, over)
            if over:
                return
            state = after.state

    def _look(self, state: PyTree, action: int, plan: Plan) -> None:
        """What the agent believes before it learns from the move."""
        backend: Any = self.agent.backend
        self.inspected.backend = backend
        outcomes = self.inspected.complete(state, action, view_of(plan, backend.config).outcomes(action))
        self._believed, self._learned = (outcomes, self.inspected.heat(state, action)), self.inspected.map(state)

    def beliefs(self, scene: DomainScene) -> tuple[list[BelievedOutcome], list[list[float]] | None]:
        return self._believed

    def uncertainty_of(self, move: Move) -> list[float]:
        """U of each action as the search was given it."""
        return np.asarray(move.plan.uncertainty, np.float64).tolist() if move.plan is not None else []

    def map_of(self, state: PyTree) -> np.ndarray | None:
        """What the agent has learned about U, before its last move or, at the end, after it."""
        return self._learned if self.playing else self.inspected.map(state)
