"""Experiments that the paper does not have, one declaration each: `uamcts beyond`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from uamcts.lab.experiments.paper import GAMES, IN_WORDS, Experiment, OfflineGrid, OnlineGrid, Options, only
from uamcts.names import check_name
from uamcts.presets import ONLINE, OnlineSettings

PLANNERS = ("true", "corrupted", "combined", "trust")
"""Planners of the offline experiments, where U is known."""
GRID = (0.5, 1.0, 2.0**0.5, 2.0, 4.0, 8.0)
"""The values of c that every planner chooses from, offline."""
QUICK_C = 2.0
"""The c of every planner in quick experiments: the middle of the grid."""
TUNING = (
    "Every planner chooses from the same six c, 0.5 to 8, on seeds that are not reported; all planners are reported on "
    "the same fresh seeds. Nothing else is chosen here. UA-MCTS has the paper's tau, 0.1. Trust has one setting of "
    "rho, penalty and threshold for all domains, but it was once picked among some forty variants on other seeds of "
    "these domains, a choice that UA-MCTS did not have."
)
"""What was tuned and what was not; a part of each family's text."""
LEARNING = (
    ("combined", "two_part"),
    ("trust", "two_part+memory"),
    ("corrupted", "memory"),
    ("corrupted", "cmax_plus"),
)
"""Pairs of an algorithm and its learner in the online experiments."""
ESTIMATORS = ("network", "network+gate", "two_part", "bayes", "trees", "nearest", "ensemble", "dropout")
"""Estimators of U that are compared online, all with the same search."""
BASE = (("true", "none"), ("corrupted", "none"))
GRIDS = ("two_way", "two_way_icy")
DRAWN = ("hidden_obstacles", "slippery")


@dataclass(frozen=True)
class Family:
    """Experiments that a report shows together."""

    title: str
    text: str
    axis: str = ""
    """The quantity that the levels measure; an empty string if there are no levels."""
    logarithmic: bool = False
    experiments: tuple[Experiment, ...] = ()


