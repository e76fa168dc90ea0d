"""Random worlds: another slip probability than believed, and slips that a deterministic simulator does not know of."""

from __future__ import annotations

from typing import Any

from slippery_lake import LAKE, MOVES, Lake

from worlds.grids import Grid
from worlds.zoo import Setting, setting, world

CLIFF = ("FFFFFFFFFFFF", "FFFFFFFFFFFF", "FFFFFFFFFFFF", "SHHHHHHHHHHG")
ONE_LIFE = {"episodes": 1, "longest": 100, "told": True, "parameters": ["p"], "lives": 10, "iterations": 100}


def register(name: str, rows: Any, start: Any, p: float, gamma: float) -> None:
    about = f"{name}, one episode, believed p 0.7, really {p:g}; p is named"

    @world(f"{name}_{round(100 * p)}", about, rollouts=1, depth=50, gamma=gamma, discount=gamma, **ONE_LIFE)
    def make() -> Setting:
        return setting(Lake(0.7, rows), Lake(p, rows), start)


for chance in (0.4, 0.5, 0.6, 0.8, 0.9, 1.0):
    register("slippery_lake", LAKE, (0, 0), chance, 0.998)
for chance in (0.4, 0.5, 0.6, 0.8, 0.9, 1.0):
    register("slippery_cliff", CLIFF, (3, 0), chance, 0.996)


class Slipping(Grid):
    """A tenth of all steps slip to either side."""

    def outcomes(self, state: Any, action: int) -> Any:
        chances = ((0, 0.9), (1, 0.05), (-1, 0.05))
        return [(chance, self.step(state, (action + turn) % 4)) for turn, chance in chances]


TRAPS = {(3, 0), (3, 2), (5, 3)}
"""Cells beside the ways, that end the episode."""


@world("unknown_slip", "a tenth of all steps slip; the simulator is deterministic", episodes=12, iterations=60,
       rollouts=2, depth=20, gamma=0.95, longest=40)  # fmt: skip
def unknown_slip() -> Setting:
    return setting(Grid(traps=TRAPS), Slipping(traps=TRAPS), (0, 0))


class CertainLake:
    """The lake without slips, as a deterministic simulator."""

    num_actions = 4
    action_names = Lake.action_names

    def __init__(self) -> None:
        self.lake = Lake(1.0)

    def step(self, state: Any, action: int) -> Any:
        return self.lake.enter(state, MOVES[action])


@world("lake_believed_certain", "a lake with p 0.8 and a deterministic simulator", episodes=12, iterations=100,
       rollouts=1, depth=50, gamma=0.98, longest=100)  # fmt: skip
def lake_believed_certain() -> Setting:
    return setting(CertainLake(), Lake(0.8), (0, 0))
