"""The mind for a domain: the paper's online agent, its learner and its schedule."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uamcts import files
from uamcts.domains.base import Domain
from uamcts.experience import Experience, Measure, Outcome, Report, judged
from uamcts.learner import Doubter, Knowledge, goes_on, plan, seen, settled, taught
from uamcts.mcts.entry import raise_flags
from uamcts.mcts.search import SearchResult
from uamcts.memory import Patched
from uamcts.minds.mind import Pace, completed, formed
from uamcts.paper import online_settings, search_config
from uamcts.types import PyTree, SearchConfig, Transition
from uamcts.uncertainty import Estimator, make_estimator
from uamcts.uncertainty.calibration import Calibrated, applies
from uamcts.uncertainty.sampled import Surprise
from uamcts.uncertainty.schedule import Schedule


class DomainMind:
    """Plans in the domain's model; learns U with what the paper uses there, unless told otherwise."""

    def __init__(
        self,
        domain: Domain,
        estimator: str | Estimator | None,
        config: SearchConfig | None,
        schedule: Schedule | None,
        seed: int,
        minibatches: int | None,
        budget_seconds: float | None,
        memory: bool,
    ):
        settings = online_settings(domain)
        self.domain, self.name, self.action_names = domain, domain.name, domain.action_names
        self.config = search_config(domain, "combined") if config is None else config
        self.schedule = settings.schedule if schedule is None else schedule
        self.terminal_copies = settings.terminal_copies
        self.pace = None if budget_seconds is None else Pace(budget_seconds)
        self.key = jax.random.key(operator.index(seed))
        first, self.key = jax.random.split(self.key)
        if not isinstance(estimator, Estimator):
            estimator = make_estimator(
                settings.estimator if estimator is None else estimator,
                first,
                domain,
                capacity=self.schedule.interval * self.terminal_copies,
                minibatches=settings.minibatches if minibatches is None else minibatches,
                most_copies=self.terminal_copies,
            )
        if applies(self.config, estimator):
            estimator = Calibrated.around(estimator, domain.reset(first))
        trusts = self.config.rules == "trust"  # then nothing binds a network to the paper's rule of when to stop
        learner: Any = Doubter(estimator, Surprise.none() if trusts else None)
        if memory:
            learner = Patched.fresh(domain.reset(first), learner, self.schedule.interval)
        self.knowledge = Knowledge.fresh(learner, self.schedule)
        self.experience = Experience()
        self.acts = 0
        self._compile()

    def _compile(self) -> None:
        """Compiles nothing yet: every function does so when it is first called."""
        self._memory = self._fresh_memory()
        self._plan = jax.jit(
            lambda knowledge, key, state, memory, iterations: plan(
                knowledge, key, state, self.domain, replace(self.config, iterations=iterations), memory
            ),
            donate_argnames="memory",
            static_argnames="iterations",
        )
        self._seen = jax.jit(
            lambda knowledge, state, action, real, copies: seen(knowledge, self.domain, state, action, real, copies)
        )
        self._taught = jax.jit(lambda knowledge, key: taught(knowledge, key, self.schedule))
        self._compared = jax.jit(self._features)

    def _features(self, state: PyTree, action: jax.Array, following: PyTree) -> tuple:
        """The features of a state, of what followed and of what the model says; what that pays; whether it ends."""
        features, believed = self.domain.features, self.domain.model(state, action)
        return features(state), features(following), features(believed.state), believed.reward, believed.terminal

    def _fresh_memory(self) -> PyTree:
        _, uncertainty = self.knowledge.learner.planner(self.domain)
        return uncertainty.memory() if hasattr(uncertainty, "memory") else None

    @property
    def estimator(self) -> Estimator:
        return self._asked.inner if isinstance(self._asked, Calibrated) else self._asked

    @property
    def _asked(self) -> Estimator:
        """The estimator as searches ask it."""
        learner = self.knowledge.learner
        return (learner.learner if isinstance(learner, Patched) else learner).estimator

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

    def act(self, state: PyTree) -> SearchResult:
        state = self._checked(state, "state")
        key = jax.random.fold_in(self.key, 2 * self.acts)

        def search(iterations: int) -> SearchResult:
            return self._plan(self.knowledge, key, state, self._memory, iterations)

        found = search(self.config.iterations) if self.pace is None else self.pace.run(search)
        self._memory = found.memory
        self.acts += 1
        raise_flags(found)
        return found._replace(memory=None)

    def observe(
        self, state: PyTree, action: int, following: PyTree, reward: float | None, terminal: bool | None
    ) -> bool:
        state, following = self._checked(state, "state"), self._checked(following, "next_state")
        number = self.domain._action(int(action))
        knowledge = self.knowledge
        roomy = knowledge.learner.with_room(1)
        if roomy is not knowledge.learner:
            knowledge = Knowledge(roomy, knowledge.tau, knowledge.steps, knowledge.loss)
        paid = self.domain.model(state, number).reward if reward is None and self._remembers else reward or 0.0
        real = Transition(following, jnp.float32(paid), jnp.bool_(bool(terminal)))
        self.knowledge = self._seen(knowledge, state, number, real, self.terminal_copies if terminal else 1)
        self._note(state, action, following, reward, terminal)
        return self.learn() if self.schedule.due(self.steps) else False

    def _note(self, state: PyTree, action: int, following: PyTree, reward: float | None, terminal: bool | None) -> None:
        """Keeps the transition for the report; its inputs are the bytes of the state."""
        compared = self._compared(state, jnp.int32(action), following)
        here, after, believed = (np.asarray(part, np.float64) for part in compared[:3])
        words = np.frombuffer(b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(state)), np.uint8)
        said = Outcome(believed, float(compared[3]), bool(compared[4]))
        unscaled = float(np.mean((after - believed) ** 2))
        self.experience.add(here, words, int(action), said, Outcome(after, reward, terminal), unscaled)

    def learn(self) -> bool:
        if not bool(goes_on(self.knowledge, self.schedule)):
            return False
        key = jax.random.fold_in(self.key, 2 * self.steps + 1)
        self.knowledge = settled(jax.block_until_ready(self._taught(self.knowledge, key)))
        self._memory = self._fresh_memory()
        return True

    def seed_with(self, samples: Iterable[tuple]) -> int:
        """Observes what is known already; all of it is looked at first."""
        known = [completed(number, sample) for number, sample in enumerate(samples)]
        for state, action, following, _, _ in known:
            self._checked(state, "state"), self._checked(following, "next_state")
            self.domain._action(int(action))
        for sample in known:
            self.observe(*sample)
        return len(known)

    def report(self, most: int) -> Report:
        measure = Measure(("state",), lambda real, believed: 0.0)  # the paper's U, noted with every transition
        return judged(self.experience, measure, self._predicted, most, self.steps, self.action_names)

    def _predicted(self, places: np.ndarray) -> np.ndarray:
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
            learned.append(float(self._asked.predict(jax.tree.unflatten(structure, arrays), action)))
        return np.array(learned)

    def save(self, path: Any) -> None:
        files.save(path, {"mind": self._saved(), "experience": self.experience.arrays()}, "agent", self._about())

    def load(self, path: Any) -> None:
        arrays = files.read(path, "agent", self._about())
        noted = {name: array for name, array in arrays.items() if name.startswith("['experience']")}
        mind = {name.removeprefix("['mind']"): array for name, array in arrays.items() if name not in noted}
        knowledge, key, acts = files.filled(path, self._saved(), mind)
        experience = Experience.of({name[len("['experience']['") : -2]: array for name, array in noted.items()})
        self.knowledge, self.key, self.acts, self.experience = knowledge, key, int(acts), experience
        self._memory = self._fresh_memory()

    def _saved(self) -> PyTree:
        return self.knowledge, self.key, jnp.int32(self.acts)

    def _about(self) -> dict[str, Any]:
        about = {"domain": self.domain.name, "estimator": type(self.estimator).__name__}
        return {**about, "memory": True} if self._remembers else about

    @property
    def _remembers(self) -> bool:
        return isinstance(self.knowledge.learner, Patched)

    def _checked(self, state: PyTree, argument: str) -> PyTree:
        """`state`, or an error if it is no state of the domain."""
        like = jax.eval_shape(self.domain.reset, self.key)
        return formed(state, like, argument, self.name, f"it is not a state of {self.name} (see domain.reset)")
