"""A unit, its episodes and a run of seconds, for tests of folders and records."""

import numpy as np
from rich.console import Console

from uamcts.lab.run.engines import make_engine
from uamcts.lab.run.grid import offline_grid, run_grid
from uamcts.lab.run.tables import empty_table
from uamcts.lab.run.units import OfflineUnit

BASE = {"experiment": "a", "domain": "two_way", "rules": "released", "tau": 0.1, "purpose": "sweep",
        "pairs": (("corrupted", 1.0),), "first_seed": 0, "seeds": 3, "seed": 0,
        "budget": (("iterations", 2),)}  # fmt: skip
UNIT = OfflineUnit(**BASE)
ABOUT = {"seconds": 1.0, "commit": "abc", "device": "1 x cpu", "started": "2024"}


def episodes(count=3):
    table = empty_table()
    fill = {name: np.full(count, "word", object) for name, column in table.items() if column.dtype == object}
    return {name: fill.get(name, np.arange(count).astype(column.dtype)) for name, column in table.items()}


def same(first, second):
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


def run_tiny(out, algorithms=("corrupted",), rules="released", runs=2, seed=0, exploration=()):
    grid = offline_grid(["two_way"], list(algorithms), list(exploration), [0.1], [2], runs)
    return run_grid(grid, rules, seed, out, make_engine("local"), Console(quiet=True))
