"""From experiments to episodes: computes the units that are missing and reads all of them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax

from uamcts.lab.columns import Episodes
from uamcts.lab.experiments.paper import Experiment
from uamcts.lab.run.compute import compile_unit, compute_unit
from uamcts.lab.run.enumeration import enumerate_units
from uamcts.lab.run.field_units import FieldUnit
from uamcts.lab.run.provenance import provenance
from uamcts.lab.run.store import Store
from uamcts.lab.run.tables import empty_table, join_tables
from uamcts.lab.run.units import OfflineUnit, Progress, Unit, estimate_seconds


class Reporter(Protocol):
    """Receives the progress of the work."""

    def expect(self, units: Sequence[Unit]) -> None:
        """Adds units that were not known at the start."""

    def begin(self, name: str, number: int, total: int) -> Progress:
        """Starts a unit and returns the function to call with its progress."""


Engine = Callable[[Sequence[Unit], Store, Reporter], None]
"""Computes all units that the store does not have yet."""


class Results(NamedTuple):
    """The episodes of some units."""

    episodes: Episodes
    about: list[dict[str, Any]]
    """The identity and the provenance of each unit."""
    names: list[str]
    """The names of the units."""


def run(
    experiments: Sequence[Experiment], rules: Sequence[str], seed: int, store: Store, engine: Engine, reporter: Reporter
) -> Results:
    """Computes what is missing of some experiments and returns all their episodes."""
    sweep = [unit for unit in enumerate_units(experiments, rules, seed) if _is_sweep(unit)]
    engine(sweep, store, reporter)
    found = [store.read(unit) for unit in sweep]
    episodes = join_tables([part for part, _ in found] or [empty_table()])
    later = [unit for unit in enumerate_units(experiments, rules, seed, episodes) if not _is_sweep(unit)]
    reporter.expect(later)
    engine(later, store, reporter)
    found += [store.read(unit) for unit in later]
    episodes = join_tables([part for part, _ in found] or [empty_table()])
    return Results(episodes, [about for _, about in found], [unit.name for unit in (*sweep, *later)])


def _is_sweep(unit: Unit) -> bool:
    return isinstance(unit, OfflineUnit | FieldUnit) and unit.purpose == "sweep"


def compute_missing(unit: Unit, store: Store, work: Callable[[], Episodes]) -> bool:
    """Calls `work` to compute a unit that is missing, unless another process does; returns whether it is there now."""
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
            compile_unit(unit)
            about["compiling"] = time.perf_counter() - start
        episodes = work()
        store.write(unit, episodes, about | provenance(time.perf_counter() - start))
        for leftover in store.units.glob(f"{unit.name}.*"):
            if leftover.suffix in (".runs", ".so-far"):
                leftover.unlink()
    return True


def run_in_thread(work: Callable[[], Any]) -> Any:
    """Returns what `work` returns, computed in another thread, so that Ctrl-C interrupts a running program."""
    found: list[Any] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            found.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)
    if errors:
        raise errors[0]
    return found[0]


def run_locally(units: Sequence[Unit], store: Store, reporter: Reporter) -> None:
    """Computes units one after the other, each on all devices, and waits for units that other processes compute.

    An accelerator leaves the cores idle, so the programs of later units are compiled meanwhile. The longest units come
    first there.
    """
    left = list(enumerate(units))
    if jax.default_backend() != "cpu":
        left = list(enumerate(sorted(units, key=estimate_seconds, reverse=True)))
        ahead = [unit for _, unit in left if isinstance(unit, OfflineUnit) and not store.has(unit.name)]
        threading.Thread(target=_compile_ahead, args=(ahead,), daemon=True).start()
    while left:
        waiting = []
        for number, unit in left:
            work = partial(compute_unit, unit, reporter.begin(unit.name, number, len(units)), store.units)
            if not run_in_thread(partial(compute_missing, unit, store, work)):
                waiting.append((number, unit))
        if len(waiting) == len(left):
            time.sleep(0.5)
        left = waiting


def _compile_ahead(units: Sequence[OfflineUnit]) -> None:
    with contextlib.suppress(Exception):  # computing the unit raises the same error where it is seen
        for unit in units:
            compile_unit(unit)
