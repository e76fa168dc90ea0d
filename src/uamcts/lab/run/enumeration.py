"""Which units an experiment consists of. Running, counting and announcing all ask `enumerate_units`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from uamcts.lab.analysis.groups import best_c, group_runs
from uamcts.lab.console.limits import check_sizes
from uamcts.lab.experiments.field import FieldExperiment
from uamcts.lab.experiments.paper import Experiment, OfflineGrid, Pair, pairs
from uamcts.lab.run.field_units import field_units
from uamcts.lab.run.tables import Episodes
from uamcts.lab.run.units import OfflineUnit, OnlineUnit, Unit
from uamcts.presets import rules_of

BLOCK = 50
"""The smallest number of seeds in a unit, unless there are fewer."""
EPISODES = 1400
"""Episodes in a unit, unless BLOCK seeds have more: what an accelerator plays as one batch."""
FRESH = 1_000_000
"""The first of the fresh seeds, on which the chosen c is played again."""


def enumerate_units(
    experiments: Sequence[Experiment], rules: Sequence[str], seed: int, sweep: Episodes | None = None
) -> list[Unit]:
    """All units of some experiments: sweeps first, then fresh seeds, then online runs.

    Args:
        experiments: The declarations.
        rules: The rule sets to run them under. An algorithm with rules of its own is not repeated for each of them.
        seed: The seed of all units.
        sweep: The episodes of the sweeps. They choose the c that is played on fresh seeds; without them those units are
            not known yet and are left out.

    Raises:
        ValueError: If a declaration asks for more runs than are allowed.
    """
    units: list[Unit] = [unit for one in experiments for unit in _sweep_units(one, rules, seed)]
    best = best_c(group_runs(sweep)) if sweep is not None and len(sweep["reward"]) else None
    if best is not None:
        units += [unit for one in experiments for unit in _fresh_units(one, rules, seed, best)]
    units += [unit for one in experiments for unit in _online_units(one, rules, seed)]
    field = [one for one in experiments if isinstance(one, FieldExperiment)]
    return units + [unit for one in field for unit in field_units(one, seed, best)]


def split_seeds(runs: int, pairs: int) -> list[tuple[int, int]]:
    """The first seed and the number of seeds of each unit, where every seed is played by `pairs` planners."""
    size = max(BLOCK, EPISODES // pairs)
    return [(first, min(size, runs - first)) for first in range(0, runs, size)]


def _sweep_units(experiment: Experiment, rules: Sequence[str], seed: int) -> Iterator[OfflineUnit]:
    """Every algorithm with every c on the same seeds."""
    for part in experiment.offline:
        for used, planners in _by_rules(pairs(experiment, part), rules, part.graph).items():
            yield from _offline_units(experiment, part, "sweep", used, planners, seed)


def _fresh_units(
    experiment: Experiment, rules: Sequence[str], seed: int, best: dict[tuple[str, str, str, str, float], float]
) -> Iterator[OfflineUnit]:
    """Each algorithm at the best c of its sweep, on seeds that did not choose it; nothing without a choice of c."""
    for part in experiment.offline:
        if len(part.exploration) < 2:
            continue
        for used, swept in _by_rules(pairs(experiment, part), rules, part.graph).items():
            series = {name: (experiment.name, experiment.domain, name, used, part.tau) for name, _ in swept}
            planners = tuple((name, best[key]) for name, key in series.items())
            yield from _offline_units(experiment, part, "fresh", used, planners, seed)


def _offline_units(
    experiment: Experiment, part: OfflineGrid, purpose: str, rules: str, planners: tuple[Pair, ...], seed: int
) -> Iterator[OfflineUnit]:
    check_sizes(runs=part.runs)
    start, runs = (FRESH, part.reported_runs) if purpose == "fresh" else (0, part.runs)
    for first, count in split_seeds(runs, len(planners)):
        yield OfflineUnit(
            experiment.name, experiment.domain, rules, part.tau, purpose, planners, start + first,
            count, seed, part.budget, experiment.options, experiment.drawn,
        )  # fmt: skip


def _online_units(experiment: Experiment, rules: Sequence[str], seed: int) -> list[OnlineUnit]:
    """Every algorithm with its learner, at the algorithm's default c unless the declaration gives some."""
    units = [
        OnlineUnit.with_defaults(
            experiment.domain, algorithm, learner, rule, c, part.runs, part.steps, seed, part.interval,
            part.minibatches, experiment.options, experiment.name,
        )
        for rule in rules
        for part in experiment.online
        for algorithm, learner in part.learners
        for c in part.exploration or (None,)
    ]  # fmt: skip
    return list(dict.fromkeys(units))


def _by_rules(planners: Sequence[Pair], rules: Sequence[str], graph: bool) -> dict[str, tuple[Pair, ...]]:
    """Pairs (algorithm, c) by the rule set that their searches follow, where these `rules` are asked for."""
    found: dict[str, dict[Pair, None]] = {}
    for rule in rules:
        for algorithm, c in planners:
            found.setdefault(rules_of(algorithm, rule, graph), {})[algorithm, c] = None
    return {used: tuple(some) for used, some in found.items()}
