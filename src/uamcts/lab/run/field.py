"""Computes units of the field's comparisons."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from uamcts.field import (
    MEASURES,
    AdaMcts,
    Bamcp,
    Change,
    Counts,
    ExactLearner,
    GraphSearch,
    Mcts,
    PaMcts,
    Planner,
    Pole,
    PolePlanner,
    Rats,
    RobustUct,
    Score,
    Settings,
    StalePlan,
    draw_starts,
    make_grid,
    play,
    play_agent,
    play_pole,
    play_pole_agent,
)
from uamcts.lab.experiments.field_worlds import PLANNERS, GridWorld, PoleWorld
from uamcts.lab.run.field_units import AGENTS, FRESH, RULES, FieldUnit
from uamcts.lab.run.tables import Episodes, constants, join_tables
from uamcts.lab.run.units import Progress


def compute_field(unit: FieldUnit, progress: Progress) -> Episodes:
    """The episodes of a unit."""
    parts = []
    for number, setting in enumerate(unit.settings):
        progress(number / len(unit.settings), f"{unit.episodes} episodes")
        score = _play(unit, setting, lambda share: progress(share, f"{unit.episodes} episodes"))
        parts.append(_table(unit, setting, score))
    return join_tables(parts)


def make_planner(name: str, setting: float, iterations: int, world: GridWorld) -> Planner:
    """A planner with the setting that it chooses, and the others at their defaults."""
    c = setting if PLANNERS[name].tuned == "c" else world.usual("mcts")
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


def _play(unit: FieldUnit, setting: float, progress: Callable[[float], None]) -> Score:
    if isinstance(unit.world, GridWorld):
        return _play_grid(unit, unit.world, setting, progress)
    return _play_pole(unit, unit.world, setting, progress)


def _play_grid(unit: FieldUnit, world: GridWorld, setting: float, progress: Callable[[float], None]) -> Score:
    grid = make_grid(world.map, world.slips, world.rewards, world.teleport)
    believed = world.parameter if PLANNERS[unit.planner].told else world.believed
    if unit.planner == "agent":
        return play_agent(
            grid, world.parameter, believed, world.gamma, unit.episodes, world.steps, unit.iterations, _seed(unit),
            unit.first, progress,
        )  # fmt: skip
    planner = make_planner(unit.planner, setting, unit.iterations, world)
    key = jax.random.key(_seed(unit))
    return play(key, planner, grid, world.parameter, believed, world.gamma, unit.episodes, world.steps)


def _play_pole(unit: FieldUnit, world: PoleWorld, setting: float, progress: Callable[[float], None]) -> Score:
    seed = _seed(unit)
    change, starts = Change(world.gravity, world.gain), draw_starts(seed, unit.first, unit.episodes)
    mixed = unit.planner == "pa_mcts"
    stale = StalePlan.of(Pole()) if mixed or unit.planner == "agent_stale" else None
    if unit.planner in AGENTS:
        return play_pole_agent(
            starts, change, world.steps, unit.iterations, world.depth, world.gamma, seed + unit.first, progress, stale
        )
    c = world.usual("mcts") if mixed else None if unit.planner == "graph_told" else setting
    planner = PolePlanner(unit.iterations, world.depth, world.gamma, c, setting if mixed else 0.0, stale)
    keys = jax.random.split(jax.random.key(seed), unit.episodes)
    return play_pole(keys, starts, planner, change, world.steps, PLANNERS[unit.planner].told)


def _seed(unit: FieldUnit) -> int:
    return unit.seed * 10 * FRESH + (FRESH if unit.purpose == "field" else 0)


def _table(unit: FieldUnit, setting: float, score: Score) -> Episodes:
    rewards, steps, ended = (np.asarray(part) for part in score)
    if isinstance(unit.world, GridWorld) and unit.world.share:
        rewards = (rewards > 0) & ended
    count = len(rewards)
    return {
        **constants(count, experiment=unit.experiment, domain=unit.domain, scenario="field", learner="none"),
        **constants(count, algorithm=unit.planner, rules=RULES, c=setting, tau=0.0, purpose=unit.purpose),
        "seed": unit.first + np.arange(count, dtype=np.int64),
        "episode": np.zeros(count, np.int32),
        "reward": rewards.astype(np.float32),
        "steps": steps.astype(np.int32),
        "ended": ended.astype(bool),
    }
