"""Measurements beside peers, in one run: absolute times differ from machine to machine, ratios less."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from typing import Any

BENCHMARKS = ("random_play", "rollouts", "moves", "growth", "reference", "online")


def one_core() -> None:
    """Keeps this process on one core. Call it before JAX starts its threads."""
    if "jax" in sys.modules:
        raise RuntimeError("JAX is loaded already; measure on one core in a fresh process")
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def version(package: str) -> str | None:
    """The installed version of a peer, None where it is missing."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def run(names: list[str], lanes: int, steps: int, search_lanes: list[int], seconds: float) -> dict[str, Any]:
    """The benchmarks `names`, one after the other, and where they ran."""
    import jax

    from uamcts.bench import moves, online, plain, random_play

    measured = {
        "random_play": lambda: random_play.measure(lanes, steps, seconds, version("gymnax") is not None),
        "rollouts": lambda: moves.rollouts(["breakout", "freeway", "space_invaders"], lanes, seconds),
        "moves": lambda: moves.measure(search_lanes, seconds, version("mctx") is not None),
        "growth": lambda: moves.growth(seconds),
        "reference": lambda: plain.measure(seconds),
        "online": lambda: online.measure(["breakout", "freeway", "space_invaders"]),
    }
    device = jax.devices()[0]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "device": f"{device.platform} ({device.device_kind})",
        "cores": cores,
        "versions": {package: version(package) for package in ("uamcts", "jax", "gymnax", "mctx")},
        "results": {name: measured[name]() for name in names},
    }
