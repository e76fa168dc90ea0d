"""Runs experiments from the first unit to the report: `uamcts reproduce`, `uamcts beyond` and grids of `uamcts run`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
from rich.console import Console

from uamcts import names as known_names
from uamcts.lab.analysis import claims
from uamcts.lab.analysis.summary import write_summary
from uamcts.lab.columns import Episodes
from uamcts.lab.console.limits import check_seed
from uamcts.lab.console.terminal import Bars
from uamcts.lab.experiments.paper import EXPERIMENTS, NAMES, Experiment, only, quick
from uamcts.lab.report.build import write_report
from uamcts.lab.report.gifs import draw_typical
from uamcts.lab.run import bandit, runner
from uamcts.lab.run.enumeration import enumerate_units
from uamcts.lab.run.provenance import collect, provenance
from uamcts.lab.run.store import Store
from uamcts.lab.run.units import Unit, estimate_seconds
from uamcts.presets import RULES


def choose_experiments(names: Sequence[str], is_quick: bool, scenario: str) -> list[Experiment]:
    """The paper's experiments of these names; without names, all of them."""
    for name in names:
        known_names.check_name("experiment", name, NAMES)
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
    """Runs the paper's experiments of these names; see `run_all`."""
    experiments = choose_experiments(names, is_quick, scenario)
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
    """Computes what `out` does not hold yet, judges the claims and writes the report.

    All settings are checked before anything is written.

    Args:
        experiments: What to run.
        with_bandit: Whether to measure the corrupted bandits too.
        is_quick: Whether the experiments are the quick ones; this also shortens the bandits.
        rules: A rule set, or `both`.
        seed: The seed of all units.
        out: The folder of results.
        engine: Computes the units.
        console: Shows the progress.

    Returns:
        The summary, and under `report` a sentence that says where the page is.
    """
    used = rule_sets(rules)
    check_seed(seed)
    units = enumerate_units(experiments, used, seed)
    for unit in units:
        unit.identity  # noqa: B018 (raises an error for settings that cannot be run)
    settings = settings_of(experiments, with_bandit, rules, seed)
    store = Store(out, settings)
    start = time.perf_counter()
    _announce(experiments, units, store)
    bars = Bars(console, {unit.name: estimate_seconds(unit) for unit in units})
    with bars.bar:
        results = runner.run(experiments, used, seed, store, engine, bars)
        bandits = bandit.measure_bandits(out, is_quick, seed, bars.begin("bandit", 0, 1)) if with_bandit else None
    _mention_unused(store, results.names)
    about = {
        **provenance(time.perf_counter() - start),
        **collect(results.about + ([bandits["about"]] if bandits else [])),
        "command_seconds": time.perf_counter() - start,
        "seed": seed,
        "settings": settings,
        "quick": is_quick,
    }
    return finish(out, results.episodes, bandits, used, about)


def rule_sets(rules: str) -> tuple[str, ...]:
    """The rule sets that `--rules` stands for."""
    if rules not in (*RULES, "both"):
        raise ValueError(f"rules is {rules!r}; give {', '.join(RULES)} or both")
    return RULES if rules == "both" else (rules,)


def settings_of(experiments: Sequence[Experiment], with_bandit: bool, rules: str, seed: int) -> dict[str, Any]:
    """The settings that a folder of results belongs to."""
    return {
        "experiments": {e.name: asdict(e) for e in experiments},
        "bandit": with_bandit,
        "rules": list(rule_sets(rules)),
        "seed": seed,
    }


def _announce(experiments: Sequence[Experiment], units: Sequence[Unit], store: Store) -> None:
    """Prints what is going to be computed, and roughly how long it takes. Finished units are read and checked."""
    missing = [unit for unit in units if not store.has(unit.name)]
    for unit in units:
        if store.has(unit.name):
            store.read(unit)  # so that a damaged one is reported now and not after hours
    finished = len(units) - len(missing)
    devices = len(jax.devices())
    minutes = sum(estimate_seconds(unit) for unit in missing) / devices / 60
    resumed = f", {finished} units are finished already" if finished else ""
    names = ", ".join(dict.fromkeys(e.family or e.name for e in experiments)) or "bandit"
    backend = jax.default_backend()
    print(
        f"{names}: about {max(1, round(minutes))} min on {devices} x {backend} (a rough estimate){resumed}", flush=True
    )


def _mention_unused(store: Store, names: Sequence[str]) -> None:
    """Prints which files among the units are not used."""
    unused = store.other_units(names)
    if unused:
        shown = ", ".join(f"{name}.parquet" for name in unused[:2]) + (", ..." if len(unused) > 2 else "")
        print(f"{store.units} also holds {len(unused)} file(s) of other versions or from elsewhere, which are not used "
              f"and may be removed: {shown}", flush=True)  # fmt: skip


def finish(
    out: Path, table: Episodes, bandits: dict[str, Any] | None, rules: Sequence[str], about: dict[str, Any]
) -> dict[str, Any]:
    """Judges the claims and writes the summary, the moving pictures, the figures and the page."""
    declared = about.get("settings", {}).get("experiments", {})
    judged = [
        claim
        for index, rule in enumerate(rules)
        for claim in claims.judge(table, rule, bandits if index == 0 else None)
        if claim["experiment"] in declared or (claim["experiment"] == "bandit" and bandits is not None)
    ]
    summary = write_summary(out, table, judged, about)
    alone = {name: experiment for name, experiment in declared.items() if not experiment["family"]}
    draw_typical(out, table, {name: experiment["options"] for name, experiment in alone.items()})
    return {**summary, "report": write_report(out)}


def failed_claims(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """The claims that were expected to hold and do not."""
    return [claim for claim in summary["claims"] if claim["expected"] and claim["verdict"] == "does not hold"]
