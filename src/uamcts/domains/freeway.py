"""Freeway on a 10 x 10 board: MinAtar's game as one crossing, three frames an action, and a player who drifts.

World: `none` moves the player up in the broken rows. Model: it stays.

The eight cars are eight four-bit fields of one word, so that one addition moves them all.
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
from uamcts.domains.bits import Layout, bit, mask, word
from uamcts.domains.options import broken_places, difference_mask, line
from uamcts.types import Transition

SIZE = 10
CARS = 8
"""Car i drives in row i + 1 and has bits 4 i .. 4 i + 3 of each word."""
BROKEN = (1, 2, 3, 5, 6, 7)
"""The rows of the paper in which the player drifts."""
FRAMES = 3
"""Frames of the cars per action; also the stock game's delay between two moves of the player."""
PLAYER_COLUMN = 4
NONE, UP, DOWN = 0, 1, 2
ONES = 0x11111111
"""The lowest bit of every car's field."""
LEFTWARD = 8
"""The bit of a speed's field that says that the car drives left; the lower three bits are its size, 1 to 5."""
PLAYER = Layout(row=4, delay=2, terminal=1)


class State(NamedTuple):
    """Four words: columns, timers and speeds of the cars (four bits each), and the player (`PLAYER`)."""

    columns: jax.Array
    timers: jax.Array
    speeds: jax.Array
    player: jax.Array


