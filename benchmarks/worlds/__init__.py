"""A zoo of worlds that differ from the simulator in one way or another: `ZOO` has them by name."""

from worlds import chance, drift, examples, grids, pendulums, points, poles
from worlds.zoo import ZOO, Entry, Setting

__all__ = ["ZOO", "Entry", "Setting", "chance", "drift", "examples", "grids", "pendulums", "points", "poles"]