def _online(domain: str, steps: int, runs: int, more: Sequence[tuple[str, str]] = ()) -> tuple[OnlineGrid, ...]:
    """The paper's agent, trained as in the paper, and the others, trained in more and shorter rounds."""
    papers = OnlineSettings() if domain in GAMES else ONLINE["two_way"]
    return (
        OnlineGrid((*BASE, ("combined", papers.estimator)), runs, steps, interval=papers.schedule.interval),
        OnlineGrid((*LEARNING, *more), runs, steps, interval=min(500, steps // 6), minibatches=1000),
    )


def _offline(runs: tuple[int, int], planners: tuple[str, ...] = PLANNERS, **budget: float) -> tuple[OfflineGrid, ...]:
    """Each planner at the best c of the grid; `runs` are the numbers of runs that choose c and that are reported."""
    return (OfflineGrid(planners, GRID, runs=runs[0], fresh_runs=runs[1], budget=tuple(budget.items())),)


def _offline_on_grids(runs: tuple[int, int]) -> tuple[OfflineGrid, ...]:
    """The same, and UA-MCTS at tau 10, which the paper uses if every path is uncertain."""
    return (*_offline(runs), OfflineGrid(("combined",), GRID, tau=10.0, runs=runs[0], fresh_runs=runs[1]))


def _planners() -> tuple[Experiment, ...]:
    runs = {"space_invaders": (200, 1000), "freeway": (200, 1000), "breakout": (100, 1000)}
    games = [
        Experiment(f"planners_{name}", IN_WORDS[name], name, _offline(runs[name]), _online(name, 10_000, 10))
        for name in GAMES
    ]
    others = (("corrupted", "linear+penalty"),)
    grids = [
        Experiment(
            f"planners_{name}", IN_WORDS[name], name, _offline_on_grids((200, 1000)), _online(name, 3000, 10, others)
        )
        for name in GRIDS
    ]
    drawn = [
        Experiment(f"planners_{name}", IN_WORDS[name], name, _offline((100, 400)), _online(name, 1200, 5), drawn=True)
        for name in DRAWN
    ]
    return tuple(replace(experiment, family="planners") for experiment in (*games, *grids, *drawn))


def _estimators() -> tuple[Experiment, ...]:
    learners = tuple(("trust", name) for name in ESTIMATORS)
    return tuple(
        Experiment(
            f"estimators_{name}", IN_WORDS[name], name, (),
            (OnlineGrid(learners, 5, 5000 if name in GAMES else 3000, interval=500, minibatches=1000),),
            family="estimators",
        )
        for name in ("space_invaders", *GRIDS)
    )  # fmt: skip


def _severity() -> tuple[Experiment, ...]:
    shares = (0.0, 0.2, 0.4, 0.6, 0.8)
    ranges: dict[str, tuple[str, tuple[float, ...]]] = {
        "space_invaders": ("severity", shares),  # with every place broken nothing can be won here and in Breakout
        "freeway": ("severity", (*shares, 1.0)),
        "breakout": ("severity", shares),
        "hidden_obstacles": ("density", (0.0, 0.1, 0.2, 0.3, 0.4)),
    }
    return tuple(
        Experiment(
            f"severity_{name}_{round(100 * share)}", IN_WORDS[name], name, _offline((40, 160)),
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
            f"mandatory_{name}", title, domain,
            _offline_on_grids((200, 1000) if domain in GRIDS else (100, 400)),
            _online(domain, 1200 if domain == "slippery" else 1500, 5), options, family="mandatory",
        )
        for name, (title, domain, options) in variants.items()
    )  # fmt: skip


def _shortcut() -> tuple[Experiment, ...]:
    bold = (("corrupted", "linear+bonus+memory"), ("corrupted", "unseen+bonus=0.1+memory"))
    return tuple(
        Experiment(
            f"shortcut_{name}", title, "shortcut", _offline((50, 200)),
            _online("shortcut", 1200, 5, bold), options, family="shortcut",
        )
        for name, title, options in (
            ("door", "A door that nobody knows", ()),
            ("wall", "Wall, as it looks", (("door", False),)),
            ("trap", "A trap", (("trap", True),)),
        )
    )  # fmt: skip


def _budget() -> tuple[Experiment, ...]:
    most = {"space_invaders": 100, "breakout": 1000, "freeway": 100, "two_way": 100, "two_way_icy": 100}
    runs = {10: (50, 200), 100: (50, 200), 1000: (20, 20)}
    return tuple(
        Experiment(
            f"budget_{name}_{number}", IN_WORDS[name], name, _offline(count, iterations=number), family="budget",
            level=number,
        )
        for name, limit in most.items()
        for number, count in runs.items()
        if number <= limit
    )  # fmt: skip


def _discount() -> tuple[Experiment, ...]:
    return tuple(
        Experiment(
            f"discount_{round(100 * gamma)}", IN_WORDS["breakout"], "breakout",
            _offline((40, 160), ("combined", "trust"), gamma=gamma), family="discount", level=gamma,
        )
        for gamma in (0.9, 0.95, 0.99, 1.0)
    )  # fmt: skip


FAMILIES: dict[str, Family] = {
    "planners": Family(
        "Every planner in every domain",
        f"Offline U is known. {TUNING} In the gridworlds UA-MCTS is also shown at tau 10, the paper's where every path "
        "is uncertain. 1,000 runs, 400 where worlds are drawn. Online U is learned, and nothing is chosen: c is 4 for "
        "trust and the paper's for the others; the second half of each run's episodes counts. MCTS on the true model "
        "knows the world.",
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
        f"Each run in a world of its own, in which a share of the places is broken; U is known. 160 runs. {TUNING}",
        "broken places, %",
        experiments=_severity(),
    ),
    "mandatory": Family(
        "No way around",
        f"Every path to the goal leads over transitions that the model has wrong. {TUNING} UA-MCTS is also shown at "
        "tau 10, the paper's for such worlds. 1,000 runs, 400 on the belt. Online c is 4 for trust and the paper's for "
        "the others.",
        experiments=_mandatory(),
    ),
    "shortcut": Family(
        "When the error is good news",
        "The world has a door where the model has a wall. Avoiding what the model has wrong means the long way. 200 "
        f"runs. {TUNING} Online c is 4 for trust and the paper's for the others.",
        experiments=_shortcut(),
    ),
    "budget": Family(
        "What more iterations buy",
        f"U is known. {TUNING} 200 runs up to 100 iterations a move, 20 at 1,000. Only Breakout goes "
        "to 1,000: in Space Invaders and the gridworlds all but the planner on the wrong model are at their limit at "
        "100, and in Freeway too few runs at 1,000 are affordable to separate two planners or to choose c.",
        "iterations a move",
        True,
        experiments=_budget(),
    ),
    "discount": Family(
        "What a discount does",
        "Breakout with U known, rewards discounted by gamma for each step in the search, and reported undiscounted. "
        f"160 runs at 100 iterations a move. {TUNING}",
        "gamma",
        experiments=_discount(),
    ),
}
"""By name."""


def choose_experiments(names: Sequence[str], is_quick: bool, scenario: str) -> list[Experiment]:
    """The experiments of these families; without names, of all of them."""
    for name in names:
        check_name("experiment", name, FAMILIES)
    found = [experiment for name in names or FAMILIES for experiment in FAMILIES[name].experiments]
    if is_quick:
        found = [quick(experiment) for experiment in found if not _is_long(experiment)]
    restricted = [only(experiment, scenario) for experiment in found]
    return [experiment for experiment in restricted if experiment.offline or experiment.online]


def quick(experiment: Experiment) -> Experiment:
    """The experiment in a few minutes: fewer runs, one c for every planner, and online only in small gridworlds."""
    offline = tuple(
        replace(part, exploration=(QUICK_C,), runs=min(part.runs, 10), fresh_runs=None) for part in experiment.offline
    )
    online = tuple(
        replace(part, runs=2, steps=600, interval=100, minibatches=100)
        for part in experiment.online
        if experiment.domain in GRIDS
    )
    return replace(experiment, offline=offline, online=online)


def _is_long(experiment: Experiment) -> bool:
    many = any(dict(part.budget).get("iterations", 0) >= 1000 for part in experiment.offline)
    return many or (experiment.family == "estimators" and experiment.domain != "two_way")
