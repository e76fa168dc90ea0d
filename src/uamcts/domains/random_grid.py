"""Three square gridworlds: two drawn from a seed, of the kinds that CMAX and CMAX++ were shown on, and a shortcut.

World: obstacles that the planner does not know, or ice on which every move turns to the right. Model: neither. In the
third world the error is good news: where the model has nothing but wall, the world has a door.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from uamcts.arguments import switch, whole
from uamcts.domains.base import Domain
from uamcts.domains.bits import word
from uamcts.domains.gridworld import DOWN, LEFT, REWARD, RIGHT, UP
from uamcts.domains.options import generator, share
from uamcts.types import Transition

LEAST, GREATEST = 4, 1000
DRAWS = 1000
"""So many worlds are drawn from a seed in search of one that fits."""
STEPS_A_ROW = 10
"""The time limit, in real steps for each row of the grid."""


class Rules(NamedTuple):
    """Where one cannot go, and where one slips: conditions [size, size]."""

    walls: Any
    ice: Any


class State(NamedTuple):
    """The number of the cell the agent is in: size * row + column, one word. The goal is the only terminal cell."""

    cell: jax.Array


@dataclass(frozen=True, eq=False)
class RandomGrid(Domain):
    """A square grid, from the middle of the left edge to the middle of the right one, which pays 10 and is the end.

    Walking into a wall or off the grid: stay. On ice one moves to the right-hand side of where one meant to go.
    """

    action_names = ("right", "down", "left", "up")
    channel_names: ClassVar[tuple[str, ...]] = ("goal", "unknown_wall", "ice", "agent")
    glyphs = {"goal": "G", "unknown_wall": "▓", "ice": "~", "agent": "@"}
    player = (0, 1)

    @property
    def size(self) -> int:
        return int(self.world_rules.walls.shape[-1])

    @property
    def goal(self) -> int:
        """The number of its cell."""
        return self.size * (self.size // 2) + self.size - 1

    @property
    def time_limit(self) -> int:  # type: ignore[override]
        return STEPS_A_ROW * self.size

    @property
    def one_hot(self) -> dict[int, tuple[int, int]]:  # type: ignore[override]
        return {0: (0, self.size), 1: (0, self.size)}

    def reset(self, key: jax.Array) -> State:
        """Always the same start."""
        del key
        return State(word(self.size * (self.size // 2)))

    def step(self, rules: Rules, state: State, action: jax.Array) -> Transition:
        size, cell = self.size, state.cell.astype(jnp.int32)
        way = jnp.where(jnp.asarray(rules.ice).reshape(-1)[cell], (action + 1) % 4, action)
        row = jnp.clip(cell // size + (way == DOWN) - (way == UP), 0, size - 1)
        column = jnp.clip(cell % size + (way == RIGHT) - (way == LEFT), 0, size - 1)
        entered = size * row + column
        stays = jnp.asarray(rules.walls).reshape(-1)[entered] | (cell == self.goal)
        following = State(word(jnp.where(stays, cell, entered)))
        reward, terminal = self.arrival(following)
        return Transition(following, jnp.where(cell == self.goal, 0.0, reward).astype(jnp.float32), terminal)

    def arrival(self, state: State) -> tuple[jax.Array, jax.Array]:
        """The goal pays and ends the episode."""
        terminal = state.cell == self.goal
        return jnp.where(terminal, REWARD, 0.0).astype(jnp.float32), terminal

    def features(self, state: State) -> jax.Array:
        """Row and column."""
        cell = state.cell.astype(jnp.int32)
        return jnp.stack([cell // self.size, cell % self.size])

    def feature_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(2, np.int32), np.full(2, self.size - 1, np.int32)

    def from_features(self, vector: ArrayLike, terminal: ArrayLike = False) -> State:
        """The state of (row, column). `terminal` says nothing new: the goal and no other cell is terminal."""
        del terminal
        row, column = jnp.asarray(vector).astype(jnp.int32)
        return State(word(self.size * row + column))

    def wrong_cells(self) -> np.ndarray:
        pairs = zip(self.world_rules, self.model_rules, strict=True)
        return np.asarray(np.any([np.asarray(world) != np.asarray(model) for world, model in pairs], axis=0))

    def channels(self, state: State) -> np.ndarray:
        """The board of the real world."""
        cells = np.arange(self.size**2).reshape(self.size, self.size)
        rules = self.world_rules
        board = [cells == self.goal, np.asarray(rules.walls), np.asarray(rules.ice), cells == np.asarray(state.cell)]
        return np.stack(board, axis=-1)


@dataclass(frozen=True, eq=False)
class HiddenObstacles(RandomGrid):
    """The model lacks the obstacles."""

    name = "hidden_obstacles"
    summary = "cross a square grid; the planner knows none of its obstacles (options size, density, seed)"


@dataclass(frozen=True, eq=False)
class Slippery(RandomGrid):
    """The model lacks the ice."""

    name = "slippery"
    summary = "cross a square grid; on ice, which the planner does not know of, one slips to the right-hand side"


class ShortcutRules(NamedTuple):
    """As `Rules`, and the cells from which one is taken back to the start: conditions [size, size]."""

    walls: Any
    ice: Any
    traps: Any


@dataclass(frozen=True, eq=False)
class Shortcut(RandomGrid):
    """The model has a wall where the world has a door, or a trap that looks like one."""

    name = "shortcut"
    summary = "walk around a long wall; there is a door in it, straight ahead, that the planner takes for wall"
    channel_names = ("goal", "wall", "door", "trap", "agent")
    glyphs = {"goal": "G", "wall": "█", "door": "▯", "trap": "x", "agent": "@"}

    def step(self, rules: ShortcutRules, state: State, action: jax.Array) -> Transition:  # type: ignore[override]
        after = super().step(Rules(rules.walls, rules.ice), state, action)
        trapped = jnp.asarray(rules.traps).reshape(-1)[after.state.cell]
        start = word(self.size * (self.size // 2))
        return after._replace(state=State(jnp.where(trapped, start, after.state.cell)))

    def channels(self, state: State) -> np.ndarray:
        """The board of the real world; a door is a wall that only the planner believes in."""
        cells = np.arange(self.size**2).reshape(self.size, self.size)
        walls, traps = np.asarray(self.world_rules.walls), np.asarray(self.world_rules.traps)
        doors = np.asarray(self.model_rules.walls) & ~walls & ~traps
        return np.stack([cells == self.goal, walls, doors, traps, cells == np.asarray(state.cell)], axis=-1)


def make_hidden_obstacles(size: int = 12, density: float = 0.3, seed: int = 0) -> HiddenObstacles:
    """A share `density` of the cells, drawn from `seed`, are obstacles; with 0 there are none and nothing is wrong.

    Drawn again until there is a way to the goal, and one that is longer than the planner believes.
    """
    size = _check_size(size)
    nothing = np.zeros((size, size), bool)

    def with_ends(walls: np.ndarray) -> np.ndarray:
        walls[size // 2, [0, -1]] = False
        return walls

    draws = map(with_ends, _draws(size, density, seed))
    walls = next(walls for walls in draws if density == 0 or size - 1 < _distance(walls) < np.inf)
    return HiddenObstacles(Rules(walls, nothing), Rules(nothing, nothing))


def make_slippery(size: int = 12, density: float = 0.3, seed: int = 0, belt: bool = False) -> Slippery:
    """A share `density` of the cells, drawn from `seed`, are ice; with 0 there is none, with 1 there is nothing else.

    `belt`: and so are all cells of the middle column, or of the two middle ones, so that every way leads over ice.
    Drawn again until some of it lies on the straight way. Every cell can still be left in every direction, so that the
    goal can always be reached, and the shortest way is as long as the planner believes, for those who know where to
    turn.
    """
    size = _check_size(size)
    nothing = np.zeros((size, size), bool)
    middle = nothing.copy()
    middle[:, [(size - 1) // 2, size // 2]] = switch("belt", belt)
    draws = (ice | middle for ice in _draws(size, density, seed))
    ice = next(ice for ice in draws if density == 0 or ice[size // 2].any())
    return Slippery(Rules(nothing, ice), Rules(nothing, nothing))


def make_shortcut(size: int = 12, door: bool = True, trap: bool = False) -> Shortcut:
    """A wall in the middle column from the top to the last row but one; the planner knows no way but around it.

    `door`: straight ahead the world has none of it, which halves the way. Without a door the planner is right about
    everything. `trap`: what is there takes one back to the start, and the way around is the only one after all.
    """
    size = _check_size(size)
    if switch("trap", trap) and not switch("door", door):
        raise ValueError("trap is True and door is False; a trap stands in the door's place: give trap with door=True")
    nothing = np.zeros((size, size), bool)
    believed, place = nothing.copy(), nothing.copy()
    believed[:-1, size // 2] = True
    place[size // 2, size // 2] = switch("door", door)
    traps = place if trap else nothing
    return Shortcut(ShortcutRules(believed & ~place, nothing, traps), ShortcutRules(believed, nothing, nothing))


def _check_size(size: int) -> int:
    return whole("size", size, LEAST, GREATEST)


def _draws(size: int, density: float, seed: int) -> Iterator[np.ndarray]:
    """Conditions [size, size], each with probability `density`, again and again, and at last an error."""
    share("density", density, "the cells")
    drawn = generator(seed)
    for _ in range(DRAWS):
        yield drawn.random((size, size)) < density
    raise ValueError(
        f"density is {density}: in none of {DRAWS} worlds of size {size} there is both a way and something in it; "
        "give a density between 0.05 and 0.4, or another seed"
    )


def _distance(walls: np.ndarray) -> float:
    """The fewest steps from the start to the goal, infinite if there is no way."""
    size = len(walls)
    start, goal = (size // 2, 0), (size // 2, size - 1)
    steps, queue = {start: 0}, deque([start])
    while queue:
        row, column = queue.popleft()
        for cell in ((row, column + 1), (row + 1, column), (row, column - 1), (row - 1, column)):
            inside = 0 <= cell[0] < size and 0 <= cell[1] < size
            if inside and not walls[cell] and cell not in steps:
                steps[cell] = steps[row, column] + 1
                queue.append(cell)
    return steps.get(goal, np.inf)
