"""A single online unit in a terminal: its progress, the time left, and what the agents have learned."""

from __future__ import annotations

import math
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.console import Console

from uamcts import names
from uamcts.episodes.online import Step
from uamcts.lab.columns import Episodes
from uamcts.lab.console.terminal import progress_bar
from uamcts.lab.run.compute import compute_unit
from uamcts.lab.run.online import News
from uamcts.lab.run.provenance import collect
from uamcts.lab.run.reproduce import finish
from uamcts.lab.run.runner import compute_missing
from uamcts.lab.run.store import Store
from uamcts.lab.run.units import AGENT, OnlineUnit

HEAD = f"{'step':>8} {'tau':>5} {'episodes':>9} {'reward':>7} {'steps':>6} {'loss':>8}" + (
    f" {'precision':>10} {'false del.':>10} {'unique':>7}"
)
LEGEND = """each row: the steps of all runs since the row before, and the mean loss of the round
of training that follows
precision: average precision of U-hat for "the simulator errs here", over all
  actions of the visited states (chance: the share of errors)
false del.: share of error-free tree nodes in which a child was deleted
unique: share of distinct samples in the buffer"""

AGENT_HEAD = f"{'step':>8} {'episodes':>9} {'reward':>7} {'steps':>6}  the simulator"
AGENT_LEGEND = """each row: the steps of all runs since the row before, and how many of the different
transitions that a run has seen the simulator predicts wrongly"""


def watch_online(unit: OnlineUnit, out: Path | None, console: Console) -> Episodes:
    """Computes a unit, prints what is learned on the way, and returns the episodes.

    With `out`, everything is stored there, an earlier run is resumed, and a report is written at the end.
    """
    unit = unit.complete()
    rules = "" if unit.algorithm in names.OURS else f" ({names.rules_title(unit.rules)})"
    print(f"{unit.domain}, online, {names.title(unit.algorithm)}{rules}, c {unit.c:.3g}, learner {unit.learner}")
    training = "" if unit.algorithm == AGENT else f", {unit.minibatches:,} minibatches every {unit.interval:,}"
    print(f"{unit.runs} runs of {unit.steps:,} real steps{training}")
    if out is None:
        with tempfile.TemporaryDirectory() as folder:
            return _compute(unit, Path(folder), console)
    store = Store(out, {"unit": asdict(unit)})
    if not compute_missing(unit, store, lambda: _compute(unit, store.units, console)):
        raise ValueError(f"out is {out}; another process is working on it: wait for it, or give another folder")
    found, about = store.read(unit)
    provenance = {**about["provenance"], **collect([about]), "settings": about["unit"]}
    print(finish(out, found, None, (unit.rules,), provenance)["report"])
    return found


def _compute(unit: OnlineUnit, scratch: Path, console: Console) -> Episodes:
    """Computes the unit with a progress bar, and prints a row for every round of training."""
    since: list[News] = []
    episodes = 0
    print(f"{AGENT_LEGEND}\n{AGENT_HEAD}" if unit.algorithm == AGENT else f"{LEGEND}\n{HEAD}", flush=True)
    with progress_bar(console) as bar:
        task = bar.add_task("compiling", total=unit.steps)

        def listen(news: News) -> None:
            nonlocal episodes
            since.append(news)
            episodes += int(np.sum(news.said.ended))
            words = f"step {news.steps:,}, {episodes} episodes, {news.words or f'loss {_mean(news.loss)}'}"
            bar.update(task, completed=news.steps, description=words)
            if news.learned or news.steps == unit.steps:
                bar.console.out(_row(since), highlight=False)
                since.clear()

        return compute_unit(unit, lambda share, words: None, scratch, listen)


def ended_episodes(said: list[Step]) -> tuple[np.ndarray, np.ndarray]:
    """Rewards and lengths of the episodes that ended, over all runs."""
    reward, length, ended = (
        np.concatenate([np.asarray(getattr(part, name)) for part in said], axis=1)
        for name in ("reward", "length", "ended")
    )
    return reward[ended], length[ended]


def describe_second_half(episodes: Episodes) -> str:
    """A sentence with the mean reward and length of the second half of every run's episodes."""
    rewards, steps = [], []
    for seed in np.unique(episodes["seed"]):
        mine = np.flatnonzero(episodes["seed"] == seed)
        late = mine[np.argsort(episodes["episode"][mine])][len(mine) // 2 :]
        rewards.append(float(episodes["reward"][late].mean()))
        steps.append(episodes["steps"][late])
    if not rewards:
        return "no episode ended"
    error = float(np.std(rewards, ddof=1)) / math.sqrt(len(rewards)) if len(rewards) > 1 else math.nan
    mean = f"reward {np.mean(rewards):.2f} (error {error:.2f}) in {np.concatenate(steps).mean():.1f} steps"
    return f"second half of each run's episodes: {mean}"


def _row(since: list[News]) -> str:
    """A line about everything since the last round."""
    rewards, lengths = ended_episodes([news.said for news in since])
    last = since[-1]
    if last.words:
        return f"{last.steps:8,} {len(rewards):9} {_mean(rewards):>7} {_mean(lengths):>6}  {last.words}"
    return (
        f"{last.steps:8,} {since[0].said_tau:5.2g} {len(rewards):9} {_mean(rewards):>7} {_mean(lengths):>6} "
        f"{_mean(last.loss):>8} {_mean([news.average_precision for news in since]):>10} "
        f"{_mean([news.false_deletions for news in since]):>10} {_mean([last.unique]):>7}"
    )


def _mean(numbers: np.ndarray | list[float]) -> str:
    """The mean of the finite numbers, or a dash."""
    finite = np.asarray(numbers)[np.isfinite(numbers)]
    return f"{finite.mean():.3g}" if finite.size else "-"
