"""Forks in a road, as a simulator and as a domain: 1 now, or 10 one step later. At some forks the 10 never comes."""

import functools
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np

import uamcts
from uamcts.domains.base import Domain

FORKS, WRONG = 10, 7
"""How many there are; from which on the real road leads astray."""
AT_FORK, ON_ROAD, ASTRAY, OVER = range(4)
TAKE, WAIT = range(2)


class Simulator:
    """A state is (fork, where). Action 0 at a fork takes 1 and ends; action 1 waits for the 10 of the next step."""

    num_actions = 2

    def step(self, state, action):
        fork, where = state
        if where == AT_FORK:
            return ((fork, OVER), 1.0, True) if action == TAKE else ((fork, ON_ROAD), 0.0, False)
        return (fork, OVER), 10.0 if where == ON_ROAD else 0.0, True


def world(state, action, wrong=WRONG):
    """What really happens."""
    fork, where = state
    if fork >= wrong and where == AT_FORK and action == WAIT:
        return (fork, ASTRAY), 0.0, False
    return Simulator().step(state, action)


class State(NamedTuple):
    fork: jnp.ndarray
    where: jnp.ndarray


@dataclass(frozen=True, eq=False)
class Forks(Domain):
    """The same as a domain. A set of rules is the number of the first fork that leads astray."""

    name: ClassVar[str] = "forks"
    summary: ClassVar[str] = "1 now or 10 one step later"
    action_names: ClassVar[tuple[str, ...]] = ("take", "wait")
    one_hot: ClassVar[dict[int, tuple[int, int]]] = {0: (0, FORKS), 1: (0, 4)}

    def reset(self, key):
        return State(jnp.int32(0), jnp.int32(AT_FORK))

    def step(self, rules, state, action):
        waits = (state.where == AT_FORK) & (action == WAIT)
        where = jnp.where(waits, jnp.where(state.fork >= rules, ASTRAY, ON_ROAD), OVER)
        paid = jnp.where((state.where == AT_FORK) & ~waits, 1.0, jnp.where(state.where == ON_ROAD, 10.0, 0.0))
        return uamcts.Transition(State(state.fork, where), paid.astype(jnp.float32), where == OVER)

    def features(self, state):
        return jnp.stack(state)


@functools.cache
def domain(wrong=WRONG):
    """The domain, whose model does not know of anything that leads astray; one object, whose agents share programs."""
    return Forks(np.int32(wrong), np.int32(FORKS))


def observe_everything(agent, form=lambda *state: state, wrong=WRONG):
    """Tells an agent every transition once; `form` makes a state of (fork, where)."""
    for fork in range(FORKS):
        for where in (AT_FORK, ON_ROAD, *([ASTRAY] if fork >= wrong else [])):
            for action in (TAKE, WAIT):
                following, reward, terminal = world((fork, where), action, wrong)
                agent.observe(form(fork, where), action, form(*following), reward=reward, terminal=terminal)
