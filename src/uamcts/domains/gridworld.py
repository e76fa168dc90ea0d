"""The paper's two gridworlds: two ways around a wall to the goal, one of them blocked, the other perhaps icy.

World: cells that the planner does not know to be walls, and ice on which one slides a cell further. Model: neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from uamcts.domains.base import Domain
from uamcts.domains.bits import bit, mask, word
from uamcts.domains.options import difference_mask, line
from uamcts.types import Transition

ROWS, COLUMNS = 3, 7
WALLS = tuple((1, column) for column in range(1, 6))
START, GOAL = (1, 0), (1, 6)
GOAL_CELL = COLUMNS * GOAL[0] + GOAL[1]
REWARD = 10.0
RIGHT, DOWN, LEFT, UP = range(4)


class Rules(NamedTuple):
    """Two words of 21 bits, bit 7 row + column: where one cannot go, and where one slides."""

    walls: Any
    ice: Any


class State(NamedTuple):
    """The number of the cell the agent is in: 7 row + column, one word. The goal is the only terminal cell."""

    cell: jax.Array


@dataclass(frozen=True, eq=False)
class GridWorld(Domain):
    """A grid of 3 x 7 cells. Walking into a wall or off the grid: stay. The goal pays 10 and ends the episode."""

    action_names = ("right", "down", "left", "up")
    time_limit = 50
    channel_names = ("goal", "wall", "unknown_wall", "ice", "agent")
    one_hot = {0: (0, ROWS), 1: (0, COLUMNS)}
    glyphs = {"goal": "G", "wall": "█", "unknown_wall": "▓", "ice": "~", "agent": "@"}
    player = (0, 1)

    def reset(self, key: jax.Array) -> State:
        """Always the same start: nothing in this game is random."""
        del key
        return State(cell=word(COLUMNS * START[0] + START[1]))

    def step(self, rules: Rules, state: State, action: jax.Array) -> Transition:
        entered = _walk(rules, state.cell, action)
        slides = (entered != state.cell) & bit(word(rules.ice), entered)
        arrived = jnp.where(slides, _walk(rules, entered, action), entered)
        ended = state.cell == GOAL_CELL
        following = State(jnp.where(ended, state.cell, arrived))
        reward, terminal = self.arrival(following)
        return Transition(following, jnp.where(ended, 0.0, reward).astype(jnp.float32), terminal)

    def arrival(self, state: State) -> tuple[jax.Array, jax.Array]:
        """The goal pays and ends the episode."""
        terminal = state.cell == GOAL_CELL
        return jnp.where(terminal, REWARD, 0.0).astype(jnp.float32), terminal

    def features(self, state: State) -> jax.Array:
        """Row and column."""
        cell = state.cell.astype(jnp.int32)
        return jnp.stack([cell // COLUMNS, cell % COLUMNS])

    def feature_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(2, np.int32), np.array([ROWS - 1, COLUMNS - 1], np.int32)

    def from_features(self, vector: ArrayLike, terminal: ArrayLike = False) -> State:
        """The state of (row, column). `terminal` says nothing new: the goal and no other cell is terminal."""
        del terminal
        row, column = jnp.asarray(vector).astype(jnp.int32)
        return State(cell=word(COLUMNS * row + column))

    def wrong_cells(self) -> np.ndarray:
        pairs = zip(self.world_rules, self.model_rules, strict=True)
        wrong = np.any([difference_mask(*pair, ROWS * COLUMNS) for pair in pairs], axis=0)
        return np.reshape(wrong, (ROWS, COLUMNS))

    def channels(self, state: State) -> np.ndarray:
        """The board of the real world; what the planner does not know has channels of its own."""
        cells = np.arange(ROWS * COLUMNS, dtype=np.uint32)
        world, model = (np.asarray(rules.walls) >> cells & 1 == 1 for rules in (self.world_rules, self.model_rules))
        ice = np.asarray(self.world_rules.ice) >> cells & 1 == 1
        agent = cells == np.asarray(state.cell)
        board = np.stack([cells == GOAL_CELL, world & model, world & ~model, ice, agent], axis=-1)
        return board.reshape(ROWS, COLUMNS, -1)


@dataclass(frozen=True, eq=False)
class TwoWay(GridWorld):
    """2-Way GridWorld: the shorter way is blocked."""

    name = "two_way"
    summary = "walk around a wall to the goal; the upper way is blocked at (0, 2)"


@dataclass(frozen=True, eq=False)
class IcyTwoWay(GridWorld):
    """Icy 2-Way GridWorld: one way is blocked and the other one icy, so that every path is uncertain."""

    name = "two_way_icy"
    summary = "the same, and the only way left has ice at (2, 3), on which one slides a cell further"


def _walk(rules: Rules, cell: jax.Array, action: jax.Array) -> jax.Array:
    """The cell one step on, or the same cell where a wall or the edge is in the way."""
    row, column = cell // COLUMNS, cell % COLUMNS
    on_grid = jnp.where(action == RIGHT, column < COLUMNS - 1, False)
    on_grid = jnp.where(action == DOWN, row < ROWS - 1, on_grid)
    on_grid = jnp.where(action == LEFT, column > 0, on_grid)
    on_grid = jnp.where(action == UP, row > 0, on_grid)
    onward = jnp.where((action == RIGHT) | (action == DOWN), cell, cell - 2 * word(on_grid) * _stride(action))
    onward = onward + word(on_grid) * _stride(action)
    return jnp.where(on_grid & ~bit(word(rules.walls), onward), onward, cell)


def _stride(action: jax.Array) -> jax.Array:
    """How far apart two neighbouring cells are numbered in the action's direction."""
    return jnp.where((action == RIGHT) | (action == LEFT), word(1), word(COLUMNS))


