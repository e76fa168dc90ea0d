"""How an agent plans in a JAX simulator: with the compiled search, corrections and facts."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.agent.backend import Guides, IterationBudget
from uamcts.agent.compiled_facts import SEEN, Believed, CompiledFacts, FactTable
from uamcts.agent.compiled_files import pack_facts, pack_raw, unpack_facts, unpack_raw
from uamcts.agent.compiled_model import CompiledModel, Prepared
from uamcts.agent.compiled_programs import Known, bytes_of
from uamcts.agent.compiled_trials import ROWS, CompiledTrials, all_seen
from uamcts.agent.experience import Experience
from uamcts.agent.jax_simulator import JaxSimulator
from uamcts.agent.measure import Measure
from uamcts.agent.plain_uncertainty import Fitted
from uamcts.agent.simulator_probe import StepCounter, Tried
from uamcts.arguments import refuse_beyond_memory, search_bytes
from uamcts.corrections.doubt import Doubt
from uamcts.corrections.journal import Journal
from uamcts.corrections.mixture import Mixture
from uamcts.corrections.python_facts import Recurrence
from uamcts.errors import SimulatorError
from uamcts.mcts.api import raise_flags
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.following import steps_ahead
from uamcts.mcts.graph.graph import Graph, compiled_empty_graph, graph_bytes
from uamcts.mcts.search import SearchResult
from uamcts.types import PyTree


class CompiledPlanner(CompiledModel):
    """Plans in a JAX simulator with the compiled search."""

    def __init__(self, simulator: JaxSimulator, budget_seconds: float | None, memory: int, guides: Guides):
        super().__init__(simulator, guides)
        self.num_actions, self.action_names, self._most_facts = simulator.num_actions, simulator.action_names, memory
        self.tried = Tried()
        self._probed = self._revisited = self._used_facts = self._loaded = False
        """The last one: whether facts come from a file, and were compared with the variant that is about to be used."""
        self.patched = self._no_facts() if memory else None
        self._table = FactTable(self._example, self._compiled.identity)
        self.uncertainty: Fitted | None = None
        self._budget = None if budget_seconds is None else IterationBudget(budget_seconds)
        self._memory: PyTree = None

    def _no_facts(self) -> CompiledFacts:
        model = Believed(self.simulator.kind, self.num_actions, self._possible)
        return CompiledFacts(model, self.key, self._most_facts)

    def _possible(self, state: PyTree, action: int) -> list[tuple[float, tuple[Hashable, float, bool]]]:
        """The outcomes that the simulator holds possible, by the keys of their states."""
        found = self._answer(state, action, self._believed)
        rows = zip(found.chances.tolist(), found.keys, found.rewards.tolist(), found.ends.tolist(), strict=True)
        return [(chance, (key, reward, over)) for chance, key, reward, over in rows]

    def twin(self, journal: Journal) -> CompiledPlanner:
        """A copy that goes on by itself, as long as every change of its tables is written to the journal."""
        twin = copy.copy(self)
        if self.patched is not None:
            twin.patched = self.patched.twin()
            twin.patched.journal = journal
        return twin

    def use(self, variant: Prepared, drifting: bool = False) -> None:
        """Plans in this variant of the simulator from now on; facts are compared with it, unless it drifts."""
        facts = self.patched
        if facts is not None and facts.drifting != drifting:
            facts.drifting, facts.dirty = drifting, {*facts.dirty, *facts.facts}
        if facts is not None and facts.kind != "step":
            facts.use_corrections(variant is not self._believed)
        known = drifting or self._loaded or variant is self._variant
        if facts is not None and self.deterministic and not known:
            latest = facts.latest()
            rows = [(fact.state, place[1], fact.state) for place, fact in latest]
            found = [row for chunk in self._chunks(rows, variant) for row in zip(*chunk[2:], strict=True)]
            for (place, _), (reward, over, words) in zip(latest, found, strict=True):
                facts.judge(place, (words.tobytes(), float(reward), bool(over)))
        self._variant, self._loaded = variant, False

    def trials(
        self, raw: Sequence[Any], experience: Experience, rows: Sequence[int], measure: Measure, floor: float,
        latest: bool = False,
    ) -> CompiledTrials:  # fmt: skip
        """The latest transitions, for fits of parameters; of a random world with all that was seen of each."""
        found = [(one, experience.outcome("real", row), 1) for one, row in zip(raw, rows, strict=True)]
        if not self.deterministic and not latest:
            times = experience.column("times")[rows].tolist()
            found = [seen for row, most in zip(found, times, strict=True) for seen in all_seen(self, *row[:2], most)]
        found = found[-ROWS:]
        seen, outcomes = [one[0] for one in found], [one[1] for one in found]
        scales = experience.scales
        times_seen = np.array([one[2] for one in found], float)
        return CompiledTrials(
            self._compiled, self._parameters, seen, outcomes, measure, scales, floor, times_seen
        )  # fmt: skip

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
        own = self._compiled.problem(Known(self._believed.arrays), config.outcomes).slots(self._example)
        return own + (SEEN if self._used_facts and self._lists_outcomes else 0)

    @property
    def _lists_outcomes(self) -> bool:
        """Whether facts are planned with as a list of outcomes."""
        return self.simulator.kind == "outcomes" or self._varied

    @property
    def _varied(self) -> bool:
        """Whether facts about a deterministic simulator have several outcomes."""
        return self.patched is not None and self.patched.varied

    def probe(self, state: PyTree, config: SearchConfig) -> None:
        """Finds out whether states recur, and what steps pay. As a compiled simulator is pure, nothing is checked."""
        if self._probed or not config.reads("doubt_threshold"):
            return
        before, actions, after, rewards, going = jax.device_get(self._compiled.walk(self._believed.arrays, state))
        self._probed, counter = True, StepCounter(bytes_of(before, 0))
        for number, (action, reward, goes_on) in enumerate(zip(actions, rewards, going, strict=True)):
            places = bytes_of(before, number), int(action), bytes_of(after, number)
            counter.add(*places, float(reward), not goes_on)
        self.tried = counter.found

    @property
    def remembers(self) -> bool:
        return self.patched is not None

    def recurrence(self) -> Recurrence | None:
        return None if self.patched is None else self.patched.recurrence()

    def set_uncertainty(self, fitted: Fitted | None) -> None:
        """Plans with this uncertainty from now on."""
        fitted = fitted.trim() if isinstance(fitted, Doubt) else fitted
        self.uncertainty = None if fitted is None else jax.tree.map(jnp.asarray, fitted)
        self._memory = self._fresh_memory()

    def _fresh_memory(self) -> PyTree:
        fitted, numbers = self.uncertainty, self._compiled.numbers
        uncertainty: Any = None if fitted is None else fitted.uncertainty(numbers, self.num_actions)
        return uncertainty.empty_cache() if hasattr(uncertainty, "empty_cache") else None

    def remember(self, state: PyTree, action: int, following: PyTree, reward: float, terminal: bool) -> bool:
        """Adds a fact, if there is a memory. Returns whether searches plan with something else from now on."""
        facts = self.patched
        if facts is None:
            return False
        self._revisited |= self._has_acted_in(state)
        key, before, renewals = self.key(following), facts.plans_with(state, action), facts.renewals
        if not self.deterministic:
            possible = [after for chance, after in self._possible(state, action) if chance > 0]
            facts.remember(state, action, following, reward, terminal, agrees=True)
            seen = [] if before is None else [(self.key(after), end) for _, (after, _, end) in before.seen]
            return facts.renewals != renewals or (key, terminal) not in [*((to, end) for to, _, end in possible), *seen]
        said = self._answer(state, action, self._variant)
        believed = (said.keys[0], float(said.rewards[0]), bool(said.ends[0]))
        new = (key, reward, terminal)
        old = believed if before is None else before
        if before is not None and not isinstance(before, Mixture):
            old = (self.key(before[0]), *before[1:])
        facts.remember(state, action, following, reward, terminal, agrees=believed == new)
        planned = facts.plans_with(state, action)
        if isinstance(old, Mixture) or isinstance(planned, Mixture) or facts.renewals != renewals:
            return True
        return planned is not None and old != (self.key(planned[0]), *planned[1:])

    def _has_acted_in(self, state: PyTree) -> bool:
        """Whether there is a fact about any action in a state."""
        key = self.key(state)
        facts = {} if self.patched is None else self.patched.facts
        return any((key, action) in facts for action in range(self.num_actions))

    def forget_nodes(self, plan: SearchResult, state: PyTree | None) -> bool:
        """The compiled graph is not changed in place."""
        return False

    def facts(self) -> dict[str, np.ndarray]:
        """The facts, to be saved."""
        return pack_facts(self.patched, self._example)

    def load_facts(self, arrays: dict[str, np.ndarray]) -> None:
        """Restores what `facts` returned."""
        fresh = None if self.patched is None else self._no_facts()
        unpack_facts(arrays, fresh, self._example, self.num_actions)
        self.patched, self._loaded = fresh, True
        self._table.reset()

    def settle(self) -> None:
        """Drops what a loaded planner does not have: once facts were dropped, another table holds others."""
        self._table.reset()

    def progress(self) -> list[int]:
        """What was tried, to be saved."""
        known, steps, survival = self.tried
        return [known, steps, int(self._revisited), int(self._probed), int(survival)]

    def restore_progress(self, found: list[int]) -> None:
        """Restores what `progress` returned."""
        known, steps, revisited, probed, *survival = found
        self.tried = Tried(known, steps, any(survival))
        self._revisited, self._probed = bool(revisited), bool(probed)

    def raw(self, experience: Experience) -> dict[str, np.ndarray]:
        """The raw transitions of an experience, to be saved."""
        return pack_raw(experience.raw[: experience.count], self._example)

    def load_raw(self, arrays: dict[str, np.ndarray], experience: Experience) -> None:
        """Restores what `raw` returned."""
        raw = unpack_raw(arrays, self._example, self.num_actions, experience.count)
        experience.raw[: experience.count] = raw

    def read_raw(self, experience: Experience) -> None:
        """Nothing: the form of states is known from the start."""

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
        facts, previous = self._facts_for(state, previous)
        known = Known(self._variant.arrays, self.uncertainty, facts)

        def search(iterations: int) -> SearchResult:
            before: Graph | jax.Array | None = None
            if config.graph:
                before = self._graph_before(state, config, iterations, previous)
            elif config.follows:
                before = self._sequence_before(replace(config, iterations=iterations), previous)
            found: SearchResult = self._compiled.search(
                known, key, state, config, self._memory, left, before, iterations, self._varied and self._used_facts
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

    def _facts_for(self, state: PyTree, previous: SearchResult | None) -> tuple[Any, SearchResult | None]:
        """The table of facts, and the search to go on from.

        Where no state is ever met again, as with real numbers, or where nothing is doubted and no fact says anything
        else than the model, looking facts up would only take time.
        """
        before = self._used_facts
        recur = not self._probed or self.tried.recurs or self._revisited or self._has_acted_in(state)
        self._revisited |= self._probed and recur
        needed = self.patched is not None and (self.uncertainty is not None or self.patched.needed)
        self._used_facts = needed and recur
        if self.patched is None or not self._used_facts:
            return None, previous
        wide = SEEN if self._varied or not self.deterministic else 1
        return self._table.sync(self.patched, wide), previous if before else None

    def _sequence_before(self, config: SearchConfig, previous: SearchResult | None) -> jax.Array:
        """The sequence of actions to go on from: none of the same length if there is none, for the same reason."""
        steps = steps_ahead(config, self.num_actions)
        if previous is not None and previous.sequence is not None and previous.sequence.size == steps:
            return previous.sequence
        return jnp.full(steps, -1, jnp.int32)

    def _graph_before(
        self, state: PyTree, config: SearchConfig, iterations: int, previous: SearchResult | None
    ) -> Graph:
        """The graph to go on from: an empty one of the same size if there is none, so that one program serves both."""
        rows = 2 * iterations
        if previous is not None and isinstance(previous.tree, Graph) and previous.tree.owner.size == rows:
            return previous.tree
        has_prior = self._compiled.guides.prior is not None
        fresh: Graph = compiled_empty_graph(state, config, rows, self.num_actions, self._slots(config), has_prior)
        return fresh
