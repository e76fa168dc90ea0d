"""The mind for a simulator that somebody brings, in plain Python or in JAX."""

from __future__ import annotations

import functools
import json
import operator
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from uamcts import files, reference
from uamcts.doubt import Asked, Doubt
from uamcts.errors import SimulatorError
from uamcts.experience import Experience, Measure, Outcome, Report, Returns, judged
from uamcts.mcts.entry import no_uncertainty, raise_flags
from uamcts.mcts.problem import Problem
from uamcts.mcts.search import SearchResult, tree_search
from uamcts.memory import Facts, PatchedModel, no_transition, patched, undoubted
from uamcts.minds.mind import Pace, completed, formed
from uamcts.minds.states import as_json, from_json
from uamcts.simulator import JaxSimulator, PythonSimulator, flattened_jax, shown
from uamcts.types import PyTree, SearchConfig, Transition
from uamcts.uncertainty import Estimator
from uamcts.uncertainty.schedule import Schedule

UNLIMITED = 10**9
"""Iterations, where time is the limit."""


class PlainPlanner:
    """Plans in a Python simulator with the plain engine."""

    def __init__(self, simulator: PythonSimulator, budget_seconds: float | None, memory: bool):
        self.simulator, self.budget_seconds = simulator, budget_seconds
        self.patched = PatchedModel(simulator, simulator.key) if memory else None
        self.num_actions, self.name, self.action_names = simulator.num_actions, simulator.name, simulator.action_names
        self.asked: Asked | None = None
        self._probed = False

    def accept(self, state: Any, argument: str) -> Any:
        """A state of the simulator out of what the user gave."""
        state = self.simulator.accept(state)
        try:
            self.simulator.features(state)
        except SimulatorError as error:
            raise ValueError(f"{argument} is {shown(state)}; {error}") from None
        return state

    @property
    def remembers(self) -> bool:
        return self.patched is not None

    def believe(self, doubt: Doubt | None) -> None:
        """Plans with this doubt from now on."""
        known = None if self.patched is None else self.patched.knows
        self.asked = None if doubt is None else Asked(doubt, self.simulator, known)

    def remember(self, state: Any, action: int, following: Any, outcome: Outcome) -> None:
        """Plans with this transition as it really was, from now on, if there is a memory."""
        if self.patched is not None:
            assert outcome.reward is not None and outcome.terminal is not None  # noqa: S101, PT018 (completed before)
            self.patched.remember(state, action, following, outcome.reward, outcome.terminal)

    def facts(self) -> dict[str, np.ndarray]:
        """What is remembered, to be saved: JSON in bytes. States that JSON does not hold are left out."""
        held = {} if self.patched is None else self.patched.facts
        rows = [[as_json(key), action, as_json(fact[0]), *fact[1:]] for (key, action), fact in held.items()]
        text = json.dumps([row for row in rows if row[0] is not None and row[2] is not None])
        return {"facts": np.frombuffer(text.encode(), np.uint8)}

    def recall(self, arrays: dict[str, np.ndarray]) -> None:
        """Takes over what `facts` gave."""
        if self.patched is not None:
            rows = json.loads(arrays["facts"].tobytes().decode())
            self.patched.facts = {
                (from_json(key), action): (from_json(following), reward, terminal)
                for key, action, following, reward, terminal in rows
            }

    def plan(self, seed: int, number: int, state: Any, config: SearchConfig) -> reference.Result:
        budget = self.budget_seconds
        if not self._probed:
            steps = config.iterations * (self.num_actions + config.rollouts * config.depth)
            self.simulator.probe(state, steps, budget)
            self._probed = True
        before = self.simulator.features(state)
        if budget is not None:
            config = replace(config, iterations=UNLIMITED)
        rng = random.Random(f"{seed} {number}")  # noqa: S311 (planning, not secrets)
        try:
            model = self.simulator if self.patched is None else self.patched
            found = reference.search(rng, state, model, self.asked, config, budget)
        except SimulatorError:
            raise
        except (ValueError, TypeError) as error:  # a reward that is no number is met in a sum
            raise SimulatorError(f"{self.name}: {error}") from error
        if not np.array_equal(before, self.simulator.features(state)):
            raise SimulatorError(
                f"{self.name}: planning changed the state it started from (now {shown(state)}); step must return a new "
                "state and leave the old one alone"
            )
        return found

    def believed(self, state: Any, action: int) -> tuple[Any, Outcome]:
        following, reward, terminal = self.simulator.checked(state, action)
        return following, Outcome(self.simulator.features(following), reward, terminal)

    def features(self, state: Any) -> np.ndarray:
        return self.simulator.features(state)

    def inputs(self, state: Any) -> np.ndarray:
        return np.asarray(self.simulator.inputs(state), np.float32)


