"""How an agent plans in a Python simulator: with the plain engine, and with facts."""

from __future__ import annotations

import copy
import random
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from uamcts import reference
from uamcts.agent.backend import Guides, State
from uamcts.agent.experience import Experience
from uamcts.agent.fact_files import fact_rows, pack, parse_fact, parse_raw, raw_rows, unpack
from uamcts.agent.plain_uncertainty import CachedUncertainty, DoubtOfNumbers, Fitted, plain_uncertainty
from uamcts.agent.plain_variants import PlainVariants
from uamcts.agent.python_simulator import PythonSimulator
from uamcts.agent.simulator_probe import Tried
from uamcts.arguments import real, refuse_beyond_memory, short_repr
from uamcts.corrections.arrivals import SORTS
from uamcts.corrections.effective_actions import EffectiveActions
from uamcts.corrections.fact_weights import Weigher
from uamcts.corrections.journal import Journal
from uamcts.corrections.mixture import Mixture
from uamcts.corrections.patched_model import PatchedModel
from uamcts.corrections.python_facts import Recurrence
from uamcts.errors import SimulatorError
from uamcts.mcts.config import SearchConfig

UNLIMITED = 10**9
"""Iterations, where time is the limit."""
NODE, WALK = 500, 200
"""Bytes of a node of the plain engine, and of a rollout, about."""
MOST_KEPT = 20
"""A graph that has grown to so many times the iterations of a search is not gone on from: it would grow for ever."""