def frame(columns: jax.Array, timers: jax.Array, speeds: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One frame of all cars: a timer at zero starts again and its car moves one column, around the edge."""
    due = ~(timers | (timers >> 1) | (timers >> 2)) & ONES
    left = due & (speeds >> 3)
    timers = (timers - (due ^ ONES)) | ((due * 7) & speeds)
    at_edge = ~(columns | (columns >> 1) | (columns >> 2) | (columns >> 3)) & left
    columns = columns + (due ^ left) + at_edge * SIZE - left
    beyond = (columns >> 3) & (columns >> 1) & ONES  # of 0 .. 10 only ten has bits 3 and 1
    return columns - beyond * SIZE, timers


def hit(columns: jax.Array, row: jax.Array) -> jax.Array:
    """Whether a car stands on the player, who is in `row`; rows 0 and 9 have no car."""
    on_road = (row >= 1) & (row <= CARS)
    column = (columns >> jnp.where(on_road, 4 * (row - 1), 0)) & 15
    return on_road & (column == PLAYER_COLUMN)


@dataclass(frozen=True, eq=False)
class Freeway(Domain):
    """Rules: a word whose set bits are the rows in which `none` moves the player up."""

    name = "freeway"
    summary = "cross eight lanes of cars once; in rows 1, 2, 3, 5, 6 and 7 doing nothing moves the player up"
    action_names = ("none", "up", "down")
    channel_names = ("chicken", "car", "speed1", "speed2", "speed3", "speed4", "speed5")
    one_hot = {place: (-5, 11) if place % 4 == 3 and place < 32 else (0, 10) for place in range(34)}
    glyphs = {"speed1": "1", "speed2": "2", "speed3": "3", "speed4": "4", "speed5": "5", "car": "█", "chicken": "@"}
    player = (4 * CARS, None)

    @jax.jit
    def reset(self, key: jax.Array) -> State:
        """Cars start at column 0 with random speeds of 1 to 5 and random directions."""
        speed_key, direction_key = jax.random.split(key)
        size = jax.random.randint(speed_key, (CARS,), 1, 6)
        left = jax.random.bernoulli(direction_key, shape=(CARS,))
        return State(
            columns=word(0),
            timers=_fields(size),
            speeds=_fields(size + LEFTWARD * left),
            player=PLAYER.pack(row=SIZE - 1, delay=FRAMES, terminal=0),
        )

    def step(self, rules: jax.Array, state: State, action: jax.Array) -> Transition:
        player = PLAYER.unpack(state.player)
        free = player.delay == 0
        up = free & ((action == UP) | ((action == NONE) & bit(word(rules), player.row)))
        down = free & (action == DOWN) & (player.row < SIZE - 1)
        row = player.row + word(down) - word(up & (player.row > 0))

        columns, timers = state.columns, state.timers
        crash = hit(columns, row)
        for _ in range(FRAMES):
            columns, timers = frame(columns, timers, state.speeds)
            crash = crash | hit(columns, row)

        ended = player.terminal == 1
        reached = row == 0
        over = ended | reached | crash
        following = State(
            columns=jnp.where(ended, state.columns, columns),
            timers=jnp.where(ended, state.timers, timers),
            speeds=state.speeds,
            player=jnp.where(ended, state.player, PLAYER.pack(row=row, delay=0, terminal=over)),
        )
        return Transition(following, (reached & ~ended).astype(jnp.float32), over)

    def features(self, state: State) -> jax.Array:
        """Column, row, timer and signed speed of each car, then the player's row and delay."""
        shifts = 4 * jnp.arange(CARS, dtype=jnp.uint32)
        column, timer, speed = (((cars >> shifts) & 15).astype(jnp.int32) for cars in state[:3])
        speed = jnp.where(speed >= LEFTWARD, LEFTWARD - speed, speed)
        cars = jnp.stack([column, jnp.arange(1, CARS + 1), timer, speed], axis=1).reshape(-1)
        player = PLAYER.unpack(state.player)
        return jnp.concatenate([cars, jnp.stack([player.row, player.delay]).astype(jnp.int32)])

    def feature_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = np.tile([0, 0, 0, -5], CARS), np.tile([9, 9, 5, 5], CARS)
        return np.append(low, [0, 0]).astype(np.int32), np.append(high, [9, 3]).astype(np.int32)

    def from_features(self, vector: ArrayLike, terminal: ArrayLike = False) -> State:
        vector = jnp.asarray(vector).astype(jnp.int32)
        cars = vector[: 4 * CARS].reshape(CARS, 4)
        speed = cars[:, 3]
        return State(
            columns=_fields(cars[:, 0]),
            timers=_fields(cars[:, 2]),
            speeds=_fields(jnp.where(speed < 0, LEFTWARD - speed, speed)),
            player=PLAYER.pack(row=vector[-2], delay=vector[-1], terminal=terminal),
        )

    def difference(self, first: State, second: State) -> jax.Array:
        def number(cars: jax.Array, car: int, width: int = 4) -> jax.Array:
            field: jax.Array = (cars >> (4 * car)) & (2**width - 1)
            return field.astype(jnp.int32)

        def speed(cars: jax.Array, car: int) -> jax.Array:
            return number(cars, car, 3) * (1 - 2 * number(cars >> 3, car, 1))

        total = word(0).astype(jnp.int32)
        for car in range(CARS):
            total = total + (number(first.columns, car) - number(second.columns, car)) ** 2
            total = total + (number(first.timers, car) - number(second.timers, car)) ** 2
            total = total + (speed(first.speeds, car) - speed(second.speeds, car)) ** 2
        return PLAYER.squared_difference(first.player, second.player, skip="terminal", more=total) / np.float32(34)

    def wrong_cells(self) -> np.ndarray:
        cells = np.zeros((SIZE, SIZE), bool)
        cells[:, PLAYER_COLUMN] = difference_mask(self.world_rules, self.model_rules, SIZE)
        return cells

    def channels(self, state: State) -> np.ndarray:
        numbers = self.feature_vector(state)
        board = np.zeros((SIZE, SIZE, len(self.channel_names)), bool)
        board[numbers[-2], PLAYER_COLUMN, 0] = True
        for column, row, _, speed in numbers[:-2].reshape(CARS, 4):
            board[row, column, 1] = True
            board[row, (column - np.sign(speed)) % SIZE, 1 + abs(speed)] = True
        return board


def _fields(numbers: jax.Array) -> jax.Array:
    """Eight numbers of 0 to 15 as the fields of one word."""
    return jnp.sum(word(numbers) << (4 * jnp.arange(CARS, dtype=jnp.uint32)), dtype=jnp.uint32)


def make(
    broken: Iterable[int] | None = None,
    model_broken: Iterable[int] = (),
    severity: float | None = None,
    seed: int = 0,
) -> Freeway:
    """Freeway in which `none` moves the player up in the rows `broken`; the planner believes in `model_broken`.

    `severity` breaks that share of the eight rows with cars instead, drawn from `seed`; given neither, those of the
    paper.
    """
    places = broken_places(BROKEN, range(1, CARS + 1), broken, severity, seed)
    return Freeway(
        world_rules=np.uint32(mask(line("broken", places, SIZE))),
        model_rules=np.uint32(mask(line("model_broken", model_broken, SIZE))),
    )
