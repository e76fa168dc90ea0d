"""`uamcts.Agent`: for a loop of your own. It plans, is told what really happened, and learns where its model lies."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from uamcts.agent.backend import Backend
from uamcts.agent.compiled_planner import CompiledPlanner
from uamcts.agent.domain_backend import DomainBackend
from uamcts.agent.experience import PARTS, Measure
from uamcts.agent.jax_simulator import JaxSimulator
from uamcts.agent.plain_planner import PlainPlanner
from uamcts.agent.python_simulator import PythonSimulator
from uamcts.agent.report import Report
from uamcts.agent.simulator_backend import SimulatorBackend
from uamcts.arguments import function, real, seed_number, shown, switch, whole
from uamcts.domains.base import Domain
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.explain import explain
from uamcts.names import suggestion
from uamcts.presets import TRUST, search_config
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
    doubts only the others. Where a transition had several outcomes it plans with the most frequent one, and `report`
    says how many had; in a world with much chance leave the memory out. What was seen is looked up by the whole state,
    or by `identity(state)` where that is given, for example to leave a clock out.
    The budget of a move is `config.iterations`, or `budget_seconds` instead of it. Single settings of the search may be
    given by name instead of a `config`: `Agent(simulator, iterations=200)` keeps the other defaults.

    What changes an agent (`observe`, `learn`, `seed`, `load`) is done as a whole or, on an error, not at all.
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
        identity: Callable[[Any], Any] | None = None,
        **settings: Any,
    ):
        _check_arguments(estimator, config, schedule, budget_seconds, minibatches, memory)
        seed = seed_number(seed)
        given = {"num_actions": num_actions, "features": features, "identity": identity, "discrepancy": discrepancy}
        for name in ("features", "identity", "discrepancy"):
            function(name, given[name], "of a state" if name != "discrepancy" else "of two states")
        if isinstance(model, Domain):
            for name, value in given.items():
                if value is not None:
                    raise ValueError(f"{name} is given, but a domain has its own; leave it out")
            config = _config(search_config(model, "combined") if config is None else config, settings)
            backend: Backend = DomainBackend(
                model, estimator, config, schedule, seed, minibatches, budget_seconds, bool(memory)
            )
        else:
            del given["discrepancy"]
            config = _config(DEFAULT if config is None else config, settings)
            planner = _planner(model, given, budget_seconds, memory is None or bool(memory))
            estimator = "nearest" if estimator is None else estimator
            if schedule is None and estimator not in AT_ONCE:
                schedule = Schedule(interval=200)
            backend = SimulatorBackend(
                planner,
                estimator,
                config,
                schedule,
                seed,
                2000 if minibatches is None else minibatches,
                Measure(parts, discrepancy, tolerance),
            )
        self.backend: Any = backend
        self.last_plan: Any = None
        """What the last search found; `print(agent.explain())` tells it in words."""

    @property
    def estimator(self) -> Estimator | None:
        """What has been learned about the model's errors; None as long as a simulator was never wrong."""
        return self.backend.estimator

    @property
    def tau(self) -> float:
        """The uncertainty factor of the next search: the config's, or where the schedule has got to."""
        return self.backend.tau

    @property
    def steps(self) -> int:
        """Real transitions observed."""
        return self.backend.steps

    @property
    def loss(self) -> float | None:
        """Mean loss of the last round of training, None before the first and for simulators."""
        return self.backend.loss

    def act(self, state: Any) -> int:
        """The action to take in `state`."""
        self.last_plan = self.backend.act(state)
        return int(self.last_plan.action)

    def observe(
        self, state: Any, action: int, next_state: Any, *, reward: float | None = None, terminal: bool | None = None
    ) -> bool:
        """Takes in what really happened; True if something was learned.

        `reward` and `terminal` are compared with what a simulator says, where they are given. Where they are not, and
        the simulator was wrong about the next state, nothing is known about them: such a transition is doubted from
        then on, but not remembered as a fact. A domain is asked whether a state ends an episode.
        """
        return self.backend.observe(state, action, next_state, reward, terminal)

    def learn(self) -> bool:
        """Learns now from all that was seen; False if the schedule says that there is nothing more to learn."""
        return self.backend.learn()

    def seed(self, samples: Iterable[tuple]) -> int:
        """What is known of the real world already: (state, action, next_state), reward and terminal behind if known.

        It counts like what was observed. All of it is taken in or, on an error, nothing. Returns how many there were.
        """
        return self.backend.seed_with(samples)

    def report(self, most: int = 10) -> Report:
        """Where the model lies: the `most` transitions with the largest U. Print it, or go through it."""
        return self.backend.report(whole("most", most, 0))

    def explain(self) -> str:
        """Why the last action: visits, value and uncertainty of every action, and what was deleted."""
        if self.last_plan is None:
            raise RuntimeError("explain was called before act; there is no plan to explain yet")
        return explain(self.last_plan, self.backend.action_names)

    def save(self, path: str | os.PathLike) -> None:
        """Writes all that was learned, arrays and JSON in one file; an older file is replaced in one go."""
        self.backend.save(path)

    def load(self, path: str | os.PathLike) -> None:
        """Takes over what an agent of this model and this estimator has saved; on any error nothing changes.

        Remembered states that are named tuples, dataclasses or other objects are rebuilt with the classes of the states
        that this agent meets: they are planned with from the first `act` or `observe` on.
        """
        self.backend.load(path)
        self.last_plan = None


