"""A domain of this package as the inspector shows it: its board, what is broken, and U over the cells."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.domains import pictures
from uamcts.domains.base import Domain
from uamcts.inspector.pictures import EMPTY, board_record
from uamcts.inspector.recorder import Doubts
from uamcts.inspector.trace import Record
from uamcts.inspector.views import BelievedOutcome
from uamcts.types import PyTree

MOST_PLACES = 1024
"""A heat map shows no more places than this."""


class DomainScene:
    """What a recorder needs to know about a domain.

    Args:
        domain: The domain as it is planned in.
        doubts: What the planner believes about U. By default the truth, which planners of the offline scenario know.
    """

    def __init__(self, domain: Domain, doubts: Doubts | None = None):
        self.domain, self.title, self.summary = domain, domain.name.replace("_", " "), domain.summary
        self.actions: Sequence[str] = tuple(domain.action_names)
        self.chance = bool(domain.random)
        self._doubts = doubts
        self._known = jax.jit(jax.vmap(lambda v, a: domain.uncertainty(domain.from_features(v), a), (0, None)))
        self._uncertainty = jax.jit(domain.uncertainty)
        self._difference = jax.jit(domain.difference)
        self._features = jax.jit(domain.features)
        self._believe = jax.jit(domain.model_outcomes)
        start = domain.reset(jax.random.key(0))
        self._draws = self._can_draw(start)
        self._start = self._cells(start) if self._draws else None
        self._cells_of_places: list[int] = []
        self._places = np.zeros((0, 0), np.int32)
        if self._draws and domain.mover is not None:
            self._find_places(start)

    def _can_draw(self, state: PyTree) -> bool:
        try:
            self.domain.channels(state)
        except NotImplementedError:
            return False
        return True

    def _find_places(self, start: PyTree) -> None:
        """Finds the cells of all places where the thing that the actions move can be."""
        assert self.domain.mover is not None  # noqa: S101 (the caller has looked)
        name, moved = self.domain.mover
        low, high = self.domain.feature_bounds()
        ranges = [range(int(low[feature]), int(high[feature]) + 1) for feature in moved]
        if np.prod([len(one) for one in ranges]) > MOST_PLACES:
            return
        channel, found = self.domain.channel_names.index(name), {}
        blocked = [place for place, other in enumerate(self.domain.channel_names) if "wall" in other]
        usual = np.asarray(self._features(start)).astype(np.int32)
        for values in itertools.product(*ranges):
            vector = usual.copy()
            vector[list(moved)] = values
            board = self.domain.channels(self.domain.from_features(vector))
            cells = np.flatnonzero(board[..., channel])
            if cells.size == 1 and not board.reshape(-1, board.shape[-1])[cells[0], blocked].any():
                found[int(cells[0])] = values
        self._cells_of_places, self._places = list(found), np.array(list(found.values()), np.int32)

    def _cells(self, state: PyTree) -> np.ndarray:
        return pictures.topmost(self.domain.channels(state))

    def board(self) -> Record | None:
        if self._start is None:
            return None
        wrong = self.domain.wrong_cells()
        broken = [] if wrong is None else np.flatnonzero(wrong).tolist()
        names = [name.replace("_", " ") for name in self.domain.channel_names]
        colours = ["#%02x%02x%02x" % tuple(one) for one in pictures.cubehelix(len(names)).tolist()]
        return board_record(self._start.shape, ["empty", *names], [EMPTY, *colours], broken)

    def frame(self, state: PyTree) -> Record | None:
        return {"cells": self._cells(state).ravel().tolist()} if self._draws and state is not None else None

    def vector(self, state: PyTree) -> np.ndarray:
        return np.asarray(self._features(state), np.float64)

    def features(self, state: PyTree) -> Sequence[str]:
        count = self.vector(state).size
        if self.domain.mover is not None and self.domain.mover[1] == (0, 1) and count == 2:
            return ["row", "column"]
        return [f"feature {place}" for place in range(count)]

    def difference(self, real: PyTree, believed: PyTree) -> float:
        return float(self._difference(real, believed))

    def is_wrong(self, state: PyTree, action: object) -> bool:
        return float(self._uncertainty(state, action)) > 0

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

    def heat(self, state: PyTree, action: object) -> list[list[float]]:
        if not self._cells_of_places:
            return []
        assert self.domain.mover is not None  # noqa: S101 (there are no places without it)
        vectors = np.repeat(np.asarray(self._features(state))[None], len(self._places), axis=0)
        vectors[:, list(self.domain.mover[1])] = self._places
        found = self._known(jnp.asarray(vectors), action) if self._doubts is None else self._doubts(vectors, int(action))  # type: ignore[call-overload]
        pairs = zip(self._cells_of_places, np.asarray(found, np.float64).tolist(), strict=True)
        return [[cell, doubt] for cell, doubt in pairs if doubt > 0]
