"""Units of the field's comparisons: one planner in one cell."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from uamcts.lab.analysis.groups import Series
from uamcts.lab.experiments.field import FieldExperiment
from uamcts.lab.experiments.field_worlds import PLANNERS, GridWorld, PoleWorld
from uamcts.versions import FIELD_VERSIONS

RULES = "field"
AGENTS = ("agent", "agent_stale")
FRESH = 1_000_000
"""The first seed of the episodes that are reported."""


@dataclass(frozen=True)
class FieldUnit:
    """Episodes of one planner in one cell, with each of some settings."""

    experiment: str
    domain: str
    planner: str
    world: GridWorld | PoleWorld
    settings: tuple[float, ...]
    iterations: int
    episodes: int
    purpose: str
    """`sweep`: every setting; `field`: the chosen one, on other seeds."""
    seed: int
    first: int = 0
    """The number of its first episode."""

    @cached_property
    def name(self) -> str:
        digest = hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.experiment}-field-{self.planner}-{self.purpose}-{digest}"

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that decides the numbers."""
        kind = "field" if isinstance(self.world, GridWorld) else "cart_pole"
        planner = "pole_agent" if kind == "cart_pole" and self.planner in AGENTS else self.planner
        versions = {name: FIELD_VERSIONS[name] for name in (kind, planner)}
        given = {name: value for name, value in asdict(self).items() if name != "first" or value}
        return {**given, "versions": versions}

    @property
    def series(self) -> Series:
        """What the settings of its sweep have in common."""
        return (self.experiment, self.domain, self.planner, RULES, 0.0)


def field_units(experiment: FieldExperiment, seed: int, best: Mapping[Series, float] | None) -> Iterator[FieldUnit]:
    """The units of a cell: sweeps, and, once these have chosen the `best` settings, what is reported."""
    for name in experiment.planners:
        settings = experiment.world.settings(name)
        setting: float | None = experiment.world.usual(name)
        if len(settings) > 1 and experiment.tuning_episodes > 0:
            sweep = _unit(experiment, name, seed, settings, experiment.tuning_episodes, "sweep")
            yield sweep
            setting = best[sweep.series] if best is not None else None
        if setting is not None:
            for first, episodes in _blocks(experiment, name):
                yield _unit(experiment, name, seed, (setting,), episodes, "field", first)


def _unit(
    experiment: FieldExperiment,
    planner: str,
    seed: int,
    settings: tuple[float, ...],
    episodes: int,
    purpose: str,
    first: int = 0,
) -> FieldUnit:
    return FieldUnit(
        experiment.name, experiment.domain, planner, experiment.world, settings, experiment.iterations, episodes,
        purpose, seed, first,
    )  # fmt: skip


def _blocks(experiment: FieldExperiment, planner: str) -> Iterator[tuple[int, int]]:
    """The number of the first episode and the number of episodes, of each unit that is reported."""
    if planner not in AGENTS:
        yield 0, experiment.learner_episodes if PLANNERS[planner].learns else experiment.episodes
        return
    for first in range(0, experiment.agent_episodes, experiment.agent_block):
        yield first, min(experiment.agent_block, experiment.agent_episodes - first)
