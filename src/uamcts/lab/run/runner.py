"""From declarations to results: which units there are, and who computes them."""

from __future__ import annotations

import contextlib
import json
import math
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from uamcts.domains import make
from uamcts.lab.analysis.groups import best_c, cells
from uamcts.lab.analysis.paired import differences
from uamcts.lab.analysis.statistics import curves, summarise
from uamcts.lab.analysis.verdicts import adjust, count_verdicts
from uamcts.lab.experiments.paper import Experiment, Pair, pairs
from uamcts.lab.run.provenance import provenance
from uamcts.lab.run.store import Store
from uamcts.lab.run.tables import Episodes, as_parquet, join_tables, nothing
from uamcts.lab.run.units import OfflineUnit, OnlineUnit, Progress, Unit, guess
from uamcts.presets import rules_of, search_config
from uamcts.runtime.atomic import write_whole

BLOCK = 50
"""The fewest seeds in one unit."""
EPISODES = 1400
"""Episodes in one unit, unless BLOCK seeds have more: what an accelerator plays side by side."""
FRESH = 1_000_000
"""The first of the seeds on which the chosen c is played again."""


class Reporter(Protocol):
    """Who is told how the work goes on."""

    def expect(self, units: Sequence[Unit]) -> None: ...

    def begin(self, name: str, number: int, total: int) -> Progress: ...


