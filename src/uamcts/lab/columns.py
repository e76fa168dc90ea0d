"""The columns of a table of episodes, which everything in the lab shares."""

from __future__ import annotations

import numpy as np

Episodes = dict[str, np.ndarray]
"""A table with a row for each episode, as one array [rows] for each of `COLUMNS`."""

COLUMNS: dict[str, type] = {
    "experiment": str,
    "domain": str,
    "scenario": str,  # "offline" or "online"
    "algorithm": str,
    "learner": str,
    "rules": str,
    "c": np.float64,
    "tau": np.float64,  # online: when the episode ended
    "purpose": str,  # "sweep": every c on the same seeds; "fresh": the chosen c on fresh seeds; "online"
    "seed": np.int64,  # one for each run
    "episode": np.int32,  # within its run
    "reward": np.float32,
    "steps": np.int32,
    "ended": np.bool_,  # False: cut at the time limit
}
"""Names and types of the columns, in the order in which they are stored."""
