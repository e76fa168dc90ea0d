"""How much faster `uamcts.search_many` is on all cores than on one, by the clock, after `uamcts.configure()`.

    python benchmarks/many_searches.py

Plain searches in Breakout, 10 rollouts of 20 steps. Processes on one core and on all of them take turns; each reports
the lower quartile of 40 calls. Run it on a machine that does nothing else.
"""

import argparse
import json
import os
import subprocess
import sys
import time

SIZES = ((128, 50), (128, 100), (128, 400), (512, 100))
"""Searches, and iterations of each."""
TURNS, CALLS = 3, 40


def measure() -> list[float]:
    """Milliseconds of a call for each size, in this process."""
    import uamcts

    uamcts.configure()
    import jax

    domain = uamcts.make("breakout")
    found = []
    for searches, iterations in SIZES:
        states = jax.vmap(domain.reset)(jax.random.split(jax.random.key(0), searches))
        keys = jax.random.split(jax.random.key(1), searches)
        config = uamcts.SearchConfig(iterations=iterations, rollouts=10, depth=20)
        times = []
        for _ in range(CALLS + 1):
            start = time.perf_counter()
            uamcts.search_many(keys, states, domain.model, None, config).action.block_until_ready()
            times.append(time.perf_counter() - start)
        found.append(1e3 * sorted(times[1:])[CALLS // 4])  # the first call compiles
    return found


def main() -> None:
    cores = os.sched_getaffinity(0)
    best: dict[int, list[float]] = {}
    for _ in range(TURNS):
        for used in ({min(cores)}, cores):
            os.sched_setaffinity(0, used)
            command = [sys.executable, __file__, "--measure"]
            told = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
            times = json.loads(told.stdout)
            best[len(used)] = [min(pair) for pair in zip(times, best.get(len(used), times), strict=True)]
    print(f"searches  iterations  one core, ms  {len(cores)} cores, ms  times as fast")
    for number, (searches, iterations) in enumerate(SIZES):
        one, every = best[1][number], best[len(cores)][number]
        print(f"{searches:8}  {iterations:10}  {one:12.1f}  {every:11.1f}  {one / every:13.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="only print the times of this process, as JSON")
    if parser.parse_args().measure:
        print(json.dumps(measure()))
    else:
        main()
