"""`uamcts.Agent`: for a loop of your own. It plans, is told what really happened, and learns where its model lies."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from uamcts.domains.base import Domain
from uamcts.experience import PARTS, Measure, Report
from uamcts.explain import explained
from uamcts.minds.domain import DomainMind
from uamcts.minds.mind import Mind
from uamcts.minds.simulator import CompiledPlanner, PlainPlanner, SimulatorMind
from uamcts.paper import TRUST
from uamcts.simulator import JaxSimulator, PythonSimulator
from uamcts.types import SearchConfig
from uamcts.uncertainty import Estimator, check_name
from uamcts.uncertainty.schedule import Schedule

DEFAULT = SearchConfig(**TRUST, gamma=0.99)
"""How to search in a simulator: trust search has one setting for everything (docs/trust.md)."""
AT_ONCE = ("nearest",)
"""Estimators that learn in no time: after every real step, unless there is a schedule."""


class Agent:
    """Acts in the real world with a model that is wrong somewhere.

        agent = uamcts.Agent(simulator)                 # step(state, action) -> (state, reward, terminal), num_actions
        action = agent.act(state)
        agent.observe(state, action, next_state, reward=reward, terminal=terminal)
        print(agent.report())                           # where the simulator lies

    `model` is a Python object with `step` and `num_actions`, a function `step(state, action)` with `num_actions=...`, a
    Gymnasium environment, a `JaxSimulator`, or a domain of this package. The real thing stays in your own loop.

    What is not given has a default. For a domain these are the paper's. For a simulator: U is the mean squared
    difference of standardised `features` (by default all numbers of a state) between what really happened and what the
    simulator said; a wrong reward and a wrong end of an episode count as well, unless `parts` leaves them out;
    `discrepancy(real_next_state, believed_next_state)` replaces the part about the state. It is learned by `estimator`
    (a name out of `uncertainty.ESTIMATORS`) after every step, or by `schedule`, which then also sets tau.
    With `memory`, the default for simulators, it plans with every transition that it has seen as it really was, and
    doubts only the others; in a world with chance leave it out.
    The budget of a move is `config.iterations`, or `budget_seconds` instead of it.
    """

    def __init__(
        self,
        model: Any,
        estimator: str | Estimator | None = None,
        config: SearchConfig | None = None,
        schedule: Schedule | None = None,
        *,
        num_actions: int | None = None,
        features: Callable[[Any], Any] | None = None,
        discrepancy: Callable[[Any, Any], float] | None = None,
        parts: Sequence[str] = PARTS,
        tolerance: float = 1e-6,
        budget_seconds: float | None = None,
        seed: int = 0,
        minibatches: int | None = None,
        memory: bool | None = None,
    ):
        if budget_seconds is not None and not budget_seconds > 0:
            raise ValueError(f"budget_seconds is {budget_seconds!r}; it must be above 0")
        if isinstance(estimator, str):
            check_name(estimator)
        if isinstance(model, Domain):
            given = {"num_actions": num_actions, "features": features, "discrepancy": discrepancy}
            for name, value in given.items():
                if value is not None:
                    raise ValueError(f"{name} is given, but a domain has its own; leave it out")
            mind: Mind = DomainMind(model, estimator, config, schedule, seed, minibatches, budget_seconds, bool(memory))
        else:
            planner = _planner(model, num_actions, features, budget_seconds, memory is None or memory)
            estimator = "nearest" if estimator is None else estimator
            if schedule is None and estimator not in AT_ONCE:
                schedule = Schedule(interval=200)
            mind = SimulatorMind(
                planner,
                estimator,
                DEFAULT if config is None else config,
                schedule,
                seed,
                2000 if minibatches is None else minibatches,
                Measure(tuple(parts), discrepancy, tolerance),
            )
        self.mind: Any = mind
        self.last_plan: Any = None
        """What the last search found; `print(agent.explain())` tells it in words."""

    @property
    def estimator(self) -> Estimator | None:
        """What has been learned about the model's errors; None as long as a simulator was never wrong."""
        return self.mind.estimator

    @property
    def tau(self) -> float:
        """The uncertainty factor of the next search: the config's, or where the schedule has got to."""
        return self.mind.tau

    @property
    def steps(self) -> int:
        """Real transitions observed."""
        return self.mind.steps

    @property
    def loss(self) -> float | None:
        """Mean loss of the last round of training, None before the first and for simulators."""
        return self.mind.loss

    def act(self, state: Any) -> int:
        """The action to take in `state`."""
        self.last_plan = self.mind.act(state)
        return int(self.last_plan.action)

    def observe(
        self, state: Any, action: int, next_state: Any, *, reward: float | None = None, terminal: bool | None = None
    ) -> bool:
        """Takes in what really happened; True if something was learned.

        `reward` and `terminal` are compared with what a simulator says, where they are given.
        """
        return self.mind.observe(state, int(action), next_state, reward, terminal)

    def learn(self) -> bool:
        """Learns now from all that was seen; False if the schedule says that there is nothing more to learn."""
        return self.mind.learn()

    def seed(self, samples: Iterable[tuple]) -> int:
        """What is known of the real world already: (state, action, next_state), reward and terminal behind if known.

        It counts like what was observed. All of it is taken in or, on an error, nothing. Returns how many there were.
        """
        return self.mind.seed_with(samples)

    def report(self, most: int = 10) -> Report:
        """Where the model lies: the `most` transitions with the largest U. Print it, or go through it."""
        return self.mind.report(most)

    def explain(self) -> str:
        """Why the last action: visits, value and uncertainty of every action, and what was deleted."""
        if self.last_plan is None:
            raise RuntimeError("explain was called before act; there is no plan to explain yet")
        return explained(self.last_plan, self.mind.action_names)

    def save(self, path: str | os.PathLike) -> None:
        """Writes all that was learned, arrays and JSON in one file; an older file is replaced in one go."""
        self.mind.save(path)

    def load(self, path: str | os.PathLike) -> None:
        """Takes over what an agent of this model and this estimator has saved; on any error nothing changes."""
        self.mind.load(path)
        self.last_plan = None


def _planner(
    model: Any, num_actions: int | None, features: Callable | None, budget_seconds: float | None, memory: bool
) -> PlainPlanner | CompiledPlanner:
    """How to plan in what was given as a model."""
    if isinstance(model, JaxSimulator):
        if features is not None or num_actions is not None:
            raise ValueError("num_actions and features of a JaxSimulator are its own; leave them out")
        return CompiledPlanner(model, budget_seconds, memory)
    if isinstance(model, str):
        raise TypeError(f"model is {model!r}; give uamcts.make({model!r}), a simulator or a Gymnasium environment")
    gymnasium = sys.modules.get("gymnasium")  # who has an environment has imported it
    if gymnasium is not None and isinstance(model, gymnasium.Env):
        from uamcts import gym

        model = gym.Simulator(model)
    return PlainPlanner(PythonSimulator(model, num_actions, features), budget_seconds, memory)
