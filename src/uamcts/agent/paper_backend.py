"""The backend of `Agent.paper`: the learner, the searches and the schedule of the lab's online runs, step by step."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.agent import checkpoint
from uamcts.agent.backend import (
    FilePath,
    IterationBudget,
    Sample,
    all_or_nothing,
    match_structure,
    pad_sample,
    split_groups,
)
from uamcts.agent.domain_transitions import state_bytes
from uamcts.agent.experience import Experience, Row
from uamcts.agent.measure import Measure, Outcome
from uamcts.agent.paper_programs import paper_programs
from uamcts.agent.report import Report, build_report
from uamcts.arguments import action_number, flag, real, refuse_beyond_memory, search_bytes
from uamcts.corrections.fact_patch import identity_of
from uamcts.corrections.facts import Patched
from uamcts.corrections.journal import Journal
from uamcts.domains.base import Domain
from uamcts.mcts.api import raise_flags
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.search import SearchResult
from uamcts.presets import online_settings
from uamcts.types import PyTree, Transition
from uamcts.uncertainty import Estimator, learner, make_estimator
from uamcts.uncertainty.calibration import Calibrated
from uamcts.uncertainty.schedule import Schedule

MEASURE = Measure(("state",), lambda real, believed: 0.0)
"""The paper's U, which is recorded with every transition."""


