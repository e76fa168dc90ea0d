"""The paper's experiments, one readable declaration each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from uamcts.presets import ALGORITHMS, EXPLORATION, ONLINE, OnlineSettings, usual_c

GAMES = ("space_invaders", "freeway", "breakout")
IN_WORDS = {
    "space_invaders": "Space Invaders", "freeway": "Freeway", "breakout": "Breakout", "two_way": "2-Way GridWorld",
    "icy": "Icy 2-Way GridWorld", "two_way_icy": "Icy 2-Way GridWorld", "hidden_obstacles": "Hidden obstacles",
    "slippery": "Slippery", "shortcut": "Shortcut", "frozen_lake": "Frozen lake", "cliff": "Cliff",
    "bridge": "Bridge",
}  # fmt: skip
"""Experiments and domains as a report calls them."""
Options = tuple[tuple[str, Any], ...]
"""Of a domain, by name."""
Pair = tuple[str, float]
"""An algorithm and its c."""
SINGLE_LEARNERS = ("transition_linear", "transition_8_units", "transition_16_units", "transition_linear_residual")


@dataclass(frozen=True)
class Offline:
    """U is known. Every algorithm with every c on the same seeds; then each algorithm's best c on fresh seeds.

    All algorithms meet the same seeds, both times, so that they can be compared seed by seed.
    """

    algorithms: tuple[str, ...] = tuple(ALGORITHMS)
    exploration: tuple[float, ...] = EXPLORATION
    tau: float = 0.1
    runs: int = 100
    budget: tuple[tuple[str, float], ...] = ()
    """`iterations`, `rollouts`, `depth` and `gamma` where they are not the paper's."""
    fresh_runs: int | None = None
    """Runs on fresh seeds. None: as many as `runs`, the number on which c is chosen."""

    @property
    def reported_runs(self) -> int:
        """Runs on fresh seeds, where there is a choice of c."""
        return self.runs if self.fresh_runs is None else self.fresh_runs


@dataclass(frozen=True)
class Online:
    """U, or the transition function, is learned on the way: pairs of an algorithm and what learns."""

    learners: tuple[tuple[str, str], ...] = (("combined", "network"),)
    runs: int = OnlineSettings().runs
    steps: int = OnlineSettings().steps
    exploration: tuple[float, ...] = ()
    """Without any, the c that the paper found best, or trust's own."""
    interval: int | None = None
    """Real steps between two rounds, and minibatches of a round, where they are not the usual ones."""
    minibatches: int | None = None


@dataclass(frozen=True)
class Experiment:
    """Where, and which of the two scenarios."""

    name: str
    title: str
    domain: str
    offline: tuple[Offline, ...] = ()
    online: tuple[Online, ...] = ()
    options: Options = ()
    """Of the domain, where they are not its defaults."""
    drawn: bool = False
    """Whether each run offline is in a world of its own: the domain takes a `seed`, and gets that of the run."""
    family: str = ""
    """Experiments of one family are shown together, in one table or figure."""
    level: float | None = None
    """Where a family is a range of something, the place in it."""


def _game(name: str, title: str) -> Experiment:
    return Experiment(name, title, name, (Offline(),), (Online(),))


EXPERIMENTS: dict[str, Experiment] = {
    "space_invaders": _game("space_invaders", "Space Invaders: a cannon that jams in five columns"),
    "freeway": _game("freeway", "Freeway: doing nothing moves the player in six rows"),
    "breakout": _game("breakout", "Breakout: a paddle with holes in two columns"),
    "two_way": Experiment(
        "two_way",
        "2-Way GridWorld: learn where the model is wrong, or learn the transition function",
        "two_way",
        (Offline(("true", "corrupted", "combined"), runs=30),),
        (
            Online(
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
        (Offline(("true", "corrupted", "combined"), tau=10.0, runs=30), Offline(("combined",), tau=0.1, runs=30)),
    ),
}
"""By name. The corrupted bandit has no domain and is declared in `uamcts.bandits.sweeps`."""

NAMES = (*EXPERIMENTS, "bandit")


def quick(experiment: Experiment) -> Experiment:
    """The same in a few minutes: the paper's own best c, fewer runs, and online only for the gridworld."""
    offline = tuple(replace(part, runs=min(part.runs, 30), exploration=()) for part in experiment.offline)
    online = tuple(
        replace(part, runs=10, steps=1800, learners=part.learners[:5])
        for part in experiment.online
        if experiment.domain.startswith("two_way")
    )
    return replace(experiment, offline=offline, online=online)


def only(experiment: Experiment, scenario: str) -> Experiment:
    """One of the two scenarios of an experiment, or `both`."""
    if scenario not in ("both", "offline", "online"):
        raise ValueError(f"scenario is {scenario!r}; there are both, offline, online")
    return replace(
        experiment,
        offline=experiment.offline if scenario != "online" else (),
        online=experiment.online if scenario != "offline" else (),
    )


def pairs(experiment: Experiment, part: Offline) -> tuple[Pair, ...]:
    """Every algorithm with every c; without an `exploration` of its own, with the c that the paper found best."""
    return tuple(
        (algorithm, c)
        for algorithm in part.algorithms
        for c in part.exploration or (usual_c(experiment.domain, algorithm),)
    )
