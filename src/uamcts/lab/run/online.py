"""The online scenario as an experiment: many runs on their way, news of them, and a file to go on from."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from uamcts.agent import checkpoint
from uamcts.domains import make
from uamcts.domains.base import Domain
from uamcts.episodes.online import Run, Step, advance, empty_memory, look, over_runs, train_run
from uamcts.lab.console.limits import check_seed
from uamcts.lab.experiments.learners import check_learner, make_learner
from uamcts.lab.experiments.paper import Options
from uamcts.mcts.api import raise_flags
from uamcts.mcts.config import SearchConfig
from uamcts.presets import OnlineSettings, online_settings, planned_in, search_config
from uamcts.runtime.devices import spread
from uamcts.types import PyTree
from uamcts.uncertainty.buffer import Buffer
from uamcts.uncertainty.learner import finish_on_host
from uamcts.versions import versions_of

PIECE = 250
"""Real steps between two pieces of news, at most."""
MOST = {"runs": 100_000, "steps": 10_000_000, "interval": 2**31 - 1, "minibatches": 2**31 - 1}
"""More is a slip of the pen: the samples of 10 million steps do not fit into memory."""


@dataclass(frozen=True)
class Experiment:
    """What is to be run; what is None is the usual for the domain and the algorithm."""

    domain: str
    algorithm: str = "combined"
    learner: Any = None
    rules: str = "released"
    c: Any = None
    runs: Any = None
    steps: Any = None
    seed: int = 0
    interval: Any = None
    minibatches: Any = None
    options: Options = ()
    """Of the domain."""

    def made(self) -> Domain:
        """The domain."""
        return make(self.domain, **dict(self.options))

    def complete(self) -> Experiment:
        """With the usual settings in the places of None, and the rules that are used; wrong settings are refused."""
        domain = self.made()
        settings = online_settings(domain, self.algorithm)
        config = search_config(domain, self.algorithm, rules=self.rules)
        usual = {
            "learner": settings.estimator,
            "c": config.c,
            "runs": settings.runs,
            "steps": settings.steps,
            "interval": settings.schedule.interval,
            "minibatches": settings.minibatches,
        }
        full = replace(self, **{name: value for name, value in usual.items() if getattr(self, name) is None})
        for name, most in MOST.items():
            if not 1 <= getattr(full, name) <= most:
                raise ValueError(f"{name} is {getattr(full, name)}; it must be a whole number from 1 to {most:,}")
        check_learner(str(full.learner))
        check_seed(full.seed)
        return replace(full, rules=full.search(domain).rules)

    def search(self, domain: Domain) -> SearchConfig:
        """How each move is searched for."""
        return search_config(domain, self.algorithm, rules=self.rules, c=self.c)

    def learning(self, domain: Domain) -> OnlineSettings:
        """How often, and from what, is learned."""
        settings = online_settings(domain)
        return replace(settings, schedule=replace(settings.schedule, interval=self.interval))

    def meaning(self) -> dict[str, Any]:
        """What decides the numbers beside the settings: what they stand for, and the versions of what is used."""
        full, domain = self.complete(), self.made()
        config, learning = full.search(domain), full.learning(domain)
        return {
            "search": config.identity(),
            "schedule": asdict(learning.schedule),
            "terminal_copies": learning.terminal_copies,
            "versions": versions_of(("search", "online"), self.domain, (config.rules,), str(full.learner)),
        }


class News(NamedTuple):
    """How the runs stand after some more steps; arrays have [runs] in front."""

    steps: int
    """Real steps of each run so far."""
    said: Step
    """What the steps since the last news had to say, [runs, steps]."""
    said_tau: float
    """tau of those steps."""
    tau: np.ndarray
    """tau now."""
    loss: np.ndarray
    learned: bool
    """Whether a round of training lies between the last news and these."""
    average_precision: float
    """Of U-hat in the states visited since the last news; NaN where the model never erred, or always."""
    false_deletions: float
    """Share of error-free nodes, in one search of each run, in which a child was deleted; NaN where there were none."""
    unique: float
    """Share of samples in the buffers that are unlike all others in the same buffer."""
    seconds: float


class Runs:
    """The runs of an experiment, side by side. `advance` takes them further; `save` and `load` keep them."""

    def __init__(self, experiment: Experiment):
        self.experiment = experiment = experiment.complete()
        self.domain = planned_in(experiment.made(), experiment.algorithm)
        learning = experiment.learning(self.domain)
        self.copies, self.schedule = learning.terminal_copies, learning.schedule
        self.config = experiment.search(self.domain)
        self.piece = next(piece for piece in range(PIECE, 0, -1) if self.schedule.interval % piece == 0)
        keys = jax.random.split(jax.random.key(experiment.seed), experiment.runs)
        self.runs: Run = spread(jax.vmap(self._fresh))(keys)
        self._memory: PyTree = None
        self._stretches: dict[int, Callable] = {}
        self._lesson = spread(over_runs(lambda run: train_run(run, self.schedule)))
        self._look = spread(over_runs(lambda run: look(run, self.domain, self.config)))
        self._forget = spread(over_runs(lambda run: empty_memory(run, self.domain)))

    def _fresh(self, key: jax.Array) -> Run:
        learner_key, key = jax.random.split(key)
        options = {
            "capacity": self.experiment.steps * self.copies,
            "minibatches": self.experiment.minibatches,
            "most_copies": self.copies,
        }
        learner = make_learner(str(self.experiment.learner), learner_key, self.domain, options, self.config)
        return Run.fresh(key, self.domain, learner, self.schedule)

    @property
    def steps(self) -> int:
        """Real steps of each run so far."""
        return int(self.runs.knowledge.steps[0])

    def advance(self) -> Iterator[News]:
        """Takes the runs to their end, with news after every piece; at news with `learned` they can be saved."""
        if self._memory is None:
            self._memory = self._forget(self.runs)
        end: int = self.experiment.steps
        while (before := self.steps) < end:
            start, tau = time.perf_counter(), float(self.runs.knowledge.tau[0])
            due = self.schedule.interval - before % self.schedule.interval
            piece = min(self.piece, due, end - before)
            self.runs, self._memory, said = self._stretch(piece)(self.runs, self._memory)
            learns = piece == due
            if learns:
                self.runs = self._lesson(self.runs)
                self.runs = eqx.tree_at(lambda runs: runs.knowledge, self.runs, finish_on_host(self.runs.knowledge))
                self._memory = self._forget(self.runs)
            jax.block_until_ready(self.runs)
            yield self._news(said, tau, learns, time.perf_counter() - start)

    def _stretch(self, piece: int) -> Callable:
        if piece not in self._stretches:
            self._stretches[piece] = spread(
                over_runs(lambda run, memory: advance(run, memory, self.domain, self.config, piece, self.copies))
            )
        return self._stretches[piece]

    def _news(self, said: Step, tau: float, learned: bool, seconds: float) -> News:
        said = Step(*(np.asarray(part) for part in said))  # type: ignore[arg-type]
        raise_flags(said)
        nodes = self._look(self.runs)
        faultless = int(np.sum(nodes.faultless))
        return News(
            steps=self.steps,
            said=said,
            said_tau=tau,
            tau=np.asarray(self.runs.knowledge.tau),
            loss=np.asarray(self.runs.knowledge.loss),
            learned=learned,
            average_precision=average_precision(np.ravel(said.true) > 0, np.ravel(said.predicted)),
            false_deletions=float(np.sum(nodes.fired)) / faultless if faultless else math.nan,
            unique=unique_share(self.runs),
            seconds=seconds,
        )

    def save(self, path: Path) -> None:
        """Writes the runs as they are; right after a round of training, going on from the file changes nothing."""
        checkpoint.save(path, self.runs, "online runs", self._about())

    def load(self, path: Path) -> None:
        """Takes the runs over from a file of the same experiment; it may go on for longer than it was meant to."""
        runs = checkpoint.load(path, self.runs, "online runs", self._about())
        left = int(self.experiment.steps or 0) - int(runs.knowledge.steps[0])
        self.runs = eqx.tree_at(lambda runs: runs.knowledge.learner, runs, runs.knowledge.learner.reserve(max(left, 0)))
        self._memory = None

    def _about(self) -> dict[str, Any]:
        settings = {name: value for name, value in asdict(self.experiment).items() if name != "steps"}
        return settings | self.experiment.meaning()


def average_precision(positive: np.ndarray, score: np.ndarray) -> float:
    """Area under precision over recall when transitions [n] are ranked by `score`; equal scores count as one step.

    1: every erroneous transition is ranked above every right one. The share of erroneous ones: no better than chance.
    """
    if not positive.any() or positive.all():
        return math.nan
    order = np.argsort(-score, kind="stable")
    positive, score = positive[order], score[order]
    last = np.append(score[1:] != score[:-1], True)
    found = np.cumsum(positive)[last]
    precision = found / (np.flatnonzero(last) + 1)
    return float(np.sum(precision * np.diff(found, prepend=0)) / found[-1])


def unique_share(runs: Run) -> float:
    """The mean over runs of: different samples (s, a, target) / samples. NaN where nothing is kept."""
    is_buffer = lambda part: isinstance(part, Buffer)  # noqa: E731
    buffers = [part for part in jax.tree.leaves(runs.knowledge.learner, is_leaf=is_buffer) if is_buffer(part)]
    if not buffers:
        return math.nan
    buffer = jax.tree.map(np.asarray, buffers[0])  # a gate's own comes behind that of what it gates
    shares = []
    for run, count in enumerate(buffer.count):
        leaves = jax.tree.leaves((buffer.states, buffer.actions, buffer.targets))
        words = [leaf[run, :count].reshape(count, -1).view(np.uint32) for leaf in leaves]
        rows = np.ascontiguousarray(np.concatenate(words, axis=1))
        shares.append(len(np.unique(rows.view([("", rows.dtype)] * rows.shape[1]))) / count if count else math.nan)
    return float(np.mean(shares))
