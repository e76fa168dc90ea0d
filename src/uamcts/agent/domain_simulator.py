"""A domain of this package as a simulator that an agent plans in: what its planner believes, not its real world."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from uamcts.agent.domain_transitions import infer_terminal
from uamcts.agent.jax_simulator import JaxSimulator
from uamcts.domains.base import Domain
from uamcts.types import PyTree


@functools.lru_cache(maxsize=16)
def domain_simulator(domain: Domain) -> JaxSimulator:
    """The model of a domain as a simulator: one for all agents of this domain, which then share compiled programs."""
    return JaxSimulator(
        None if domain.random else domain.model, domain.num_actions, domain.reset(jax.random.key(0)), domain.features,
        name=domain.name, action_names=tuple(domain.action_names), identity=getattr(domain, "identity", None),
        outcomes=domain.model_outcomes if domain.random else None,
    )  # fmt: skip


class EndOfEpisode:
    """Says whether a real transition of a domain ended its episode, where the user did not."""

    def __init__(self, domain: Domain):
        self._infer = _compiled_end(domain)

    def __call__(self, state: PyTree, action: int, following: PyTree) -> bool:
        return bool(self._infer(state, jnp.int32(action), following))


@functools.lru_cache(maxsize=16)
def _compiled_end(domain: Domain) -> Callable[[PyTree, jax.Array, PyTree], jax.Array]:
    """One program for all agents of a domain."""
    return jax.jit(functools.partial(infer_terminal, domain))
