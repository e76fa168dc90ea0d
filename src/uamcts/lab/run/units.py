"""The pieces that work is cut into. A unit says what is to be computed, and nothing of where or how fast."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from uamcts.domains import make
from uamcts.domains.base import Domain
from uamcts.lab.experiments.paper import Options
from uamcts.lab.run import online
from uamcts.lab.run.batches import Job, compile_for, play_all
from uamcts.lab.run.store import check_identity
from uamcts.lab.run.tables import Episodes, as_parquet, constants, from_parquet, join_tables
from uamcts.mcts.config import SearchConfig
from uamcts.presets import BUDGETS, planned_in, search_config
from uamcts.runtime.atomic import write_whole
from uamcts.versions import versions_of

Progress = Callable[[float, str], None]
"""Told which share of a unit is done, and a few words about it."""
CORE_SECONDS = {
    "space_invaders": (0.02, 0.0035), "freeway": (0.02, 0.0014), "breakout": (0.06, 0.0012),
    "two_way": (0.003, 0.002), "two_way_icy": (0.003, 0.002), "hidden_obstacles": (0.04, 0.005),
    "slippery": (0.03, 0.005), "shortcut": (0.015, 0.005), "frozen_lake": (0.02, 0.005),
    "cliff": (0.02, 0.005), "bridge": (0.02, 0.005),
}  # fmt: skip
"""What an offline episode, and an online step with its share of training, take one core: for a first guess."""


@dataclass(frozen=True)
class OfflineUnit:
    """Episodes with a known U: every one of `pairs` (algorithm, c) on every seed from `first_seed` on.

    All of them are searches by the same rule set, `rules`.
    """

    experiment: str
    domain: str
    rules: str
    tau: float
    purpose: str
    pairs: tuple[tuple[str, float], ...]
    first_seed: int
    seeds: int
    seed: int
    budget: tuple[tuple[str, float], ...] = ()
    """`iterations`, `rollouts`, `depth` and `gamma` where they are not the paper's."""
    options: Options = ()
    """Of the domain."""
    drawn: bool = False
    """Whether each seed has a domain of its own, drawn from it."""

    @cached_property
    def name(self) -> str:
        words = f"{self.experiment}-offline-{self.rules}-tau{self.tau:g}-{self.purpose}-{self.first_seed}"
        return f"{words}-{_digest(self.identity)}"

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that decides the numbers: what was asked for, the searches it means, and who carries them out."""
        domain = self._world(self.first_seed)
        configs = {algorithm: self._config(domain, algorithm, c).identity() for algorithm, c in self.pairs}
        shared = {algorithm: _without(config, "c") for algorithm, config in configs.items()}  # `pairs` have each c
        rules = dict.fromkeys(config["rules"] for config in configs.values())
        versions = versions_of(("search", "offline"), self.domain, rules, "true")
        return {**asdict(self), "searches": shared, "versions": versions}

    def prepare(self) -> None:
        """Compiles what `compute` will need, so that it can be done ahead, in another thread."""
        compile_for(self._jobs(), self.seed)

    def compute(self, progress: Progress, scratch: Path) -> Episodes:
        """Plays them, as lanes of one program."""
        del scratch
        jobs = self._jobs()
        progress(0.0, f"{len(jobs)} episodes")
        score = play_all(jobs, self.seed)
        count, seeds = len(jobs), np.array([job.number for job in jobs])
        return {
            **constants(count, experiment=self.experiment, domain=self.domain, scenario="offline", learner="true"),
            **constants(count, tau=self.tau, purpose=self.purpose),
            "rules": np.array([job.config.rules for job in jobs], object),
            "algorithm": np.array([algorithm for algorithm, _ in self.pairs] * self.seeds, object),
            "c": np.array([c for _, c in self.pairs] * self.seeds, np.float64),
            "seed": seeds,
            "episode": np.zeros(count, np.int32),
            "reward": np.asarray(score.reward),
            "steps": np.asarray(score.steps),
            "ended": np.asarray(score.ended),
        }

    def _jobs(self) -> list[Job]:
        """Seed by seed, every pair."""
        jobs = []
        for seed in range(self.first_seed, self.first_seed + self.seeds):
            domain = self._world(seed)
            jobs += [
                Job(planned_in(domain, algorithm), self._config(domain, algorithm, c), seed)
                for algorithm, c in self.pairs
            ]
        return jobs

    def _config(self, domain: Domain, algorithm: str, c: float) -> SearchConfig:
        return search_config(domain, algorithm, rules=self.rules, tau=self.tau, **dict(self.budget), c=c)

    def _world(self, seed: int) -> Domain:
        """The domain of one seed."""
        options = dict(self.options)
        return make(self.domain, **options, seed=seed) if self.drawn else make(self.domain, **options)


@dataclass(frozen=True)
class OnlineUnit:
    """Runs in which something is learned, all of one algorithm with one learner."""

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
    minibatches: int | None = None
    options: Options = ()
    """Of the domain."""

    @classmethod
    def of(cls, experiment: str, settings: online.Experiment) -> Self:
        """The unit of an online experiment, under a name of its own."""
        return cls(experiment=experiment, **asdict(settings.complete()))

    @cached_property
    def name(self) -> str:
        return f"{self.experiment}-online-{self.rules}-{self.algorithm}-{self.learner}-{_digest(self.identity)}"

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that decides the numbers: what was asked for, what it means, and who carries it out."""
        return {**asdict(self), **self._settings().meaning()}

    def _settings(self) -> online.Experiment:
        return online.Experiment(**_without(asdict(self), "experiment"))

    def compute(
        self, progress: Progress, scratch: Path, listen: Callable[[online.News], None] = lambda news: None
    ) -> Episodes:
        """Takes the runs to their end; after every round of training they are kept in `scratch` to go on from.

        Whoever wants to `listen` is told all the news.
        """
        runs = online.Runs(self._settings())
        kept, table = self._scratch(scratch)
        parts: list[Episodes] = []
        if kept.exists() and table.exists():
            parts = [self._resume(runs, kept, table)]
        over = [int(part) for part in np.asarray(runs.runs.episode)]
        for news in runs.advance():
            progress(news.steps / self.steps, f"tau {news.tau[0]:.2g}, loss {float(np.mean(news.loss)):.2g}")
            parts.append(self._episodes(news, over))
            listen(news)
            if news.learned:
                done = join_tables(parts)
                write_whole(table, as_parquet(done, {"unit": self.identity, "step": _steps_of(done)}))
                runs.save(kept)
        return join_tables(parts)

    def _scratch(self, folder: Path) -> tuple[Path, Path]:
        """The files of a unit that is not finished: its runs, and their episodes so far."""
        return folder / f"{self.name}.runs", folder / f"{self.name}.so-far"

    def _resume(self, runs: online.Runs, kept: Path, table: Path) -> Episodes:
        """Takes the runs over from their file; their episodes up to there."""
        runs.load(kept)
        episodes, about = from_parquet(table)
        check_identity(table, about, self)
        return _until(episodes, about, runs.steps)

    def _episodes(self, news: online.News, over: list[int]) -> Episodes:
        """The episodes that ended since the last news; `over` counts those of each run."""
        ended = np.asarray(news.said.ended)
        run, step = np.nonzero(ended)
        numbers = np.zeros(len(run), np.int32)
        for index, which in enumerate(run):
            numbers[index] = over[which]
            over[which] += 1
        count = len(run)
        return {
            **constants(count, experiment=self.experiment, domain=self.domain, scenario="online", learner=self.learner),
            **constants(
                count, algorithm=self.algorithm, rules=self.rules, c=self.c, tau=news.said_tau, purpose="online"
            ),
            "seed": run.astype(np.int64),
            "episode": numbers,
            "reward": np.asarray(news.said.reward)[run, step],
            "steps": np.asarray(news.said.length)[run, step],
            "ended": np.asarray(news.said.terminal)[run, step],
        }


