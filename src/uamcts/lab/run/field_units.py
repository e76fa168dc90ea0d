"""Units of the field's comparisons: one planner in one cell."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from uamcts.lab.analysis.groups import Series
from uamcts.lab.experiments.field import PLANNERS, FieldExperiment, GridWorld
from uamcts.versions import FIELD_VERSIONS

DEFAULT_C = 2.0**0.5
RULES = "field"
FRESH = 1_000_000
"""The first seed of the episodes that are reported."""


@dataclass(frozen=True)
class FieldUnit:
    """Episodes of one planner in one cell, with each of some settings."""

    experiment: str
    domain: str
    planner: str
    world: GridWorld
    settings: tuple[float, ...]
    iterations: int
    episodes: int
    purpose: str
    """`sweep`: every setting; `field`: the chosen one, on other seeds."""
    seed: int

    @cached_property
    def name(self) -> str:
        digest = hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.experiment}-field-{self.planner}-{self.purpose}-{digest}"

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that decides the numbers."""
        versions = {name: FIELD_VERSIONS[name] for name in ("field", self.planner)}
        return {**asdict(self), "versions": versions}

    @property
    def series(self) -> Series:
        """What the settings of its sweep have in common."""
        return (self.experiment, self.domain, self.planner, RULES, 0.0)


def field_units(experiment: FieldExperiment, seed: int, best: Mapping[Series, float] | None) -> Iterator[FieldUnit]:
    """The units of a cell: sweeps, and, once these have chosen the `best` settings, what is reported."""
    for name in experiment.planners:
        planner = PLANNERS[name]
        chooses = len(planner.settings) > 1 and experiment.tuning_episodes > 0

        def unit(settings: tuple[float, ...], episodes: int, purpose: str, name: str = name) -> FieldUnit:
            return FieldUnit(
                experiment.name, experiment.domain, name, experiment.world, settings, experiment.iterations, episodes,
                purpose, seed,
            )  # fmt: skip

        sweep = unit(planner.settings, experiment.tuning_episodes, "sweep")
        if chooses:
            yield sweep
        episodes = experiment.learner_episodes if planner.learns else experiment.episodes
        episodes = experiment.agent_episodes if name == "agent" else episodes
        usual = DEFAULT_C if planner.tuned == "c" else planner.settings[len(planner.settings) // 2]
        if not chooses:
            yield unit((usual,), episodes, "field")
        elif best is not None:
            yield unit((best[sweep.series],), episodes, "field")
