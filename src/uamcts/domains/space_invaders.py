"""Space Invaders on a 10 x 10 board: MinAtar's game with one wave, hastier aliens, and a cannon that jams.

World: `fire` does nothing while the cannon is in a broken column. Model: it fires.

Each map of the board is four words, three rows of ten bits a word: moving a map is a shift.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from uamcts.domains.base import Domain
from uamcts.domains.bits import Layout, bit, bits_to_rows, highest, mask, ones, rows_to_bits, word
from uamcts.domains.options import broken_places, difference_mask, line
from uamcts.types import Transition

SIZE = 10
BROKEN = (2, 3, 4, 5, 6)
"""The columns of the paper in which the cannon jams."""
ROWS = 3
"""Rows of the board in one word."""
FULL = 2 ** (ROWS * SIZE) - 1
ROW = 2**SIZE - 1
EVERY_ROW = 1 + 2**SIZE + 2 ** (2 * SIZE)
"""Times a column's bit: that column in all rows of a word."""
SHOT_DELAY = 5
ALIEN_SHOT_INTERVAL = 3
MOVE_INTERVAL = 12
LEFT, RIGHT, FIRE = 1, 2, 3
FIELDS = Layout(cannon=4, rightward=1, interval=4, move_timer=4, alien_shot_timer=4, shot_timer=3, terminal=1)

Map: TypeAlias = tuple[jax.Array, ...]
"""A hundred cells in four words: row r, column c is bit 10 (r mod 3) + c of word r // 3; the last has row 9."""


class State(NamedTuple):
    """Bullets of the cannon, bullets of the aliens, the aliens, and one word for the rest (`FIELDS`)."""

    friendly: Map
    enemy: Map
    aliens: Map
    rest: jax.Array


def shift_up(cells: Map) -> Map:
    """Every row one up; the top row leaves the board, the bottom row is empty."""
    a, b, c, d = cells
    return (
        (a >> SIZE) | ((b & ROW) << 2 * SIZE),
        (b >> SIZE) | ((c & ROW) << 2 * SIZE),
        (c >> SIZE) | (d << 2 * SIZE),
        word(0),
    )


def shift_down(cells: Map) -> Map:
    """Every row one down; the bottom row leaves the board, the top row is empty."""
    a, b, c, _ = cells
    return (
        (a << SIZE) & FULL,
        ((b << SIZE) & FULL) | (a >> 2 * SIZE),
        ((c << SIZE) & FULL) | (b >> 2 * SIZE),
        c >> 2 * SIZE,
    )


def occupied_columns(cells: Map) -> jax.Array:
    """Ten bits: the columns in which any cell is set."""
    a, b, c, d = cells
    rows: jax.Array = a | b | c | d
    return jnp.bitwise_and(rows | (rows >> SIZE) | (rows >> 2 * SIZE), ROW)


def count(cells: Map) -> jax.Array:
    """How many cells are set."""
    a, b, c, d = (ones(part) for part in cells)
    return a + b + c + d


def shooter(aliens: Map, cannon: jax.Array) -> Map:
    """The alien that shoots: the lowest one in the occupied column nearest to the cannon, the left one of two.

    Returns a map with that one cell; empty where there are no aliens.
    """
    columns = occupied_columns(aliens)
    at_or_left = columns & ((2 << cannon) - 1)
    right = columns & ~at_or_left
    left_column = highest(at_or_left)
    right_bit = right & (~right + 1)
    right_column = highest(right_bit)
    take_left = (at_or_left != 0) & ((right == 0) | (cannon - left_column <= right_column - cannon))
    column = jnp.where(take_left, word(1) << left_column, right_bit) * EVERY_ROW
    found = word(0)
    cells: list[jax.Array] = []
    for part in reversed(aliens):
        candidates = jnp.where(found == 0, part & column, 0)
        lowest = word(candidates != 0) << highest(candidates)
        found, cells = found | lowest, [lowest, *cells]
    return tuple(cells)


def _either(condition: jax.Array, first: Map, second: Map) -> Map:
    return tuple(jnp.where(condition, a, b) for a, b in zip(first, second, strict=True))


