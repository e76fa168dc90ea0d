"""How an agent plans in a Python simulator: with the plain engine, and with facts."""

from __future__ import annotations

import copy
import json
import random
import warnings
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from uamcts import reference
from uamcts.agent.backend import Guides
from uamcts.agent.chance import RealOutcome, matching_outcome
from uamcts.agent.experience import Outcome
from uamcts.agent.fitted_uncertainty import CachedUncertainty, FittedUncertainty
from uamcts.agent.python_simulator import PythonSimulator
from uamcts.agent.simulator_probe import Probe, place_of
from uamcts.agent.simulator_probe import Recurrence as StateRecurrence
from uamcts.agent.states import UnknownType, as_json, from_json
from uamcts.arguments import flag, integer, real, refuse_beyond_memory, shown
from uamcts.corrections.facts import Recurrence
from uamcts.corrections.mixture import predicted_outcomes
from uamcts.corrections.patched_model import OutcomeCount, PatchedModel
from uamcts.errors import SimulatorError
from uamcts.mcts.config import SearchConfig

UNLIMITED = 10**9
"""Iterations, where time is the limit."""
NODE, WALK = 500, 200
"""Bytes of a node of the plain engine, and of a rollout, about."""
MOST_KEPT = 20
"""A graph that has grown to so many times the iterations of a search is not gone on from: it would grow for ever."""


