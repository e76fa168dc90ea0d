"""The field's comparisons, one declaration for each world and each of its parameters: `uamcts field`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from uamcts.lab.experiments.field_worlds import GRID_PLANNERS, PLANNERS, POLE_PLANNERS, GridWorld, PoleWorld
from uamcts.lab.experiments.paper import Experiment
from uamcts.names import check_name


@dataclass(frozen=True)
class FieldExperiment(Experiment):
    """A world of the field and the planners that are compared in it."""

    world: GridWorld | PoleWorld = field(default_factory=lambda: GridWorld("4x4", 0.7, 0.7, 1.0))
    planners: tuple[str, ...] = GRID_PLANNERS
    iterations: int = 100
    episodes: int = 1000
    tuning_episodes: int = 60
    """Episodes that choose a planner's setting."""
    learner_episodes: int = 500
    """Episodes of planners that learn, which search at every move."""
    agent_episodes: int = 150
    """Episodes of `uamcts.Agent`, which are played one after the other."""
    agent_block: int = 25
    """How many of them are a unit."""


@dataclass(frozen=True)
class FieldFamily:
    """The cells of one world, shown together."""

    title: str
    text: str
    axis: str
    source: str
    """Where the published numbers come from."""
    published: dict[str, dict[float, float]]
    """By column, then by level."""
    experiments: tuple[FieldExperiment, ...] = ()
    stale: dict[float, float] = field(default_factory=dict)
    """Of cart poles, by level: the mean steps of the plan for the old pole (`uamcts.field.StalePlan`), 200 episodes.

    Rounding decides when a pole falls, so these are not computed anew for each report.
    """

    @property
    def worst(self) -> float:
        """The worst reward, for scores."""
        return self.experiments[0].world.worst

    @property
    def is_exact(self) -> bool:
        """Whether the optimum and the plan in the old model are known exactly."""
        return isinstance(self.experiments[0].world, GridWorld)


def _cells(
    family: str, title: str, levels: Sequence[float], world: GridWorld, **more: object
) -> tuple[FieldExperiment, ...]:
    return tuple(
        FieldExperiment(
            f"{family}_{round(100 * level)}", title, world.map, family=family, level=level,
            world=replace(world, parameter=level), **more,  # type: ignore[arg-type]
        )
        for level in levels
    )  # fmt: skip


def _pole_cells(
    family: str, title: str, cells: dict[float, tuple[PoleWorld, int]], *more: str
) -> tuple[FieldExperiment, ...]:
    """Cells of cart poles, by level: worlds and iterations; `more` are further planners, where a search is small."""
    return tuple(
        FieldExperiment(
            f"{family}_{level:g}".replace(".", ""), title, "cart_pole", family=family, level=level, world=world,
            iterations=iterations, planners=(*POLE_PLANNERS, *(more if iterations <= 100 else ())), episodes=100,
            tuning_episodes=20, agent_episodes=12, agent_block=4,
        )
        for level, (world, iterations) in cells.items()
    )  # fmt: skip


def _columns(levels: Sequence[float], **columns: str) -> dict[str, dict[float, float]]:
    """Published numbers: words separated by blanks, one for each level."""
    return {
        name.replace("ADA_", "ADA-").replace("_", " "): dict(zip(levels, map(float, words.split()), strict=True))
        for name, words in columns.items()
    }


