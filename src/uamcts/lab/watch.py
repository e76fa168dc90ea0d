"""An online experiment in a terminal: how far it is, how long it still takes, and what the agents have learned."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from uamcts.lab.online import Experiment, News, Runs
from uamcts.online import Step

STATE = "runs.uamcts"
HEAD = f"{'step':>8} {'tau':>5} {'episodes':>9} {'reward':>7} {'steps':>6} {'loss':>8}" + (
    f" {'precision':>10} {'false del.':>10} {'unique':>7}"
)
LEGEND = """each row: the steps since the row before, all runs; then a round of training, and its mean loss
precision: average precision of U-hat for "the model errs here", all actions of the states visited (chance: their share)
false del.: share of tree nodes without any model error in which a child was deleted; unique: of the buffer's samples"""


def run_online(experiment: Experiment, out: Path | None, console: Console) -> list[Step]:
    """Takes the runs to their end, or goes on from what `out` holds; returns what all steps taken here had to say."""
    runs = Runs(experiment)
    full = runs.experiment
    print(f"{full.domain}, online, {full.algorithm} ({full.rules} rules, c {full.c:.3g}), learner {full.learner}")
    print(f"{full.runs} runs of {full.steps:,} real steps, {full.minibatches:,} minibatches every {full.interval:,}")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        if (out / STATE).exists():
            runs.load(out / STATE)
            print(f"going on from {out / STATE} at step {runs.steps:,}")
    said: list[Step] = []
    since: list[News] = []
    begun = time.perf_counter()
    print(f"{LEGEND}\n{HEAD}", flush=True)
    columns = (TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn(), "left", TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("compiling", total=full.steps, completed=runs.steps)
        episodes_over = 0
        for news in runs.advance():
            said.append(news.said)
            since.append(news)
            episodes_over += int(np.sum(news.said.ended))
            progress = f"step {news.steps:,}, {episodes_over} episodes, tau {news.tau[0]:.2g}, loss {_mean(news.loss)}"
            bar.update(task, completed=news.steps, description=progress)
            if news.learned or news.steps == full.steps:
                bar.console.out(_row(since), highlight=False)
                since = []
                if out is not None:
                    runs.save(out / STATE)
    kept = f"; {out / STATE} holds what was learned" if out else ""
    print(f"{time.perf_counter() - begun:.0f} s{kept}")
    return said


def episodes(said: list[Step]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rewards and lengths of the episodes that ended, for each run."""
    reward, length, ended = (
        np.concatenate([np.asarray(getattr(part, name)) for part in said], axis=1)
        for name in ("reward", "length", "ended")
    )
    return [(reward[run][over], length[run][over]) for run, over in enumerate(ended)]


def second_half(said: list[Step]) -> str:
    """What the later half of every run's episodes came to, in words."""
    late = [(reward[len(reward) // 2 :], length[len(length) // 2 :]) for reward, length in episodes(said)]
    means = np.array([reward.mean() for reward, _ in late if len(reward)])
    if not len(means):
        return "no episode came to its end"
    error = means.std(ddof=1) / math.sqrt(len(means)) if len(means) > 1 else math.nan
    steps = np.concatenate([length for _, length in late]).mean()
    return f"second half of each run's episodes: reward {means.mean():.2f} (error {error:.2f}) in {steps:.1f} steps"


def _row(since: list[News]) -> str:
    """One line about everything since the last round."""
    ended = episodes([news.said for news in since])
    rewards, lengths = (np.concatenate(part) for part in zip(*ended, strict=True))
    last = since[-1]
    return (
        f"{last.steps:8,} {since[0].said_tau:5.2g} {len(rewards):9} {_mean(rewards):>7} {_mean(lengths):>6} "
        f"{_mean(last.loss):>8} {_mean([news.average_precision for news in since]):>10} "
        f"{_mean([news.false_deletions for news in since]):>10} {_mean([last.unique]):>7}"
    )


def _mean(numbers: np.ndarray | list[float]) -> str:
    """The mean of the finite ones of `numbers`."""
    finite = np.asarray(numbers)[np.isfinite(numbers)]
    return f"{finite.mean():.3g}" if finite.size else "-"
