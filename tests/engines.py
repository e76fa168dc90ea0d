"""Bridges between the two engines: JAX domains as plain Python models, and the JAX engine's draws in plain integers."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np

import uamcts
from uamcts.mcts.best_sequence import FOLLOW
from uamcts.mcts.problem import _OUTCOME
from uamcts.randomness import CHILD, DELETION, ROLLOUT, TIE

MASK = 2**32 - 1
GOLDEN = 0x9E3779B9


class PlainDomain:
    """A JAX domain as a Python model: states are tuples of integers, transitions are looked up once and kept."""

    def __init__(self, domain: uamcts.Domain):
        self.num_actions = domain.num_actions
        self.known: dict = {}
        self.structure = jax.tree.structure(domain.reset(jax.random.key(0)))
        uncertainty = uamcts.true_uncertainty(domain)

        @jax.jit
        def look(state):
            def one(action):
                after = domain.model(state, action)
                return jax.tree.leaves(after.state), after.reward, after.terminal, uncertainty(state, action)

            return jax.vmap(one)(jnp.arange(domain.num_actions, dtype=jnp.int32))

        self.look = look

    def entry(self, state: tuple, action: int) -> tuple:
        if state not in self.known:
            leaves = [np.uint32(word) for word in state]  # no dispatch to the device for each
            following, *rest = jax.device_get(self.look(jax.tree.unflatten(self.structure, leaves)))
            self.known[state] = [
                (tuple(int(leaf[a]) for leaf in following), float(rest[0][a]), bool(rest[1][a]), float(rest[2][a]))
                for a in range(self.num_actions)
            ]
        return self.known[state][action]

    def step(self, state: tuple, action: int) -> tuple:
        return self.entry(state, action)[:3]

    def uncertainty(self, state: tuple, action: int) -> float:
        return self.entry(state, action)[3]


def plain_state(state) -> tuple:
    return tuple(int(leaf) for leaf in jax.tree.leaves(state))


def hashed(number: int) -> int:
    number &= MASK
    number ^= number >> 16
    number = number * 0x7FEB352D & MASK
    number ^= number >> 15
    number = number * 0x846CA68B & MASK
    return number ^ (number >> 16)


class HashedDraws:
    """The draws of the JAX engine for a key, written again in Python integers."""

    def __init__(self, key):
        self.seed = [int(word) for word in np.asarray(jax.random.bits(key, (2,), dtype=jnp.uint32))]

    def draw(self, purpose: int, index: int) -> int:
        return hashed(hashed(self.seed[0] + index * GOLDEN) ^ ((self.seed[1] + purpose) & MASK))

    def deletion(self, expansion: int) -> tuple[float, float]:
        first, second = (self.draw(DELETION, 2 * expansion + k) for k in (0, 1))
        return (first >> 8) * 2.0**-24, (second >> 8) * 2.0**-24

    def child(self, iteration: int, count: int) -> int:
        return (self.draw(CHILD, iteration) >> 16) * count >> 16

    def tie(self, count: int) -> int:
        return (self.draw(TIE, 0) >> 16) * count >> 16

    def rollout(self, iteration: int, number: int):
        words = self.stream(iteration, number)
        return lambda count: (next(words) >> 16) * count >> 16

    def follow(self, iteration: int, number: int):
        words = self.stream(iteration, number)
        return lambda: (hashed(next(words) ^ int(FOLLOW)) >> 8) * 2.0**-24

    def chance(self, iteration: int, number: int):
        words = self.stream(iteration, number)
        return lambda: (hashed(next(words) ^ int(_OUTCOME)) >> 8) * 2.0**-24

    def stream(self, iteration: int, number: int):
        """The words of a rollout, one a step."""
        start = self.draw(ROLLOUT, iteration * self.rollouts + number)
        return (hashed(start + step * GOLDEN) for step in itertools.count())

    rollouts: int