@dataclass(frozen=True, eq=False)
class SpaceInvaders(Domain):
    """Rules: a word whose set bits are the columns in which the cannon does not fire."""

    name = "space_invaders"
    summary = "shoot 24 aliens with a cannon that jams in columns 2 to 6"
    action_names = ("none", "left", "right", "fire")
    time_limit = 300
    channel_names = ("cannon", "alien", "alien_left", "alien_right", "friendly_bullet", "enemy_bullet")
    one_hot = {300: (0, 10), 305: (0, 5)}
    glyphs = {"alien_left": "«", "alien_right": "»", "friendly_bullet": "|", "enemy_bullet": "!", "cannon": "▲"}
    player = (None, 300)

    @jax.jit
    def reset(self, key: jax.Array) -> State:
        """Always the same start: nothing in this game is random."""
        del key
        block = mask(range(2, 8))
        nothing = (word(0),) * 4
        rest = FIELDS.pack(
            cannon=5, rightward=0, interval=MOVE_INTERVAL, move_timer=MOVE_INTERVAL,
            alien_shot_timer=ALIEN_SHOT_INTERVAL, shot_timer=0, terminal=0,
        )  # fmt: skip
        aliens = (word(block * EVERY_ROW), word(block), word(0), word(0))
        return State(friendly=nothing, enemy=nothing, aliens=aliens, rest=rest)

    def step(self, rules: jax.Array, state: State, action: jax.Array) -> Transition:
        s = FIELDS.unpack(state.rest)
        cannon = jnp.where(action == LEFT, s.cannon - word(s.cannon > 0), s.cannon)
        cannon = jnp.where(action == RIGHT, s.cannon + word(s.cannon < SIZE - 1), cannon)
        fires = (action == FIRE) & (s.shot_timer == 0) & ~bit(word(rules), s.cannon)

        a, b, c, d = shift_up(state.friendly)
        friendly: Map = (a, b, c | (word(fires) << (2 * SIZE + cannon)), d)
        enemy = shift_down(state.enemy)
        over = bit(enemy[3], cannon) | bit(state.aliens[3], cannon)

        aliens, rightward, move_timer, landed = _move_aliens(state.aliens, s)
        over = over | landed | bit(aliens[3], cannon)

        shoots = s.alien_shot_timer == 0
        shot = shooter(aliens, cannon)
        enemy = _either(shoots, tuple(a | b for a, b in zip(enemy, shot, strict=True)), enemy)
        alien_shot_timer = jnp.where(shoots, ALIEN_SHOT_INTERVAL, s.alien_shot_timer)

        killed = tuple(a & b for a, b in zip(aliens, friendly, strict=True))
        aliens = tuple(a ^ k for a, k in zip(aliens, killed, strict=True))
        friendly = tuple(f ^ k for f, k in zip(friendly, killed, strict=True))
        a, b, c, d = aliens
        over = over | ((a | b | c | d) == 0)
        shot_timer = jnp.where(fires, SHOT_DELAY, s.shot_timer)
        rest = FIELDS.pack(
            cannon=cannon, rightward=rightward, interval=s.interval, move_timer=move_timer - 1,
            alien_shot_timer=alien_shot_timer - 1, shot_timer=shot_timer - word(shot_timer > 0), terminal=over,
        )  # fmt: skip

        ended = s.terminal == 1
        following = State(
            friendly=_either(ended, state.friendly, friendly),
            enemy=_either(ended, state.enemy, enemy),
            aliens=_either(ended, state.aliens, aliens),
            rest=jnp.where(ended, state.rest, rest),
        )
        return Transition(following, jnp.where(ended, 0, count(killed)).astype(jnp.float32), ended | over)

    def features(self, state: State) -> jax.Array:
        """The three maps row by row, then cannon, alien direction (-1, 1), move interval and the three timers."""
        maps = [_cells(cells) for cells in state[:3]]
        s = FIELDS.unpack(state.rest)
        direction = 2 * s.rightward.astype(jnp.int32) - 1
        numbers = [s.cannon, direction, s.interval, s.move_timer, s.alien_shot_timer, s.shot_timer]
        return jnp.concatenate([*maps, jnp.stack([number.astype(jnp.int32) for number in numbers])])

    def feature_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        low = np.concatenate([np.zeros(300), [0, -1, 0, 0, 0, 0]])
        high = np.concatenate([np.ones(300), [9, 1, 12, 12, 3, 4]])
        return low.astype(np.int32), high.astype(np.int32)

    def from_features(self, vector: ArrayLike, terminal: ArrayLike = False) -> State:
        vector = jnp.asarray(vector).astype(jnp.int32)
        friendly, enemy, aliens = (_map(vector[100 * i : 100 * (i + 1)]) for i in range(3))
        cannon, direction, interval, move_timer, alien_shot_timer, shot_timer = vector[300:]
        rest = FIELDS.pack(
            cannon=cannon, rightward=direction > 0, interval=interval, move_timer=move_timer,
            alien_shot_timer=alien_shot_timer, shot_timer=shot_timer, terminal=terminal,
        )  # fmt: skip
        return State(friendly=friendly, enemy=enemy, aliens=aliens, rest=rest)

    def difference(self, first: State, second: State) -> jax.Array:
        cells = word(0)
        for one, other in zip(first[:3], second[:3], strict=True):
            cells = cells + count(tuple(a ^ b for a, b in zip(one, other, strict=True)))
        # A direction is -1 or 1: two directions differ by 2, of which the field's own difference is a quarter.
        turned = (FIELDS.unpack(first.rest).rightward ^ FIELDS.unpack(second.rest).rightward) * 3
        total = FIELDS.squared_difference(first.rest, second.rest, skip="terminal", more=cells + turned)
        return total / np.float32(306)

    def wrong_cells(self) -> np.ndarray:
        cells = np.zeros((SIZE, SIZE), bool)
        cells[SIZE - 1] = difference_mask(self.world_rules, self.model_rules, SIZE)
        return cells

    def channels(self, state: State) -> np.ndarray:
        numbers = self.feature_vector(state)
        friendly, enemy, aliens = numbers[:300].reshape(3, SIZE, SIZE).astype(bool)
        nothing = np.zeros_like(aliens)
        cannon = nothing.copy()
        cannon[SIZE - 1, numbers[300]] = True
        left, right = (aliens, nothing) if numbers[301] < 0 else (nothing, aliens)
        return np.stack([cannon, aliens, left, right, friendly, enemy], axis=-1)