class PaperBackend:
    """Plans in the domain's model; by default it learns U with the paper's estimator for this domain.

    What it knows and how it learns is that of an online run (`uamcts.uncertainty.learner`). From the same key it acts
    and learns as `uamcts.episodes.online.Run` does, to the last digit.
    """

    def __init__(
        self,
        domain: Domain,
        estimator: str | Estimator | None,
        config: SearchConfig,
        schedule: Schedule | None,
        key: jax.Array,
        minibatches: int | None,
        budget_seconds: float | None,
        memory: bool,
    ):
        settings = online_settings(domain)
        self.domain, self.name, self.action_names = domain, domain.name, domain.action_names
        self.config = config
        self.schedule = settings.schedule if schedule is None else schedule
        self.terminal_copies = settings.terminal_copies
        self.pace = None if budget_seconds is None else IterationBudget(budget_seconds)
        first, self.key = jax.random.split(key)
        if self.pace is None:
            needed = search_bytes(jax.eval_shape(domain.reset, first), self.config, domain.num_actions)
            what = f"a search of {self.config.iterations:,} iterations and {self.config.rollouts:,} rollouts"
            refuse_beyond_memory(needed, what, "give fewer iterations or rollouts, or budget_seconds=...")
        if not isinstance(estimator, Estimator):
            estimator = make_estimator(
                settings.estimator if estimator is None else estimator,
                first,
                domain,
                capacity=self.schedule.interval * self.terminal_copies,
                minibatches=settings.minibatches if minibatches is None else minibatches,
                most_copies=self.terminal_copies,
            )
        start = domain.reset(first)
        fresh: learner.Learner = learner.fresh_learner(estimator, self.config, start)
        if memory:
            fresh = Patched.fresh(start, fresh, self.schedule.interval, identity_of(domain)(start))
        self.knowledge = learner.AgentState.fresh(fresh, self.schedule)
        self.experience, self.journal = Experience(), Journal()
        self.acts = 0
        self._cache = self._empty_cache()
        self._programs = paper_programs(domain, self.config, self.schedule)

    def twin(self) -> PaperBackend:
        """A copy that learns on its own."""
        twin = copy.copy(self)
        twin.experience, twin.journal = self.experience.copy(), Journal()
        return twin

    def undo(self) -> None:
        """Takes back what this copy has changed in what it shares."""
        self.journal.undo()

    def _empty_cache(self) -> PyTree:
        return learner.empty_cache(self.knowledge.learner, self.domain)

    @property
    def estimator(self) -> Estimator:
        found = self._planning_estimator
        return found.inner if isinstance(found, Calibrated) else found

    @property
    def _planning_estimator(self) -> Estimator:
        """The estimator that searches use."""
        fitted = self.knowledge.learner
        estimator: Estimator = (fitted.learner if isinstance(fitted, Patched) else fitted).estimator
        return estimator

    @property
    def tau(self) -> float:
        return float(self.knowledge.tau)

    @property
    def steps(self) -> int:
        return int(self.knowledge.steps)

    @property
    def loss(self) -> float | None:
        loss = float(self.knowledge.loss)
        return loss if np.isfinite(loss) else None

    note = ""

    def act(self, state: PyTree, steps_left: int | None = None) -> SearchResult:
        if steps_left is not None:
            raise ValueError(
                f"steps_left is {steps_left!r}, which an agent of a domain does not read; leave it out, or plan with "
                "uamcts.search(..., horizon=steps_left)"
            )
        state = self._check_state(state, "state")
        key = learner.purpose(self.key, learner.SEARCHES, self.acts)

        def search(iterations: int) -> SearchResult:
            found: SearchResult = self._programs.plan(self.knowledge, key, state, self._cache, iterations)
            return found

        try:
            found = search(self.config.iterations) if self.pace is None else self.pace.run(search)
        except BaseException:
            self._cache = self._empty_cache()  # the old one was donated to the search that failed
            raise
        self._cache = found.cache
        raise_flags(found)
        self.acts += 1
        return found._replace(cache=None)

    def observe(
        self, state: PyTree, action: int, following: PyTree, reward: float | None, terminal: bool | None
    ) -> bool:
        return all_or_nothing(self, lambda backend: backend._observe(state, action, following, reward, terminal))

    def _observe(self, state: PyTree, action: object, following: PyTree, reward: object, terminal: object) -> bool:
        state, following = self._check_state(state, "state"), self._check_state(following, "next_state")
        number = jnp.int32(self._number(action))
        known = None if reward is None else real("reward", reward, "it must be a finite number, or None if not known")
        over = None if terminal is None else flag("terminal", terminal, "it must be True, False, or None if not known")
        ended = bool(self._programs.over(state, number, following)) if over is None else over
        knowledge = self.knowledge
        roomy = knowledge.learner.reserve(1)
        if roomy is not knowledge.learner:
            knowledge = learner.AgentState(roomy, knowledge.tau, knowledge.steps, knowledge.loss)
        paid = self.domain.model(state, number).reward if known is None and self._remembers else known or 0.0
        outcome = Transition(following, jnp.float32(paid), jnp.bool_(ended))
        self.knowledge = self._programs.seen(knowledge, state, number, outcome, self.terminal_copies if ended else 1)
        self._record(state, int(number), following, known, over)
        return self._learn() if self.schedule.due(self.steps) else False

    def _number(self, action: object) -> int:
        number = action_number(action, self.domain.num_actions, self.name)
        return int(self.domain._action(number))

    def _record(
        self, state: PyTree, action: int, following: PyTree, reward: float | None, terminal: bool | None
    ) -> None:
        """Records the transition for the report; its inputs are the bytes of the state."""
        compared = self._programs.compare(state, jnp.int32(action), following)
        here, after, believed = (np.asarray(part, np.float64) for part in compared[:3])
        inputs = state_bytes(state)
        predicted = Outcome(believed, float(compared.reward), bool(compared.terminal))
        unscaled = float(np.mean((after - believed) ** 2))
        real_outcome, own = Outcome(after, reward, terminal), (unscaled, unscaled)
        row = Row(None, action, None, here, inputs, action, real_outcome, predicted, predicted, own)
        self.experience.add(row, MEASURE, self.journal)

    def learn(self) -> bool:
        return all_or_nothing(self, lambda backend: backend._learn())

    def _learn(self) -> bool:
        if not bool(learner.goes_on(self.knowledge, self.schedule)):
            return False
        key = learner.purpose(self.key, learner.ROUNDS, self.steps)
        self.knowledge = learner.finish_on_host(jax.block_until_ready(self._programs.train(self.knowledge, key)))
        self._cache = self._empty_cache()
        return True

    def preload(self, samples: Iterable[Sample]) -> int:
        """Observes transitions that are known already; all of them or none."""
        return all_or_nothing(self, lambda backend: backend._preload(samples))

    def _preload(self, samples: Iterable[Sample]) -> int:
        count = 0
        for count, sample in enumerate(samples, 1):
            self._observe(*pad_sample(count - 1, sample))
        return count

    def report(self, most: int) -> Report:
        memory = self.knowledge.learner.facts.recurrence() if self._remembers else None
        return build_report(self.experience, MEASURE, self._predict, most, self.steps, self.action_names, memory)

    def _predict(self, places: np.ndarray) -> np.ndarray:
        """U-hat of some of the transitions."""
        leaves, structure = jax.tree.flatten(jax.eval_shape(self.domain.reset, self.key))
        sizes = [leaf.size * leaf.dtype.itemsize for leaf in leaves]
        learned = []
        for place in places:
            pieces = np.split(self.experience.rows["inputs"][place], np.cumsum(sizes)[:-1])
            arrays = [
                np.frombuffer(piece.tobytes(), leaf.dtype).reshape(leaf.shape)
                for piece, leaf in zip(pieces, leaves, strict=True)
            ]
            action = jnp.int32(self.experience.rows["action"][place])
            learned.append(float(self._planning_estimator.predict(jax.tree.unflatten(structure, arrays), action)))
        return np.array(learned)

    def save(self, path: FilePath) -> None:
        checkpoint.save(
            path, {"agent": self._saved_tree(), "experience": self.experience.arrays()}, "agent", self._about()
        )

    def load(self, path: FilePath) -> None:
        found = checkpoint.read(path, "agent", self._about())
        try:
            backend, noted = split_groups(found, ("agent", "experience"))
            knowledge, key, acts = checkpoint.fill("it", self._saved_tree(), backend)
            experience = Experience.of({name[2:-2]: array for name, array in noted.items()}, self.domain.num_actions)
            all_or_nothing(self, lambda twin: twin._restore(knowledge, key, acts, experience))
        except (ValueError, TypeError, KeyError) as error:
            words = str(error).removeprefix("it does not fit: ")
            raise ValueError(f"{path} does not fit this agent: {words}") from None

    def _restore(self, knowledge: learner.AgentState, key: jax.Array, acts: jax.Array, experience: Experience) -> None:
        """Restores what was in a file; raises an error for anything that is wrong with it."""
        counters = {"steps": int(knowledge.steps), "acts": int(acts), "tau": float(knowledge.tau)}
        for name, number in counters.items():
            if not 0 <= number < np.inf or (name == "tau" and number == 0) or np.isnan(float(knowledge.loss)):
                raise ValueError(f"{name} is {number}, loss is {float(knowledge.loss)}")
        example = self.domain.reset(self.key)
        sizes = {"features": self.domain.features(example).size, "inputs": state_bytes(example).size}
        if experience.count and experience.rows["inputs"].dtype != np.uint8:
            raise ValueError(f"its inputs are {experience.rows['inputs'].dtype}")
        for name, size in sizes.items():
            if experience.count and experience.rows[name].shape[1] != size:
                raise ValueError(f"its states have {experience.rows[name].shape[1]} {name}, here they have {size}")
        self.knowledge, self.key, self.acts, self.experience = knowledge, key, int(acts), experience
        for action in range(self.domain.num_actions):
            guess = float(self.estimator.predict(example, jnp.int32(action)))
            if not 0 <= guess < np.inf:
                raise ValueError(f"its estimator says that U is {guess}")
        self._cache = self._empty_cache()

    def _saved_tree(self) -> PyTree:
        return self.knowledge, self.key, jnp.int32(self.acts)

    def _about(self) -> dict[str, Any]:
        about = {"domain": self.domain.name, "estimator": type(self.estimator).__name__}
        return {**about, "memory": True} if self._remembers else about

    @property
    def _remembers(self) -> bool:
        return isinstance(self.knowledge.learner, Patched)

    def _check_state(self, state: PyTree, argument: str) -> PyTree:
        """`state` as arrays; raises an error if it is not a state of the domain."""
        like = jax.eval_shape(self.domain.reset, self.key)
        return match_structure(state, like, argument, self.name, f"it is not a state of {self.name} (see domain.reset)")
