"""`uamcts reproduce`: the paper's experiments from the first unit to the build."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
from rich.console import Console

from uamcts.domains import make
from uamcts.lab.analysis import claims
from uamcts.lab.console.limits import check_seed, check_sizes
from uamcts.lab.console.terminal import Bars
from uamcts.lab.experiments.paper import EXPERIMENTS, NAMES, Experiment, only, pairs, quick
from uamcts.lab.report import build
from uamcts.lab.report.gifs import draw_typical
from uamcts.lab.run import bandit, runner
from uamcts.lab.run.provenance import collect, provenance
from uamcts.lab.run.store import Store
from uamcts.lab.run.tables import Episodes
from uamcts.lab.run.units import Unit, guess
from uamcts.presets import RULES, search_config


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
    """The same for any experiments. Everything is checked before anything is written."""
    chosen_rules = rule_sets(rules)
    check_seed(seed)
    for experiment in experiments:
        check(experiment, chosen_rules)
    first = [
        unit
        for e in experiments
        for unit in runner.sweep_units(e, chosen_rules, seed) + runner.online_units(e, chosen_rules, seed)
    ]
    settings = settings_of(experiments, with_bandit, rules, seed)
    store = Store(out, settings)
    begun = time.perf_counter()
    missing = [unit for unit in first if not store.has(unit.name)]
    for unit in first:
        if store.has(unit.name):
            store.read(unit)  # a damaged one is better told of now than after hours
    _announce(experiments, first, missing)
    bars = Bars(console, {unit.name: guess(unit) for unit in first})
    with bars.bar:
        results = runner.run(experiments, chosen_rules, seed, store, engine, bars)
        found = bandit.measured(out, is_quick, seed, bars.begin("bandit", 0, 1)) if with_bandit else None
    _mention_unused(store, results.names)
    about = {
        **provenance(time.perf_counter() - begun),
        **collect(results.about + ([found["about"]] if found else [])),
        "command_seconds": time.perf_counter() - begun,
        "seed": seed,
        "settings": settings,
        "quick": is_quick,
    }
    return finish(out, results.episodes, found, chosen_rules, about)


def rule_sets(rules: str) -> tuple[str, ...]:
    """The rule sets that the command line's word stands for."""
    if rules not in (*RULES, "both"):
        raise ValueError(f"rules is {rules!r}; there are {', '.join(RULES)} and both")
    return RULES if rules == "both" else (rules,)


def settings_of(experiments: Sequence[Experiment], with_bandit: bool, rules: str, seed: int) -> dict[str, Any]:
    """What a folder of results is for."""
    return {
        "experiments": {e.name: asdict(e) for e in experiments},
        "bandit": with_bandit,
        "rules": list(rule_sets(rules)),
        "seed": seed,
    }


def check(experiment: Experiment, rules: Sequence[str]) -> None:
    """Refuses an experiment with a setting that would only be refused in the middle of it."""
    domain = make(experiment.domain, **dict(experiment.options))
    for part in experiment.offline:
        check_sizes(runs=part.runs)
        for algorithm, c in pairs(experiment, part):
            for rule in rules:
                config = search_config(domain, algorithm, rules=rule, tau=part.tau, **dict(part.budget), c=c)
                check_sizes(iterations=config.iterations)
    for unit in runner.online_units(experiment, rules, 0):
        unit.identity  # noqa: B018 (completing the settings refuses wrong ones)


def _announce(experiments: Sequence[Experiment], first: Sequence[Unit], missing: Sequence[Unit]) -> None:
    """Says what is going to be computed, and roughly how long it takes."""
    devices = len(jax.devices())
    minutes = sum(guess(unit) for unit in missing) / devices / 60
    kept = f", {len(first) - len(missing)} units are there already" if len(missing) < len(first) else ""
    names = ", ".join(dict.fromkeys(e.family or e.name for e in experiments)) or "bandit"
    print(f"{names}: about {max(1, round(minutes))} min on {devices} x "
          f"{jax.default_backend()} (a first guess){kept}", flush=True)  # fmt: skip


def _mention_unused(store: Store, names: Sequence[str]) -> None:
    """Says which files among the units were left alone."""
    unused = store.unused(names)
    if unused:
        shown = ", ".join(f"{name}.parquet" for name in unused[:2]) + (", ..." if len(unused) > 2 else "")
        print(f"{store.units} also holds {len(unused)} file(s) of other versions or from elsewhere, which are not used "
              f"and may be removed: {shown}", flush=True)  # fmt: skip


def finish(
    out: Path, table: Episodes, found: dict[str, Any] | None, rules: Sequence[str], about: dict[str, Any]
) -> dict[str, Any]:
    """Judges what is there, and writes tables, pictures and the page."""
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
    build.build(out)
    return summary


def failed(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Claims that were expected to hold and do not."""
    return [claim for claim in summary["claims"] if claim["expected"] and claim["verdict"] == "does not hold"]
