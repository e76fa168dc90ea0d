"""`uamcts reproduce`: the paper's experiments from the first unit to the report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
from rich.console import Console

from uamcts.lab import bandit, claims, report, runner
from uamcts.lab.experiments import EXPERIMENTS, NAMES, Experiment, only, quick
from uamcts.lab.gifs import draw_typical
from uamcts.lab.learners import check_learner
from uamcts.lab.store import Store
from uamcts.lab.terminal import Bars
from uamcts.lab.units import guess
from uamcts.paper import RULES


def chosen(names: Sequence[str], is_quick: bool, scenario: str) -> list[Experiment]:
    """The experiments of these names, all by default."""
    for name in names:
        if name not in NAMES:
            raise ValueError(f"unknown experiment {name!r}; there are {', '.join(NAMES)}")
    found = [EXPERIMENTS[name] for name in names or NAMES if name in EXPERIMENTS]
    found = [quick(experiment) if is_quick else experiment for experiment in found]
    return [only(experiment, scenario) for experiment in found]


def reproduce(
    names: Sequence[str],
    is_quick: bool,
    scenario: str,
    rules: str,
    seed: int,
    out: Path,
    engine: runner.Engine,
    console: Console,
) -> dict[str, Any]:
    """Runs, judges, draws and writes the report; returns the summary."""
    experiments = chosen(names, is_quick, scenario)
    return run_all(experiments, not names or "bandit" in names, is_quick, rules, seed, out, engine, console)


def run_all(
    experiments: list[Experiment],
    with_bandit: bool,
    is_quick: bool,
    rules: str,
    seed: int,
    out: Path,
    engine: runner.Engine,
    console: Console,
) -> dict[str, Any]:
    """The same for any experiments."""
    if rules not in (*RULES, "both"):
        raise ValueError(f"rules is {rules!r}; there are {', '.join(RULES)} and both")
    for learner in dict.fromkeys(learner for e in experiments for part in e.online for _, learner in part.learners):
        check_learner(learner)
    chosen_rules = RULES if rules == "both" else (rules,)
    settings = {
        "experiments": {e.name: asdict(e) for e in experiments},
        "bandit": with_bandit,
        "rules": list(chosen_rules),
        "seed": seed,
    }
    store = Store(out, settings)
    begun = time.perf_counter()
    first = [
        unit
        for e in experiments
        for unit in runner.sweep_units(e, chosen_rules, seed) + runner.online_units(e, chosen_rules, seed)
    ]
    missing = [unit for unit in first if not store.has(unit.name)]
    devices = len(jax.devices())
    minutes = sum(guess(unit) for unit in missing) / devices / 60
    kept = f", {len(first) - len(missing)} units are there already" if len(missing) < len(first) else ""
    names = ", ".join(dict.fromkeys(e.family or e.name for e in experiments)) or "bandit"
    print(f"{names}: about {max(1, round(minutes))} min on {devices} x "
          f"{jax.default_backend()} (a first guess){kept}", flush=True)  # fmt: skip
    bars = Bars(console, {unit.name: guess(unit) for unit in first})
    with bars.bar:
        episodes = runner.run(experiments, chosen_rules, seed, store, engine, bars) if experiments else None
        found = bandit.measured(out, is_quick, seed, bars.begin("bandit", 0, 1)) if with_bandit else None
    about = {**runner.provenance(time.perf_counter() - begun), "seed": seed, "units": len(first), "settings": settings}
    about |= {"quick": is_quick, "computed_seconds": store.seconds()}
    return finish(out, episodes, found, chosen_rules, about)


def finish(
    out: Path, episodes: Any, found: dict[str, Any] | None, rules: Sequence[str], about: dict[str, Any]
) -> dict[str, Any]:
    """Judges what is there, and writes tables, pictures and the page."""
    table = episodes if episodes is not None else runner.nothing()
    declared = about.get("settings", {}).get("experiments", {})
    judged = [
        claim
        for index, rule in enumerate(rules)
        for claim in claims.judge(table, rule, found if index == 0 else None)
        if claim["experiment"] in declared or (claim["experiment"] == "bandit" and found is not None)
    ]
    summary = runner.conclude(out, table, judged, about)
    alone = {name: experiment for name, experiment in declared.items() if not experiment["family"]}
    draw_typical(out, table, {name: experiment["options"] for name, experiment in alone.items()})
    report.build(out)
    return summary


def failed(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Claims that were expected to hold and do not."""
    return [claim for claim in summary["claims"] if claim["expected"] and claim["verdict"] == "does not hold"]