class PlainPlanner:
    """Plans in a Python simulator with the plain engine."""

    must_share = False
    """Whether it searches graphs by default, whether or not states recur."""

    def __init__(self, simulator: PythonSimulator, budget_seconds: float | None, memory: bool, guides: Guides):
        self.simulator, self.budget_seconds, self.guides = simulator, budget_seconds, guides
        if simulator.continuous:
            simulator.policy = guides.policy
        self.state_recurrence = StateRecurrence()
        """What the probe has found out about states."""
        self._probe = Probe(simulator)
        self.patched = PatchedModel(simulator, simulator.key) if memory else None
        self.num_actions, self.name, self.action_names = simulator.num_actions, simulator.name, simulator.action_names
        self.uncertainty: CachedUncertainty | None = None
        self._probed = False
        self._answers: dict[tuple[Hashable, Hashable], tuple[Any, float, bool]] = {}
        self._waiting: list[Any] = []
        self._sizes: dict[str, int] = {}

    def twin(self) -> PlainPlanner:
        """A copy that learns on its own."""
        twin = copy.copy(self)
        twin._answers, twin._waiting = dict(self._answers), list(self._waiting)
        if self.patched is not None:
            twin.patched = self.patched.twin()
        twin.uncertainty = copy.copy(self.uncertainty)
        if twin.uncertainty is not None and twin.patched is not None:
            twin.uncertainty.known = twin.patched.knows
        return twin

    def check(self, config: SearchConfig) -> None:
        """Refuses settings with which no search would ever finish."""
        if self.budget_seconds is None:
            needed = config.iterations * (self.num_actions or 1) * NODE + config.rollouts * WALK
            what = f"a search of {config.iterations:,} iterations and {config.rollouts:,} rollouts"
            refuse_beyond_memory(needed, what, "give fewer iterations or rollouts, or budget_seconds=...")

    def accept(self, state: Any, argument: str) -> Any:
        """Turns what the user gave into a state of the simulator."""
        state = self.simulator.accept(state)
        try:
            self.simulator.features(state)
            self.simulator.key(state)
        except SimulatorError as error:
            raise ValueError(f"{argument} is {shown(state)}; {error}") from None
        if self._waiting and self.patched is not None:
            self._waiting = [row for row in self._waiting if not self._restore_fact(row)]
        return state

    def probe(self, state: Any, config: SearchConfig) -> None:
        """Checks the simulator before it is used for the first time."""
        if not self._probed:
            steps = config.iterations * ((self.num_actions or 1) + config.rollouts * config.depth)
            self.state_recurrence = self._probe.run(state, config.depth, steps, self.budget_seconds)
            self._probed, self._sizes = True, self._sizes_of(state)

    @property
    def remembers(self) -> bool:
        return self.patched is not None

    def recurrence(self) -> Recurrence | None:
        return None if self.patched is None else self.patched.recurrence()

    def set_uncertainty(self, fitted: FittedUncertainty | None) -> None:
        """Plans with this uncertainty from now on."""
        known = None if self.patched is None else self.patched.knows
        self.uncertainty = None if fitted is None else CachedUncertainty(fitted, self.simulator, known)

    def remember(self, state: Any, action: int, following: Any, reward: float, terminal: bool) -> bool:
        """Adds a fact, if there is a memory. Returns whether searches plan with something else from now on."""
        if self.patched is None:
            return False
        before = self.patched.plans_with(state, action)
        self.patched.remember(state, action, following, reward, terminal)
        if self.patched.kind != "step":
            return True
        old = self._answers[self.key(state), place_of(action)] if before is None else before  # `predict` came first
        new = self.patched.step(state, action)
        return bool(old[1:] != new[1:] or self.key(old[0]) != self.key(new[0]))

    def forget_node(self, plan: reference.Result, state: Any) -> bool:
        """Drops from a graph what depends on the outcomes of one state. Returns False if that cannot be done.

        The node keeps its value and is expanded again when a search comes to it.
        """
        graph = plan.tree
        if not isinstance(graph, reference.Graph):
            return False
        for doubted in (False, True):
            node = graph.nodes.get((self.key(state), doubted))
            if node is not None and node.edges is not None:
                node.edges, node.successors, node.reach = None, [], 1.0
                graph.expanded = [one for one in graph.expanded if one is not node]
        return True

    def facts(self) -> dict[str, np.ndarray]:
        """The facts, to be saved: JSON in bytes."""
        rows, lost = list(self._waiting), None
        for (_, action), fact in ({} if self.patched is None else self.patched.facts).items():
            try:
                outcomes = [[as_json(seen.following), *seen[1:]] for seen in fact.outcomes.values()]
                rows.append([as_json(fact.state), action, outcomes])
            except TypeError as error:
                lost = error
        held = 0 if self.patched is None else len(self.patched.facts) + len(self._waiting)
        if lost is not None:
            warnings.warn(
                f"{self.name}: {held - len(rows)} of {held} remembered transitions are not in the file, because their "
                f"states cannot be saved ({lost}); all else is. States of numbers, strings, arrays, tuples, lists, "
                "dicts, dataclasses and objects of these can be saved",
                stacklevel=5,
            )
        return {"json": np.frombuffer(json.dumps(rows).encode(), np.uint8)}

    def load_facts(self, arrays: dict[str, np.ndarray]) -> None:
        """Restores what `facts` returned. Facts about states of classes not met yet wait until they are."""
        if arrays.keys() != {"['json']"} or arrays["['json']"].dtype != np.uint8 or arrays["['json']"].ndim != 1:
            raise ValueError(f"facts are {sorted(arrays)}")
        try:
            rows = json.loads(arrays["['json']"].tobytes().decode())
        except RecursionError:
            raise ValueError("facts are nested too deeply") from None
        if self.patched is None:
            if rows:
                raise ValueError("it holds facts, but this agent has no memory")
            return
        if not isinstance(rows, list):
            raise ValueError("facts are not a list")
        self.patched = PatchedModel(self.simulator, self.simulator.key)
        self._waiting, self._answers = [], {}
        self._waiting = [row for row in rows if not self._restore_fact(row)]

    def _restore_fact(self, row: Any) -> bool:
        """Restores a saved fact; returns False while a class in it is unknown, raises a ValueError if it is no fact."""
        if not isinstance(row, list) or len(row) != 3 or not isinstance(row[2], list) or not row[2]:
            raise ValueError("a fact is not (state, action, outcomes)")
        action = integer(row[1])
        if action is None or not 0 <= action < self.num_actions:
            raise ValueError(f"a fact is about the action {shown(row[1])}")
        types = self.simulator.whole.types
        try:
            seen = [self._parse_outcome(one, types) for one in row[2]]
            state = from_json(row[0], types)
        except UnknownType:
            return False
        key, patched = self.simulator.key, self.patched
        for one in (state, *(one.following for one in seen)):
            self._sizes = self._sizes or self._sizes_of(one)
            if self._sizes_of(one) != self._sizes:
                raise ValueError(f"a fact is about {shown(one)}, of which the simulator makes other features")
        assert patched is not None  # noqa: S101 (recall has looked)
        patched.place(state, action, {(key(one.following), one.terminal): one for one in seen})
        return True

    @staticmethod
    def _parse_outcome(found: Any, types: dict[str, type]) -> OutcomeCount:
        if not isinstance(found, list) or len(found) != 5:
            raise ValueError("an outcome is not (state, end, times, reward, varied)")
        following, terminal, times, reward, varied = found
        number = integer(times)
        if number is None or number < 1:
            raise ValueError(f"an outcome was seen {shown(times)} times")
        terminal, varied = flag("terminal", terminal), flag("varied", varied)
        return OutcomeCount(from_json(following, types), terminal, number, real("reward", reward), varied)

    def plan(
        self,
        seed: int,
        number: int,
        state: Any,
        config: SearchConfig,
        horizon: int | None = None,
        previous: reference.Result | None = None,
    ) -> reference.Result:
        before, text = (self.simulator.key(state), self.simulator.features(state).tobytes()), shown(state)
        if config.graph and previous is not None and len(previous.tree.expanded) > MOST_KEPT * config.iterations:
            previous = None
        if self.budget_seconds is not None:
            config = replace(config, iterations=UNLIMITED)
        rng = random.Random(f"{seed} {number}")  # noqa: S311 (planning, not secrets)
        guides: dict[str, Any] = {**self.guides._asdict(), "horizon": horizon, "tree": previous}
        try:
            model = self.simulator if self.patched is None else self.patched
            found = reference.search(rng, state, model, self.uncertainty, config, self.budget_seconds, **guides)
        except SimulatorError:
            raise
        except (ValueError, TypeError) as error:  # a reward that is no number is met in a sum
            raise SimulatorError(f"{self.name}: {error}") from error
        if (self.simulator.key(state), self.simulator.features(state).tobytes()) != before:
            raise SimulatorError(
                f"{self.name}: planning changed the state it started from ({text} became {shown(state)}); "
                f"{self.simulator.kind} must return a new state and leave the old one alone"
            )
        return found

    def predict(self, state: Any, action: int, real: RealOutcome) -> tuple[Any, Outcome]:
        """What the simulator predicts for a transition: if it is random, what matches the real outcome best."""
        if self.simulator.kind == "step":
            said = self._probe.predict(state, action)
            place = (self.simulator.key(state), place_of(action))
            self._probe.refuse_difference(state, action, [(1.0, self._answers.setdefault(place, said[0][1]))], said)
            outcome = said[0][1]
        else:
            found = predicted_outcomes(self.simulator, state, action)
            possible = [self._probe.check(state, action, one) for probability, one in found if probability > 0.0]
            drawn = self.simulator.kind == "sample"
            outcome = matching_outcome(real, possible, self.features, self.key, drawn)
        return outcome[0], Outcome(self.simulator.features(outcome[0]), *outcome[1:])

    def key(self, state: Any) -> Hashable:
        return self.simulator.key(state)

    def sizes(self) -> dict[str, int]:
        """How many features and inputs a state has; nothing as long as none was seen."""
        return self._sizes

    def _sizes_of(self, state: Any) -> dict[str, int]:
        return {"features": self.features(state).size, "inputs": self.inputs(state).size}

    def features(self, state: Any) -> np.ndarray:
        return self.simulator.features(state)

    def inputs(self, state: Any) -> np.ndarray:
        return np.asarray(self.simulator.inputs(state), np.float32)
