"""Online runs in progress: they advance as one batch, report news, and can be saved and resumed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from uamcts.agent import checkpoint
from uamcts.episodes.online import Run, Step, advance, look, over_runs, train_run
from uamcts.lab.experiments.learners import make_learner
from uamcts.lab.run.units import OnlineUnit
from uamcts.mcts.api import raise_flags
from uamcts.presets import planning_domain
from uamcts.runtime.devices import spread
from uamcts.types import PyTree
from uamcts.uncertainty.buffer import Buffer
from uamcts.uncertainty.learner import empty_cache, finish_on_host

PIECE = 250
"""The largest number of real steps between two pieces of news."""


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
    words: str = ""
    """What else there is to say."""


class Runs:
    """The runs of an online unit as one batch. `advance` runs them; `save` and `load` keep them in a file."""

    def __init__(self, unit: OnlineUnit):
        self.unit = unit = unit.complete()
        self.domain = planning_domain(unit.world(), unit.algorithm)
        learning = unit.learning(self.domain)
        self.copies, self.schedule = learning.terminal_copies, learning.schedule
        self.config = unit.search(self.domain)
        self.piece = next(piece for piece in range(PIECE, 0, -1) if self.schedule.interval % piece == 0)
        keys = jax.random.split(jax.random.key(unit.seed), unit.runs)
        self.runs: Run = spread(jax.vmap(self._fresh))(keys)
        self._cache: PyTree = None
        self._programs: dict[int, Callable] = {}
        self._train = spread(over_runs(lambda run: train_run(run, self.schedule)))
        self._look = spread(over_runs(lambda run: look(run, self.domain, self.config)))
        self._empty_cache = spread(over_runs(lambda run: empty_cache(run.knowledge.learner, self.domain)))

    def _fresh(self, key: jax.Array) -> Run:
        learner_key, key = jax.random.split(key)
        options = {
            "capacity": self.unit.steps * self.copies,
            "minibatches": self.unit.minibatches or 0,
            "most_copies": self.copies,
        }
        learner = make_learner(self.unit.learner, learner_key, self.domain, options, self.config)
        return Run.fresh(key, self.domain, learner, self.schedule)

    @property
    def episodes(self) -> list[int]:
        """Episodes of each run that are over."""
        return np.asarray(self.runs.episode).tolist()

    @property
    def steps(self) -> int:
        """Real steps of each run so far."""
        return int(self.runs.knowledge.steps[0])

    def advance(self) -> Iterator[News]:
        """Runs to the end and yields news after every piece. Save the runs only at news with `learned`."""
        if self._cache is None:
            self._cache = self._empty_cache(self.runs)
        end = self.unit.steps
        while (before := self.steps) < end:
            start, tau = time.perf_counter(), float(self.runs.knowledge.tau[0])
            due = self.schedule.interval - before % self.schedule.interval
            piece = min(self.piece, due, end - before)
            self.runs, self._cache, said = self._program(piece)(self.runs, self._cache)
            learns = piece == due
            if learns:
                self.runs = self._train(self.runs)
                self.runs = eqx.tree_at(lambda runs: runs.knowledge, self.runs, finish_on_host(self.runs.knowledge))
                self._cache = self._empty_cache(self.runs)
            jax.block_until_ready(self.runs)
            yield self._news(said, tau, learns, time.perf_counter() - start)

    def _program(self, piece: int) -> Callable:
        """The compiled program that advances all runs by `piece` steps."""
        if piece not in self._programs:
            self._programs[piece] = spread(
                over_runs(lambda run, cache: advance(run, cache, self.domain, self.config, piece, self.copies))
            )
        return self._programs[piece]

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
        """Writes the runs to a file. Resuming from one written right after training changes no number."""
        checkpoint.save(path, self.runs, "online runs", self._about())

    def load(self, path: Path) -> None:
        """Replaces the runs by those in a file of the same unit, which may have been meant for fewer steps."""
        runs = checkpoint.load(path, self.runs, "online runs", self._about())
        left = self.unit.steps - int(runs.knowledge.steps[0])
        self.runs = eqx.tree_at(lambda runs: runs.knowledge.learner, runs, runs.knowledge.learner.reserve(max(left, 0)))
        self._cache = None

    def _about(self) -> dict[str, Any]:
        """What a file must agree with: everything that decides the numbers but the length of the runs."""
        identity = self.unit.identity
        return {name: value for name, value in identity.items() if name not in ("experiment", "steps")}


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