Unit = OfflineUnit | OnlineUnit


def guess(unit: Unit) -> float:
    """Core seconds, roughly."""
    episode, step = CORE_SECONDS.get(unit.domain, (0.05, 0.005))
    if isinstance(unit, OnlineUnit):
        return 5 + step * unit.runs * unit.steps
    usual = BUDGETS.get(unit.domain, {}).get("iterations", 100)
    return 5 + episode * unit.seeds * len(unit.pairs) * dict(unit.budget).get("iterations", usual) / usual


def _steps_of(episodes: Episodes) -> list[int]:
    """Real steps of each run after each of its episodes, in the order of the rows."""
    totals: dict[int, int] = {}
    steps = []
    for seed, count in zip(episodes["seed"].tolist(), episodes["steps"].tolist(), strict=True):
        totals[seed] = totals.get(seed, 0) + count
        steps.append(totals[seed])
    return steps


def _until(episodes: Episodes, about: dict[str, Any], steps: int) -> Episodes:
    """The episodes that were over after this many real steps: the table may be a round ahead of the runs."""
    early = np.array(about["step"], int) <= steps
    return {name: column[early] for name, column in episodes.items()}


def _without(settings: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key != name}


def _digest(identity: dict[str, Any]) -> str:
    """Eight letters that change with any part of it."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:8]
