"""Batches of graph searches: milliseconds per search on the device that JAX finds.

    python benchmarks/graph_batches.py                                # the GPU if there is one
    JAX_PLATFORMS=cpu python benchmarks/graph_batches.py              # the CPU
    python benchmarks/graph_batches.py --batches 1 400 --worlds cliff --iterations 100

All searches of a batch start in the same state with keys of their own, in the true model, with the settings of
`uamcts.presets`. The tree is measured beside the graph. Times are the least of several; compiling is not counted.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from uamcts.runtime.jax_setup import prepare_jax

prepare_jax()

import jax

import uamcts
from uamcts.presets import search_config

WORLDS = ("frozen_lake", "cliff", "breakout")


def seconds(domain: Any, config: uamcts.SearchConfig, batch: int, repeats: int) -> float:
    """The least time of one batch of searches."""
    state = domain.reset(jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), batch)
    plan = jax.jit(jax.vmap(lambda key: uamcts.search(key, state, domain.model, None, config).values))
    jax.block_until_ready(plan(keys))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(plan(keys))
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS), choices=WORLDS)
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 32, 400])
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    device = jax.devices()[0]
    print(f"{device.platform} {device.device_kind}, {given.iterations} iterations: ms per search")
    print(f"{'':14}{'batch':>7}{'tree':>10}{'graph':>10}{'ratio':>8}")
    for name in given.worlds:
        domain = uamcts.make(name).with_true_model()
        for batch in given.batches:
            tree, graph = (
                1e3 * seconds(domain, config, batch, given.repeats) / batch
                for config in (
                    search_config(domain, "true", graph=graph, rules="trust", iterations=given.iterations)
                    for graph in (False, True)
                )
            )
            print(f"{name:14}{batch:7}{tree:10.3f}{graph:10.3f}{graph / tree:8.2f}", flush=True)


if __name__ == "__main__":
    main()
