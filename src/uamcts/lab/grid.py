"""A grid of one's own: the lab's machinery for any domains, algorithms and settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from uamcts.domains import make
from uamcts.lab.experiments import Experiment, Offline
from uamcts.lab.reproduce import run_all
from uamcts.lab.runner import Engine
from uamcts.paper import search_config


def run_grid(
    domains: Sequence[str],
    algorithms: Sequence[str],
    exploration: Sequence[float],
    tau: float,
    runs: int,
    budget: tuple[tuple[str, int], ...],
    rules: str,
    seed: int,
    out: Path,
    engine: Engine,
    console: Console,
) -> dict[str, Any]:
    """Every algorithm with every c in every domain, offline; without any c, each at the paper's."""
    for name in domains:
        for algorithm in algorithms:  # before anything runs: a wrong one is refused by name
            search_config(make(name), algorithm, tau=tau, **dict(budget))
    part = Offline(tuple(algorithms), tuple(exploration), tau, runs, budget)
    experiments = [Experiment(f"run_{name}", f"{name}, a grid of your own", name, (part,)) for name in domains]
    return run_all(experiments, False, False, rules, seed, out, engine, console)
