"""How benchmarks measure time: on one core, the median of several intervals. Uses only the standard library."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

STRETCHES = 5


class Timing(NamedTuple):
    """How long a call takes."""

    seconds: float
    """Seconds per call, the median over several intervals."""
    first: float
    """Seconds of the first call, which may include compilation."""


def time_calls(call: Callable[[int], Any], seconds: float, clock: Callable[[], float] = time.perf_counter) -> Timing:
    """Times `call(number)` for about `seconds`, after a first call that is timed by itself.

    Args:
        call: What to measure. It is given the number of the call and must block until its result is ready.
        seconds: How long to measure.
        clock: `time.process_time` counts only the time in which this process had a core.
    """
    start = clock()
    call(0)
    first = clock() - start
    times, number = [], 0
    for _ in range(STRETCHES):
        start, calls = clock(), 0
        while calls == 0 or clock() - start < seconds / STRETCHES:
            calls, number = calls + 1, number + 1
            call(number)
        times.append((clock() - start) / calls)
    return Timing(statistics.median(times), first)


def use_one_core() -> None:
    """Pins this process to one core. Call it before JAX starts its threads.

    Raises:
        RuntimeError: If JAX is loaded already.
    """
    if "jax" in sys.modules:
        raise RuntimeError("JAX is loaded already; measure on one core in a fresh process")
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