ADA_LEVELS, BRIDGE_LEVELS = (0.4, 0.5, 0.6, 0.8, 0.9, 1.0), (0.4, 0.6, 0.9, 1.0)
SLIP_LEVELS, TELEPORT_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5), (0.3, 0.4, 0.5, 0.6)
ADA = "ADA-MCTS (Luo et al., AAMAS 2024), Table 1: 30,000 iterations a move"
OLD = "Planners believe p = 0.7 and live for one episode of at most 100 steps."
ROBUST = "Robust-Power-UCT (Dam et al., ICML 2025), Table 4: 4,000 rollouts a move"
LAKE = GridWorld("4x4", 0.7, 0.7, 0.998)
SLIPPERY = GridWorld("4x4", 0.1, 0.1, 0.99, "anywhere", (1.0, 0.0, 0.0), share=True)
FEW = {"learner_episodes": 150, "agent_episodes": 200}
GRAVITIES, SIMULATIONS = (9.8, 20.0, 50.0, 500.0), (50.0, 100.0, 300.0)
POLE = (
    "Steps until the pole falls, at most 1,000. Planners believe CartPole-v1's own numbers, and search with random "
    "rollouts. There is no exact optimum; the planner that is told takes its place."
)

FIELD: dict[str, FieldFamily] = {
    "lake": FieldFamily(
        "Frozen lake", f"4x4; the goal pays 1, a hole -1. {OLD} Gamma is 0.998, fitted to the published p = 1.", "p",
        ADA,
        _columns(
            ADA_LEVELS, ADA_MCTS=".426 .446 .474 .516 .490 .782", MCTS_stale="-.892 -.695 -.302 -.003 .392 .988",
            RATS_stale=".264 .239 .528 .514 .169 .000", MCTS_knows="-.882 -.695 -.497 .491 .689 .988",
            RATS_knows=".401 .422 .370 .485 .146 .889",
        ),
        _cells("lake", "Frozen lake", ADA_LEVELS, LAKE),
    ),
    "cliff": FieldFamily(
        "Cliff", f"4x12; the goal pays 1, the cliff -1 and ends the episode. {OLD} Gamma is 0.996, fitted likewise.",
        "p", ADA,
        _columns(
            ADA_LEVELS, ADA_MCTS=".778 .815 .830 .871 .883 .694", MCTS_stale="-.518 -.304 -.292 .279 .561 .947",
            RATS_stale=".079 .384 .253 .625 .758 .000", MCTS_knows=".629 .332 .342 .464 .564 .951",
            RATS_knows=".650 .605 .670 .647 .614 .750",
        ),
        _cells("cliff", "Cliff", ADA_LEVELS, replace(LAKE, map="cliff", gamma=0.996)),
    ),
    "bridge": FieldFamily(
        "Bridge", f"NS-Gym's map; a goal pays 1, a hole -1. {OLD} Gamma is 0.9: the published 0.729 at p = 1 is 0.9 to "
        "the third power. The authors' map may differ: their numbers at small p are below our optimum by far.", "p",
        ADA,
        _columns(
            BRIDGE_LEVELS, ADA_MCTS="-.642 -.429 .109 .183", MCTS_stale="-.707 -.384 .135 .729",
            RATS_stale="-.684 -.512 -.044 .000", MCTS_knows="-.697 -.458 .245 .729",
            RATS_knows="-.660 -.563 -.071 .000",
        ),
        _cells("bridge", "Bridge", BRIDGE_LEVELS, replace(LAKE, map="bridge", gamma=0.9), **FEW),
    ),
    "teleport": FieldFamily(
        "Cliff with teleport", "A fall leads back to the start; the share of episodes that reach the goal in 100 "
        "steps. Planners believe p = 0.7.", "p",
        "SFIR-CEM-CVaR (2026, unpublished)",
        _columns(TELEPORT_LEVELS, ADA_MCTS=".533 .700 .967 1", RATS_stale=".300 .600 .800 1", SFIR=".633 .900 .967 1"),
        _cells(
            "teleport", "Cliff with teleport", TELEPORT_LEVELS,
            replace(LAKE, map="cliff", gamma=0.996, rewards=(1.0, 0.0, 0.0), teleport=True, share=True),
            learner_episodes=150, agent_episodes=100,
        ),
    ),
    "slip10": FieldFamily(
        "Lake with random slips, planned for 0.1", "4x4; a slip goes into a random direction; the share of episodes "
        "that reach the goal. Planners believe 0.1. Gamma is 0.99.", "probability of a slip", ROBUST,
        _columns(
            SLIP_LEVELS, MCTS_stale=".65 .52 .41 .32 .21", total_variation=".68 .54 .42 .33 .24",
            Wasserstein=".97 .84 .68 .55 .38",
        ) | {"chi-square": dict(zip(SLIP_LEVELS, (0.95, 0.82, 0.65, 0.52, 0.35), strict=True))},
        _cells("slip10", "Lake with random slips", SLIP_LEVELS, SLIPPERY, **FEW),
    ),
    "slip30": FieldFamily(
        "Lake with random slips, planned for 0.3", "The same lake; planners believe 0.3.", "probability of a slip",
        ROBUST,
        _columns(
            SLIP_LEVELS, MCTS_stale=".15 .12 .10 .08 .07", total_variation=".18 .15 .12 .10 .08",
            Wasserstein=".58 .48 .32 .28 .20",
        ) | {"chi-square": dict(zip(SLIP_LEVELS, (0.55, 0.45, 0.35, 0.25, 0.18), strict=True))},
        _cells("slip30", "Lake with random slips", SLIP_LEVELS, replace(SLIPPERY, believed=0.3), **FEW),
    ),
    "cartpole_gravity": FieldFamily(
        "Cart pole, other gravity", f"{POLE} Gravities are those of PA-MCTS's program.", "gravity",
        "PA-MCTS (Pettet et al., AAMAS 2024) has curves only", {},
        _pole_cells("cartpole_gravity", "Cart pole", {one: (PoleWorld(gravity=one), 100) for one in GRAVITIES}),
        dict(zip(GRAVITIES, (1000.0, 1000.0, 1000.0, 9.7), strict=True)),
    ),
    "cartpole_mass": FieldFamily(
        "Cart pole that gains mass", f"The pole gains 0.1 of mass in every step, from 0.1. {POLE}", "simulations",
        "NS-Gym (Keplinger et al., NeurIPS 2025)",
        _columns(SIMULATIONS, MCTS_knows="758 694 657", MCTS_stale="148 150 149"),
        _pole_cells("cartpole_mass", "Cart pole", {one: (PoleWorld(gain=0.1), int(one)) for one in SIMULATIONS},
                    "graph_told"),
        dict.fromkeys(SIMULATIONS, 156.7),
    ),
}  # fmt: skip
"""By name."""


