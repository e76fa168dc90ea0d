"""Experiments that the paper does not have, one readable declaration each: `uamcts beyond`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from uamcts.lab.experiments import GAMES, IN_WORDS, Experiment, Offline, Online, Options, only
from uamcts.paper import ONLINE, OnlineSettings

PLANNERS = ("true", "corrupted", "combined", "trust")
"""Offline, with U known, each at its usual c."""
LEARNING = (
    ("combined", "two_part"),
    ("trust", "two_part"),
    ("trust", "two_part+memory"),
    ("corrupted", "memory"),
    ("corrupted", "cmax"),
    ("corrupted", "cmax_plus"),
)
"""Online: who plans, and what learns."""
ESTIMATORS = ("network", "network+gate", "two_part", "bayes", "trees", "nearest", "ensemble", "dropout")
"""Online: what learns U, behind the same search."""
BASE = (("true", "none"), ("corrupted", "none"))
GRIDS = ("two_way", "two_way_icy")
DRAWN = ("hidden_obstacles", "slippery")


@dataclass(frozen=True)
class Family:
    """Experiments that are shown together."""

    title: str
    text: str
    axis: str = ""
    """What the levels are levels of; without it the family is a table."""
    logarithmic: bool = False
    experiments: tuple[Experiment, ...] = ()


def _online(domain: str, steps: int, runs: int, more: Sequence[tuple[str, str]] = ()) -> tuple[Online, ...]:
    """The paper's agent, trained as the paper trains it in games or gridworlds; the others in more, shorter rounds."""
    papers = OnlineSettings() if domain in GAMES else ONLINE["two_way"]
    return (
        Online((*BASE, ("combined", papers.estimator)), runs, steps, interval=papers.schedule.interval),
        Online((*LEARNING, *more), runs, steps, interval=min(500, steps // 6), minibatches=1000),
    )


def _planners() -> tuple[Experiment, ...]:
    offline = (Offline(PLANNERS, (), runs=100),)
    penalty = {"space_invaders": (("corrupted", "two_part+penalty"),)}  # in the others it takes hours on a CPU
    games = [
        Experiment(f"planners_{name}", IN_WORDS[name], name, offline, _online(name, 10_000, 10, penalty.get(name, ())))
        for name in GAMES
    ]
    others = (("corrupted", "linear+penalty"),)
    grids = [
        Experiment(f"planners_{name}", IN_WORDS[name], name, offline, _online(name, 3000, 10, others)) for name in GRIDS
    ]
    drawn = [
        Experiment(f"planners_{name}", IN_WORDS[name], name, offline, _online(name, 1200, 5), drawn=True)
        for name in DRAWN
    ]
    return tuple(replace(experiment, family="planners") for experiment in (*games, *grids, *drawn))


def _estimators() -> tuple[Experiment, ...]:
    learners = tuple(("trust", name) for name in ESTIMATORS)
    return tuple(
        Experiment(
            f"estimators_{name}", IN_WORDS[name], name, (),
            (Online(learners, 5, 10_000 if name in GAMES else 3000, interval=500, minibatches=1000),),
            family="estimators",
        )
        for name in (*GAMES, *GRIDS)
    )  # fmt: skip


def _severity() -> tuple[Experiment, ...]:
    ranges: dict[str, tuple[str, tuple[float, ...]]] = {
        **dict.fromkeys(GAMES, ("severity", (0.0, 0.2, 0.4, 0.6, 0.8, 1.0))),
        "hidden_obstacles": ("density", (0.0, 0.1, 0.2, 0.3, 0.4)),
    }
    return tuple(
        Experiment(
            f"severity_{name}_{round(100 * share)}", IN_WORDS[name], name, (Offline(PLANNERS, (), runs=100),),
            options=((option, share),), drawn=True, family="severity", level=100 * share,
        )
        for name, (option, shares) in ranges.items()
        for share in shares
    )  # fmt: skip


def _mandatory() -> tuple[Experiment, ...]:
    row = tuple((2, column) for column in range(1, 6))
    variants: dict[str, tuple[str, str, Options]] = {
        "one": ("One icy cell (the paper's)", "two_way_icy", ()),
        "two": ("Two icy cells", "two_way_icy", (("ice", ((2, 2), (2, 4))),)),
        "row": ("An icy row", "two_way_icy", (("ice", row),)),
        "both": ("Ice on both ways, none blocked", "two_way_icy", (("broken", ()), ("ice", ((0, 3), (2, 3))))),
        "belt": ("An icy belt", "slippery", (("belt", True),)),
    }
    return tuple(
        Experiment(
            f"mandatory_{name}", title, domain, (Offline(PLANNERS, (), runs=100),),
            _online(domain, 1200 if domain == "slippery" else 1500, 5), options, family="mandatory",
        )
        for name, (title, domain, options) in variants.items()
    )  # fmt: skip


def _shortcut() -> tuple[Experiment, ...]:
    bold = (("corrupted", "linear+bonus+memory"), ("corrupted", "unseen+bonus=0.1+memory"))
    return tuple(
        Experiment(
            f"shortcut_{name}", title, "shortcut", (Offline(PLANNERS, (), runs=100),),
            _online("shortcut", 1200, 5, bold), options, family="shortcut",
        )
        for name, title, options in (
            ("door", "A door that nobody knows", ()),
            ("wall", "Wall, as it looks", (("door", False),)),
            ("trap", "A trap", (("trap", True),)),
        )
    )  # fmt: skip


def _budget() -> tuple[Experiment, ...]:
    most = {"space_invaders": 1000, "breakout": 1000, "freeway": 100_000, "two_way": 10_000, "two_way_icy": 10_000}
    runs = {10: 100, 100: 100, 1000: 40, 10_000: 10, 100_000: 4}
    return tuple(
        Experiment(
            f"budget_{name}_{number}", IN_WORDS[name], name,
            (Offline(PLANNERS, (), runs=count, budget=(("iterations", number),)),), family="budget", level=number,
        )
        for name, limit in most.items()
        for number, count in runs.items()
        if number <= limit
    )  # fmt: skip


FAMILIES: dict[str, Family] = {
    "planners": Family(
        "Every planner in every domain",
        "Offline U is known: 100 runs, each planner at its usual c. Online it is learned: the second half of each "
        "run's episodes. MCTS on the true model knows the world and is what can be reached with this search.",
        experiments=_planners(),
    ),
    "estimators": Family(
        "What learns U",
        "Trust search with one estimator after the other and no memory, all in the same rounds of training: the second "
        "half of each run's episodes.",
        experiments=_estimators(),
    ),
    "severity": Family(
        "How much of the model is wrong",
        "Each run in a world of its own, in which a share of the places is broken; U is known.",
        "broken places, %",
        experiments=_severity(),
    ),
    "mandatory": Family(
        "No way around",
        "Every path to the goal leads over transitions that the model has wrong.",
        experiments=_mandatory(),
    ),
    "shortcut": Family(
        "When the error is good news",
        "The world has a door where the model has a wall. Avoiding what the model has wrong means the long way.",
        experiments=_shortcut(),
    ),
    "budget": Family(
        "What more iterations buy",
        "U is known; 100 runs up to 100 iterations a move, 40 at 1,000, 10 at 10,000, 4 at 100,000.",
        "iterations a move",
        True,
        experiments=_budget(),
    ),
}
"""By name."""


def chosen(names: Sequence[str], is_quick: bool, scenario: str) -> list[Experiment]:
    """The experiments of these families, all by default."""
    for name in names:
        if name not in FAMILIES:
            raise ValueError(f"unknown experiment {name!r}; there are {', '.join(FAMILIES)}")
    found = [experiment for name in names or FAMILIES for experiment in FAMILIES[name].experiments]
    if is_quick:
        found = [quick(experiment) for experiment in found if not _is_long(experiment)]
    kept = [only(experiment, scenario) for experiment in found]
    return [experiment for experiment in kept if experiment.offline or experiment.online]


def quick(experiment: Experiment) -> Experiment:
    """The same in a few minutes: fewer runs, and online only in the small gridworlds."""
    offline = tuple(replace(part, runs=min(part.runs, 10)) for part in experiment.offline)
    online = tuple(
        replace(part, runs=2, steps=600, interval=100, minibatches=100)
        for part in experiment.online
        if experiment.domain in GRIDS
    )
    return replace(experiment, offline=offline, online=online)


def _is_long(experiment: Experiment) -> bool:
    many = any(dict(part.budget).get("iterations", 0) > 1000 for part in experiment.offline)
    return many or (experiment.family == "estimators" and experiment.domain != "two_way")
