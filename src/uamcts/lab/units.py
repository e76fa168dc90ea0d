"""The pieces that work is cut into. A unit says what is to be computed, and nothing of where or how fast."""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.devices import spread
from uamcts.domains import make
from uamcts.episode import Score, play_in_turn
from uamcts.files import write_whole
from uamcts.lab import online
from uamcts.lab.store import Episodes, as_parquet, from_parquet, joined, repeated
from uamcts.mcts.entry import raise_flags
from uamcts.paper import planned_in, search_config
from uamcts.types import SearchConfig

LANES = 128
"""Episodes side by side on one core."""
WIDE = 1400
"""The fewest lanes on an accelerator: as many as the paper's largest unit has, 28 pairs on 50 seeds."""
Progress = Callable[[float, str], None]
"""Told which share of a unit is done, and a few words about it."""


@dataclass(frozen=True)
class OfflineUnit:
    """Episodes with a known U: every one of `pairs` (algorithm, c) on every seed from `first_seed` on."""

    experiment: str
    domain: str
    rules: str
    tau: float
    purpose: str
    pairs: tuple[tuple[str, float], ...]
    first_seed: int
    seeds: int
    seed: int
    budget: tuple[tuple[str, int], ...] = ()
    """`iterations`, `rollouts`, `depth` where they are not the paper's."""

    @property
    def name(self) -> str:
        words = f"{self.experiment}-offline-{self.rules}-tau{self.tau:g}-{self.purpose}-{self.first_seed}"
        return f"{words}-{_digest(self)}"

    def compute(self, progress: Progress, scratch: Path) -> Episodes:
        """Plays them, as lanes of one program."""
        del scratch
        jobs = [(pair, seed) for seed in range(self.first_seed, self.first_seed + self.seeds) for pair in self.pairs]
        progress(0.0, f"{len(jobs)} episodes")
        score = self._played(jobs)
        count = len(jobs)
        return {
            **repeated(count, experiment=self.experiment, domain=self.domain, scenario="offline", learner="true"),
            **repeated(count, rules=self.rules, tau=self.tau, purpose=self.purpose),
            "algorithm": np.array([algorithm for (algorithm, _), _ in jobs], object),
            "c": np.array([c for (_, c), _ in jobs]),
            "seed": np.array([seed for _, seed in jobs]),
            "episode": np.zeros(count, np.int32),
            "reward": np.asarray(score.reward),
            "steps": np.asarray(score.steps),
            "ended": np.asarray(score.ended),
        }

    def _played(self, jobs: list) -> Score:
        """The scores of `jobs`. Rules decide what a program looks like: algorithms with others are played apart."""
        domain = make(self.domain)
        settings = {"rules": self.rules, "tau": self.tau, **dict(self.budget)}
        configs = [search_config(domain, algorithm, **settings, c=c) for (algorithm, c), _ in jobs]
        rules = np.array([config.rules for config in configs])
        parts, places = [], []
        for each in dict.fromkeys(rules.tolist()):
            places.append(np.flatnonzero(rules == each))
            parts.append(self._played_together([jobs[i] for i in places[-1]], [configs[i] for i in places[-1]]))
        order = np.argsort(np.concatenate(places))
        return jax.tree.map(lambda *leaves: np.concatenate(leaves)[order], *parts)

    def _played_together(self, jobs: list, configs: list[SearchConfig]) -> Score:
        """The scores of `jobs` under one rule set, each lane playing every so many of them."""
        domain = make(self.domain)
        devices = len(jax.devices())
        lanes = lanes_of(len(jobs), devices)
        turns = math.ceil(len(jobs) / lanes)
        order = np.arange(lanes * turns).reshape(turns, lanes).T
        taken = np.minimum(order, len(jobs) - 1)
        worlds = [planned_in(domain, algorithm) for (algorithm, _), _ in jobs]
        base = jax.random.key(self.seed)
        keys = jax.vmap(lambda seed: jax.random.fold_in(base, seed))(jnp.array([seed for _, seed in jobs]))
        stacked = [jax.tree.map(lambda *leaves: np.stack(leaves)[taken], *trees) for trees in (worlds, configs)]
        counts = np.sum(order < len(jobs), axis=1).astype(np.int32)
        score = _program(devices)(keys[taken], *stacked, counts)
        raise_flags(score)
        flat = jax.tree.map(lambda leaf: np.asarray(leaf).T.reshape(-1)[: len(jobs)], score)
        return Score(*flat)


def lanes_of(jobs: int, devices: int) -> int:
    """Episodes side by side: on a CPU a few for each core, in turns; on an accelerator all.

    There, units with fewer have idle lanes instead of a program of their own: compiling takes longer than playing.
    """
    if jax.default_backend() == "cpu":
        return min(LANES * devices, math.ceil(jobs / 4))
    return max(jobs, WIDE)


@functools.cache
def _program(devices: int) -> Callable:
    """The compiled program that plays; JAX keeps one for every game, budget and rule set."""
    return spread(jax.vmap(play_in_turn), jax.devices()[:devices])


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

    @classmethod
    def of(cls, experiment: str, settings: online.Experiment) -> Self:
        """The unit of an online experiment, under a name of its own."""
        return cls(experiment=experiment, **asdict(settings.complete()))

    @property
    def name(self) -> str:
        return f"{self.experiment}-online-{self.rules}-{self.algorithm}-{self.learner}-{_digest(self)}"

    def compute(
        self, progress: Progress, scratch: Path, listen: Callable[[online.News], None] = lambda news: None
    ) -> Episodes:
        """Takes the runs to their end; after every round of training they are kept in `scratch` to go on from.

        Whoever wants to `listen` is told all the news.
        """
        settings = {name: value for name, value in asdict(self).items() if name != "experiment"}
        runs = online.Runs(online.Experiment(**settings))
        kept, table = scratch / f"{self.name}.runs", scratch / f"{self.name}.so-far"
        parts: list[Episodes] = []
        if kept.exists() and table.exists():
            runs.load(kept)
            parts = [_until(*from_parquet(table), runs.steps)]
        over = [int(part) for part in np.asarray(runs.runs.episode)]
        for news in runs.advance():
            progress(news.steps / self.steps, f"tau {news.tau[0]:.2g}, loss {float(np.mean(news.loss)):.2g}")
            parts.append(self._episodes(news, over))
            listen(news)
            if news.learned:
                done = joined(parts)
                write_whole(table, as_parquet(done, {"step": _steps_of(done)}))
                runs.save(kept)
        return joined(parts)

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
            **repeated(count, experiment=self.experiment, domain=self.domain, scenario="online", learner=self.learner),
            **repeated(
                count, algorithm=self.algorithm, rules=self.rules, c=self.c, tau=news.said_tau, purpose="online"
            ),
            "seed": run.astype(np.int64),
            "episode": numbers,
            "reward": np.asarray(news.said.reward)[run, step],
            "steps": np.asarray(news.said.length)[run, step],
            "ended": np.asarray(news.said.terminal)[run, step],
        }


Unit = OfflineUnit | OnlineUnit


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


def _digest(unit: Any) -> str:
    """Eight letters that change with any setting."""
    return hashlib.sha256(json.dumps(asdict(unit), sort_keys=True).encode()).hexdigest()[:8]
