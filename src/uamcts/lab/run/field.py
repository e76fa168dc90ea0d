"""Computes units of the field's comparisons."""

from __future__ import annotations

import jax
import numpy as np

from uamcts.field import (
    MEASURES,
    AdaMcts,
    Bamcp,
    Counts,
    ExactLearner,
    GraphSearch,
    Grid,
    Mcts,
    PaMcts,
    Planner,
    Rats,
    RobustUct,
    Settings,
    make_grid,
    play,
    play_agent,
)
from uamcts.lab.experiments.field import PLANNERS, GridWorld
from uamcts.lab.run.field_units import DEFAULT_C, FRESH, RULES, FieldUnit
from uamcts.lab.run.tables import Episodes, constants, join_tables
from uamcts.lab.run.units import Progress


def compute_field(unit: FieldUnit, progress: Progress) -> Episodes:
    """The episodes of a unit."""
    world = unit.world
    grid = make_grid(world.map, world.slips, world.rewards, world.teleport)
    believed = world.parameter if PLANNERS[unit.planner].told else world.believed
    parts = []
    for number, setting in enumerate(unit.settings):
        if unit.planner == "agent":
            score = play_agent(
                grid, world.parameter, believed, world.gamma, unit.episodes, world.steps, unit.iterations, _seed(unit),
                lambda share: progress(share, f"{unit.episodes} episodes"),
            )  # fmt: skip
        else:
            progress(number / len(unit.settings), f"{unit.episodes} episodes")
            planner = make_planner(unit.planner, setting, unit.iterations, world)
            score = _play(planner, grid, believed, unit)
        parts.append(_table(unit, setting, *score))
    return join_tables(parts)


def make_planner(name: str, setting: float, iterations: int, world: GridWorld) -> Planner:
    """A planner with the setting that it chooses, and the others at their defaults."""
    c = setting if PLANNERS[name].tuned == "c" else DEFAULT_C
    search = Settings(iterations, world.steps, world.gamma, c)
    if name in MEASURES:
        return RobustUct(search, name, setting)
    if name.startswith("rats"):
        return Rats(search, lipschitz=setting)
    if name == "pa_mcts":
        return PaMcts(search, setting, world.believed)
    kinds = {"mcts": Mcts, "graph": GraphSearch, "ada_mcts": AdaMcts, "bamcp": Bamcp, "counts": Counts,
             "exact_learner": ExactLearner}  # fmt: skip
    return kinds[name.removesuffix("_told")](search)


def _play(planner: Planner, grid: Grid, believed: float, unit: FieldUnit) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    world = unit.world
    key = jax.random.key(_seed(unit))
    score = play(key, planner, grid, world.parameter, believed, world.gamma, unit.episodes, world.steps)
    return np.asarray(score.reward), np.asarray(score.steps), np.asarray(score.ended)


def _seed(unit: FieldUnit) -> int:
    return unit.seed * 10 * FRESH + (FRESH if unit.purpose == "field" else 0)


def _table(unit: FieldUnit, setting: float, rewards: np.ndarray, steps: np.ndarray, ended: np.ndarray) -> Episodes:
    count = len(rewards)
    reward = (np.asarray(rewards) > 0) & np.asarray(ended) if unit.world.share else np.asarray(rewards)
    return {
        **constants(count, experiment=unit.experiment, domain=unit.domain, scenario="field", learner="none"),
        **constants(count, algorithm=unit.planner, rules=RULES, c=setting, tau=0.0, purpose=unit.purpose),
        "seed": np.arange(count, dtype=np.int64),
        "episode": np.zeros(count, np.int32),
        "reward": reward.astype(np.float32),
        "steps": np.asarray(steps, np.int32),
        "ended": np.asarray(ended, bool),
    }
