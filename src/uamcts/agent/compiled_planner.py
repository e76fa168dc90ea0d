"""How an agent plans in a JAX simulator: with the compiled search, and with facts."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.agent import checkpoint
from uamcts.agent.backend import Guides, IterationBudget, match_structure
from uamcts.agent.chance import RealOutcome, matching_outcome
from uamcts.agent.compiled_programs import Programs, bytes_of, programs
from uamcts.agent.experience import Outcome
from uamcts.agent.fitted_uncertainty import FittedUncertainty
from uamcts.agent.jax_simulator import JaxSimulator
from uamcts.agent.simulator_probe import Recurrence as StateRecurrence
from uamcts.agent.simulator_probe import StateCounter, difference_message
from uamcts.arguments import LARGEST, flag, real, refuse_beyond_memory, search_bytes, shown
from uamcts.corrections.facts import Outcomes, Recurrence
from uamcts.errors import SimulatorError
from uamcts.mcts.api import no_uncertainty, raise_flags
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.graph.graph import Graph, empty_graph, graph_bytes
from uamcts.mcts.search import SearchResult
from uamcts.types import PyTree, Transition


class CompiledPlanner:
    """Plans in a JAX simulator with the compiled search."""

    def __init__(self, simulator: JaxSimulator, budget_seconds: float | None, memory: bool, guides: Guides):
        self.simulator = simulator
        self.must_share = simulator.kind != "step" or guides.value is not None or guides.prior is not None
        """Whether it searches graphs by default, whether or not states recur: it is random, or has a value or prior."""
        self.state_recurrence = StateRecurrence()
        self._probed = False
        self.num_actions, self.name, self.action_names = simulator.num_actions, simulator.name, simulator.action_names
        try:
            self._compiled = programs(simulator, guides)
        except TypeError:  # a policy, value or prior that cannot be hashed
            self._compiled = Programs(simulator, guides)
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
            if config.graph:
                needed = graph_bytes(self.simulator.example, config, self.num_actions, self._slots(config))
            refuse_beyond_memory(needed, what, "give fewer iterations or rollouts, or budget_seconds=...")

    def _slots(self, config: SearchConfig) -> int:
        """How many outcomes an action has in a search."""
        example = jax.tree.map(jnp.asarray, self.simulator.example)
        return self._compiled.problem(self.simulator.step, no_uncertainty, config.outcomes).slots(example)

    def accept(self, state: Any, argument: str) -> PyTree:
        example = self.simulator.example
        remedy = f"a state of {self.name} looks like {shown(example)}"
        state = match_structure(state, example, argument, self.name, remedy)
        self._finite(state, argument)
        return state

    def probe(self, state: PyTree, config: SearchConfig) -> None:
        """Finds out whether states recur. A compiled simulator is a pure function: there is nothing else to check."""
        if self._probed or self.must_share or not config.reads("doubt_threshold"):
            return
        before, actions, after, going = jax.device_get(self._compiled.walk(state))
        self._probed, counter = True, StateCounter(bytes_of(before, 0))
        for number in np.flatnonzero(going).tolist():
            counter.add(bytes_of(before, number), int(actions[number]), bytes_of(after, number))
        self.state_recurrence = counter.found

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
        return uncertainty.empty_cache() if hasattr(uncertainty, "empty_cache") else None

    def remember(self, state: PyTree, action: int, following: PyTree, reward: float, terminal: bool) -> bool:
        """Adds a fact, if there is a memory. Returns whether searches plan with something else from now on."""
        if self.outcomes is None:
            return False
        before, known = self._compiled.find(self.outcomes, state, jnp.int32(action))
        if not known:
            before = jax.tree.map(lambda leaf: leaf[0], self._compiled.predict(state, jnp.int32(action))[0])
        real = Transition(following, jnp.float32(reward), jnp.bool_(terminal))
        self.outcomes = self._compiled.put(self.outcomes.reserve(1), state, jnp.int32(action), real)
        after, _ = self._compiled.find(self.outcomes, state, jnp.int32(action))
        pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
        return any(bool(jnp.any(jnp.asarray(old) != new)) for old, new in pairs)

    def forget_node(self, plan: SearchResult, state: PyTree) -> bool:
        """The compiled graph is not changed in place."""
        return False

    def facts(self) -> PyTree:
        return self.outcomes

    def load_facts(self, arrays: dict[str, np.ndarray]) -> None:
        self.outcomes = checkpoint.fill("it", self.outcomes, arrays)
        self._answers = {}

    def plan(
        self,
        seed: int,
        number: int,
        state: PyTree,
        config: SearchConfig,
        horizon: int | None = None,
        previous: SearchResult | None = None,
    ) -> SearchResult:
        key = jax.random.fold_in(jax.random.key(seed), number)
        left = None if horizon is None else jnp.int32(horizon)

        def search(iterations: int) -> SearchResult:
            before = self._graph_before(state, config, iterations, previous) if config.graph else None
            found: SearchResult = self._compiled.search(
                (self.uncertainty, self.outcomes), key, state, config, self._memory, left, before, iterations
            )
            self._memory = found.cache
            return found._replace(cache=None)

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

    def _graph_before(
        self, state: PyTree, config: SearchConfig, iterations: int, previous: SearchResult | None
    ) -> Graph:
        """The graph to go on from: an empty one of the same size if there is none, so that one program serves both."""
        rows = 2 * iterations
        if previous is not None and isinstance(previous.tree, Graph) and previous.tree.owner.size == rows:
            return previous.tree
        has_prior = self._compiled.guides.prior is not None
        return empty_graph(state, config, rows, self.num_actions, self._slots(config), has_prior)

    def predict(self, state: PyTree, action: int, actual: RealOutcome) -> tuple[PyTree, Outcome]:
        """What the simulator predicts for a transition: if it is random, what matches the real outcome best."""
        after, probabilities = self._compiled.predict(state, jnp.int32(action))
        found = [self._check(jax.tree.map(lambda leaf, row=row: leaf[row], after), action)
                 for row in np.flatnonzero(np.asarray(probabilities) > 0)]  # fmt: skip
        if not found:
            raise SimulatorError(
                f"{self.name}: outcomes gives action {action} the probabilities {np.asarray(probabilities).tolist()}; "
                "at least one must be above 0, and they must sum to 1"
            )
        if self.simulator.kind != "step":
            said = matching_outcome(actual, found, self.features, self.key, self.simulator.kind == "sample")
            return said[0], Outcome(self.features(said[0]), *said[1:])
        said = found[0]
        before = self._answers.setdefault((self.key(state), action), said)
        if before[1:] != said[1:] or self.key(before[0]) != self.key(said[0]):
            raise SimulatorError(difference_message("step", self.name, state, action, before, said))
        return said[0], Outcome(self.features(said[0]), *said[1:])

    def _check(self, outcome: Transition, action: int) -> tuple[PyTree, float, bool]:
        """An outcome whose numbers were checked."""
        following, reward, terminal = outcome
        self._finite(following, f"the state that action {action} leads to")
        try:
            paid = real(f"{self.name}: the reward", reward)
            over = flag(f"{self.name}: terminal", np.asarray(terminal).astype(bool))
        except ValueError as error:
            raise SimulatorError(str(error)) from None
        return following, paid, over

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
