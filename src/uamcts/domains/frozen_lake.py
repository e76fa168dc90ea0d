"""Three random grids of the literature: a frozen lake, a cliff, and a bridge between two goals.

World: a move succeeds with probability p, and slips to either side of the intended direction with (1 - p) / 2 each.
Model: another p. With p = 1/3 the lake is Gymnasium's slippery FrozenLake.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from uamcts.arguments import switch
from uamcts.domains.base import Domain
from uamcts.domains.bits import word
from uamcts.domains.outcomes import Outcomes
from uamcts.types import Transition

MAPS: dict[str, tuple[str, ...]] = {
    "4x4": ("SFFF", "FHFH", "FFFH", "HFFG"),
    "8x8": ("SFFFFFFF", "FFFFFFFF", "FFFHFFFF", "FFFFFHFF", "FFFHFFFF", "FHHFFFHF", "FHFFHFHF", "FFFHFFFG"),
    "cliff": ("FFFFFFFFFFFF", "FFFFFFFFFFFF", "FFFFFFFFFFFF", "SHHHHHHHHHHG"),
    "bridge": ("HHHHHHHH", "FFFFFHHH", "GFFFSFFG", "FFFFFHHH", "HHHHHHHH"),
}
"""Gymnasium's two lakes and its cliff, and the bridge of RATS and NS-Gym. S: start, F: safe, H: hole, G: goal."""
LETTERS = "SFHG"
LEFT, DOWN, RIGHT, UP = range(4)
SIDES = np.array([0, 1, -1])
"""Where a move may go, from the intended direction: there, or to either side."""
STEPS_A_ROW = 25
"""The time limit of a lake, in real steps for each row or column: 100 and 200, as in Gymnasium."""


class Rules(NamedTuple):
    """The probability that a move goes where it should, the map, and what is paid. All of it may be traced."""

    p: Any
    """A number; of the bridge, one each for its left and its right half, [2]."""
    holes: Any
    """Conditions [rows, columns], and so are the goals."""
    goals: Any
    start: Any
    """The number of its cell."""
    rewards: Any
    """For coming into a goal, into a hole, and into any other cell, [3]."""
    teleport: Any
    """Whether a hole leads back to the start instead of ending the episode."""


class State(NamedTuple):
    """The number of the cell the agent is in: columns * row + column, one word."""

    cell: jax.Array


