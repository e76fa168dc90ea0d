"""Graph search that knows the world reaches the exact optimum of the gridworlds, with as many iterations as states.

A tree of as many iterations does so in none of them: with gamma below 1 only the shortest way is the optimum.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from uamcts.domains.exact import best_plan, tabulate
from uamcts.presets import search_config

MOST = 150
"""States of the largest world. Tables are padded to as many, so that worlds share a compiled program."""
GAMMA, EPISODES = 0.99, 8


@functools.partial(jax.jit, static_argnames="config")
def play(keys, limit, following, rewards, ends, config):
    """The discounted reward of an episode for each key, in a deterministic world given as tables [states, actions]."""

    def step(state, action):
        return uamcts.Transition(following[state, action], rewards[state, action], ends[state, action])

    def move(key, carry):
        state, steps, total, _ = carry
        found = uamcts.search(jax.random.fold_in(key, steps), state, step, None, config, num_actions=following.shape[1])
        after = step(state, found.action)
        return after.state, steps + 1, total + GAMMA**steps * after.reward, after.terminal

    def episode(key):
        start = (jnp.int32(0), jnp.int32(0), jnp.float32(0), jnp.bool_(False))
        going = lambda carry: ~carry[-1] & (carry[1] < limit)  # noqa: E731
        return jax.lax.while_loop(going, functools.partial(move, key), start)[2]

    return jax.vmap(episode)(keys)


def rewards_and_optimum(name, iterations, graph):
    """The rewards of episodes within the time limit, and the optimum."""
    domain = uamcts.make(name)
    config = search_config(domain, "true", graph=graph, rules="trust", gamma=GAMMA, iterations=iterations)
    world = tabulate(domain).world
    assert world.legal.all()
    assert world.probability.shape[-1] == 1
    parts = (world.following.astype(np.int32), world.reward.astype(np.float32), world.ends)
    tables = [np.pad(part[:, :, 0], ((0, MOST - len(part)), (0, 0))) for part in parts]
    keys = jax.random.split(jax.random.key(0), EPISODES)
    rewards = play(keys, domain.time_limit, *tables, config=config)
    return np.asarray(rewards), best_plan(world, GAMMA, domain.time_limit).values[0]


@pytest.mark.parametrize(
    ("name", "iterations"), [("two_way", 10), ("two_way_icy", 10), ("hidden_obstacles", MOST), ("slippery", MOST)]
)
def test_the_optimum_is_reached_where_the_facts_are_known(name, iterations):
    rewards, optimum = rewards_and_optimum(name, iterations, graph=True)
    assert rewards == pytest.approx([optimum] * EPISODES, rel=1e-5)
