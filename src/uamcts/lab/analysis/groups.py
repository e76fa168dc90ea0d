"""Episodes grouped by setting: a group holds one number for each of its runs.

Tables of episodes have the columns in `uamcts.lab.columns`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from uamcts.lab.columns import COLUMNS, Episodes
from uamcts.presets import EXPLORATION

SETTING = ("experiment", "domain", "scenario", "algorithm", "learner", "rules", "c", "purpose")
"""What the runs of a group have in common; offline also tau."""
QUANTITIES = ("reward", "steps", "goal")
Series = tuple[str, str, str, str, float]
"""What the groups of a sweep have in common: experiment, domain, algorithm, rules, tau."""


@dataclass(frozen=True, eq=False)
class Group:
    """The runs of one setting. Offline a run is one episode; online it is the second half of its episodes."""

    experiment: str
    domain: str
    scenario: str
    algorithm: str
    learner: str
    rules: str
    c: float
    tau: float
    """Online: the greatest of the runs' last tau."""
    purpose: str
    episodes: int
    """All of them, online those of the first half too."""
    reward: np.ndarray
    """Mean reward of an episode, [runs]."""
    steps: np.ndarray
    """Mean length of an episode, [runs]; one that was cut counts with its time limit."""
    goal: np.ndarray
    """Share of episodes that ended, and with a reward above 0, [runs]."""

    @property
    def runs(self) -> int:
        return len(self.reward)

    @property
    def series(self) -> Series:
        return (self.experiment, self.domain, self.algorithm, self.rules, self.tau)


def group_runs(episodes: Episodes) -> list[Group]:
    """The groups of a table of episodes, in order of first appearance."""
    check_columns(episodes)
    if len(episodes["reward"]) == 0:
        return []
    group, run, count = runs_of(episodes)
    order = np.lexsort((episodes["episode"], run))
    group, run = group[order], run[order]
    first = np.flatnonzero(np.diff(run, prepend=-1))
    length = np.diff(np.append(first, len(run)))
    late = np.arange(len(run)) - np.repeat(first, length) >= np.repeat(length // 2, length)
    start = np.append(0, np.cumsum(length - length // 2)[:-1])

    def run_means(values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(np.asarray(values, np.float64)[order][late], start) / (length - length // 2)

    goal = np.asarray(episodes["ended"], bool) & (np.asarray(episodes["reward"]) > 0)
    means = {"reward": run_means(episodes["reward"]), "steps": run_means(episodes["steps"]), "goal": run_means(goal)}
    last = order[first + length - 1]
    found = []
    for index in range(count):
        mine = group[first] == index
        row = last[np.argmax(mine)]
        setting: dict[str, Any] = {name: _plain(episodes[name][row]) for name in SETTING}
        tau = float(np.max(np.asarray(episodes["tau"], np.float64)[last[mine]]))
        values = {name: means[name][mine] for name in QUANTITIES}
        found.append(Group(**setting, tau=tau, episodes=int(np.sum(length[mine])), **values))
    return found


def runs_of(episodes: Episodes) -> tuple[np.ndarray, np.ndarray, int]:
    """The group and the run of each row, [rows] each, and the number of groups; groups in order of appearance."""
    offline = np.asarray(episodes["scenario"]) == "offline"
    tau = np.where(offline, np.asarray(episodes["tau"], np.float64), -1.0)
    group = np.zeros(len(tau), np.int64)
    for column in [*(episodes[name] for name in SETTING), tau]:
        group = _codes(group, np.unique(column, return_inverse=True)[1])
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    group = np.argsort(np.argsort(first))[group]
    seed = np.unique(episodes["seed"], return_inverse=True)[1]
    single = np.where(offline, np.arange(len(tau)), seed)
    return group, _codes(group, single), len(first)


def check_columns(episodes: Episodes) -> None:
    """Raises a ValueError if a column is missing or the columns differ in length."""
    missing = [name for name in COLUMNS if name not in episodes]
    if missing:
        raise ValueError(f"episodes lacks {', '.join(missing)}; a table of episodes has {', '.join(COLUMNS)}")
    lengths = {name: len(episodes[name]) for name in COLUMNS}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"episodes has columns of different lengths, {lengths}; give a value for each row")


def best_c(groups: Iterable[Group]) -> dict[Series, float]:
    """The c with the highest mean reward in the sweep of each series, as the paper chooses it.

    Ties go to the c that comes first in the paper's sweep; a c that the paper does not sweep comes last.
    """
    sweep = [group for group in groups if group.purpose == "sweep"]
    best: dict[Series, float] = {}
    for group in sorted(sweep, key=lambda group: (-float(np.mean(group.reward)), _place(group.c))):
        best.setdefault(group.series, group.c)
    return best


def _place(c: float) -> tuple[int, float]:
    distances = [abs(c - value) for value in EXPLORATION]
    nearest = int(np.argmin(distances))
    return (nearest, c) if distances[nearest] < 1e-6 else (len(EXPLORATION), c if math.isfinite(c) else math.inf)


def _codes(group: np.ndarray, code: np.ndarray) -> np.ndarray:
    """A number for each pair of `group` and `code` [rows], in the order of the pairs."""
    return np.unique(group * (int(code.max()) + 1) + code, return_inverse=True)[1]


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value
