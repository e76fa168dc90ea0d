"""An output folder with made-up episodes of a plausible size, put together by the lab's own functions."""

import json
from dataclasses import asdict

import numpy as np
from PIL import Image

from uamcts.lab.analysis.claims import judge
from uamcts.lab.analysis.summary import write_summary
from uamcts.lab.experiments.paper import EXPERIMENTS, only
from uamcts.lab.run.enumeration import enumerate_units
from uamcts.lab.run.grid import offline_grid, online_grid
from uamcts.lab.run.tables import constants, empty_table, join_tables
from uamcts.lab.run.units import OfflineUnit
from uamcts.presets import ALGORITHMS

RULES = ("released", "pseudocode")
PAPERS = ("space_invaders", "two_way", "icy")
LEVELS = {
    "space_invaders": (18.0, 16.0, 16.2, 20.7, 23.2, 18.8, 23.8),
    "two_way": (10.0, 6.4, 6.6, 6.9, 8.0, 8.4, 9.4),
    "two_way_icy": (10.0, 6.4, 6.6, 6.9, 8.0, 8.4, 7.0),
}
NASTY = '<script>alert("1")</script> & $x$'


def offline_episodes(unit, random):
    """An episode of every algorithm and c on every seed; at tau 0.1 an adapted planner never crosses the ice."""
    level = dict(zip((*ALGORITHMS, "trust"), (*LEVELS[unit.domain], 9.9), strict=True))
    count = unit.seeds * len(unit.pairs)
    algorithms = [algorithm for algorithm, _ in unit.pairs] * unit.seeds
    c = np.array([c for _, c in unit.pairs] * unit.seeds)
    reward = random.normal([level[algorithm] for algorithm in algorithms], 3.0) - np.abs(c - 1.4)
    stuck = (unit.domain == "two_way_icy") & (unit.tau < 1) & (np.array(algorithms) == "combined")
    return {
        **constants(count, experiment=unit.experiment, domain=unit.domain, scenario="offline", learner="true"),
        **constants(count, rules=unit.rules, tau=unit.tau, purpose=unit.purpose),
        "algorithm": np.array(algorithms, object),
        "c": c,
        "seed": np.repeat(np.arange(unit.first_seed, unit.first_seed + unit.seeds), len(unit.pairs)),
        "episode": np.zeros(count, np.int32),
        "reward": np.where(stuck, 0.0, reward),
        "steps": random.integers(10, 50, count),
        "ended": ~stuck,
    }


def online_episodes(unit, random, episodes=60):
    """Learning curves: those of a learned U go from 30 steps to 14."""
    end = {"none": 28.0, "transition_linear": 30.0, "transition_8_units": 24.0}.get(unit.learner, 14.0)
    count, number = unit.runs * episodes, np.tile(np.arange(episodes), unit.runs)
    steps = end + (30.0 - end) * np.exp(-number / 15) + random.normal(0, 1.0, count)
    return {
        **constants(count, experiment=unit.experiment, domain=unit.domain, scenario="online", learner=unit.learner),
        **constants(count, algorithm=unit.algorithm, rules=unit.rules, c=unit.c, tau=0.1, purpose="online"),
        "seed": np.repeat(np.arange(unit.runs), episodes),
        "episode": number,
        "reward": 13 - steps / 4,
        "steps": steps.astype(np.int32),
        "ended": np.ones(count, bool),
    }


def made_up(units, random):
    """The episodes of some units."""
    made = [offline_episodes if isinstance(unit, OfflineUnit) else online_episodes for unit in units]
    return [episodes(unit, random) for episodes, unit in zip(made, units, strict=True)]


def all_episodes(experiments, rules, scenario="both"):
    """Sweeps, the fresh seeds at the c that they choose, and learning runs."""
    random = np.random.default_rng(0)
    experiments = [only(experiment, scenario) for experiment in experiments]
    sweep = [unit for unit in enumerate_units(experiments, rules, 0) if isinstance(unit, OfflineUnit)]
    parts = made_up(sweep, random)
    chosen = enumerate_units(experiments, rules, 0, join_tables(parts or [empty_table()]))
    return join_tables(parts + made_up(chosen[len(sweep) :], random))


