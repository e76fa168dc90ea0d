"""What `uamcts run` was asked for: checked at once, and turned into experiments or a single online unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from uamcts import names
from uamcts.lab.console import limits

if TYPE_CHECKING:
    from uamcts.lab.experiments.paper import Experiment
    from uamcts.lab.run.units import OnlineUnit

OFFLINE_ALGORITHMS = ("true", "corrupted", "combined")
GRAPH_ALGORITHMS = ("true", "corrupted", "trust")
OFFLINE_RUNS = 100


@dataclass(frozen=True)
class RunOptions:
    """The options of `uamcts run`. Lists are empty, and numbers None, where an option was not given.

    Raises:
        ValueError: If a value is out of range, or the scenario would ignore an option.
    """

    domains: list[str]
    scenario: str
    algorithms: list[str]
    learners: list[str]
    runs: int | None
    steps: int | None
    exploration: list[float]
    taus: list[float]
    iterations: list[int]
    interval: int | None
    minibatches: int | None
    options: list[str]
    """Options of the domain, as NAME=VALUE."""
    graph: bool = False
    steps_left: bool = False

    def __post_init__(self) -> None:
        online = {"steps": self.steps, "interval": self.interval, "minibatches": self.minibatches}
        offline = {"tau": self.taus, "iterations": self.iterations, "graph": self.graph, "steps-left": self.steps_left}
        limits.check_scenario(self.scenario, {"learner": self.learners, **online, **offline})
        limits.check_sizes(runs=self.runs, **online)
        limits.check_search_numbers(self.exploration, self.taus)
        for number in self.iterations:
            limits.check_sizes(iterations=number)
        object.__setattr__(self, "algorithms", [names.algorithm_key(name) for name in self.algorithms])
        if set(self.algorithms) == {"agent"}:
            limits.refuse_unread("algorithm agent", {"learner": self.learners, "minibatches": self.minibatches})

    @property
    def is_single(self) -> bool:
        """Whether this is one online unit and not a grid."""
        lists = (self.domains, self.algorithms, self.learners, self.exploration)
        return self.scenario == "online" and all(len(values) <= 1 for values in lists)

    def experiments(self) -> list[Experiment]:
        """The grid as experiments."""
        from uamcts.lab.run import grid

        options = grid.domain_options(self.options)
        if self.scenario == "offline":
            usual = GRAPH_ALGORITHMS if self.graph else OFFLINE_ALGORITHMS
            return grid.offline_grid(
                self.domains, self.algorithms or usual, self.exploration, self.taus or [0.1],
                self.iterations, self.runs or OFFLINE_RUNS, options, self.graph, self.steps_left,
            )  # fmt: skip
        return grid.online_grid(
            self.domains, self.algorithms or ["combined"], self.learners, self.exploration, self.runs, self.steps,
            self.interval, self.minibatches, options,
        )  # fmt: skip

    def unit(self, rules: str, seed: int) -> OnlineUnit:
        """The single online unit."""
        from uamcts.lab.run import grid
        from uamcts.lab.run.units import OnlineUnit

        return OnlineUnit.with_defaults(
            self.domains[0],
            next(iter(self.algorithms), "combined"),
            learner=next(iter(self.learners), None),
            rules=rules,
            c=next(iter(self.exploration), None),
            runs=self.runs,
            steps=self.steps,
            seed=seed,
            interval=self.interval,
            minibatches=self.minibatches,
            options=grid.domain_options(self.options),
        )
