"""Units of work: what to compute, and nothing about where or how fast.

A unit is a frozen description. Its `identity` holds everything that decides its numbers; its `name` ends in a digest of
that identity and is the name of its file in a results folder. `compute.py` runs units, `enumeration.py` lists the units
of an experiment.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Self

from uamcts.domains import make
from uamcts.domains.base import Domain
from uamcts.lab.console.limits import check_seed, check_sizes
from uamcts.lab.experiments.learners import check_planner
from uamcts.lab.experiments.paper import Options, Pair
from uamcts.lab.run.field_units import FieldUnit
from uamcts.mcts.config import SearchConfig
from uamcts.presets import BUDGETS, OnlineSettings, online_settings, search_config
from uamcts.versions import versions_of

AGENT = "agent"
"""The algorithm that is `uamcts.Agent`."""
Progress = Callable[[float, str], None]
"""Called with the share of a unit that is done and a short status text."""
CORE_SECONDS = {
    "space_invaders": (0.02, 0.0035), "freeway": (0.02, 0.0014), "breakout": (0.06, 0.0012),
    "two_way": (0.003, 0.002), "two_way_icy": (0.003, 0.002), "hidden_obstacles": (0.04, 0.005),
    "slippery": (0.03, 0.005), "shortcut": (0.015, 0.005), "frozen_lake": (0.02, 0.005),
    "cliff": (0.02, 0.005), "bridge": (0.02, 0.005),
}  # fmt: skip
"""Rough core seconds of an offline episode, and of an online step including its share of training."""
AGENT_STEP = 0.02
"""Rough core seconds of a step of `uamcts.Agent`."""


@dataclass(frozen=True)
class OfflineUnit:
    """Episodes with a known U: each of `pairs` (algorithm, c) on each seed from `first_seed` on.

    All searches of a unit follow the same rule set, `rules`.
    """

    experiment: str
    domain: str
    rules: str
    tau: float
    purpose: str
    pairs: tuple[Pair, ...]
    first_seed: int
    seeds: int
    seed: int
    budget: tuple[tuple[str, float], ...] = ()
    """`iterations`, `rollouts`, `depth`, `gamma`, `graph` and `steps_left` where they differ from the paper's."""
    options: Options = ()
    """Options of the domain."""
    drawn: bool = False
    """Whether each seed draws a domain of its own."""

    @cached_property
    def name(self) -> str:
        words = f"{self.experiment}-offline-{self.rules}-tau{self.tau:g}-{self.purpose}-{self.first_seed}"
        return f"{words}-{_digest(self.identity)}"

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that decides the numbers: the request, the searches it stands for, and the code's versions.

        Raises:
            ValueError: If no search can be run with these settings.
        """
        domain = self.world(self.first_seed)
        searches: dict[str, Any] = {}
        rules: dict[str, None] = {}
        engines: dict[str, None] = dict.fromkeys(("search", "offline"))
        for algorithm, c in self.pairs:
            config = self.search(domain, algorithm, c)
            check_sizes(iterations=config.iterations)
            rules[config.rules] = None
            engines |= {"graph": None} if config.graph else {}
            searches[algorithm] = config.identity()
            del searches[algorithm]["c"]  # `pairs` hold every c
        versions = versions_of(engines, self.domain, rules, "true")
        return {**asdict(self), "searches": searches, "versions": versions}

    def search(self, domain: Domain, algorithm: str, c: float) -> SearchConfig:
        """The search settings of one of `pairs`."""
        budget = {name: value for name, value in self.budget if name != "steps_left"}
        return search_config(domain, algorithm, rules=self.rules, tau=self.tau, **budget, c=c)

    @property
    def steps_left(self) -> bool:
        """Whether searches know how many steps are left in the episode."""
        return bool(dict(self.budget).get("steps_left", False))

    def world(self, seed: int) -> Domain:
        """The domain that a seed is played in."""
        options = dict(self.options)
        return make(self.domain, **options, seed=seed) if self.drawn else make(self.domain, **options)


@dataclass(frozen=True)
class OnlineUnit:
    """Runs that learn on the way, all with the same algorithm and learner. This is the description of an online run."""

    experiment: str
    domain: str
    algorithm: str
    learner: str
    rules: str
    c: float
    runs: int
    steps: int
    seed: int
    interval: int | None = None
    """Real steps between two rounds of training. None: the default of domain and algorithm."""
    minibatches: int | None = None
    """Minibatches of a round. None: the default of domain and algorithm."""
    options: Options = ()
    """Options of the domain."""

    @classmethod
    def with_defaults(
        cls,
        domain: str,
        algorithm: str = "combined",
        learner: str | None = None,
        rules: str = "released",
        c: float | None = None,
        runs: int | None = None,
        steps: int | None = None,
        seed: int = 0,
        interval: int | None = None,
        minibatches: int | None = None,
        options: Options = (),
        experiment: str = "",
    ) -> Self:
        """A unit with the defaults of domain and algorithm in place of None; `rules` are those the search follows."""
        world = make(domain, **dict(options))
        settings = online_settings(world, algorithm)
        search = _search(world, algorithm, rules=rules, **({} if c is None else {"c": c}))
        return cls(
            experiment=experiment or f"run_{domain}",
            domain=domain,
            algorithm=algorithm,
            learner=settings.estimator if learner is None else learner,
            rules=search.rules,
            c=float(search.c),
            runs=settings.runs if runs is None else runs,
            steps=settings.steps if steps is None else steps,
            seed=seed,
            interval=interval,
            minibatches=minibatches,
            options=options,
        )

    @cached_property
    def name(self) -> str:
        return f"{self.experiment}-online-{self.rules}-{self.algorithm}-{self.learner}-{_digest(self.identity)}"

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that decides the numbers: the request, what it stands for, and the code's versions."""
        return {**asdict(self), **self.consequences()}

    def complete(self) -> Self:
        """The same unit with `interval` and `minibatches` filled in.

        Raises:
            ValueError: If a setting is out of range or unknown.
        """
        defaults = online_settings(self.world(), self.algorithm)
        full = replace(
            self,
            interval=defaults.schedule.interval if self.interval is None else self.interval,
            minibatches=defaults.minibatches if self.minibatches is None else self.minibatches,
        )
        check_sizes(runs=full.runs, steps=full.steps, interval=full.interval, minibatches=full.minibatches)
        check_planner(full.algorithm, full.learner)
        check_seed(full.seed)
        return full

    def world(self) -> Domain:
        """The domain that the runs are played in."""
        return make(self.domain, **dict(self.options))

    def search(self, domain: Domain) -> SearchConfig:
        """The search settings of every move."""
        return _search(domain, self.algorithm, rules=self.rules, c=self.c)

    def learning(self, domain: Domain) -> OnlineSettings:
        """The training settings of a complete unit."""
        settings = online_settings(domain, AGENT if self.algorithm == AGENT else "combined")
        schedule = settings.schedule if self.interval is None else replace(settings.schedule, interval=self.interval)
        return replace(settings, schedule=schedule)

    def consequences(self) -> dict[str, Any]:
        """The search and training settings that the unit stands for, and the versions of the code that reads them."""
        full, domain = self.complete(), self.world()
        search, learning = full.search(domain), full.learning(domain)
        if self.algorithm == AGENT:
            engines = ("search", "graph", "agent")
            return {"search": search.identity(), "versions": versions_of(engines, self.domain, (search.rules,), None)}
        return {
            "search": search.identity(),
            "schedule": asdict(learning.schedule),
            "terminal_copies": learning.terminal_copies,
            "versions": versions_of(("search", "online"), self.domain, (search.rules,), self.learner),
        }


Unit = OfflineUnit | OnlineUnit | FieldUnit


def _search(domain: Domain, algorithm: str, **settings: Any) -> SearchConfig:
    """The settings of an online search: those of `agent` are those of trust search."""
    return search_config(domain, "trust" if algorithm == AGENT else algorithm, **settings)


def estimate_seconds(unit: Unit) -> float:
    """A rough estimate of the core seconds a unit takes."""
    if isinstance(unit, FieldUnit):
        return 10 + unit.episodes * (0.3 if unit.planner == "agent" else 0.02) * unit.iterations / 100
    episode, step = CORE_SECONDS.get(unit.domain, (0.05, 0.005))
    if isinstance(unit, OnlineUnit):
        return 5 + (AGENT_STEP if unit.algorithm == AGENT else step) * unit.runs * unit.steps
    usual = BUDGETS.get(unit.domain, {}).get("iterations", 100)
    return 5 + episode * unit.seeds * len(unit.pairs) * dict(unit.budget).get("iterations", usual) / usual


def _digest(identity: dict[str, Any]) -> str:
    """Eight letters that change with any part of the identity."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:8]
