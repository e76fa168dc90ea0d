"""The compiled functions of a JAX simulator."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.agent.backend import Guides
from uamcts.agent.fitted_uncertainty import FittedUncertainty
from uamcts.agent.jax_simulator import JaxSimulator
from uamcts.agent.python_simulator import flatten_jax
from uamcts.agent.simulator_probe import TRIES
from uamcts.corrections.facts import Outcomes, finder, identity_of, patch_model, patch_uncertainty
from uamcts.corrections.mixture import DRAWS
from uamcts.mcts.api import no_uncertainty, run_search
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.graph.graph import Graph
from uamcts.mcts.problem import Problem
from uamcts.mcts.search import SearchResult
from uamcts.randomness import pick
from uamcts.types import PyTree, Transition


class Programs:
    """The compiled functions of a JAX simulator; all agents that plan in it with the same guides share them."""

    def __init__(self, simulator: JaxSimulator, guides: Guides):
        self.simulator, self.guides = simulator, guides
        features = simulator.features or flatten_jax
        given = simulator.inputs or features
        self.identity = identity_of(simulator)
        self.features = jax.jit(lambda state: jnp.ravel(features(state)).astype(jnp.float32))
        self.numbers = lambda state: jnp.ravel(given(state)).astype(jnp.float32)
        self.inputs = jax.jit(self.numbers)
        self.predict = jax.jit(self._predict)
        self.walk = jax.jit(self._walk)
        self.identify = jax.jit(self.identity)
        self.find = jax.jit(lambda facts, state, action: facts.find(self.identity(state), action))
        self.put = jax.jit(
            lambda facts, state, action, real: facts.put(self.identity(state), action, real, self.identity(real.state))
        )
        self.search = jax.jit(self._search, static_argnames="iterations", donate_argnames="memory")

    def problem(self, model: Any, uncertainty: Any, samples: int) -> Problem:
        """What is planned in; `model` is used if the simulator is deterministic."""
        simulator = self.simulator
        form = {"model": model} if simulator.kind == "step" else {"model": None, simulator.kind: self.call}
        return Problem(
            uncertainty=uncertainty, num_actions=simulator.num_actions, legal=simulator.legal, samples=samples,
            **form, **self.guides._asdict(),
        )  # fmt: skip

    @property
    def call(self) -> Any:
        """The function that the simulator is planned in by."""
        return getattr(self.simulator, self.simulator.kind)

    def _search(
        self,
        known: tuple[FittedUncertainty | None, Outcomes | None],
        key: jax.Array,
        state: PyTree,
        config: SearchConfig,
        memory: PyTree,
        horizon: jax.Array | None,
        previous: Graph | None,
        iterations: int,
    ) -> SearchResult:
        fitted, facts = known
        model: Any = self.simulator.step
        actions = self.simulator.num_actions
        uncertainty: Any = no_uncertainty if fitted is None else fitted.uncertainty(self.numbers, actions)
        if facts is not None:
            find = finder(facts, self.identity)
            model, uncertainty = patch_model(model, find), patch_uncertainty(uncertainty, find)
        config = replace(config, iterations=iterations)
        problem = self.problem(model, uncertainty, config.outcomes)
        return run_search(key, state, problem, config, memory, horizon, previous)

    def _predict(self, state: PyTree, action: jax.Array) -> tuple[Transition, jax.Array]:
        """The outcomes of a step, a transition over [C], and their probabilities; draws, if it can only `sample`."""
        problem = self.problem(self.simulator.step, no_uncertainty, DRAWS)
        return problem.outcomes_of(state, action, jnp.zeros(2, jnp.uint32), jnp.int32(0))

    def _walk(self, state: PyTree) -> tuple[PyTree, jax.Array, PyTree, jax.Array]:
        """Steps of random walks from a state: states before and after, actions, and whether the episode went on."""

        def one(here: PyTree, bits: jax.Array) -> tuple[PyTree, Any]:
            legal = self.simulator.legal
            allowed = jnp.ones(self.simulator.num_actions, bool) if legal is None else legal(here)
            action = pick(bits, allowed)
            after: Transition = jax.tree.map(jnp.asarray, self.call(here, action))
            going = ~after.terminal.astype(bool) & jnp.any(allowed)
            following = jax.tree.map(lambda new, old: jnp.where(going, new, old), after.state, state)
            return following, (here, action, after.state, going)

        words = jax.random.bits(jax.random.key(0), (TRIES,), jnp.uint32)
        steps: tuple[PyTree, jax.Array, PyTree, jax.Array] = jax.lax.scan(one, state, words)[1]
        return steps


def bytes_of(states: PyTree, place: int) -> bytes:
    """All of one state out of many."""
    return b"".join(np.asarray(leaf[place]).tobytes() for leaf in jax.tree.leaves(states))


programs = functools.lru_cache(maxsize=16)(Programs)
"""The programs of a simulator; those of the latest sixteen simulators are kept."""
