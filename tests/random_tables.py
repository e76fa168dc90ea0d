"""Small decision processes with chance, given as tables, and their exact solutions."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import uamcts
from uamcts.mcts import api

LAKE = ("SFFF", "FHFH", "FFFH", "HFFG")


class Chances(NamedTuple):
    """Next states, rewards, ends and probabilities, [states, actions, outcomes] each; a model of its own."""

    following: np.ndarray
    rewards: np.ndarray
    ends: np.ndarray
    probabilities: np.ndarray

    __eq__, __hash__ = object.__eq__, object.__hash__  # searches in the same table share a program

    @property
    def num_actions(self) -> int:
        return self.following.shape[1]

    def outcomes(self, state, action):
        following, rewards, ends, probabilities = (part[state, action] for part in self)
        return uamcts.Transition(following, rewards, ends), probabilities


def arrays(table: Chances) -> Chances:
    """The table as JAX arrays."""
    return Chances(*map(jnp.asarray, table))


@functools.partial(jax.jit, static_argnames="fixed")
def _plan(key, state, table, free, fixed):
    config = uamcts.SearchConfig(**dict(fixed), **free)
    return uamcts.search(key, state, table, None, config)


def plan(key, state: int, table: Chances, config: uamcts.SearchConfig):
    """A search in a table. The table is an argument of the program, so that tables of one shape share it."""
    fixed, free = api.partition(config)
    found = _plan(key, jnp.int32(state), arrays(table), free, fixed)
    uamcts.raise_flags(found)
    return found


def slippery(intended: float, board=LAKE) -> Chances:
    """A frozen lake: a move goes where it should with this probability, else to either side. Goal 1, hole -1."""
    rows, columns = len(board), len(board[0])
    moves = [(0, -1), (1, 0), (0, 1), (-1, 0)]
    shape = (rows * columns, 4, 3)
    following, rewards, ends = np.zeros(shape, np.int32), np.zeros(shape, np.float32), np.zeros(shape, bool)
    for state, action, slot in np.ndindex(*shape):
        row, column = divmod(state, columns)
        down, right = moves[(action + (0, 1, -1)[slot]) % 4]
        row, column = min(max(row + down, 0), rows - 1), min(max(column + right, 0), columns - 1)
        following[state, action, slot] = row * columns + column
        rewards[state, action, slot] = {"H": -1.0, "G": 1.0}.get(board[row][column], 0.0)
        ends[state, action, slot] = board[row][column] in "HG"
    side = (1 - intended) / 2
    probabilities = np.broadcast_to(np.array([intended, side, side], np.float32), shape)
    return Chances(following, rewards, ends, probabilities)


def drawn(seed: int, states: int, actions: int = 3, outcomes: int = 3, padded: int | None = None) -> Chances:
    """A random process; `padded` adds states that cannot be reached, so that tables have one shape."""
    rng, shape = np.random.default_rng(seed), (padded or states, actions, outcomes)
    following = rng.integers(0, states, shape).astype(np.int32)
    probabilities = rng.dirichlet(np.ones(outcomes), shape[:2]).astype(np.float32)
    return Chances(following, rng.normal(size=shape).astype(np.float32), rng.random(shape) < 0.05, probabilities)


def solve(table: Chances, gamma: float, steps: int = 20_000) -> np.ndarray:
    """Q with so many steps to go, [states, actions], by value iteration."""
    value = np.zeros(table.following.shape[0])
    for _ in range(steps):
        onward = table.rewards + gamma * np.where(table.ends, 0.0, value[table.following])
        quality = np.sum(table.probabilities.astype(float) * onward, axis=-1)
        before, value = value, quality.max(axis=1)
        if np.array_equal(before, value):
            break
    return quality