def blocks(runs: int, pairs: int) -> list[tuple[int, int]]:
    """The first seed and the number of seeds of each unit, where every seed is played by so many `pairs`."""
    size = max(BLOCK, EPISODES // pairs)
    return [(first, min(size, runs - first)) for first in range(0, runs, size)]


def sweep_units(experiment: Experiment, rules: Sequence[str], seed: int) -> list[Unit]:
    """The offline units that come first: every algorithm with every c on the same seeds."""
    return [
        OfflineUnit(
            experiment.name, experiment.domain, used, part.tau, "sweep", chosen, first,
            count, seed, part.budget, experiment.options, experiment.drawn,
        )
        for part in experiment.offline
        for used, chosen in _by_rules(pairs(experiment, part), rules).items()
        for first, count in blocks(part.runs, len(chosen))
    ]  # fmt: skip


def _by_rules(chosen: Sequence[Pair], rules: Sequence[str]) -> dict[str, tuple[Pair, ...]]:
    """Pairs (algorithm, c) by the rule sets that they are searched by, where these `rules` are asked for.

    An algorithm with rules of its own is not run again for each of `rules`.
    """
    found: dict[str, dict[Pair, None]] = {}
    for rule in rules:
        for algorithm, c in chosen:
            found.setdefault(rules_of(algorithm, rule), {})[algorithm, c] = None
    return {used: tuple(some) for used, some in found.items()}


def online_units(experiment: Experiment, rules: Sequence[str], seed: int) -> list[Unit]:
    """The online units, by default at the algorithm's usual c."""
    domain = make(experiment.domain, **dict(experiment.options))
    units = [
        OnlineUnit(
            experiment.name, experiment.domain, algorithm, learner, rules_of(algorithm, rule), float(c), part.runs,
            part.steps, seed, part.interval, part.minibatches, experiment.options,
        )
        for rule in rules
        for part in experiment.online
        for algorithm, learner in part.learners
        for c in part.exploration or (search_config(domain, algorithm).c,)
    ]  # fmt: skip
    return list(dict.fromkeys(units))


def fresh_units(experiment: Experiment, rules: Sequence[str], seed: int, sweep: Episodes) -> list[Unit]:
    """Each algorithm at the best c of the sweep, on seeds that did not choose it; nothing where there was no choice."""
    units: list[Unit] = []
    best = best_c(cells(sweep))
    for part in experiment.offline:
        if len(part.exploration) < 2:
            continue
        for used, swept in _by_rules(pairs(experiment, part), rules).items():
            places = {name: (experiment.name, experiment.domain, name, used, part.tau) for name, _ in swept}
            chosen = tuple((name, best[place]) for name, place in places.items())
            units += [
                OfflineUnit(
                    experiment.name, experiment.domain, used, part.tau, "fresh", chosen, FRESH + first,
                    count, seed, part.budget, experiment.options, experiment.drawn,
                )
                for first, count in blocks(part.reported_runs, len(chosen))
            ]  # fmt: skip
    return units


def compute(unit: Unit, store: Store, work: Callable[[], Episodes]) -> bool:
    """Has `work` compute a unit that is missing, unless somebody else is at it; True if it is there now."""
    if store.has(unit.name):
        return True
    with store.working_on(unit.name) as mine:
        if store.has(unit.name):
            return True
        if not mine:
            return False
        start = time.perf_counter()
        about: dict[str, Any] = {}
        if isinstance(unit, OfflineUnit):
            unit.prepare()
            about["compiling"] = time.perf_counter() - start
        episodes = work()
        store.write(unit, episodes, about | provenance(time.perf_counter() - start))
        for leftover in store.units.glob(f"{unit.name}.*"):
            if leftover.suffix in (".runs", ".so-far"):
                leftover.unlink()
    return True


def interruptible(work: Callable[[], Any]) -> Any:
    """What `work` gives, computed in another thread: a Ctrl-C is then noticed at once, not when a program returns."""
    found: list[Any] = []
    wrong: list[BaseException] = []

    def carry_out() -> None:
        try:
            found.append(work())
        except BaseException as error:
            wrong.append(error)

    thread = threading.Thread(target=carry_out, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)
    if wrong:
        raise wrong[0]
    return found[0]


def run_locally(units: Sequence[Unit], store: Store, reporter: Reporter) -> None:
    """All units, one after the other, each over all devices; those that other processes are at are waited for.

    On an accelerator, which leaves the cores idle, the programs of later units are compiled while earlier ones are
    played, and the longest of them come first.
    """
    left = list(enumerate(units))
    if jax.default_backend() != "cpu":
        left = list(enumerate(sorted(units, key=guess, reverse=True)))
        ahead = [unit for _, unit in left if isinstance(unit, OfflineUnit) and not store.has(unit.name)]
        threading.Thread(target=_prepare, args=(ahead,), daemon=True).start()
    while left:
        waiting = []
        for number, unit in left:
            work = partial(unit.compute, reporter.begin(unit.name, number, len(units)), store.units)
            if not interruptible(partial(compute, unit, store, work)):
                waiting.append((number, unit))
        if len(waiting) == len(left):
            time.sleep(0.5)
        left = waiting


def _prepare(units: Sequence[OfflineUnit]) -> None:
    with contextlib.suppress(Exception):  # whoever computes the unit meets it too, and says so
        for unit in units:
            unit.prepare()


Engine = Callable[[Sequence[Unit], Store, Reporter], None]


class Results(NamedTuple):
    """The episodes of some units, and for each unit its identity and provenance."""

    episodes: Episodes
    about: list[dict[str, Any]]
    names: list[str]
    """Of the units."""


def run(
    experiments: Sequence[Experiment], rules: Sequence[str], seed: int, store: Store, engine: Engine, reporter: Reporter
) -> Results:
    """All units of some experiments, what is missing of them computed."""
    sweeps = [unit for experiment in experiments for unit in sweep_units(experiment, rules, seed)]
    engine(sweeps, store, reporter)
    found = [store.read(unit) for unit in sweeps]
    later: list[Unit] = []
    if found:
        table = join_tables([episodes for episodes, _ in found])
        later = [unit for experiment in experiments for unit in fresh_units(experiment, rules, seed, table)]
    later += [unit for experiment in experiments for unit in online_units(experiment, rules, seed)]
    reporter.expect(later)
    engine(later, store, reporter)
    found += [store.read(unit) for unit in later]
    names = [unit.name for unit in (*sweeps, *later)]
    return Results(
        join_tables([episodes for episodes, _ in found] or [nothing()]), [about for _, about in found], names
    )


def conclude(folder: Path, episodes: Episodes, claims: list[dict], about: dict[str, Any]) -> dict[str, Any]:
    """Writes `episodes.parquet` and `summary.json`; returns the summary."""
    summary = {
        "rows": summarise(episodes),
        "claims": adjust(claims),
        "verdicts": count_verdicts(claims),
        "differences": differences(episodes),
        "curves": curves(episodes),
        "provenance": about,
    }
    write_whole(folder / "episodes.parquet", as_parquet(episodes, about))
    write_whole(folder / "summary.json", json.dumps(plain(summary), indent=1, allow_nan=False).encode())
    return summary


def plain(value: Any) -> Any:
    """The same in JSON's own types; what is not a finite number is null."""
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
