"""How an agent plans in a JAX simulator: with the compiled search, and with facts."""

from __future__ import annotations

import copy
import functools
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.agent import checkpoint
from uamcts.agent.backend import IterationBudget, match_structure
from uamcts.agent.experience import Outcome
from uamcts.agent.fitted_uncertainty import FittedUncertainty
from uamcts.agent.jax_simulator import JaxSimulator
from uamcts.agent.python_simulator import flatten_jax, randomness_message
from uamcts.arguments import LARGEST, flag, real, refuse_beyond_memory, search_bytes, shown
from uamcts.corrections.facts import Outcomes, Recurrence, finder, identity_of, patch_model, patch_uncertainty
from uamcts.errors import SimulatorError
from uamcts.mcts.api import no_uncertainty, raise_flags
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.problem import Problem
from uamcts.mcts.search import SearchResult, tree_search
from uamcts.types import PyTree, Transition


class Programs:
    """The compiled functions of a JAX simulator; all agents that plan in it share them."""

    def __init__(self, simulator: JaxSimulator):
        self.simulator = simulator
        features = simulator.features or flatten_jax
        given = simulator.inputs or features
        self.identity = identity_of(simulator)
        self.features = jax.jit(lambda state: jnp.ravel(features(state)).astype(jnp.float32))
        self.numbers = lambda state: jnp.ravel(given(state)).astype(jnp.float32)
        self.inputs = jax.jit(self.numbers)
        self.step = jax.jit(simulator.step)
        self.identify = jax.jit(self.identity)
        self.put = jax.jit(
            lambda facts, state, action, real: facts.put(self.identity(state), action, real, self.identity(real.state))
        )
        self.search = jax.jit(self._search, static_argnames="iterations", donate_argnames="memory")

    def _search(
        self,
        known: tuple[FittedUncertainty | None, Outcomes | None],
        key: jax.Array,
        state: PyTree,
        config: SearchConfig,
        memory: PyTree,
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
        return tree_search(key, state, Problem(model, uncertainty, actions, self.simulator.legal), config, memory)


programs = functools.lru_cache(maxsize=16)(Programs)
"""The programs of a simulator; those of the latest sixteen simulators are kept."""


class CompiledPlanner:
    """Plans in a JAX simulator with the compiled search."""

    def __init__(self, simulator: JaxSimulator, budget_seconds: float | None, memory: bool):
        self.simulator = simulator
        self.num_actions, self.name, self.action_names = simulator.num_actions, simulator.name, simulator.action_names
        self._compiled = programs(simulator)
        self.outcomes = self._no_facts() if memory else None
        self.uncertainty: FittedUncertainty | None = None
        self._budget = None if budget_seconds is None else IterationBudget(budget_seconds)
        self._memory: PyTree = None
        self._answers: dict[tuple[Hashable, int], tuple[Any, float, bool]] = {}

    def _no_facts(self) -> Outcomes:
        example = jax.tree.map(jnp.asarray, self.simulator.example)
        return Outcomes.empty(example, identity=self._compiled.identity(example))

    def twin(self) -> CompiledPlanner:
        """A copy that learns on its own."""
        twin = copy.copy(self)
        twin._answers = dict(self._answers)
        return twin

    def check(self, config: SearchConfig) -> None:
        """Refuses settings with which no search could ever run."""
        if self._budget is None:
            what = f"a search of {config.iterations:,} iterations and {config.rollouts:,} rollouts"
            needed = search_bytes(self.simulator.example, config, self.num_actions)
            refuse_beyond_memory(needed, what, "give fewer iterations or rollouts, or budget_seconds=...")

    def accept(self, state: Any, argument: str) -> PyTree:
        example = self.simulator.example
        remedy = f"a state of {self.name} looks like {shown(example)}"
        state = match_structure(state, example, argument, self.name, remedy)
        self._finite(state, argument)
        return state

    def probe(self, state: PyTree, config: SearchConfig) -> None:
        """A compiled simulator is a pure function: there is nothing to check."""

    def _finite(self, state: PyTree, what: str) -> np.ndarray:
        for name, compute in (("features", self._compiled.features), ("inputs", self._compiled.inputs)):
            numbers = np.asarray(compute(state), np.float64)
            if not np.all(np.abs(numbers) <= LARGEST):
                raise SimulatorError(
                    f"{self.name}: the {name} of {what} are {shown(numbers.tolist())}; they must be finite numbers"
                )
        return self.features(state)

    @property
    def remembers(self) -> bool:
        return self.outcomes is not None

    def recurrence(self) -> Recurrence | None:
        return None if self.outcomes is None else self.outcomes.recurrence()

    def set_uncertainty(self, fitted: FittedUncertainty | None) -> None:
        self.uncertainty = fitted
        self._memory = self._fresh_memory()

    def _fresh_memory(self) -> PyTree:
        fitted = self.uncertainty
        uncertainty: Any = None if fitted is None else fitted.uncertainty(self._compiled.numbers, self.num_actions)
        return uncertainty.memory() if hasattr(uncertainty, "memory") else None

    def remember(self, state: PyTree, action: int, following: PyTree, reward: float, terminal: bool) -> None:
        if self.outcomes is not None:
            real = Transition(following, jnp.float32(reward), jnp.bool_(terminal))
            self.outcomes = self._compiled.put(self.outcomes.reserve(1), state, jnp.int32(action), real)

    def facts(self) -> PyTree:
        return self.outcomes

    def load_facts(self, arrays: dict[str, np.ndarray]) -> None:
        self.outcomes = checkpoint.fill("it", self.outcomes, arrays)
        self._answers = {}

    def plan(self, seed: int, number: int, state: PyTree, config: SearchConfig) -> SearchResult:
        key = jax.random.fold_in(jax.random.key(seed), number)

        def search(iterations: int) -> SearchResult:
            found: SearchResult = self._compiled.search(
                (self.uncertainty, self.outcomes), key, state, config, self._memory, iterations
            )
            self._memory = found.memory
            return found._replace(memory=None)

        try:
            found = search(config.iterations) if self._budget is None else self._budget.run(search)
        except BaseException:
            self._memory = self._fresh_memory()  # the old one was donated to the search that failed
            raise
        try:
            raise_flags(found)
        except ValueError as error:
            raise SimulatorError(f"{self.name}: {error}") from None
        return found

    def predict(self, state: PyTree, action: int) -> tuple[PyTree, Outcome]:
        following, reward, terminal = self._compiled.step(state, jnp.int32(action))
        features = self._finite(following, f"the state that action {action} leads to")
        try:
            paid = real(f"{self.name}: the reward", reward)
            over = flag(f"{self.name}: terminal", np.asarray(terminal).astype(bool))
        except ValueError as error:
            raise SimulatorError(str(error)) from None
        said = (following, paid, over)
        before = self._answers.setdefault((self.key(state), action), said)
        if before[1:] != said[1:] or self.key(before[0]) != self.key(following):
            raise SimulatorError(randomness_message(self.name, state, action, before, said))
        return following, Outcome(features, paid, over)

    def key(self, state: PyTree) -> Hashable:
        leaves = jax.tree.leaves(self._compiled.identify(state))
        return b"".join(np.asarray(leaf).tobytes() for leaf in leaves)

    def sizes(self) -> dict[str, int]:
        """How many features and inputs a state has."""
        example = jax.tree.map(jnp.asarray, self.simulator.example)
        return {"features": self.features(example).size, "inputs": self.inputs(example).size}

    def features(self, state: PyTree) -> np.ndarray:
        return np.asarray(self._compiled.features(state), np.float64)

    def inputs(self, state: PyTree) -> np.ndarray:
        return np.asarray(self._compiled.inputs(state))
