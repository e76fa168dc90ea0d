"""Episodes in the real world, with a search for every move: thousands as lanes of one program, or one to look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.domains.base import Domain
from uamcts.mcts.entry import search
from uamcts.mcts.search import SearchResult
from uamcts.types import PyTree, SearchConfig
from uamcts.uncertainty.true import true_uncertainty

LONGEST = 1000
"""Real steps after which an episode of a domain without a time limit is cut."""


class Score(NamedTuple):
    """What an episode came to: its reward, its steps, whether it ended by itself, and the flags of its searches."""

    reward: jax.Array
    steps: jax.Array
    ended: jax.Array
    flags: jax.Array


def play(key: jax.Array, domain: Domain, config: SearchConfig, limit: int | None = None) -> Score:
    """One episode with a known uncertainty (the paper's offline scenario). Pure and unbatched: vmap it over lanes.

    Keys, rules of the domain and all settings but the budgets and the rule set may differ from lane to lane, so one
    program serves a whole sweep.
    """
    limit = limit or domain.time_limit or LONGEST
    reset_key, key = jax.random.split(key)

    def move(carry: tuple) -> tuple:
        state, score = carry
        plan = search(jax.random.fold_in(key, score.steps), state, domain.model, true_uncertainty(domain), config)
        after = domain.world(state, plan.action)
        reward = score.reward + after.reward
        return after.state, Score(reward, score.steps + 1, after.terminal, score.flags | plan.flags)

    start = Score(jnp.float32(0), jnp.int32(0), jnp.bool_(False), jnp.int32(0))
    goes_on = lambda carry: ~carry[1].ended & (carry[1].steps < limit)  # noqa: E731
    return jax.lax.while_loop(goes_on, move, (domain.reset(reset_key), start))[1]


class Move(NamedTuple):
    """One move to look at: the state it was made in, the plan behind it, and what came of it."""

    state: PyTree
    plan: SearchResult | None
    action: int
    reward: float
    following: PyTree
    terminal: bool


def moves(key: jax.Array, domain: Domain, config: SearchConfig | None, limit: int | None = None) -> Iterator[Move]:
    """The moves of one episode as they are made; without a `config`, random ones."""
    limit = limit or domain.time_limit or LONGEST
    reset_key, key = jax.random.split(key)
    state, world = domain.reset(reset_key), jax.jit(domain.world)
    random = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    for step in range(limit):
        plan = None
        if config is None:
            action = int(random.integers(domain.num_actions))
        else:
            plan = search(jax.random.fold_in(key, step), state, domain.model, true_uncertainty(domain), config)
            action = int(plan.action)
        after = world(state, action)
        yield Move(state, plan, action, float(after.reward), after.state, bool(after.terminal))
        if after.terminal:
            return
        state = after.state
