"""Benchmarks of this package and of comparable ones, in one process. `uamcts bench` runs them.

Absolute times vary between machines, ratios less so. All benchmarks measure with `timing.py`, including the scripts in
the repository's folder `benchmarks/`, which need more than this package to run.
"""

from __future__ import annotations

import importlib.metadata
import os
from typing import Any

from uamcts.bench.timing import use_one_core

__all__ = ["BENCHMARKS", "run", "use_one_core"]

BENCHMARKS = ("random_play", "rollouts", "moves", "growth", "reference", "online")


def run(names: list[str], batch: int, steps: int, search_batches: list[int], seconds: float) -> dict[str, Any]:
    """Runs the benchmarks `names`. Returns their results and a description of the machine.

    Args:
        names: Some of `BENCHMARKS`.
        batch: Games or rollouts in a batch.
        steps: Steps of a random game.
        search_batches: Searches in a batch; each number is measured.
        seconds: How long each measurement takes.
    """
    import jax

    from uamcts.bench import moves, online, plain, random_play

    benchmarks = {
        "random_play": lambda: random_play.measure(batch, steps, seconds, _version("gymnax") is not None),
        "rollouts": lambda: moves.measure_rollouts(["breakout", "freeway", "space_invaders"], batch, seconds),
        "moves": lambda: moves.measure(search_batches, seconds, _version("mctx") is not None),
        "growth": lambda: moves.measure_growth(seconds),
        "reference": lambda: plain.measure(seconds),
        "online": lambda: online.measure(["breakout", "freeway", "space_invaders"]),
    }
    device = jax.devices()[0]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "device": f"{device.platform} ({device.device_kind})",
        "cores": cores,
        "versions": {package: _version(package) for package in ("uamcts", "jax", "gymnax", "mctx")},
        "results": {name: benchmarks[name]() for name in names},
    }


def _version(package: str) -> str | None:
    """The installed version of a package, None if it is missing."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
