"""`uamcts.Agent`: for a loop of your own. It plans, is told what really happened, and learns where its model lies."""

from __future__ import annotations

import operator
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uamcts import files
from uamcts.domains.base import Domain
from uamcts.learner import Doubter, Knowledge, plan, seen, taught
from uamcts.mcts.entry import raise_flags
from uamcts.mcts.search import SearchResult
from uamcts.memory import Patched
from uamcts.paper import online_settings, search_config
from uamcts.types import PyTree, SearchConfig, Transition
from uamcts.uncertainty import Estimator, make_estimator
from uamcts.uncertainty.schedule import Schedule


class Agent:
    """Acts in the real world with a model that is wrong somewhere.

        agent = uamcts.Agent(uamcts.make("breakout"))
        action = agent.act(state)
        agent.observe(state, action, next_state)    # learns when it is time to

    What is not given is the paper's for the domain: the estimator of U (a name out of `uncertainty.ESTIMATORS`, or an
    object), the search, and the schedule of learning. `config.tau` is not used: tau follows the schedule. With `memory`
    it plans with every transition that it has seen as it really was, and doubts only the others.
    """

    def __init__(
        self,
        domain: Domain,
        estimator: str | Estimator | None = None,
        config: SearchConfig | None = None,
        schedule: Schedule | None = None,
        seed: int = 0,
        minibatches: int | None = None,
        memory: bool = False,
    ):
        if not isinstance(domain, Domain):
            raise TypeError(f"domain is {domain!r}; give a domain, for example uamcts.make('breakout')")
        settings = online_settings(domain)
        self.domain = domain
        self.config = search_config(domain, "combined") if config is None else config
        self.schedule = settings.schedule if schedule is None else schedule
        self.terminal_copies = settings.terminal_copies
        self._key = jax.random.key(operator.index(seed))
        first, self._key = jax.random.split(self._key)
        if not isinstance(estimator, Estimator):
            estimator = make_estimator(
                settings.estimator if estimator is None else estimator,
                first,
                domain,
                capacity=self.schedule.interval * self.terminal_copies,
                minibatches=settings.minibatches if minibatches is None else minibatches,
                most_copies=self.terminal_copies,
            )
        learner: Any = Doubter(estimator)
        if memory:
            learner = Patched.fresh(domain.reset(first), learner, self.schedule.interval)
        self.knowledge = Knowledge.fresh(learner, self.schedule)
        self.last_plan: SearchResult | None = None
        """What the last search found."""
        self._acts = 0
        self._prepare()

    def _prepare(self) -> None:
        """Compiles nothing yet: every function does so when it is first called."""
        self._memory = self._fresh_memory()
        self._plan = jax.jit(
            lambda knowledge, key, state, memory: plan(knowledge, key, state, self.domain, self.config, memory),
            donate_argnames="memory",
        )
        self._seen = jax.jit(
            lambda knowledge, state, action, real, copies: seen(knowledge, self.domain, state, action, real, copies)
        )
        self._taught = jax.jit(lambda knowledge, key: taught(knowledge, key, self.schedule))

    def _fresh_memory(self) -> PyTree:
        _, uncertainty = self.knowledge.learner.planner(self.domain)
        return uncertainty.memory() if hasattr(uncertainty, "memory") else None

    @property
    def estimator(self) -> Estimator:
        """What has been learned about the model's errors; `agent.estimator.predict(state, action)` is U-hat."""
        learner = self.knowledge.learner
        return (learner.learner if isinstance(learner, Patched) else learner).estimator

    @property
    def tau(self) -> float:
        return float(self.knowledge.tau)

    @property
    def steps(self) -> int:
        """Real transitions observed."""
        return int(self.knowledge.steps)

    @property
    def loss(self) -> float | None:
        """Mean loss of the last round of training, None before the first."""
        loss = float(self.knowledge.loss)
        return loss if np.isfinite(loss) else None

    def act(self, state: PyTree) -> int:
        """The action to take in `state`."""
        state = self._checked(state, "state")
        key = jax.random.fold_in(self._key, 2 * self._acts)
        found = self._plan(self.knowledge, key, state, self._memory)
        self._memory = found.memory
        self._acts += 1
        raise_flags(found)
        self.last_plan = found._replace(memory=None)
        return int(found.action)

    def observe(
        self, state: PyTree, action: int, next_state: PyTree, terminal: bool = False, reward: float | None = None
    ) -> bool:
        """Takes in what really happened. Every `schedule.interval` times it learns from all it has seen; True then.

        Only an agent with a memory looks at the `reward`; None: what the domain pays for this action in this state.
        """
        state, next_state = self._checked(state, "state"), self._checked(next_state, "next_state")
        number = self.domain._action(int(action))
        copies = self.terminal_copies if terminal else 1
        knowledge = self.knowledge
        roomy = knowledge.learner.with_room(1)
        if roomy is not knowledge.learner:
            knowledge = Knowledge(roomy, knowledge.tau, knowledge.steps, knowledge.loss)
        paid = self.domain.model(state, number).reward if reward is None and self._remembers else reward or 0.0
        real = Transition(next_state, jnp.float32(paid), jnp.bool_(terminal))
        self.knowledge = self._seen(knowledge, state, number, real, copies)
        if not self.schedule.due(self.steps):
            return False
        return self.learn()

    def learn(self) -> bool:
        """A round of training now, and a lower tau; False if the schedule says that there is nothing more to learn."""
        if not bool(self.schedule.goes_on(self.knowledge.tau, self.knowledge.loss)):
            return False
        key = jax.random.fold_in(self._key, 2 * self.steps + 1)
        self.knowledge = jax.block_until_ready(self._taught(self.knowledge, key))
        self._memory = self._fresh_memory()
        return True

    def save(self, path: str | os.PathLike) -> None:
        """Writes all that was learned, arrays and JSON in one file; an older file is replaced in one go."""
        files.save(path, self._saved(), "agent", self._about())

    def load(self, path: str | os.PathLike) -> None:
        """Takes over what an agent of this domain and this estimator has saved; on any error nothing changes."""
        knowledge, key, acts = files.load(path, self._saved(), "agent", self._about())
        self.knowledge, self._key, self._acts = knowledge, key, int(acts)
        self._memory, self.last_plan = self._fresh_memory(), None

    def _saved(self) -> PyTree:
        return self.knowledge, self._key, jnp.int32(self._acts)

    def _about(self) -> dict[str, Any]:
        about = {"domain": self.domain.name, "estimator": type(self.estimator).__name__}
        return {**about, "memory": True} if self._remembers else about

    @property
    def _remembers(self) -> bool:
        return isinstance(self.knowledge.learner, Patched)

    def _checked(self, state: PyTree, argument: str) -> PyTree:
        """`state`, or an error if it is no state of the domain."""
        like = jax.eval_shape(self.domain.reset, self._key)
        if repr(jax.tree.structure(state)) != repr(jax.tree.structure(like)):
            raise TypeError(f"{argument} is {state!r}; it is not a state of {self.domain.name} (see domain.reset)")
        for leaf, wanted in zip(jax.tree.leaves(state), jax.tree.leaves(like), strict=True):
            if np.shape(leaf) != wanted.shape:
                raise ValueError(
                    f"{argument} has an array of shape {np.shape(leaf)} where {self.domain.name} has {wanted.shape}; "
                    "give one state, not a batch"
                )
        return jax.tree.map(lambda leaf, wanted: jnp.asarray(leaf, wanted.dtype), state, like)
