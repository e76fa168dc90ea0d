"""Made-up tables of episodes for the tests of what is made of them."""

import numpy as np

from uamcts.lab.columns import COLUMNS

DOMAIN = {"icy": "two_way_icy"}


def rows(experiment, algorithm, rewards, **columns):
    """Episodes of one setting: a run for each of `rewards` offline; online `rewards` is [runs, episodes]."""
    rewards = np.asarray(rewards, np.float32)
    online = columns.get("scenario", "offline") == "online"
    if online and rewards.ndim == 1:
        rewards = rewards[:, None]
    runs, episodes = rewards.shape if online else (len(rewards), 1)
    n = runs * episodes
    values = {
        "experiment": experiment,
        "domain": DOMAIN.get(experiment, experiment),
        "scenario": "offline",
        "algorithm": algorithm,
        "learner": "true",
        "rules": "released",
        "c": 1.0,
        "tau": 10.0 if experiment == "icy" else 0.1,
        "purpose": "online" if online else "sweep",
        "seed": np.repeat(np.arange(runs), episodes),
        "episode": np.tile(np.arange(episodes), runs),
        "steps": 10,
        "ended": True,
        **columns,
        "reward": rewards.ravel(),
    }
    strings = {name for name, value in values.items() if isinstance(value, str)}
    return {
        name: np.broadcast_to(np.asarray(values[name], object if name in strings else None).ravel(), n)
        for name in COLUMNS
    }


def together(*tables):
    """One table of several."""
    return {name: np.concatenate([table[name] for table in tables]) for name in COLUMNS}


def empty():
    """A table without rows."""
    return {name: column[:0] for name, column in rows("freeway", "true", [0.0]).items()}
