"""Grids of your own: `uamcts run` with any domains, algorithms, learners and settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from uamcts.arguments import short_repr
from uamcts.domains import make
from uamcts.lab.experiments.learners import check_learner
from uamcts.lab.experiments.paper import Experiment, OfflineGrid, OnlineGrid, Options
from uamcts.lab.run.reproduce import run_all, settings_of
from uamcts.lab.run.runner import Engine
from uamcts.lab.run.units import AGENT
from uamcts.presets import online_settings, search_config


def offline_grid(
    domains: Sequence[str],
    algorithms: Sequence[str],
    exploration: Sequence[float],
    taus: Sequence[float],
    iterations: Sequence[int],
    runs: int,
    options: Options = (),
    graph: bool = False,
    steps_left: bool = False,
) -> list[Experiment]:
    """Every algorithm with every c and tau in every domain, at every budget. Without any c, the paper's are used.

    `graph`: search on graphs. `steps_left`: searches know how many steps are left in the episode.
    """
    experiments = []
    for name in domains:
        for number in iterations or (None,):
            asked = {"iterations": number, "graph": graph or None, "steps_left": steps_left or None}
            budget = tuple((key, value) for key, value in asked.items() if value is not None)
            for algorithm in algorithms:  # so that a wrong one is refused before anything runs
                for tau in taus:
                    given = {key: value for key, value in budget if key != "steps_left"}
                    search_config(make(name, **dict(options)), algorithm, tau=tau, **given)
            parts = tuple(OfflineGrid(tuple(algorithms), tuple(exploration), tau, runs, budget) for tau in taus)
            title = name if number is None else f"{name}, {number} iterations"
            label = f"run_{name}" if len(iterations) < 2 else f"run_{name}_{number}"
            experiments.append(Experiment(label, f"{title}: a grid of your own", name, parts, options=options))
    return experiments


def online_grid(
    domains: Sequence[str],
    algorithms: Sequence[str],
    learners: Sequence[str],
    exploration: Sequence[float],
    runs: int | None,
    steps: int | None,
    interval: int | None,
    minibatches: int | None,
    options: Options = (),
) -> list[Experiment]:
    """Every algorithm with every learner and c in every domain. What is not given has the domain's default."""
    experiments = []
    for name in domains:
        domain = make(name, **dict(options))
        defaults = {algorithm: online_settings(domain, algorithm) for algorithm in algorithms}
        for learner in learners:
            check_learner(learner)
        pairs = tuple(
            (one, learner)
            for one in algorithms
            for learner in (learners if learners and one != AGENT else (defaults[one].estimator,))
        )
        first = defaults[algorithms[0]]  # runs and steps depend on the domain only
        part = OnlineGrid(pairs, runs or first.runs, steps or first.steps, tuple(exploration), interval, minibatches)
        experiments.append(Experiment(f"run_{name}", f"{name}: a grid of your own", name, (), (part,), options))
    return experiments


def domain_options(given: Sequence[str]) -> Options:
    """Options of a domain from strings like `severity=0.5`, `belt=true` or `broken=[2, 4]`; values are JSON."""
    options = {}
    for words in given:
        name, equals, value = words.partition("=")
        try:
            options[name] = _tuples(json.loads(value))
        except (ValueError, RecursionError):
            equals = ""
        if not equals or not name:
            remedy = "give NAME=VALUE, like severity=0.5, belt=true or broken=[2,4]"
            raise ValueError(f"option is {short_repr(words)}; {remedy}")
    return tuple(options.items())


def _tuples(value: object, deepest: int = 3) -> Any:
    """A JSON value with lists turned into tuples; values nested too deeply raise a ValueError."""
    if not isinstance(value, list):
        return value
    if deepest == 0:
        raise ValueError("nested too deeply")
    return tuple(_tuples(part, deepest - 1) for part in value)


def default_folder(experiments: Sequence[Experiment], rules: str, seed: int) -> Path:
    """The folder of a grid's results without `--out`, like `results/run/breakout-trust-c4-1a2b3c`.

    The last six characters are a digest of all settings.
    """
    settings = json.dumps(settings_of(experiments, False, rules, seed), sort_keys=True)
    domains = list(dict.fromkeys(one.domain for one in experiments))
    algorithms = list(dict.fromkeys(name for one in experiments for name in _algorithms(one)))
    swept = [part.exploration for one in experiments for part in one.offline]
    exploration = {
        c for some in (*swept, *(part.exploration for one in experiments for part in one.online)) for c in some
    }
    words = [
        domains[0] if len(domains) == 1 else f"{len(domains)}-domains",
        algorithms[0] if len(algorithms) == 1 else f"{len(algorithms)}-algorithms",
        *(f"c{c:.3g}" for c in exploration if len(exploration) == 1),
        hashlib.sha256(settings.encode()).hexdigest()[:6],
    ]
    return Path("results", "run", "-".join(words))


def _algorithms(experiment: Experiment) -> list[str]:
    offline = [name for part in experiment.offline for name in part.algorithms]
    return offline + [name for part in experiment.online for name, _ in part.learners]


def run_grid(
    experiments: list[Experiment], rules: str, seed: int, out: Path, engine: Engine, console: Console
) -> dict[str, Any]:
    """Runs a grid; see `reproduce.run_all`."""
    return run_all(experiments, False, False, rules, seed, out, engine, console)