@dataclass(frozen=True, eq=False)
class SlipperyGrid(Domain):
    """Walk from S to G without falling into H. Walking off the grid: stay. A goal or a hole ends the episode."""

    action_names = ("left", "down", "right", "up")
    random = True
    time_limit = 100
    channel_names: ClassVar[tuple[str, ...]] = ("goal", "hole", "start", "agent")
    glyphs = {"goal": "G", "hole": "O", "start": "S", "agent": "@"}
    player = (0, 1)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the map."""
        rows, columns = self.world_rules.holes.shape[-2:]
        return rows, columns

    @property
    def one_hot(self) -> dict[int, tuple[int, int]]:  # type: ignore[override]
        return {feature: (0, count) for feature, count in enumerate(self.shape)}

    def reset(self, key: jax.Array) -> State:
        """Always the same start."""
        del key
        return State(word(self.world_rules.start))

    def outcomes(self, rules: Rules, state: State, action: jax.Array) -> Outcomes:
        """Three of them: as intended, and to either side."""
        rows, columns = self.shape
        cell = state.cell.astype(jnp.int32)
        holes, goals = jnp.asarray(rules.holes).reshape(-1), jnp.asarray(rules.goals).reshape(-1)
        ended = goals[cell] | (holes[cell] & ~jnp.asarray(rules.teleport))
        way = (action + SIDES) % 4
        row = jnp.clip(cell // columns + (way == DOWN) - (way == UP), 0, rows - 1)
        column = jnp.clip(cell % columns + (way == RIGHT) - (way == LEFT), 0, columns - 1)
        entered = jnp.where(ended, cell, columns * row + column)
        found = jnp.where(goals[entered], 0, jnp.where(holes[entered], 1, 2))
        paid = jnp.where(ended, 0.0, jnp.asarray(rules.rewards)[found]).astype(jnp.float32)
        falls = holes[entered] & jnp.asarray(rules.teleport)
        following = State(word(jnp.where(falls, rules.start, entered)))
        p = self.success_probability(rules, cell)
        probabilities = jnp.stack([p, (1 - p) / 2, (1 - p) / 2])
        return Transition(following, paid, goals[entered] | (holes[entered] & ~falls)), probabilities

    def success_probability(self, rules: Rules, cell: jax.Array) -> jax.Array:
        """The probability that a move from `cell` goes where it should."""
        del cell
        return jnp.asarray(rules.p, jnp.float32)

    def features(self, state: State) -> jax.Array:
        """Row and column."""
        cell = state.cell.astype(jnp.int32)
        return jnp.stack([cell // self.shape[1], cell % self.shape[1]])

    def feature_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(2, np.int32), np.array(self.shape, np.int32) - 1

    def from_features(self, vector: ArrayLike, terminal: ArrayLike = False) -> State:
        """The state of (row, column). `terminal` says nothing new: the map knows which cells are."""
        del terminal
        row, column = jnp.asarray(vector).astype(jnp.int32)
        return State(word(self.shape[1] * row + column))

    def wrong_cells(self) -> np.ndarray:
        cells = jnp.arange(np.prod(self.shape))
        known = [np.broadcast_to(self.success_probability(rules, cells), cells.shape) for rules in self._both()]
        safe = ~(np.asarray(self.world_rules.holes) | np.asarray(self.world_rules.goals))
        return np.asarray((known[0] != known[1]).reshape(self.shape) & safe)

    def channels(self, state: State) -> np.ndarray:
        cells = np.arange(np.prod(self.shape)).reshape(self.shape)
        rules = self.world_rules
        board = [rules.goals, rules.holes, cells == rules.start, cells == np.asarray(state.cell)]
        return np.stack([np.asarray(part) for part in board], axis=-1)

    def _both(self) -> tuple[Rules, Rules]:
        return self.world_rules, self.model_rules


@dataclass(frozen=True, eq=False)
class FrozenLake(SlipperyGrid):
    """Gymnasium's FrozenLake with any map and any p."""

    name = "frozen_lake"
    summary = "cross a frozen lake with holes; a move slips sideways more often than the planner believes"

    @property
    def time_limit(self) -> int:  # type: ignore[override]
        return STEPS_A_ROW * max(self.shape)


@dataclass(frozen=True, eq=False)
class Cliff(SlipperyGrid):
    """CliffWalking with slips."""

    name = "cliff"
    summary = "walk along a cliff to the goal; a move slips sideways more often than the planner believes"


@dataclass(frozen=True, eq=False)
class Bridge(SlipperyGrid):
    """NS-Gym's Bridge: the nearer goal lies behind a narrow bridge, and each half of the map has a p of its own."""

    name = "bridge"
    summary = "two goals, the nearer one behind a narrow bridge; a move slips more often than the planner believes"

    def success_probability(self, rules: Rules, cell: jax.Array) -> jax.Array:
        right = cell % self.shape[1] >= self.shape[1] // 2
        return jnp.asarray(rules.p, jnp.float32)[right.astype(int)]


def make_frozen_lake(
    p: float = 0.7,
    model_p: float = 1.0,
    map: str | Iterable[Any] = "4x4",
    goal_reward: float = 1.0,
    hole_reward: float = -1.0,
    step_reward: float = 0.0,
) -> FrozenLake:
    """A lake on which a move succeeds with probability `p`; the planner believes `model_p`.

    `map`: "4x4", "8x8", or rows of the letters S, F, H and G. Gymnasium's own slippery lake has `p=1/3` and
    `hole_reward=0`.
    """
    ground = _ground(map, (goal_reward, hole_reward, step_reward))
    return FrozenLake(Rules(_p("p", p), *ground), Rules(_p("model_p", model_p), *ground))