def _regret(mean):
    mean = np.asarray(mean)
    return {"mean": mean.tolist(), "low": (0.97 * mean).tolist(), "high": (1.03 * mean).tolist()}


def bandit():
    steps = np.unique(np.geomspace(10, 10_000, 40).astype(int))
    log, delta = np.log(steps), np.linspace(0.0, 0.8, 9)
    case = {
        "c": 2**0.5, "observed": [0.8, 0.6], "real": [0.8, 0.3], "delta": [0.0, 0.3], "steps": steps.tolist(),
        "runs": 2000,
        "ucb_bound": [None, *(530 * log[1:]).tolist()], "text": "Nine of ten arms are worse than they look.",
    }  # fmt: skip
    wins = {**case, "id": "wins", "title": f"UA-UCB wins {NASTY}", "ucb": _regret(95 * log),
            "ua_ucb": _regret(47 * log), "estimated": _regret(50 * log),
            "ua_ucb_bound": (260 * log).tolist()}  # fmt: skip
    loses = {**case, "id": "loses", "title": "UA-UCB loses", "ucb": _regret(92 * log), "ua_ucb": _regret(121 * log),
             "estimated": None, "ua_ucb_bound": (531 * log).tolist()}  # fmt: skip
    kind = ["linear" if d > 0.3 else "logarithmic" for d in delta]
    against = [
        {
            "family": family, "c": 1.0, "threshold": 0.293, "runs": 500, "steps": 100_000, "delta": delta.tolist(),
            "ucb": {**_regret(92 + 0 * delta), "exponent": [0.25] * 9, "kind": ["logarithmic"] * 9},
            "ua_ucb": {**_regret(60 + np.exp(10 * delta)), "exponent": [1.0] * 9, "kind": kind},
        }
        for family in ("shifted", "misleading")
    ]  # fmt: skip
    return {"cases": [wins, loses], "against_delta": against}


def provenance(experiments, rules):
    return {
        "version": "0.1.0", "commit": "0123abc", "command": f"uamcts reproduce --runs 100 --note '{NASTY}'",
        "device": "cpu", "cores": 2, "python": "3.12.1", "jax": "0.7.0", "numpy": "2.1.0", "seconds": 1234.5,
        "started": "2024-02-03T04:05:06+00:00", "units": 40, "seed": 0,
        "settings": {
            "experiments": {experiment.name: asdict(experiment) for experiment in experiments},
            "rules": list(rules), "seed": 0,
        },
    }  # fmt: skip


def conclude(out, experiments, rules=RULES, scenario="both", claims=False):
    """Writes `episodes.parquet` and `summary.json` as the lab does; returns the folder."""
    out.mkdir(parents=True, exist_ok=True)
    episodes = all_episodes(experiments, rules, scenario)
    judged = [claim for rule in rules for claim in judge(episodes, rule)] if claims else []
    if judged:
        judged[0]["text"] = NASTY
    write_summary(out, episodes, judged, provenance(experiments, rules))
    return out


def own_grid(out, **options):
    """The folder of `uamcts run two_way --scenario offline`, with three algorithms, two c and a budget."""
    grid = offline_grid(["two_way"], ["corrupted", "combined", "trust"], [1.0, 2.0], [0.1, 5.0], [7], 20)
    return conclude(out, grid, ("released",), **options)


def own_learners(out):
    """The folder of `uamcts run two_way`, with two learners."""
    grid = online_grid(["two_way"], ["combined"], ["linear", "nearest"], [], 3, 300, 100, 10)
    return conclude(out, grid, ("released",))


def write_gif(path, colour):
    frames = [Image.new("RGB", (80, 80), (colour, 40 * number, 90)) for number in range(4)]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=200, loop=0)


def write(out):
    """Writes the whole folder: three experiments of the paper, a bandit and two pictures."""
    conclude(out, [EXPERIMENTS[name] for name in PAPERS], claims=True)
    (out / "bandit.json").write_text(json.dumps(bandit()))
    (out / "gifs").mkdir(exist_ok=True)
    for number, algorithm in enumerate(("corrupted", "combined")):
        write_gif(out / "gifs" / f"space_invaders_{algorithm}.gif", 200 * number)
    return out
