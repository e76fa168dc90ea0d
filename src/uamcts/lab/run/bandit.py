"""The bandit experiment: measured once and stored as JSON."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from uamcts.bandits.runs import Regret
from uamcts.bandits.sweeps import Case, growth, losing_case, regret_against_delta, regret_over_time
from uamcts.bandits.theorem import threshold
from uamcts.lab.analysis.summary import to_json
from uamcts.lab.run.differences import differences, in_words
from uamcts.lab.run.provenance import provenance
from uamcts.lab.run.tables import REMEDY
from uamcts.lab.run.units import Progress
from uamcts.runtime.atomic import write_whole
from uamcts.versions import ENGINE_VERSIONS

FILE = "bandit.json"
DELTAS = {
    "shifted": (0.0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8),
    "misleading": (0.0, 0.1, 0.2, 0.25, 0.35, 0.4, 0.5, 0.6),
}
TITLES = {
    "wins": (
        "Nine of ten arms look better than they are",
        "UA-UCB explores the arms it distrusts less, and regrets less.",
    ),
    "loses": (
        "The arm that is distrusted is really the best",
        "UA-UCB explores it less for no good reason and regrets more than UCB.",
    ),
}


def measure_bandits(out: Path, is_quick: bool, seed: int, progress: Progress) -> dict[str, Any]:
    """Regret over time in two cases, and against delta. A measurement that `out` already holds is reused.

    The entry `about` holds the identity and the provenance of the measurement, like those of a unit.

    Raises:
        ValueError: If `out` holds a damaged measurement or one with other settings.
    """
    path = out / FILE
    settings = {"quick": is_quick, "seed": seed}
    identity = {**settings, "versions": {"engine bandit": ENGINE_VERSIONS["bandit"]}}
    stored = _read(path)
    if stored is not None and stored["about"]["unit"] == identity:
        return stored
    if stored is not None and stored["settings"] != settings:
        odd = in_words(differences(stored["settings"], settings))
        raise ValueError(f"{path} was measured with other settings: {odd}. Give another folder with --out")
    start = time.perf_counter()
    key = jax.random.key(seed)
    runs, steps, sweep_steps = (300, 5_000, 20_000) if is_quick else (2_000, 10_000, 100_000)
    progress(0.0, "regret over time")
    cases = {"wins": regret_over_time(key, steps, runs), "loses": losing_case(key, steps, runs)}
    against = []
    for index, (family, deltas) in enumerate(DELTAS.items()):
        progress(0.3 + 0.35 * index, f"regret against delta, {family}")
        found = regret_against_delta(key, deltas, family, sweep_steps, min(runs, 500))
        against.append(_against_delta(family, deltas, found, sweep_steps))
    about = {"unit": identity, "provenance": provenance(time.perf_counter() - start)}
    cases_found = [_case(*item) for item in cases.items()]
    result = to_json({"settings": settings, "about": about, "cases": cases_found, "against_delta": against})
    result["sha256"] = _checksum(result)
    write_whole(path, json.dumps(result, indent=1, allow_nan=False).encode())
    return result


def _read(path: Path) -> dict[str, Any] | None:
    """The measurement of an earlier command; None if there is none."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        raise ValueError(f"{path} is damaged; {REMEDY}") from None
    if not isinstance(found, dict) or found.get("sha256") != _checksum(found):
        raise ValueError(f"{path} is damaged or was not written by this version of uamcts; {REMEDY}")
    return found


def _checksum(result: dict[str, Any]) -> str:
    """The checksum of everything but the checksum itself."""
    content = {name: value for name, value in result.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _case(name: str, case: Case) -> dict[str, Any]:
    title, text = TITLES[name]
    return {
        "id": name,
        "title": title,
        "text": text,
        "c": case.c,
        "observed": case.bandit.observed,
        "real": case.bandit.real,
        "delta": case.bandit.delta,
        "steps": case.ucb.checkpoints,
        "ucb": _curve(case.ucb),
        "ua_ucb": _curve(case.ua_ucb),
        "estimated": None if case.estimated is None else _curve(case.estimated),
        "ucb_bound": case.ucb_bound,
        "ua_ucb_bound": case.ua_ucb_bound,
        "runs": case.ucb.regret.shape[1],
    }


def _curve(regret: Regret) -> dict[str, Any]:
    low, high = regret.interval()
    return {"mean": regret.mean, "low": low, "high": high}


def _against_delta(family: str, deltas: tuple[float, ...], cases: list[Case], steps: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "family": family,
        "c": cases[0].c,
        "threshold": threshold(cases[0].c),
        "runs": cases[0].ucb.regret.shape[1],
        "steps": steps,
        "delta": list(deltas),
    }
    for name in ("ucb", "ua_ucb"):
        regrets = [getattr(case, name) for case in cases]
        curves = [_curve(regret) for regret in regrets]
        late = [regret.checkpoints >= steps / 10 for regret in regrets]
        grown = [growth(regret.checkpoints[end], regret.mean[end]) for regret, end in zip(regrets, late, strict=True)]
        found[name] = {
            **{part: [float(np.asarray(curve[part])[-1]) for curve in curves] for part in ("mean", "low", "high")},
            "exponent": [each.exponent for each in grown],
            "kind": [each.kind for each in grown],
        }
    return found
