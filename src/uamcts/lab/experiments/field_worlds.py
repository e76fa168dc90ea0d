"""The planners of the field as its comparisons show them, and its worlds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

SETTINGS = {"c": (0.5, 1.0, 2.0**0.5, 4.0), "radius": (0.05, 0.1, 0.2, 0.4), "alpha": (0.25, 0.5, 0.75, 1.0),
            "lipschitz": (0.25, 0.5, 1.0, 2.0), "": (0.0,)}  # fmt: skip
"""What a planner may choose, on seeds that are not reported: one number out of four."""
POLE_SETTINGS = {"c": (1.44, 5.0, 15.0, 50.0), "alpha": (0.0, 0.25, 0.5, 0.75, 1.0), "": (0.0,)}
"""The same on cart poles, where values are steps; the alphas are those of PA-MCTS's authors."""


@dataclass(frozen=True)
class FieldPlanner:
    """How a planner is shown, and what it is told."""

    title: str
    tuned: str = "c"
    """Which of `SETTINGS` it chooses; an empty string if it has nothing to choose."""
    told: bool = False
    """Whether it is told the parameter of the world. The others have the old one."""
    published: str = ""
    """The name of its column among the published numbers."""
    learns: bool = False


PLANNERS = {
    "agent": FieldPlanner("uamcts.Agent", "", learns=True),
    "agent_stale": FieldPlanner("uamcts.Agent with the old plan", "", learns=True),
    "exact_learner": FieldPlanner("Exact plan, parameter learned", "", learns=True),
    "ada_mcts": FieldPlanner("ADA-MCTS", published="ADA-MCTS", learns=True),
    "bamcp": FieldPlanner("BAMCP", learns=True),
    "counts": FieldPlanner("MCTS in counts, no prior", learns=True),
    "mcts": FieldPlanner("MCTS, old model", published="MCTS stale"),
    "graph": FieldPlanner("uamcts.search, old model", ""),
    "rats": FieldPlanner("RATS, old model", "lipschitz", published="RATS stale"),
    "total_variation": FieldPlanner("Robust UCT, total variation", "radius", published="total variation"),
    "chi_square": FieldPlanner("Robust UCT, chi-square", "radius", published="chi-square"),
    "wasserstein": FieldPlanner("Robust UCT, Wasserstein", "radius", published="Wasserstein"),
    "cvar": FieldPlanner("Robust UCT, CVaR", "radius"),
    "mcts_told": FieldPlanner("MCTS, told", told=True, published="MCTS knows"),
    "graph_told": FieldPlanner("uamcts.search, told", "", told=True),
    "rats_told": FieldPlanner("RATS, told", "lipschitz", told=True, published="RATS knows"),
    "pa_mcts": FieldPlanner("PA-MCTS, told", "alpha", told=True),
}
"""By name, in the order in which tables show them."""
GRID_PLANNERS = tuple(name for name in PLANNERS if name != "agent_stale")
POLE_PLANNERS = ("agent", "agent_stale", "mcts", "mcts_told", "pa_mcts")
"""Planners that work without a table of states."""


@dataclass(frozen=True)
class GridWorld:
    """A grid with a parameter, the parameter that planners believe, and what is measured."""

    map: str
    parameter: float
    believed: float
    gamma: float
    slips: str = "sideways"
    rewards: tuple[float, float, float] = (1.0, -1.0, 0.0)
    teleport: bool = False
    steps: int = 100
    share: bool = False
    """Whether the share of episodes that reach the goal is reported, instead of the discounted reward."""

    @property
    def worst(self) -> float:
        """The worst reward, for scores."""
        return 0.0 if self.share else -1.0

    @property
    def measured(self) -> str:
        """What is reported, in words."""
        return "share that reaches the goal" if self.share else "discounted reward"

    def settings(self, planner: str) -> tuple[float, ...]:
        """What a planner may choose from."""
        return SETTINGS[PLANNERS[planner].tuned]

    def usual(self, planner: str) -> float:
        """The setting of a planner that does not choose."""
        return 2.0**0.5 if PLANNERS[planner].tuned == "c" else _middle(self.settings(planner))


@dataclass(frozen=True)
class PoleWorld:
    """A cart pole with a gravity and a mass that it gains in every step; planners believe 9.8 and 0."""

    gravity: float = 9.8
    gain: float = 0.0
    gamma: float = 0.999
    depth: int = 50
    """Moves of a rollout, at most."""
    steps: int = 1000
    worst: ClassVar[float] = 0.0
    measured: ClassVar[str] = "steps"

    def settings(self, planner: str) -> tuple[float, ...]:
        """What a planner may choose from."""
        return POLE_SETTINGS[PLANNERS[planner].tuned]

    def usual(self, planner: str) -> float:
        """The setting of a planner that does not choose."""
        return _middle(self.settings(planner))


def _middle(settings: tuple[float, ...]) -> float:
    return settings[len(settings) // 2]