def _cells(argument: str, cells: Iterable[tuple[int, int]]) -> int:
    """`cells` as a mask, or an error that names the argument."""
    remedy = f"give (row, column) pairs, for example {argument}=[[0, 2]]"
    try:
        listed = tuple(tuple(cell) for cell in cells)
    except TypeError:
        raise TypeError(f"{argument} is {cells!r}; {remedy}") from None
    numbers = []
    for cell in listed:
        if len(cell) != 2:
            raise ValueError(f"{argument} holds {cell!r}; {remedy}")
        numbers.append(COLUMNS * line(argument, cell[:1], ROWS)[0] + line(argument, cell[1:], COLUMNS)[0])
    return mask(numbers)


def _rules(prefix: str, broken: Iterable[tuple[int, int]], ice: Iterable[tuple[int, int]]) -> Rules:
    walls = _cells("walls", WALLS) | _cells(f"{prefix}broken", broken)
    for name, (row, column) in (("start", START), ("goal", GOAL)):
        if walls >> (COLUMNS * row + column) & 1:
            raise ValueError(f"{prefix}broken holds {(row, column)}, which is the {name}; wall up other cells")
    return Rules(walls=np.uint32(walls), ice=np.uint32(_cells(f"{prefix}ice", ice)))


def make_two_way(
    broken: Iterable[tuple[int, int]] = ((0, 2),),
    ice: Iterable[tuple[int, int]] = (),
    model_broken: Iterable[tuple[int, int]] = (),
    model_ice: Iterable[tuple[int, int]] = (),
) -> TwoWay:
    """2-Way GridWorld with unexpected walls at the cells `broken` and ice at the cells `ice`."""
    return TwoWay(_rules("", broken, ice), _rules("model_", model_broken, model_ice))


def make_two_way_icy(
    broken: Iterable[tuple[int, int]] = ((0, 2),),
    ice: Iterable[tuple[int, int]] = ((2, 3),),
    model_broken: Iterable[tuple[int, int]] = (),
    model_ice: Iterable[tuple[int, int]] = (),
) -> IcyTwoWay:
    """Icy 2-Way GridWorld with unexpected walls at the cells `broken` and ice at the cells `ice`."""
    return IcyTwoWay(_rules("", broken, ice), _rules("model_", model_broken, model_ice))
