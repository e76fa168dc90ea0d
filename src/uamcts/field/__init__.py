"""Planners of the field, for comparisons: ADA-MCTS, RATS, PA-MCTS, robust UCT, BAMCP, and exact plans beside them.

They plan on small grids whose probabilities depend on one parameter, which has changed since they were told of it, and
on cart poles that have changed.

Example:
    ```python
    import jax
    from uamcts import field

    lake = field.make_grid("4x4")
    planner = field.AdaMcts(field.Settings(iterations=100, gamma=0.998))
    score = field.play(jax.random.key(0), planner, lake, 0.4, 0.7, 0.998, episodes=100, steps=100)
    print(score.reward.mean(), field.Yardsticks(lake, 0.4, 0.7, 0.998, 100).optimum)
    ```
"""

from __future__ import annotations

from uamcts.field.ada_mcts import AdaMcts
from uamcts.field.agent import play_agent
from uamcts.field.bamcp import Bamcp
from uamcts.field.cart_pole import (
    Change,
    Pole,
    PolePlanner,
    StalePlan,
    draw_starts,
    play_pole,
    play_pole_agent,
)
from uamcts.field.counts import Counts
from uamcts.field.episodes import Score, play
from uamcts.field.exact import ExactLearner, Yardsticks
from uamcts.field.mcts import GraphSearch, Mcts
from uamcts.field.pa_mcts import PaMcts
from uamcts.field.planner import Place, Planner, PosteriorPlanner
from uamcts.field.rats import Rats
from uamcts.field.robust import MEASURES, RobustUct
from uamcts.field.tree import Settings
from uamcts.field.worlds import Grid, GridSimulator, make_grid

__all__ = [
    "MEASURES",
    "AdaMcts",
    "Bamcp",
    "Change",
    "Counts",
    "ExactLearner",
    "GraphSearch",
    "Grid",
    "GridSimulator",
    "Mcts",
    "PaMcts",
    "Place",
    "Planner",
    "Pole",
    "PolePlanner",
    "PosteriorPlanner",
    "Rats",
    "RobustUct",
    "Score",
    "Settings",
    "StalePlan",
    "Yardsticks",
    "draw_starts",
    "make_grid",
    "play",
    "play_agent",
    "play_pole",
    "play_pole_agent",
]