def choose_experiments(
    names: Sequence[str], is_quick: bool, iterations: int | None = None, planners: Sequence[str] = ()
) -> list[Experiment]:
    """The cells of these families; without names, of all of them.

    Args:
        names: Families.
        is_quick: Whether to play few episodes, with one setting for each planner.
        iterations: Of every search, instead of 100; not where the cells of a family differ in their iterations.
        planners: Only these.

    Raises:
        ValueError: A name is unknown, or a planner is in none of these worlds.
    """
    for name in names:
        check_name("experiment", name, FIELD)
    for name in planners:
        check_name("planner", name, PLANNERS)
    found = [cell for name in names or FIELD for cell in FIELD[name].experiments]
    for name in planners:
        if not any(name in cell.planners for cell in found):
            worlds = ", ".join(dict.fromkeys(cell.family for cell in found))
            known = ", ".join(dict.fromkeys(one for cell in found for one in cell.planners))
            raise ValueError(f"planner {name} does not play in {worlds}; planners there are {known}")
    if planners:
        found = [replace(cell, planners=tuple(name for name in cell.planners if name in planners)) for cell in found]
    if iterations is not None:
        found = [cell if cell.level == cell.iterations else replace(cell, iterations=iterations) for cell in found]
    if is_quick:
        found = [
            replace(cell, episodes=100, tuning_episodes=0, learner_episodes=10, agent_episodes=4) for cell in found
        ]
    return list(found)
