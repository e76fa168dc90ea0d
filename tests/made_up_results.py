"""An output folder with made-up numbers of a plausible size, the same every time."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from uamcts.paper import ALGORITHMS, EXPLORATION

LEVELS = {
    "space_invaders": (18.0, 16.0, 16.2, 20.7, 23.2, 18.8, 23.8),
    "two_way": (10.0, 6.4, 6.6, 6.9, 8.0, 8.4, 9.4),
}
LEARNERS = (
    ("true", "none", 13.0, 13.0),
    ("corrupted", "none", 28.0, 28.0),
    ("combined", "linear", 30.0, 14.0),
    ("corrupted", "transition_linear", 30.0, 30.0),
    ("corrupted", "transition_8_units", 30.0, 24.0),
    ("corrupted", "transition_16_units", 30.0, 19.0),
)
NASTY = '<script>alert("1")</script> & $x$'


def _row(experiment, scenario, algorithm, learner, rules, c, purpose, values, steps):
    mean, std = float(np.mean(values)), float(np.std(values, ddof=1))
    half = 1.96 * std / len(values) ** 0.5
    ends = [mean - half, mean + half]
    return {
        "experiment": experiment, "domain": experiment, "scenario": scenario, "algorithm": algorithm,
        "learner": learner, "rules": rules, "c": c, "tau": 0.1, "purpose": purpose, "runs": len(values),
        "episodes": len(values), "mean": mean, "std": std, "ci95": ends, "iqm": mean, "iqm_ci95": ends, "steps": steps,
        "goal_share": 0.75, "best": False,
    }  # fmt: skip


def offline_rows(random, experiment, rules, runs):
    rows = []
    for level, algorithm in zip(LEVELS[experiment], ALGORITHMS, strict=True):
        swept = []
        for c in EXPLORATION:
            values = random.normal(level - abs(c - 1.4), 3.0, runs)
            swept.append(_row(experiment, "offline", algorithm, "true", rules, c, "sweep", values, 20.0))
        best = max(swept, key=lambda row: row["mean"])
        best["best"] = True
        values = random.normal(level, 3.0, runs)
        rows += [*swept, _row(experiment, "offline", algorithm, "true", rules, best["c"], "fresh", values, 20.0)]
    return rows


def curve(random, experiment, algorithm, learner, rules, quantity, first, last):
    episode = np.arange(300)
    mean = last + (first - last) * np.exp(-episode / 60) + np.cumsum(random.normal(0, 0.05, 300))
    std = 0.1 * mean + 0.5
    return {
        "experiment": experiment, "algorithm": algorithm, "learner": learner, "rules": rules, "c": 2**0.5,
        "quantity": quantity, "episode": episode.tolist(), "mean": mean.tolist(), "std": std.tolist(),
    }  # fmt: skip


def claims():
    verdicts = ("holds", "does not hold", "too close to call", "not measured")
    made = [
        {
            "id": f"{experiment}_{number}", "experiment": experiment, "rules": rules, "expected": number != 1,
            "text": f"claim {number} about {experiment}: combined earns more than corrupted, under the same budget",
            "verdict": verdict, "numbers": {"combined": 23.8 - number, "corrupted": 16.0 + number / 3},
            "interval": None if number == 3 else [6.9 - 4 * number, 7.9 - 3 * number], "runs": 100,
            "paper": "23.8 against 16.3",
        }
        for experiment in LEVELS for rules in ("released", "pseudocode") for number, verdict in enumerate(verdicts)
    ]  # fmt: skip
    made[0]["text"] = NASTY
    return made


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


def provenance():
    return {
        "version": "0.1.0", "commit": "0123abc", "command": f"uamcts reproduce --runs 100 --note '{NASTY}'",
        "device": "cpu", "cores": 2, "python": "3.12.1", "jax": "0.7.0", "numpy": "2.1.0", "seconds": 1234.5,
        "started": "2024-02-03T04:05:06+00:00", "units": 40, "seed": 0,
        "settings": {"quick": False, "space_invaders": {"iterations": 10, "rollouts": 10, "depth": 20}},
    }  # fmt: skip


def write_episodes(path, rows):
    """The rows' episodes, in the form in which they are kept."""
    random = np.random.default_rng(1)
    columns = {
        name: []
        for name in ("experiment", "domain", "scenario", "algorithm", "learner", "rules", "c", "tau", "purpose")
    }
    for row in rows:
        for name, column in columns.items():
            column.extend([row[name]] * row["runs"])
    count = len(columns["c"])
    table = pa.table(
        {
            **columns,
            "seed": pa.array(np.arange(count), pa.int64()),
            "episode": pa.array(np.zeros(count), pa.int32()),
            "reward": pa.array(random.normal(10.0, 3.0, count), pa.float32()),
            "steps": pa.array(random.integers(1, 300, count), pa.int32()),
            "ended": pa.array(random.random(count) < 0.9),
        }
    )
    pq.write_table(table, path)


def summary(runs=100):
    random = np.random.default_rng(0)
    rows, curves = [], []
    for rules in ("released", "pseudocode"):
        for experiment in LEVELS:
            rows += offline_rows(random, experiment, rules, runs)
        values = random.normal(21.0, 2.0, 15)
        rows.append(_row("space_invaders", "online", "combined", "network", rules, 2**0.5, "online", values, 90.0))
        curves.append(curve(random, "space_invaders", "combined", "network", rules, "reward", 15.0, 21.0))
        for algorithm, learner, first, last in LEARNERS:
            for quantity, ends in (("steps", (first, last)), ("reward", (9 - first / 4, 13 - last / 4))):
                curves.append(curve(random, "two_way", algorithm, learner, rules, quantity, *ends))
            values = random.normal(last, 2.0, 30)
            rows.append(_row("two_way", "online", algorithm, learner, rules, 2**0.5, "online", values, last))
    return {"rows": rows, "claims": claims(), "curves": curves, "provenance": provenance()}


def write_gif(path, colour):
    frames = [Image.new("RGB", (80, 80), (colour, 40 * number, 90)) for number in range(4)]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=200, loop=0)


def write(out, runs=100):
    """Writes the whole folder."""
    made = summary(runs)
    out.mkdir(parents=True, exist_ok=True)
    (out / "summary.json").write_text(json.dumps(made))
    (out / "bandit.json").write_text(json.dumps(bandit()))
    write_episodes(out / "episodes.parquet", [row for row in made["rows"] if row["scenario"] == "offline"])
    (out / "gifs").mkdir(exist_ok=True)
    for number, algorithm in enumerate(("corrupted", "combined")):
        write_gif(out / "gifs" / f"space_invaders_{algorithm}.gif", 200 * number)
    return out
