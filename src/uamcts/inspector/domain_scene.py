"""A domain of this package as the inspector shows it: its board, what is broken, and U over the cells."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import jax
import numpy as np

from uamcts import colours
from uamcts.domains.base import Domain
from uamcts.domains.heat import UncertaintyMap
from uamcts.domains.pictures import Board
from uamcts.inspector.pictures import MOST_SIDE, board_record
from uamcts.inspector.trace import Record
from uamcts.inspector.views import BelievedOutcome
from uamcts.types import PyTree


class DomainScene:
    """What a recorder needs to know about a domain.

    Args:
        domain: The domain as it is planned in.
        doubts: What the planner believes about U, for the features of many states: [states, features] -> [states,
            actions]. By default the truth, which planners of the offline scenario know.
    """

    def __init__(self, domain: Domain, doubts: Callable[[np.ndarray], np.ndarray | jax.Array] | None = None):
        self.domain, self.title, self.summary = domain, domain.name.replace("_", " "), domain.summary
        self.actions: Sequence[str] = tuple(domain.action_names)
        self.chance = bool(domain.random)
        self._map = UncertaintyMap(domain, many=doubts)
        self._difference = jax.jit(domain.difference)
        self._features = jax.jit(domain.features)
        self._believe = jax.jit(domain.model_outcomes)
        self._start: Board | None = None  # a domain need not have a picture
        with contextlib.suppress(NotImplementedError):
            start = domain.board(domain.reset(jax.random.key(0)))
            self._start = start if max(start.top.shape) <= MOST_SIDE else None

    def board(self) -> Record | None:
        if self._start is None:
            return None
        names = [name.replace("_", " ") for name in self._start.names]
        found = [colours.BOARD, *self._start.colours]
        return board_record(self._start.top.shape, ["empty", *names], found, np.flatnonzero(self._start.wrong).tolist())

    def frame(self, state: PyTree) -> Record | None:
        if self._start is None or state is None:
            return None
        return {"cells": (self.domain.board(state).top + 1).ravel().tolist()}

    def vector(self, state: PyTree) -> np.ndarray:
        return np.asarray(self._features(state), np.float64)

    def features(self, state: PyTree) -> Sequence[str]:
        player = list(self.domain.glyphs)[-1] if self.domain.glyphs else "player"
        names: dict[int | None, str] = {self.domain.player[0]: f"row of the {player}"}
        names[self.domain.player[1]] = f"column of the {player}"
        names.update(enumerate(self.domain.feature_names))
        return [names.get(place, f"feature {place}") for place in range(self.vector(state).size)]

    def difference(self, real: PyTree, believed: PyTree) -> float:
        return float(self._difference(real, believed))

    def believe(self, state: PyTree, action: int) -> list[BelievedOutcome]:
        """What the model holds possible after a step."""
        outcomes, chances = self._believe(state, action)
        leaves = jax.device_get(outcomes)
        return [
            BelievedOutcome(
                chance, jax.tree.map(lambda leaf, place=place: leaf[place], leaves.state),
                float(leaves.reward[place]), bool(leaves.terminal[place]),
            )
            for place, chance in enumerate(np.asarray(chances, np.float64).tolist())
            if chance > 0
        ]  # fmt: skip

    def map(self, state: PyTree) -> np.ndarray | None:
        """U of every action in every cell, [rows, columns, actions]; None if the domain has no such map."""
        return self._map(state)

    def heat(self, state: PyTree, action: object) -> list[list[float]]:
        if self._start is None or not isinstance(action, (int, np.integer)):
            return []
        found = self._map(state)
        if found is None:
            return []
        walls = [place for place, name in enumerate(self._start.names) if "wall" in name]  # nobody can stand there
        found = np.where(np.isin(self.domain.board(state).top, walls), 0.0, found[..., action])
        doubts = found.ravel()
        return [[cell, float(doubts[cell])] for cell in np.flatnonzero(doubts > 0).tolist()]
