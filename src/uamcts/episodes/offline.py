"""Episodes in the real world, with a search for every move: thousands as lanes of one program, or one to look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.domains.base import Domain
from uamcts.mcts.api import search
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.search import SearchResult
from uamcts.types import PyTree, Transition
from uamcts.uncertainty.true import true_uncertainty

LONGEST = 1000
"""Real steps after which an episode of a domain without a time limit is cut."""


WORLD = 2**31 - 1
"""Folded into the key for the draws of a random world; searches fold in the number of the step, which is less."""


def real_step(
    key: jax.Array, domain: Domain, state: PyTree, action: int | jax.Array, step: int | jax.Array
) -> Transition:
    """The `step`-th real step of an episode.

    A random world draws with a key of its own. No search sees it, so that planning neither knows nor changes what will
    happen, and algorithms on the same seed meet the same luck.
    """
    if not domain.random:
        return domain.world(state, action)
    return domain.world(state, action, jax.random.fold_in(jax.random.fold_in(key, WORLD), step))


def begin(key: jax.Array, domain: Domain) -> tuple[PyTree, jax.Array]:
    """The start state of an episode, and the key of its searches and real steps."""
    reset_key, key = jax.random.split(key)
    return domain.reset(reset_key), key


# One program for all seeds and rules of a game, where single episodes are played move by move.
compiled_begin, compiled_step = jax.jit(begin), jax.jit(real_step)


class Score(NamedTuple):
    """What an episode came to: its reward, its steps, whether it ended by itself, and the flags of its searches."""

    reward: jax.Array
    steps: jax.Array
    ended: jax.Array
    flags: jax.Array


def plan_move(
    key: jax.Array, domain: Domain, state: PyTree, config: SearchConfig, step: int | jax.Array, limit: int | None
) -> SearchResult:
    """The search before the `step`-th move of an episode; a `limit` is one that it knows of."""
    left = None if limit is None else limit - step
    return search(jax.random.fold_in(key, step), state, domain.model, true_uncertainty(domain), config, horizon=left)


def play(
    key: jax.Array, domain: Domain, config: SearchConfig, limit: int | None = None, steps_left: bool = False
) -> Score:
    """One episode with a known uncertainty (the paper's offline scenario). Pure and unbatched: vmap it over lanes.

    Keys, rules of the domain and all settings but the budgets and the rule set may differ from lane to lane, so one
    program serves a whole sweep. With `steps_left` every search knows how many steps are left.
    """
    limit = limit or domain.time_limit or LONGEST
    known = limit if steps_left else None
    first, key = begin(key, domain)

    def move(carry: tuple) -> tuple:
        state, score = carry
        plan = plan_move(key, domain, state, config, score.steps, known)
        after = real_step(key, domain, state, plan.action, score.steps)
        reward = score.reward + after.reward
        return after.state, Score(reward, score.steps + 1, after.terminal, score.flags | plan.flags)

    start = Score(jnp.float32(0), jnp.int32(0), jnp.bool_(False), jnp.int32(0))
    goes_on = lambda carry: ~carry[1].ended & (carry[1].steps < limit)  # noqa: E731
    return jax.lax.while_loop(goes_on, move, (first, start))[1]


def play_in_turn(
    keys: jax.Array,
    domains: Domain,
    configs: SearchConfig,
    count: jax.Array,
    limit: int | None = None,
    steps_left: bool = False,
) -> Score:
    """Several episodes one after the other, [n] in front of all arguments, of which the first `count` are played.

    What `play` gives for each of them. As lanes of a batch, lanes that get short episodes play more of them, so that
    few lanes are idle while the longest episode goes on.
    """
    first = jax.tree.map(lambda leaf: leaf[0], domains)
    limit = limit or first.time_limit or LONGEST
    number, known = keys.shape[0], limit if steps_left else None

    def start(index: jax.Array) -> PyTree:
        key = keys[jnp.minimum(index, number - 1)]
        domain = jax.tree.map(lambda leaf: leaf[jnp.minimum(index, number - 1)], domains)
        return domain.reset(jax.random.split(key)[0])

    def move(carry: tuple) -> tuple:
        index, state, score, scores = carry
        key = jax.random.split(keys[index])[1]
        domain, config = jax.tree.map(lambda leaf: leaf[index], (domains, configs))
        plan = plan_move(key, domain, state, config, score.steps, known)
        after = real_step(key, domain, state, plan.action, score.steps)
        score = Score(score.reward + after.reward, score.steps + 1, after.terminal, score.flags | plan.flags)
        scores = jax.tree.map(lambda rows, row: rows.at[index].set(row), scores, score)
        over = score.ended | (score.steps >= limit)
        following = index + over
        state = jax.tree.map(lambda new, old: jnp.where(over, new, old), start(following), after.state)
        score = jax.tree.map(lambda zero, old: jnp.where(over, zero, old), nothing, score)
        return following, state, score, scores

    nothing = Score(jnp.float32(0), jnp.int32(0), jnp.bool_(False), jnp.int32(0))
    scores = jax.tree.map(lambda leaf: jnp.zeros(number, leaf.dtype), nothing)
    begin = (jnp.int32(0), start(jnp.int32(0)), nothing, scores)
    return jax.lax.while_loop(lambda carry: carry[0] < count, move, begin)[3]


class Move(NamedTuple):
    """One move to look at: the state it was made in, the plan behind it, and what came of it."""

    state: PyTree
    plan: SearchResult | None
    action: int
    reward: float
    following: PyTree
    terminal: bool


def moves(
    key: jax.Array,
    domain: Domain,
    config: SearchConfig | None,
    limit: int | None = None,
    steps_left: bool = False,
) -> Iterator[Move]:
    """The moves of one episode as they are made; without a `config`, random ones.

    With `steps_left` every search knows how many steps are left.
    """
    limit = limit or domain.time_limit or LONGEST
    state, key = compiled_begin(key, domain)
    random = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    for step in range(limit):
        plan = None
        if config is None:
            action = int(random.integers(domain.num_actions))
        else:
            plan = plan_move(key, domain, state, config, step, limit if steps_left else None)
            action = int(plan.action)
        after = compiled_step(key, domain, state, action, step)
        yield Move(state, plan, action, float(after.reward), after.state, bool(after.terminal))
        if after.terminal:
            return
        state = after.state