def _move_aliens(aliens: Map, s: Any) -> tuple[Map, jax.Array, jax.Array, jax.Array]:
    """Aliens, their direction, their timer, and whether they landed.

    Every so often the aliens go one column on; at an edge they turn and go one row down. An alien that would leave
    the bottom row has landed (and stands in the top row of the last picture).
    """
    moves = s.move_timer == 0
    timer = jnp.where(moves, jnp.minimum(count(aliens), s.interval), s.move_timer)
    columns = occupied_columns(aliens)
    at_edge = jnp.where(s.rightward == 1, bit(columns, SIZE - 1), bit(columns, 0))
    turns = moves & at_edge
    top, *lower = shift_down(aliens)
    down = (top | aliens[3], *lower)
    sideways = tuple(jnp.where(s.rightward == 1, part << 1, part >> 1) for part in aliens)
    moved = _either(moves, _either(at_edge, down, sideways), aliens)
    return moved, s.rightward ^ word(turns), timer, turns & (aliens[3] != 0)


def _map(cells: jax.Array) -> Map:
    """A hundred numbers, 1 where something is, as a map."""
    rows = jnp.pad(cells == 1, (0, 20)).reshape(4, ROWS * SIZE)
    return tuple(rows_to_bits(rows))


def _cells(cells: Map) -> jax.Array:
    """The inverse of `_map`."""
    return bits_to_rows(jnp.stack(cells), ROWS * SIZE).reshape(-1)[: SIZE * SIZE]


def make(
    broken: Iterable[int] | None = None,
    model_broken: Iterable[int] = (),
    severity: float | None = None,
    seed: int = 0,
) -> SpaceInvaders:
    """Space Invaders whose cannon jams in the columns `broken`; the planner believes in `model_broken`.

    `severity` breaks that share of the ten columns instead, drawn from `seed`; given neither, those of the paper.
    """
    places = broken_places(BROKEN, range(SIZE), broken, severity, seed)
    return SpaceInvaders(
        world_rules=np.uint32(mask(line("broken", places, SIZE))),
        model_rules=np.uint32(mask(line("model_broken", model_broken, SIZE))),
    )
