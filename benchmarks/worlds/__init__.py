"""A zoo of worlds that differ from the simulator in one way or another: `ZOO` has them by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))  # some worlds are those of the examples

from worlds import (
    boards,
    chance,
    drift,
    examples,
    gambles,
    grids,
    kinds,
    machinery,
    machines,
    mechanisms,
    motors,
    odds,
    pendulums,
    plain_states,
    plants,
    points,
    poles,
    processes,
    slips,
    trades,
    vehicles,
)
from worlds.zoo import ZOO, Entry, Setting

__all__ = [
    "ZOO",
    "Entry",
    "Setting",
    "boards",
    "chance",
    "drift",
    "examples",
    "gambles",
    "grids",
    "kinds",
    "machinery",
    "machines",
    "mechanisms",
    "motors",
    "odds",
    "pendulums",
    "plain_states",
    "plants",
    "points",
    "poles",
    "processes",
    "slips",
    "trades",
    "vehicles",
]
