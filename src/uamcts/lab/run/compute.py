"""Computes a unit: offline as one batch of episodes, online as runs that can be resumed after every round."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from uamcts.lab.run.agents import AgentRuns
from uamcts.lab.run.batches import Job, compile_jobs, play_jobs
from uamcts.lab.run.field_units import FieldUnit
from uamcts.lab.run.online import News, Runs
from uamcts.lab.run.store import check_identity
from uamcts.lab.run.tables import Episodes, as_parquet, constants, from_parquet, join_tables
from uamcts.lab.run.units import AGENT, OfflineUnit, OnlineUnit, Progress, Unit
from uamcts.presets import planning_domain
from uamcts.runtime.atomic import write_whole


def compute_unit(
    unit: Unit, progress: Progress, scratch: Path | None, listen: Callable[[News], None] = lambda news: None
) -> Episodes:
    """The episodes of a unit.

    Args:
        unit: What to compute.
        progress: Called with the share that is done and a status text.
        scratch: The folder in which an online unit keeps its runs after every round, and finds them again. An offline
            unit does not need one.
        listen: Called with every `News` of an online unit.
    """
    if isinstance(unit, OfflineUnit):
        return _compute_offline(unit, progress)
    if isinstance(unit, FieldUnit):
        from uamcts.lab.run.field import compute_field

        return compute_field(unit, progress)
    if scratch is None:
        raise ValueError("scratch is None; an online unit needs a folder for its runs")
    return _compute_online(unit, progress, scratch, listen)


def compile_unit(unit: OfflineUnit) -> None:
    """Compiles the programs of an offline unit, possibly ahead of time in another thread."""
    compile_jobs(jobs_of(unit), unit.seed)


def scratch_files(unit: OnlineUnit, folder: Path) -> tuple[Path, Path]:
    """The files of an unfinished online unit: its runs, and their episodes so far."""
    return folder / f"{unit.name}.runs", folder / f"{unit.name}.so-far"


def jobs_of(unit: OfflineUnit) -> list[Job]:
    """The episodes of a unit, seed by seed, every pair."""
    jobs = []
    for seed in range(unit.first_seed, unit.first_seed + unit.seeds):
        domain = unit.world(seed)
        jobs += [
            Job(planning_domain(domain, algorithm), unit.search(domain, algorithm, c), seed, unit.steps_left)
            for algorithm, c in unit.pairs
        ]
    return jobs


def _compute_offline(unit: OfflineUnit, progress: Progress) -> Episodes:
    jobs = jobs_of(unit)
    progress(0.0, f"{len(jobs)} episodes")
    score = play_jobs(jobs, unit.seed)
    count = len(jobs)
    return {
        **constants(count, experiment=unit.experiment, domain=unit.domain, scenario="offline", learner="true"),
        **constants(count, tau=unit.tau, purpose=unit.purpose),
        "rules": np.array([job.config.rules for job in jobs], object),
        "algorithm": np.array([algorithm for algorithm, _ in unit.pairs] * unit.seeds, object),
        "c": np.array([c for _, c in unit.pairs] * unit.seeds, np.float64),
        "seed": np.array([job.number for job in jobs]),
        "episode": np.zeros(count, np.int32),
        "reward": np.asarray(score.reward),
        "steps": np.asarray(score.steps),
        "ended": np.asarray(score.ended),
    }


def _compute_online(unit: OnlineUnit, progress: Progress, scratch: Path, listen: Callable[[News], None]) -> Episodes:
    runs: Runs | AgentRuns = AgentRuns(unit) if unit.algorithm == AGENT else Runs(unit)
    saved, table = scratch_files(unit, scratch)
    parts: list[Episodes] = []
    if saved.exists() and table.exists():
        parts = [resume(unit, runs, saved, table)]
    counts = runs.episodes
    for news in runs.advance():
        words = news.words or f"tau {news.tau[0]:.2g}, loss {float(np.mean(news.loss)):.2g}"
        progress(news.steps / unit.steps, words)
        parts.append(_episodes(unit, news, counts))
        listen(news)
        if news.learned:
            done = join_tables(parts)
            write_whole(table, as_parquet(done, {"unit": unit.identity, "step": _real_steps(done)}))
            runs.save(saved)
    return join_tables(parts)


def resume(unit: OnlineUnit, runs: Runs | AgentRuns, saved: Path, table: Path) -> Episodes:
    """Loads the runs from their file and returns their episodes up to there.

    The table is written before the runs, so it may be a round ahead of them; that round is dropped.
    """
    runs.load(saved)
    episodes, about = from_parquet(table)
    check_identity(table, about, unit)
    early = np.array(about["step"], int) <= runs.steps
    return {name: column[early] for name, column in episodes.items()}


def _episodes(unit: OnlineUnit, news: News, counts: list[int]) -> Episodes:
    """The episodes that ended since the last news; `counts` are those of each run so far, and are updated."""
    run, step = np.nonzero(np.asarray(news.said.ended))
    numbers = np.zeros(len(run), np.int32)
    for index, which in enumerate(run):
        numbers[index] = counts[which]
        counts[which] += 1
    shared: dict[str, Any] = {"algorithm": unit.algorithm, "rules": unit.rules, "c": unit.c, "tau": news.said_tau}
    return {
        **constants(len(run), experiment=unit.experiment, domain=unit.domain, scenario="online", learner=unit.learner),
        **constants(len(run), **shared, purpose="online"),
        "seed": run.astype(np.int64),
        "episode": numbers,
        "reward": np.asarray(news.said.reward)[run, step],
        "steps": np.asarray(news.said.length)[run, step],
        "ended": np.asarray(news.said.terminal)[run, step],
    }


def _real_steps(episodes: Episodes) -> list[int]:
    """The real steps of each run after each of its episodes, row by row."""
    totals: dict[int, int] = {}
    steps = []
    for seed, count in zip(episodes["seed"].tolist(), episodes["steps"].tolist(), strict=True):
        totals[seed] = totals.get(seed, 0) + count
        steps.append(totals[seed])
    return steps
