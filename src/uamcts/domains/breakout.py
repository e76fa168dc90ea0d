"""Breakout on a 10 x 10 board: MinAtar's game without refill, and a paddle with holes in it.

World: a paddle in one of the broken columns does not stop the ball. Model: it does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from uamcts.domains.base import Domain
from uamcts.domains.bits import Layout, bit, bits_to_rows, mask, ones, rows_to_bits, word
from uamcts.domains.options import broken_places, difference_mask, line
from uamcts.types import Transition

SIZE = 10
BROKEN = (2, 4)
"""The columns with holes in the paper."""
BRICK_ROWS = 3
"""Bricks stand in rows 1, 2 and 3: thirty bits of one word."""
NO_BRICK = 31
"""A bit that no brick uses: where the ball is outside the brick rows it looks there."""
LEFT, RIGHT = 1, 2
FIELDS = Layout(ball_row=4, ball_column=4, direction=2, paddle=4, strike=1, last_column=4, last_row=4, terminal=1)
"""Direction: 0 up-left, 1 up-right, 2 down-right, 3 down-left. So xor 1 mirrors left and right, xor 3 up and down."""


class State(NamedTuple):
    """Two words: the bricks, brick (row, column) in bit 10 (row - 1) + column; and everything else (`FIELDS`)."""

    bricks: jax.Array
    rest: jax.Array


@dataclass(frozen=True, eq=False)
class Breakout(Domain):
    """Rules: a word whose set bits are the columns in which the paddle does not stop the ball."""

    name = "breakout"
    broken_name = "hole"
    summary = "clear 30 bricks with a paddle that has holes: in columns 2 and 4 it does not stop the ball"
    action_names = ("none", "left", "right")
    channel_names = ("paddle", "ball", "trail", "brick")
    one_hot = {0: (0, 10), 1: (0, 10), 2: (0, 4), 3: (0, 10), 5: (0, 10), 6: (0, 10)}
    glyphs = {"brick": "▒", "trail": "'", "ball": "o", "paddle": "═"}
    feature_names = ("ball row", "ball column", "direction", "paddle", "strike", "last column", "last row")
    player = (None, 3)

    @jax.jit
    def reset(self, key: jax.Array) -> State:
        """The ball starts in row 3 at the left or at the right side, on its way down."""
        right = word(jax.random.bernoulli(key))
        column = (SIZE - 1) * right
        rest = FIELDS.pack(
            ball_row=3, ball_column=column, direction=2 + right, paddle=4, strike=0,
            last_column=column, last_row=3, terminal=0,
        )  # fmt: skip
        return State(bricks=word(2 ** (SIZE * BRICK_ROWS) - 1), rest=rest)

    def step(self, rules: jax.Array, state: State, action: jax.Array) -> Transition:
        s = FIELDS.unpack(state.rest)
        paddle = jnp.where(action == LEFT, s.paddle - word(s.paddle > 0), s.paddle)
        paddle = jnp.where(action == RIGHT, s.paddle + word(s.paddle < SIZE - 1), paddle)

        # Where the ball flies, counted from 1 so that no unsigned number falls below zero.
        column = s.ball_column + 2 * ((s.direction ^ (s.direction >> 1)) & 1)
        row = s.ball_row + 2 * (s.direction >> 1)
        side = (column == 0) | (column == SIZE + 1)
        ceiling = row == 0
        column = jnp.clip(column, 1, SIZE) - 1
        row = jnp.maximum(row, 1) - 1
        direction = s.direction ^ word(side)

        among_bricks = ~ceiling & (row >= 1) & (row <= BRICK_ROWS)
        place = jnp.where(among_bricks, SIZE * (row - 1) + column, NO_BRICK)
        brick = bit(state.bricks, place)
        # A ball that struck a brick in the step before passes through the next one.
        struck = brick & (s.strike == 0)

        bottom = row == SIZE - 1
        below = bottom & (s.ball_column == paddle)
        beside = bottom & ~below & (column == paddle)
        stopped = (below | beside) & ~bit(word(rules), paddle)
        over = bottom & (~stopped | (state.bricks == 0))

        mirrored = ceiling | struck | (below & stopped)
        direction = jnp.where(mirrored, direction ^ 3, jnp.where(beside & stopped, direction ^ 2, direction))
        rest = FIELDS.pack(
            ball_row=jnp.where(struck | stopped, s.ball_row, row), ball_column=column, direction=direction,
            paddle=paddle, strike=brick, last_column=s.ball_column, last_row=s.ball_row, terminal=over,
        )  # fmt: skip
        ended = s.terminal == 1
        following = State(
            bricks=jnp.where(ended, state.bricks, state.bricks ^ (word(struck) << place)),
            rest=jnp.where(ended, state.rest, rest),
        )
        return Transition(following, (struck & ~ended).astype(jnp.float32), ended | over)

    def features(self, state: State) -> jax.Array:
        """Ball row and column, direction, paddle, strike, last column and row, then the board's 100 cells of bricks."""
        s = FIELDS.unpack(state.rest)
        numbers = [s.ball_row, s.ball_column, s.direction, s.paddle, s.strike, s.last_column, s.last_row]
        bricks = bits_to_rows(state.bricks, SIZE * BRICK_ROWS)
        return jnp.concatenate([jnp.stack(numbers).astype(jnp.int32), jnp.pad(bricks, (SIZE, 60))])

    def feature_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        high = np.concatenate([[9, 9, 3, 9, 1, 9, 9], np.ones(100)])
        return np.zeros(107, np.int32), high.astype(np.int32)

    def from_features(self, vector: ArrayLike, terminal: ArrayLike = False) -> State:
        vector = jnp.asarray(vector).astype(jnp.int32)
        names = ("ball_row", "ball_column", "direction", "paddle", "strike", "last_column", "last_row")
        rest = FIELDS.pack(**{name: vector[index] for index, name in enumerate(names)}, terminal=terminal)
        first = len(names) + SIZE
        return State(bricks=rows_to_bits(vector[first : first + SIZE * BRICK_ROWS] == 1), rest=rest)

    def difference(self, first: State, second: State) -> jax.Array:
        bricks = ones(first.bricks ^ second.bricks)
        return FIELDS.squared_difference(first.rest, second.rest, skip="terminal", more=bricks) / np.float32(107)

    def wrong_cells(self) -> np.ndarray:
        cells = np.zeros((SIZE, SIZE), bool)
        cells[SIZE - 1] = difference_mask(self.world_rules, self.model_rules, SIZE)
        return cells

    def channels(self, state: State) -> np.ndarray:
        s = FIELDS.unpack(np.asarray(state.rest))
        board = np.zeros((SIZE, SIZE, len(self.channel_names)), bool)
        board[s.ball_row, s.ball_column, 1] = True
        board[SIZE - 1, s.paddle, 0] = True
        board[s.last_row, s.last_column, 2] = True
        board[..., 3] = self.feature_vector(state)[7:].reshape(SIZE, SIZE)
        return board


def make(
    broken: Iterable[int] | None = None,
    model_broken: Iterable[int] = (),
    severity: float | None = None,
    seed: int = 0,
) -> Breakout:
    """Breakout whose paddle has holes in the columns `broken`; the planner believes in holes in `model_broken`.

    `severity` breaks that share of the ten columns instead, drawn from `seed`; given neither, those of the paper.
    """
    places = broken_places(BROKEN, range(SIZE), broken, severity, seed)
    return Breakout(
        world_rules=np.uint32(mask(line("broken", places, SIZE))),
        model_rules=np.uint32(mask(line("model_broken", model_broken, SIZE))),
    )
