"""One episode of a domain's world, move by move, for people to look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import jax

from uamcts.domains import make

LONGEST = 1000
"""Steps after which an episode of a domain without a time limit is cut."""


class Move(NamedTuple):
    """What was done, what it paid, and the board after it."""

    action: str
    reward: float
    board: str


def random_episode(name: str, seed: int, steps: int | None = None) -> Iterator[Move]:
    """An episode of the domain `name` with random actions; `steps` cuts it instead of the domain's own time limit."""
    domain = make(name)
    steps = steps or domain.time_limit or LONGEST
    world = jax.jit(domain.world)
    reset_key, key = jax.random.split(jax.random.key(seed))
    state = domain.reset(reset_key)
    actions = jax.random.randint(key, (steps,), 0, domain.num_actions).tolist()
    for action in actions:
        state, reward, terminal = world(state, action)
        yield Move(domain.action_names[action], float(reward), domain.text(state))
        if terminal:
            return
