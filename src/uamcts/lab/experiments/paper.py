"""The paper's experiments, one declaration each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from uamcts.presets import ALGORITHMS, EXPLORATION, ONLINE, OnlineSettings, usual_c

GAMES = ("space_invaders", "freeway", "breakout")
IN_WORDS = {
    "space_invaders": "Space Invaders", "freeway": "Freeway", "breakout": "Breakout", "two_way": "2-Way GridWorld",
    "icy": "Icy 2-Way GridWorld", "two_way_icy": "Icy 2-Way GridWorld", "hidden_obstacles": "Hidden obstacles",
    "slippery": "Slippery", "shortcut": "Shortcut", "frozen_lake": "Frozen lake", "cliff": "Cliff",
    "bridge": "Bridge", "lake": "Frozen lake", "bandit": "Corrupted bandits",
}  # fmt: skip
"""Titles of experiments and domains in reports."""
Options = tuple[tuple[str, Any], ...]
"""Options of a domain, as pairs of a name and a value."""
Pair = tuple[str, float]
"""An algorithm and its c."""
SINGLE_LEARNERS = ("transition_linear", "transition_8_units", "transition_16_units", "transition_linear_residual")


@dataclass(frozen=True)
class OfflineGrid:
    """Offline runs, where U is known: every algorithm with every c, then each algorithm's best c on fresh seeds.

    All algorithms play the same seeds both times, so that they can be compared seed by seed.
    """

    algorithms: tuple[str, ...] = tuple(ALGORITHMS)
    exploration: tuple[float, ...] = EXPLORATION
    tau: float = 0.1
    runs: int = 100
    budget: tuple[tuple[str, float], ...] = ()
    """`iterations`, `rollouts`, `depth`, `gamma`, `graph` and `steps_left` where they differ from the paper's."""
    fresh_runs: int | None = None
    """Runs on fresh seeds. None: as many as `runs`, which choose c."""

    @property
    def reported_runs(self) -> int:
        """Runs on fresh seeds, if there is a choice of c."""
        return self.runs if self.fresh_runs is None else self.fresh_runs

    @property
    def graph(self) -> bool:
        """Whether its searches are on graphs."""
        return bool(dict(self.budget).get("graph", False))


@dataclass(frozen=True)
class OnlineGrid:
    """Online runs, where U or the transition function is learned: every algorithm with its learner, at every c.

    `enumerate_units` turns a grid into one `OnlineUnit` for each of them.
    """

    learners: tuple[tuple[str, str], ...] = (("combined", "network"),)
    runs: int = OnlineSettings().runs
    steps: int = OnlineSettings().steps
    exploration: tuple[float, ...] = ()
    """Empty: the c that the paper found best, or trust's own."""
    interval: int | None = None
    """Real steps between two rounds of training. None: the default of domain and algorithm."""
    minibatches: int | None = None
    """Minibatches of a round. None: the default of domain and algorithm."""


@dataclass(frozen=True)
class Experiment:
    """A domain, and what is run in it offline and online."""

    name: str
    title: str
    domain: str
    offline: tuple[OfflineGrid, ...] = ()
    online: tuple[OnlineGrid, ...] = ()
    options: Options = ()
    """Options of the domain that differ from its defaults."""
    drawn: bool = False
    """Whether each offline run draws a world of its own: the domain takes a `seed` and gets that of the run."""
    family: str = ""
    """Experiments of one family are shown together, in one table or figure."""
    level: float | None = None
    """The position of the experiment in a family that is a range of something."""


def _game(name: str, title: str) -> Experiment:
    return Experiment(name, title, name, (OfflineGrid(),), (OnlineGrid(),))


EXPERIMENTS: dict[str, Experiment] = {
    "space_invaders": _game("space_invaders", "Space Invaders: a cannon that jams in five columns"),
    "freeway": _game("freeway", "Freeway: doing nothing moves the player in six rows"),
    "breakout": _game("breakout", "Breakout: a paddle with holes in two columns"),
    "two_way": Experiment(
        "two_way",
        "2-Way GridWorld: learn where the model is wrong, or learn the transition function",
        "two_way",
        (OfflineGrid(("true", "corrupted", "combined"), runs=30),),
        (
            OnlineGrid(
                (
                    ("combined", "linear"),
                    ("true", "none"),
                    ("corrupted", "none"),
                    *(("corrupted", learner) for learner in SINGLE_LEARNERS),
                ),
                ONLINE["two_way"].runs,
                ONLINE["two_way"].steps,
            ),
        ),
    ),
    "icy": Experiment(
        "icy",
        "Icy 2-Way GridWorld: every path to the goal is uncertain",
        "two_way_icy",
        (
            OfflineGrid(("true", "corrupted", "combined"), tau=10.0, runs=30),
            OfflineGrid(("combined",), tau=0.1, runs=30),
        ),
    ),
}
"""By name. The corrupted bandit has no domain and is declared in `uamcts.bandits.sweeps`."""

NAMES = (*EXPERIMENTS, "bandit")


def quick(experiment: Experiment) -> Experiment:
    """The experiment in a few minutes: at the paper's best c, with fewer runs, and online only in the gridworld."""
    offline = tuple(replace(part, runs=min(part.runs, 30), exploration=()) for part in experiment.offline)
    online = tuple(
        replace(part, runs=10, steps=1800, learners=part.learners[:5])
        for part in experiment.online
        if experiment.domain.startswith("two_way")
    )
    return replace(experiment, offline=offline, online=online)


def only(experiment: Experiment, scenario: str) -> Experiment:
    """The experiment in one scenario only, or in `both`."""
    if scenario not in ("both", "offline", "online"):
        raise ValueError(f"scenario is {scenario!r}; give both, offline or online")
    return replace(
        experiment,
        offline=experiment.offline if scenario != "online" else (),
        online=experiment.online if scenario != "offline" else (),
    )


def pairs(experiment: Experiment, part: OfflineGrid) -> tuple[Pair, ...]:
    """Every algorithm with every c of a grid; if the grid has none, with the c that the paper found best."""
    return tuple(
        (algorithm, c)
        for algorithm in part.algorithms
        for c in part.exploration or (usual_c(experiment.domain, algorithm, part.graph),)
    )
