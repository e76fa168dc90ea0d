"""A planner that plays an episode to be looked at: in the terminal, in a film and in the inspector."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from rich.text import Text

from uamcts import names
from uamcts.domains import make
from uamcts.domains.base import Domain
from uamcts.domains.heat import UncertaintyMap
from uamcts.episodes.offline import Move, moves
from uamcts.inspector.domain_scene import DomainScene
from uamcts.inspector.views import BelievedOutcome
from uamcts.lab.console import boards
from uamcts.lab.console.films import Scene
from uamcts.mcts.config import SearchConfig
from uamcts.presets import planning_domain, search_config
from uamcts.types import PyTree
from uamcts.uncertainty.true import true_uncertainty

RANDOM = "random"


class Player:
    """Somebody who plays an episode in a domain, move by move."""

    learns = False
    """Whether it learns U, and does not know it from the start."""
    inspected: DomainScene | None = None
    """What the inspector shows of its domain, if it believes something of its own."""

    def __init__(self, key: str, planned: Domain, config: SearchConfig | None, played: Iterator[Move]):
        self.key, self.title = key, names.title(key)
        self.planned, self.config, self.moves = planned, config, played
        self.last: Move | None = None
        self.reward, self.steps, self.playing = 0.0, 0, True
        self._real = jax.jit(jax.vmap(true_uncertainty(planned), (None, 0)))

    domain: Domain

    def uncertainty_of(self, move: Move) -> list[float]:
        """What it takes U of each action for, before a move."""
        raise NotImplementedError

    def map_of(self, state: PyTree) -> np.ndarray | None:
        """What it takes U to be in every cell, [rows, columns, actions]."""
        raise NotImplementedError

    def beliefs(self, scene: DomainScene) -> tuple[list[BelievedOutcome], list[list[float]] | None]:
        """What it held possible to follow its last move; and U over the cells then, if the scene does not know it."""
        return scene.believe(self.move.state, self.move.action), None

    def advance(self) -> bool:
        """Makes a move; returns False if there is none, because the episode is over or was cut."""
        move = next(self.moves, None)
        if move is None:
            self.playing = False
            return False
        self.last = move
        self.reward += move.reward
        self.steps += 1
        return True

    @property
    def move(self) -> Move:
        """The last move."""
        assert self.last is not None  # noqa: S101 (every episode has a first move)
        return self.last

    def real_uncertainty(self) -> list[float]:
        """How wrong the model really was about each action, before the last move."""
        found: list[float] = np.asarray(self._real(self.move.state, np.arange(self.domain.num_actions))).tolist()
        return found

    def start(self) -> Scene:
        """What a film shows before the first move."""
        return Scene(self.key, 0.0, 0, self.domain.board(self.move.state))

    def scene(self) -> Scene:
        """What a film shows after the last move."""
        end = (self.end if self.move.terminal else "") if self.playing else self.end
        return Scene(self.key, self.reward, self.steps, self.domain.board(self.move.following), end)

    @property
    def end(self) -> str:
        """Why the episode ended, in a few words."""
        if not self.move.terminal:
            return "cut"
        return "over: its model was wrong" if self.real_uncertainty()[self.move.action] > 0 else "over"

    def panel(self) -> boards.Panel:
        """Head, board and plan of the last move, or of the end of the episode."""
        return self.before() if self.playing else self.after()

    def before(self) -> boards.Panel:
        """The panel of the state before the last move, with the plan."""
        head = [Text(self.title, "bold"), Text(f"step {self.steps}, reward {self.reward - self.move.reward:g}")]
        board = boards.board_lines(self.domain, self.move.state, self.map_of(self.move.state))
        return head, board, boards.plan_lines(self.domain, self.move, self.uncertainty_of(self.move))

    def after(self) -> boards.Panel:
        """The panel of the state after the last move, without a plan."""
        head = [Text(self.title, "bold"), Text(f"{self.end}: step {self.steps}, reward {self.reward:g}")]
        learned = self.map_of(self.move.following) if self.learns else None
        return head, boards.board_lines(self.domain, self.move.following, learned), []


class KnowingPlayer(Player):
    """An algorithm that knows U, or one that moves at random."""

    def __init__(self, name: str, algorithm: str, seed: int, steps: int | None, settings: dict[str, Any]):
        self.domain = make(name)
        key = RANDOM if algorithm.lower() == RANDOM else names.algorithm_key(algorithm)
        planned, config = self.domain, None
        if key != RANDOM:
            planned = planning_domain(self.domain, algorithm)
            given = {name: value for name, value in settings.items() if value is not None and name != "steps_left"}
            config = search_config(self.domain, algorithm, **given)
        played = moves(jax.random.key(seed), planned, config, steps, settings.get("steps_left", False))
        super().__init__(key, planned, config, played)
        self._map = UncertaintyMap(planned)

    def uncertainty_of(self, move: Move) -> list[float]:
        return self.real_uncertainty() if move.plan is None else np.asarray(move.plan.uncertainty, float).tolist()

    def map_of(self, state: PyTree) -> np.ndarray | None:
        return self._map(state)
