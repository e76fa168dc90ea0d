"""How long 10,000 runs of 10,000 pulls on ten arms take, and how much memory; prints one JSON object.

python benchmarks/bandits.py
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import jax
import numpy as np

from uamcts import bandits

try:
    import resource
except ImportError:
    raise SystemExit("bandits.py measures memory with Python's module resource, which Windows does not have") from None


def measure(kind: str, steps: int, runs: int, arms: int) -> dict:
    """Seconds of a first call, which compiles, and of a second one; and the process' greatest memory."""
    means = np.linspace(0.9, 0.2, arms)
    bandit = getattr(bandits, kind)(means, means * 0.8)
    seconds = []
    for _ in range(2):
        begin = time.perf_counter()
        regret = bandits.ua_ucb(jax.random.key(0), bandit, steps, runs)
        seconds.append(time.perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    return {
        "arms": kind,
        "steps": steps,
        "first_seconds": round(seconds[0], 2),
        "seconds": round(seconds[1], 2),
        "million_pulls_per_second": round(steps * runs / seconds[1] / 1e6, 1),
        "peak_mib": round(peak),
        "mean_regret": round(float(regret.mean[-1]), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--arms", type=int, default=10)
    parser.add_argument("--steps", type=int, nargs="+", default=[1_000, 10_000, 30_000])
    arguments = parser.parse_args()
    cases = [(kind, steps) for kind in ("bernoulli", "beta") for steps in arguments.steps]
    # A process for each case, started anew: peak memory is counted from a process' start.
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh, max_tasks_per_child=1) as pool:
        rows = [pool.submit(measure, *case, arguments.runs, arguments.arms).result() for case in cases]
    about = {"runs": arguments.runs, "arms": arguments.arms, "cores": os.cpu_count(), "jax": jax.__version__}
    print(json.dumps({**about, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