class Programs:
    """What is compiled for a JAX simulator; all agents that plan in it share it."""

    def __init__(self, simulator: JaxSimulator):
        self.simulator = simulator
        features = simulator.features or flattened_jax
        given = simulator.inputs or features
        self.features = jax.jit(lambda state: jnp.ravel(features(state)).astype(jnp.float32))
        self.numbers = lambda state: jnp.ravel(given(state)).astype(jnp.float32)
        self.inputs = jax.jit(self.numbers)
        self.step = jax.jit(simulator.step)
        self.put = jax.jit(lambda facts, state, action, real: facts.put(state, action, real))
        self.search = jax.jit(self._searched, static_argnames="iterations", donate_argnames="memory")

    def _searched(
        self,
        known: tuple[Doubt | None, Facts | None],
        key: jax.Array,
        state: PyTree,
        config: SearchConfig,
        memory: PyTree,
        iterations: int,
    ) -> SearchResult:
        doubt, facts = known
        model: Any = self.simulator.step
        actions = self.simulator.num_actions
        uncertainty: Any = no_uncertainty if doubt is None else doubt.uncertainty(self.numbers, actions)
        if facts is not None:
            model, uncertainty = patched(model, facts), undoubted(uncertainty, facts)
        config = replace(config, iterations=iterations)
        return tree_search(key, state, Problem(model, uncertainty, actions, self.simulator.legal), config, memory)


programs = functools.lru_cache(maxsize=16)(Programs)
"""The programs of a simulator; those of the latest few are kept."""


class CompiledPlanner:
    """Plans in a JAX simulator with the compiled search."""

    def __init__(self, simulator: JaxSimulator, budget_seconds: float | None, memory: bool):
        self.simulator = simulator
        example = jax.tree.map(jnp.asarray, simulator.example)
        self.known = Facts.empty(example, no_transition(example)) if memory else None
        self.num_actions, self.name, self.action_names = simulator.num_actions, simulator.name, simulator.action_names
        self.doubt: Doubt | None = None
        self._pace = None if budget_seconds is None else Pace(budget_seconds)
        self._memory: PyTree = None
        self._compiled = programs(simulator)

    def accept(self, state: Any, argument: str) -> PyTree:
        example = self.simulator.example
        remedy = f"a state of {self.name} looks like {shown(example)}"
        state = formed(state, example, argument, self.name, remedy)
        self._finite(state, argument)
        return state

    def _finite(self, state: PyTree, what: str) -> np.ndarray:
        numbers = np.asarray(self._compiled.features(state), np.float64)
        if not np.all(np.isfinite(numbers)):
            raise SimulatorError(
                f"{self.name}: the features of {what} are {shown(numbers.tolist())}; they must be finite numbers"
            )
        return numbers

    @property
    def remembers(self) -> bool:
        return self.known is not None

    def believe(self, doubt: Doubt | None) -> None:
        self.doubt = doubt
        uncertainty: Any = None if doubt is None else doubt.uncertainty(self._compiled.numbers, self.num_actions)
        self._memory = uncertainty.memory() if hasattr(uncertainty, "memory") else None

    def remember(self, state: PyTree, action: int, following: PyTree, outcome: Outcome) -> None:
        if self.known is not None:
            real = Transition(following, jnp.float32(outcome.reward), jnp.bool_(outcome.terminal))
            self.known = self._compiled.put(self.known.with_room(1), state, jnp.int32(action), real)

    def facts(self) -> dict[str, np.ndarray]:
        return {f"facts{number}": np.asarray(leaf) for number, leaf in enumerate(jax.tree.leaves(self.known))}

    def recall(self, arrays: dict[str, np.ndarray]) -> None:
        if self.known is not None:
            leaves, structure = jax.tree.flatten(self.known)
            self.known = jax.tree.unflatten(structure, [jnp.asarray(arrays[f"facts{n}"]) for n in range(len(leaves))])

    def plan(self, seed: int, number: int, state: PyTree, config: SearchConfig) -> SearchResult:
        key = jax.random.fold_in(jax.random.key(seed), number)

        def search(iterations: int) -> SearchResult:
            found = self._compiled.search((self.doubt, self.known), key, state, config, self._memory, iterations)
            self._memory = found.memory
            return found._replace(memory=None)

        found = search(config.iterations) if self._pace is None else self._pace.run(search)
        try:
            raise_flags(found)
        except ValueError as error:
            raise SimulatorError(f"{self.name}: {error}") from None
        return found

    def believed(self, state: PyTree, action: int) -> tuple[PyTree, Outcome]:
        following, reward, terminal = self._compiled.step(state, jnp.int32(action))
        features = self._finite(following, f"the state that action {action} leads to")
        return following, Outcome(features, float(reward), bool(terminal))

    def features(self, state: PyTree) -> np.ndarray:
        return np.asarray(self._compiled.features(state), np.float64)

    def inputs(self, state: PyTree) -> np.ndarray:
        return np.asarray(self._compiled.inputs(state))


