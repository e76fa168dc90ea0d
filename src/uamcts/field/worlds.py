"""The grids on which the field compares its planners, as tables whose probabilities are linear in one parameter.

World and planner share a `Grid` and differ in the parameter: the probability p that a move goes where it should (lake,
cliff, bridge), or the probability of a slip into a random direction (the lake of Robust-Power-UCT).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from uamcts.domains.exact import Table
from uamcts.domains.frozen_lake import MAPS, SIDES

MOVES = np.array([(0, -1), (1, 0), (0, 1), (-1, 0)])
"""Rows and columns of left, down, right and up."""
SLIPS = ("sideways", "anywhere")
START, HOLE, GOAL = "S", "H", "G"


class Grid(NamedTuple):
    """Every outcome of every move in every cell, [cells, actions, outcomes]; cells are numbered row by row.

    The probability of an outcome is `base + parameter * slope`. Holes and goals are cells too, which nothing leaves.
    """

    following: Int[Array, "cells actions outcomes"]
    reward: Float[Array, "cells actions outcomes"]
    ends: Bool[Array, "cells actions outcomes"]
    base: Float[Array, "cells actions outcomes"]
    slope: Float[Array, "cells actions outcomes"]
    distance: Float[Array, "cells cells"]
    """Moves between two cells on an empty grid."""
    start: Int[Array, ""]

    def probabilities(self, parameter: Float[Array, ""] | float) -> Float[Array, "cells actions outcomes"]:
        """The probability of every outcome, if this is the parameter."""
        return self.base + jnp.asarray(parameter, jnp.float32) * self.slope

    def table(self, parameter: float) -> Table:
        """The grid as a table for exact plans."""
        following, reward, ends = (np.asarray(part) for part in (self.following, self.reward, self.ends))
        chances = np.asarray(self.base, float) + parameter * np.asarray(self.slope, float)
        return Table(following, chances, reward.astype(float), ends, np.ones(following.shape[:2], bool))


def make_grid(
    rows: str | Sequence[str],
    slips: str = "sideways",
    rewards: tuple[float, float, float] = (1.0, -1.0, 0.0),
    teleport: bool = False,
) -> Grid:
    """A grid of the letters S, F, H and G.

    Args:
        rows: The map, or the name of one: 4x4, 8x8, cliff, bridge.
        slips: `"sideways"`: the parameter is p; a move goes where it should with probability p and to either side with
            (1 - p) / 2. `"anywhere"`: the parameter is the probability of a slip, which goes into one of the four
            directions, all equally likely.
        rewards: What coming into a goal, into a hole and into any other cell pays.
        teleport: Whether a hole leads back to the start instead of ending the episode.

    Raises:
        ValueError: `slips` is unknown, or the map has not exactly one start.
    """
    rows = MAPS[rows] if isinstance(rows, str) and rows in MAPS else tuple(rows)
    letters = np.array([list(row) for row in rows])
    if slips not in SLIPS:
        raise ValueError(f"slips is {slips!r}; give {' or '.join(SLIPS)}")
    if letters.ndim != 2 or (letters == START).sum() != 1:
        raise ValueError(f"rows is {rows}; give rows of equal length with exactly one {START}")
    flat, cells = letters.reshape(-1), np.argwhere(np.ones(letters.shape, bool))
    start = int(np.flatnonzero(flat == START)[0])
    goal, hole = flat == GOAL, flat == HOLE
    inside = np.clip(cells[:, None] + MOVES, 0, np.array(letters.shape) - 1)
    ended = goal | (hole & (not teleport))
    entered = np.where(ended[:, None], np.arange(len(flat))[:, None], inside @ np.array([letters.shape[1], 1]))
    every = np.arange(len(MOVES))
    turned = (every[:, None] + SIDES) % 4 if slips == "sideways" else np.broadcast_to(every, (4, 4))
    entered = entered[:, turned]
    if slips == "sideways":
        base, slope = np.array([0.0, 0.5, 0.5]), np.array([1.0, -0.5, -0.5])
    else:
        base, slope = np.eye(4), 0.25 - np.eye(4)
    paid = np.where(goal[entered], rewards[0], np.where(hole[entered], rewards[1], rewards[2]))
    falls = hole[entered] & teleport
    return Grid(
        following=jnp.asarray(np.where(falls, start, entered), jnp.int32),
        reward=jnp.asarray(np.where(ended[:, None, None], 0.0, paid), jnp.float32),
        ends=jnp.asarray((goal | hole)[entered] & ~falls),
        base=jnp.asarray(np.broadcast_to(base, entered.shape), jnp.float32),
        slope=jnp.asarray(np.broadcast_to(slope, entered.shape), jnp.float32),
        distance=jnp.asarray(np.abs(cells[:, None] - cells[None]).sum(axis=-1), jnp.float32),
        start=jnp.asarray(start, jnp.int32),
    )


class GridSimulator:
    """A grid as a plain Python simulator, for `uamcts.Agent`; states are numbers of cells.

    The parameter is the attribute `p`, which an agent may correct.
    """

    num_actions = len(MOVES)
    action_names = ("left", "down", "right", "up")

    def __init__(self, grid: Grid, parameter: float):
        self.p = parameter
        parts = [np.asarray(part).tolist() for part in grid[:5]]
        self._outcomes = [
            [list(zip(*outcomes, strict=True)) for outcomes in zip(*actions, strict=True)]
            for actions in zip(*parts, strict=True)
        ]

    def outcomes(self, state: int, action: int) -> list[tuple[float, tuple[int, float, bool]]]:
        """Every outcome that has a probability, with its probability."""
        return [
            (chance, (following, reward, ends))
            for following, reward, ends, base, slope in self._outcomes[state][action]
            if (chance := base + self.p * slope) > 0
        ]