def _check_arguments(
    estimator: Any, config: Any, schedule: Any, budget_seconds: Any, minibatches: Any, memory: Any
) -> None:
    """Refuses arguments of the wrong kind."""
    if isinstance(estimator, str):
        check_name(estimator)
    elif estimator is not None and not isinstance(estimator, Estimator):
        raise TypeError(f"estimator is {shown(estimator)}; give a name such as 'nearest', or a uamcts.Estimator object")
    if config is not None and not isinstance(config, SearchConfig):
        raise TypeError(f"config is {shown(config)}; give a uamcts.SearchConfig, or single settings: iterations=200")
    if schedule is not None and not isinstance(schedule, Schedule):
        raise TypeError(f"schedule is {shown(schedule)}; give a uamcts.Schedule")
    if budget_seconds is not None:
        real("budget_seconds", budget_seconds, "it must be above 0, a finite number of seconds", lambda s: s > 0)
    if minibatches is not None:
        whole("minibatches", minibatches)
    if memory is not None:
        switch("memory", memory)


def _config(config: SearchConfig, settings: dict[str, Any]) -> SearchConfig:
    """A config with single settings changed, if each of them is one number: an agent makes one search at a time."""
    names = SearchConfig.__dataclass_fields__
    for name in settings:
        if name not in names:
            hint = suggestion(name, names)
            raise TypeError(f"Agent has no argument {name!r}; {hint}settings of the search are {', '.join(names)}")
    config = replace(config, **settings)
    for name in names:
        if np.ndim(getattr(config, name)):
            raise ValueError(f"{name} is {shown(getattr(config, name))}; an agent needs one number, not one a lane")
    return config


def _planner(
    model: Any, given: dict[str, Any], budget_seconds: float | None, memory: bool
) -> PlainPlanner | CompiledPlanner:
    """How to plan in what was given as a model."""
    if isinstance(model, JaxSimulator):
        if any(value is not None for value in given.values()):
            raise ValueError("num_actions, features and identity of a JaxSimulator are its own; leave them out")
        return CompiledPlanner(model, budget_seconds, memory)
    if isinstance(model, str):
        raise TypeError(f"model is {model!r}; give uamcts.make({model!r}), a simulator or a Gymnasium environment")
    gymnasium = sys.modules.get("gymnasium")  # who has an environment has imported it
    if gymnasium is not None and isinstance(model, gymnasium.Env):
        from uamcts import gym

        model = gym.Simulator(model)
    return PlainPlanner(PythonSimulator(model, **given), budget_seconds, memory)
