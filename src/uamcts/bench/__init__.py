"""Measurements beside peers, in one run: absolute times differ from machine to machine, ratios less."""

from __future__ import annotations

import os
import sys


def one_core() -> None:
    """Keeps this process on one core. Call it before JAX starts its threads."""
    if "jax" in sys.modules:
        raise RuntimeError("JAX is loaded already; measure on one core in a fresh process")
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