def make_cliff(
    p: float = 0.7,
    model_p: float = 1.0,
    map: str | Iterable[Any] = "cliff",
    goal_reward: float = 1.0,
    hole_reward: float = -1.0,
    step_reward: float = 0.0,
    teleport: bool = False,
) -> Cliff:
    """A cliff of 4 x 12 cells along which a move succeeds with probability `p`; the planner believes `model_p`.

    `teleport`: who falls goes on from the start, instead of the episode ending. Gymnasium's own CliffWalking has
    `p=1, goal_reward=-1, hole_reward=-100, step_reward=-1, teleport=True`; where it is slippery, `p=1/3`.
    """
    ground = _ground(map, (goal_reward, hole_reward, step_reward), switch("teleport", teleport))
    return Cliff(Rules(_p("p", p), *ground), Rules(_p("model_p", model_p), *ground))


def make_bridge(
    p: float | Iterable[float] = 0.7,
    model_p: float | Iterable[float] = 1.0,
    map: str | Iterable[Any] = "bridge",
    goal_reward: float = 1.0,
    hole_reward: float = -1.0,
    step_reward: float = 0.0,
) -> Bridge:
    """Two goals: to the right 3 moves over a bridge one cell wide, to the left 4 moves over one three cells wide.

    `p`: one number, or one each for the left and the right half of the map; the planner believes `model_p`.
    """
    ground = _ground(map, (goal_reward, hole_reward, step_reward))
    return Bridge(Rules(_halves("p", p), *ground), Rules(_halves("model_p", model_p), *ground))


def _p(argument: str, value: object) -> np.float32:
    """`value` as a probability, or an error that names the argument."""
    remedy = f"{argument} is {value!r}; it is the probability that a move goes where it should, between 0 and 1"
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(remedy)
    if not 0 <= value <= 1:
        raise ValueError(remedy)
    return np.float32(value)


def _halves(argument: str, value: object) -> np.ndarray:
    """One probability for both halves, or one for each."""
    if isinstance(value, (list, tuple, np.ndarray)):
        if len(value) != 2:
            raise ValueError(f"{argument} is {value!r}; give one number, or one each for the left and the right half")
        return np.stack([_p(argument, half) for half in value])
    return np.stack([_p(argument, value)] * 2)


def _ground(given: object, rewards: tuple[float, ...], teleport: bool = False) -> tuple[Any, ...]:
    """The rules that world and model share: holes, goals, start, rewards and whether holes teleport."""
    for name, reward in zip(("goal_reward", "hole_reward", "step_reward"), rewards, strict=True):
        number = isinstance(reward, (int, float, np.integer, np.floating)) and not isinstance(reward, bool)
        if not number or not np.isfinite(reward):
            raise ValueError(f"{name} is {reward!r}; it must be a finite number")
    letters = _letters(given)
    start = np.flatnonzero(letters.reshape(-1) == "S")
    if len(start) != 1:
        raise ValueError(f"map has {len(start)} starts; it needs exactly one S")
    if not np.any(letters == "G"):
        raise ValueError("map has no goal; it needs at least one G")
    return letters == "H", letters == "G", np.int32(start[0]), np.array(rewards, np.float32), np.bool_(teleport)


def _letters(given: Any) -> np.ndarray:
    """A map, by name, as rows of letters or as an array of letters, as letters [rows, columns]."""
    remedy = f"give {', '.join(map(repr, MAPS))}, or rows of equal length such as ['SFF', 'FHF', 'FFG']"
    if isinstance(given, str):
        if given not in MAPS:
            raise ValueError(f"map is {given!r}; {remedy}")
        given = MAPS[given]
    try:
        rows = [[_text(letter) for letter in _text(row)] for row in given]
    except TypeError:
        raise TypeError(f"map is {given!r}; {remedy}") from None
    if not rows or not rows[0] or len({len(row) for row in rows}) > 1:
        raise ValueError(f"map has rows of {sorted({len(row) for row in rows})} cells; {remedy}")
    unknown = next((letter for row in rows for letter in row if letter not in tuple(LETTERS)), None)
    if unknown is not None:
        raise ValueError(f"map holds {unknown!r}; its letters are S (start), F (frozen), H (hole) and G (goal)")
    return np.array(rows)


def _text(part: object) -> Any:
    """A row or a cell of a map: bytes, as in Gymnasium's `desc`, as text; anything else as it is."""
    return part.decode(errors="replace") if isinstance(part, bytes) else part