class PlainPlanner(PlainVariants):
    """Plans in a Python simulator with the plain engine."""

    def __init__(self, simulator: PythonSimulator, budget_seconds: float | None, memory: int, guides: Guides):
        self.budget_seconds, self.guides = budget_seconds, guides
        self.tried = Tried()
        """What the probe has found out about states."""
        self._saved: Tried | None = None
        self._loaded = False
        """Whether the facts come from a file and were compared with the variant that is about to be used."""
        self._most_facts = memory
        patched = self._no_facts(simulator) if memory else None
        super().__init__(simulator, patched)
        if simulator.continuous:
            simulator.policy = guides.policy
        self.num_actions, self.name, self.action_names = simulator.num_actions, simulator.name, simulator.action_names
        self.uncertainty: CachedUncertainty | DoubtOfNumbers | None = None
        self._probed = self._was_random = False
        self._unread: dict[int, Any] = {}
        """Raw transitions of a file whose classes were not met yet, by their places."""
        self._waiting: list[Any] = []
        self._sizes: dict[str, int] = {}

    def _no_facts(self, simulator: PythonSimulator) -> PatchedModel:
        facts = PatchedModel(simulator, simulator.key, None, simulator.own_keys, self._most_facts)
        if not simulator.continuous:
            facts.features = simulator.features
            facts.learn_arrivals()
        return facts

    def twin(self, journal: Journal) -> PlainPlanner:
        """A copy that goes on by itself, as long as every change of its tables is written to the journal."""
        twin = copy.copy(self)
        twin._journal, twin._waiting = journal, list(self._waiting)
        if self.patched is not None:
            twin.patched = self.patched.twin()
            twin.patched.journal = journal
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

    def accept(self, state: State, argument: str) -> State:
        """Turns what the user gave into a state of the simulator."""
        state = self.simulator.accept(state)
        try:
            self.simulator.features(state)
            self.simulator.key(state)
        except SimulatorError as error:
            raise ValueError(f"{argument} is {short_repr(state)}; {error}") from None
        if self._waiting and self.patched is not None:
            self._waiting = [row for row in self._waiting if not self._restore_fact(row)]
        return state

    def probe(self, state: State, config: SearchConfig) -> None:
        """Checks the simulator before it is used for the first time."""
        self.laboratory.pace.watch.attend()
        if not self._probed:
            steps = config.iterations * ((self.num_actions or 1) + config.rollouts * config.depth)
            found = self._probe.run(state, config.depth, steps, self.budget_seconds)
            self.tried = self._saved or found
            self.laboratory.pace.start(self._probe.seconds)
            self._probed, self._sizes = True, self._sizes_of(state)
            self._shifts = self.simulator.rebuild(state, self.simulator.features(state)) is not None
            self._learn_effects()

    @property
    def remembers(self) -> bool:
        return self.patched is not None

    def recurrence(self) -> Recurrence | None:
        return None if self.patched is None else self.patched.recurrence()

    def set_uncertainty(self, fitted: Fitted | None) -> None:
        """Plans with this uncertainty from now on."""
        known = None if self.patched is None else self.patched.knows
        self.uncertainty = None if fitted is None else plain_uncertainty(fitted, self.simulator, known)

    def remember(self, state: State, action: int, following: State, reward: float, terminal: bool) -> bool:
        """Adds a fact, if there is a memory. Returns whether searches plan with something else from now on."""
        if self.patched is None:
            return False
        before, renewals = self.patched.plans_with(state, action), self.patched.renewals
        if not self.deterministic:
            self.patched.remember(state, action, following, reward, terminal, agrees=True)
            same = before is None and self.patched.plans_with(state, action) is None
            return not same or self.patched.renewals != renewals
        said = self._variant.step(state, action)
        said = self._probe.check(state, action, said) if self._variant is self.simulator else said
        agrees, old = self._is_close(said, (following, reward, terminal)), said if before is None else before
        self.patched.remember(state, action, following, reward, terminal, agrees)
        new = self.patched.plans_with(state, action)
        if new is None or isinstance(old, Mixture) or isinstance(new, Mixture) or self.patched.renewals != renewals:
            return True
        return not self._is_close(old, new)

    def _is_close(self, one: tuple[Any, float, bool], other: tuple[Any, float, bool]) -> bool:
        """Whether two outcomes are the same but for rounding: fitted parameters are not right to the last digit."""
        if one[2] != other[2] or abs(one[1] - other[1]) > 1e-6 * max(1.0, abs(one[1])):
            return False
        same = self.key(one[0]) == self.key(other[0])
        return same or np.allclose(self.features(one[0]), self.features(other[0]), rtol=1e-6, atol=1e-9)

    def forget_nodes(self, plan: reference.Result, state: State | None) -> bool:
        """Has the next search on this graph look at a state anew, or at all. False for a tree, where that cannot be."""
        if not isinstance(plan.tree, reference.Graph):
            return False
        plan.tree.forget_all() if state is None else plan.tree.forget(self.key(state))
        return True

    def facts(self) -> dict[str, np.ndarray]:
        """The facts, to be saved."""
        if (patched := self.patched) is None:
            return pack({"rows": [], "clock": [0] * (3 + len(Weigher().scores)), "effects": None})
        clock = [patched.clock, patched.repeats, patched.contradictions, *(-score for score in patched.weigher.scores)]
        clock += [] if patched.arrivals is None else patched.arrivals.tested
        effects = None if patched.effective is None else patched.effective.as_json()
        return pack({"rows": fact_rows(patched, self.name, self._waiting), "clock": clock, "effects": effects})

    def load_facts(self, arrays: dict[str, np.ndarray]) -> None:
        """Restores what `facts` returned. Facts about states of classes not met yet wait until they are."""
        found = unpack(arrays, "facts")
        names = {"rows", "clock", "effects"}
        if not isinstance(found, dict) or found.keys() != names or not isinstance(found["rows"], list):
            raise ValueError("facts are not a list")
        if self.patched is None:
            if found["rows"]:
                raise ValueError("it holds facts, but this agent has no memory")
            return
        clock = found["clock"]
        numbers = 3 + len(Weigher().scores)
        lengths = (numbers, numbers + 2 * SORTS)
        known = isinstance(clock, list) and len(clock) in lengths
        if not known or not all(real("clock", one) >= 0 for one in clock):
            raise ValueError(f"the clock of the facts is {short_repr(clock)}")
        self.patched = self._no_facts(self.simulator)
        self.patched.weigher = Weigher(tuple(-float(score) for score in clock[3:numbers]))
        self.patched.clock, self.patched.repeats = int(clock[0]), int(clock[1])
        self.patched.contradictions = float(clock[2])
        if found["effects"] is not None:
            self.patched.learn_effects(EffectiveActions.from_json(found["effects"], self.num_actions))
        self._waiting, self._answers, self._loaded = [], {}, True
        self._waiting = [row for row in found["rows"] if not self._restore_fact(row)]
        if self.patched.arrivals is not None and len(clock) > numbers:
            self.patched.arrivals.tested = tuple(int(one) for one in clock[numbers:])

    def use(self, variant: Any, drifting: bool = False) -> None:
        """Plans in this variant of the simulator from now on; facts are compared with it."""
        if self._loaded and self.patched is not None:
            self.patched.model, self.patched.drifting, self._variant = variant, drifting, variant
            self.patched.learn_effects(self.patched.effective)
            self.settle()
        else:
            super().use(variant, drifting)
        self._loaded = False

    def settle(self) -> None:
        """Has the same as a loaded planner: what is known about states begins with the latest facts."""
        if self.patched is not None and self.patched.arrivals is not None:
            self.patched.learn_arrivals(self.patched.arrivals.tested)

    def progress(self) -> list[int] | None:
        """What was tried, to be saved; None as long as nothing was."""
        found = self.tried if self._probed else self._saved
        return None if found is None else [*map(int, found)]

    def restore_progress(self, found: list[int]) -> None:
        """Restores what `progress` returned; the simulator is still checked before it is used."""
        known, steps, *survival = found
        self.tried = self._saved = Tried(known, steps, any(survival))

    def _restore_fact(self, row: object) -> bool:
        """Restores a saved fact; returns False while a class in it is unknown, raises a ValueError if it is no fact."""
        parsed = parse_fact(row, self.simulator.whole.types, self.num_actions)
        if parsed is None:
            return False
        action, seen, fact = parsed
        key, patched = self.simulator.key, self.patched
        for one in (fact.state, *(one.following for one in seen)):
            self._sizes = self._sizes or self._sizes_of(one)
            if self._sizes_of(one) != self._sizes and self.simulator.compare_whole(fact.state, one):
                self._sizes = self._sizes_of(one)
            if self._sizes_of(one) != self._sizes:
                raise ValueError(f"a fact is about {short_repr(one)}, of which the simulator makes other features")
        assert patched is not None  # noqa: S101 (recall has looked)
        outcomes: dict[Hashable, Any] = {(key(one.following), one.terminal): one for one in seen}
        known = {name: getattr(fact, name) for name in ("agrees", "last", "confirmed", "stale")}
        streak = fact.streak._replace(kind=next(reversed(outcomes)))
        patched.place(fact.state, action, outcomes, streak=streak, **known)
        return True

    def raw(self, experience: Experience) -> dict[str, np.ndarray]:
        """The raw transitions of an experience, to be saved."""
        rows = raw_rows(experience.raw[: experience.count])
        return pack([saved if saved is not None else self._unread.get(place) for place, saved in enumerate(rows)])

    def load_raw(self, arrays: dict[str, np.ndarray], experience: Experience) -> None:
        """Restores what `raw` returned; states of classes not met yet wait until they are."""
        rows = unpack(arrays, "raw transitions")
        if not isinstance(rows, list) or len(rows) != experience.count:
            raise ValueError("there is not one raw transition for each that was seen")
        self._unread = {place: row for place, row in enumerate(rows) if row is not None}
        self.read_raw(experience)

    def read_raw(self, experience: Experience) -> None:
        """Rebuilds saved states whose classes have been met since."""
        for place, row in list(self._unread.items()):
            found = parse_raw(row, self.simulator.whole.types)
            if found is not None:
                experience.raw[place] = found
                del self._unread[place]

    def plan(
        self,
        seed: int,
        number: int,
        state: State,
        config: SearchConfig,
        horizon: int | None = None,
        previous: reference.Result | None = None,
    ) -> reference.Result:
        before, text = (self.simulator.key(state), self.simulator.features(state).tobytes()), short_repr(state)
        if config.graph and previous is not None and len(previous.tree.expanded) > MOST_KEPT * config.iterations:
            previous = None
        if self.budget_seconds is not None:
            config = replace(config, iterations=UNLIMITED)
        rng = random.Random(f"{seed} {number}")  # noqa: S311 (planning, not secrets)
        guides: dict[str, Any] = {**self.guides._asdict(), "horizon": horizon, "tree": previous}
        try:
            model = self.searched_model(state, self.tried.recurs)
            is_random = hasattr(model, "outcomes")
            if not config.graph and is_random != self._was_random:  # nodes of the one tree mean nothing in the other
                guides["tree"] = None
            self._was_random = is_random
            found = reference.search(rng, state, model, self.uncertainty, config, self.budget_seconds, **guides)
        except SimulatorError:
            raise
        except (ValueError, TypeError) as error:  # a reward that is no number is met in a sum
            raise SimulatorError(f"{self.name}: {error}") from error
        if (self.simulator.key(state), self.simulator.features(state).tobytes()) != before:
            raise SimulatorError(
                f"{self.name}: planning changed the state it started from ({text} became {short_repr(state)}); "
                f"{self.simulator.kind} must return a new state and leave the old one alone"
            )
        return found

    def sizes(self) -> dict[str, int]:
        """How many features and inputs a state has; nothing as long as none was seen."""
        return self._sizes

    def _sizes_of(self, state: State) -> dict[str, int]:
        return {"features": self.features(state).size, "inputs": self.inputs(state).size}