def _span(config: SearchConfig) -> int:
    """How many steps a search looks ahead at most: down the tree, then a rollout."""
    return config.depth + min(config.iterations, config.tree_depth)


def _returns(config: SearchConfig) -> Returns:
    return Returns(float(config.gamma), config.depth, _span(config))


class Sample(NamedTuple):
    """A real transition beside what the simulator says of it."""

    state: Any
    action: int
    following: Any
    here: np.ndarray
    """The features of the state."""
    inputs: np.ndarray
    believed: Outcome
    real: Outcome
    own: float
    """What the user's own function says of the difference."""
    paid: tuple[float, bool]
    """Reward and end, as they are believed to be where they are not known."""


class SimulatorMind:
    """Learns where a simulator is wrong from all that was seen, and plans with that."""

    def __init__(
        self,
        planner: PlainPlanner | CompiledPlanner,
        estimator: str | Estimator,
        config: SearchConfig,
        schedule: Schedule | None,
        seed: int,
        minibatches: int,
        measure: Measure,
    ):
        self.planner, self.chosen, self.config, self.schedule = planner, estimator, config, schedule
        self.name, self.action_names = planner.name, planner.action_names
        self.seed, self.minibatches, self.measure = operator.index(seed), minibatches, measure
        self.experience = Experience()
        self.returns = _returns(config)
        self.doubt: Doubt | None = None
        self.tau = float(config.tau if schedule is None else schedule.start)
        self.steps, self.acts = 0, 0
        self.loss: float | None = None

    @property
    def estimator(self) -> Estimator | None:
        return None if self.doubt is None else self.doubt.estimator

    def act(self, state: Any) -> Any:
        state = self.planner.accept(state, "state")
        self.acts += 1
        config = replace(self.config, tau=self.tau)
        if config.worst is None:
            config = replace(config, worst=self._worst())
        return self.planner.plan(self.seed, self.acts, state, config)

    def _worst(self) -> float:
        """What is expected beyond a doubtful transition, never more than 0: as on average, or as badly as it ever went.

        It must lie below all that a search can find, else what is doubtful looks better than what is known to be bad.
        """
        steps, gamma = range(_span(self.config)), float(self.config.gamma)
        return min(self.returns.least, self.experience.mean_reward * sum(gamma**step for step in steps))

    def observe(self, state: Any, action: int, following: Any, reward: float | None, terminal: bool | None) -> bool:
        sample = self._compared(state, action, following, reward, terminal)
        self._keep(sample)
        self.returns.add(sample.here, sample.real.features, *sample.paid)
        self.steps += 1
        due = self.schedule is None or self.schedule.due(self.steps)
        return self.learn() if due else False

    def _compared(self, state: Any, action: int, following: Any, reward: float | None, terminal: bool | None) -> Sample:
        """One transition beside what the simulator says; whatever is wrong with it shows here, and nothing is kept."""
        state, following = self.planner.accept(state, "state"), self.planner.accept(following, "next_state")
        if not 0 <= action < self.planner.num_actions:
            raise ValueError(f"action is {action}; {self.name} has the actions 0 to {self.planner.num_actions - 1}")
        if reward is not None and not np.isfinite(reward):
            raise ValueError(f"reward is {reward!r}; it must be a finite number, or None if it is not known")
        after, believed = self.planner.believed(state, action)
        here = self.planner.features(state)
        self._same(here, action, believed)
        own = np.nan
        if self.measure.own is not None:
            own = float(self.measure.own(following, after))
            if not 0 <= own < np.inf:
                raise ValueError(f"discrepancy returned {own!r}; it must be a finite number of at least 0")
        real = Outcome(self.planner.features(following), reward, terminal)
        paid = believed.reward if reward is None else float(reward)
        over = believed.terminal if terminal is None else bool(terminal)
        assert paid is not None and over is not None  # noqa: S101, PT018 (a simulator says both)
        inputs = self.planner.inputs(state)
        return Sample(state, int(action), following, here, inputs, believed, real, own, (paid, over))

    def _keep(self, sample: Sample) -> None:
        """Learns from it later, and plans with it if there is a memory."""
        self.experience.add(sample.here, sample.inputs, sample.action, sample.believed, sample.real, sample.own)
        outcome = Outcome(sample.real.features, *sample.paid)
        self.planner.remember(sample.state, sample.action, sample.following, outcome)

    def _same(self, features: np.ndarray, action: int, believed: Outcome) -> None:
        """Refuses a simulator that says another thing of a transition than it did before."""
        before = self.experience.believed(features, action)
        if before is not None and (not np.array_equal(before[0], believed[0]) or before[1:] != believed[1:]):
            raise SimulatorError(
                f"{self.name}: the same step gave two results (features {shown(features.tolist())}, action {action}: "
                f"{shown(before)} and now {shown(believed)}); a simulator to plan with must be deterministic and must "
                "not remember what it was asked"
            )

    def learn(self) -> bool:
        """Fits doubt anew; tau goes down if there is a schedule."""
        self._fit()
        if self.schedule is not None:
            self.tau = float(self.schedule.decayed(jnp.float32(self.tau)))
        return True

    def _fit(self) -> None:
        key = jax.random.fold_in(jax.random.key(self.seed), 0)
        self.doubt = Doubt.fitted(
            self.chosen, self.experience, self.measure, key, self.planner.num_actions,
            self.minibatches, self.config,
        )  # fmt: skip
        self.planner.believe(self.doubt)

    def seed_with(self, samples: Iterable[tuple]) -> int:
        """Takes in what is known already; all of it or nothing."""
        known = [self._compared(*completed(number, sample)) for number, sample in enumerate(samples)]
        for sample in known:
            self._keep(sample)
        self._fit()
        return len(known)

    def report(self, most: int) -> Report:
        return judged(self.experience, self.measure, self._predicted, most, self.steps, self.action_names)

    def _predicted(self, places: np.ndarray) -> np.ndarray:
        if self.doubt is None:
            return np.zeros(len(places))
        ask: Callable = self.doubt
        rows = self.experience.rows
        return np.array([float(ask(jnp.asarray(rows["inputs"][p]), jnp.int32(rows["action"][p]))) for p in places])

    def save(self, path: Any) -> None:
        counters = {"steps": np.int64(self.steps), "acts": np.int64(self.acts), "tau": np.float64(self.tau)}
        counters["least"] = np.float64(self.returns.least)
        files.save(path, {**self.experience.arrays(), **counters, **self.planner.facts()}, "agent", self._about())

    def load(self, path: Any) -> None:
        arrays = {name[2:-2]: array for name, array in files.read(path, "agent", self._about()).items()}
        steps, acts, tau = (arrays.pop(name, None) for name in ("steps", "acts", "tau"))
        if steps is None or acts is None or tau is None:
            raise ValueError(f"{path} does not fit: it holds no counters; it is not the file of such an agent")
        least = arrays.pop("least", np.float64(0.0))
        facts = {name: arrays.pop(name) for name in list(arrays) if name.startswith("facts")}
        experience = Experience.of(arrays)
        self.planner.recall(facts)
        self.experience, self.steps, self.acts, self.tau = experience, int(steps), int(acts), float(tau)
        self.returns = _returns(self.config)
        self.returns.least = float(least)
        self._fit()

    def _about(self) -> dict[str, Any]:
        estimator = self.chosen if isinstance(self.chosen, str) else type(self.chosen).__name__
        about = {"simulator": self.name, "actions": self.planner.num_actions, "estimator": estimator}
        return {**about, "memory": self.planner.remembers}
