"""Small decision processes given as tables, for both engines."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import uamcts
from uamcts.mcts import api


class Table(NamedTuple):
    """Next states, rewards and uncertainties, [states, actions] each. State 0 is the start, the last one the end."""

    following: np.ndarray
    rewards: np.ndarray
    uncertainty: np.ndarray

    @property
    def num_actions(self) -> int:
        return self.following.shape[1]

    def model(self, state, action):
        end = self.following.shape[0] - 1
        after = jnp.where(state == end, state, jnp.asarray(self.following)[state, action])
        reward = jnp.where(state == end, 0.0, jnp.asarray(self.rewards)[state, action])
        return uamcts.Transition(after, reward.astype(jnp.float32), after == end)

    def doubt(self, state, action):
        return jnp.asarray(self.uncertainty)[state, action]

    def step(self, state, action):
        after = int(self.following[state, action])
        return after, float(self.rewards[state, action]), after == self.following.shape[0] - 1

    def plain_doubt(self, state, action):
        return float(self.uncertainty[state, action])


def table(transitions: dict, states: int, actions: int) -> Table:
    """A table from {(state, action): (next state, reward, uncertainty)}; all else leads to the end for nothing."""
    following = np.full((states, actions), states - 1, np.int32)
    rewards, doubt = np.zeros((2, states, actions), np.float32)
    for (state, action), (after, reward, uncertain) in transitions.items():
        following[state, action], rewards[state, action], doubt[state, action] = after, reward, uncertain
    return Table(following, rewards, doubt)


def find(key, table: Table, config: uamcts.SearchConfig):
    """A search from state 0. The table is an argument of the program, so that tables of one shape share it."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((key, table, config))):
        return _search(key, table, config)
    fixed, free = api.partition(config)
    found = _compiled(key, table, free, fixed)
    uamcts.raise_flags(found)
    return found


def _search(key, table: Table, config: uamcts.SearchConfig):
    return uamcts.search(key, jnp.int32(0), table.model, table.doubt, config, num_actions=table.num_actions)


@functools.partial(jax.jit, static_argnames="fixed")
def _compiled(key, table: Table, free: dict, fixed: tuple):
    return _search(key, table, uamcts.SearchConfig(**dict(fixed), **free))
