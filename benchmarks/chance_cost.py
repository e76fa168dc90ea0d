"""What chance costs: time per iteration in a deterministic, an exact and a sampled model of one gridworld.

    taskset -c 0 python benchmarks/chance_cost.py                # both engines, one search at a time
    python benchmarks/chance_cost.py --engine jax --batch 400    # a batch, on the device that JAX finds

The gridworld has 50 x 50 cells. "exact": three outcomes per action, with their probabilities. "sampled": the model only
draws, and a search draws up to 8 outcomes per action. Times are the least of several, taken in turns; on a CPU they
count only while the process has a core. Compiling is not counted.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from uamcts.runtime.jax_setup import prepare_jax

prepare_jax()

import jax
import jax.numpy as jnp
from graph_search import (
    CHANCES,
    TURNS,
    CompiledGrid,
    CompiledSlipperyGrid,
    Grid,
    SlipperyGrid,
    least_times,
    settings,
)

import uamcts
from uamcts import reference


class DrawnGrid(Grid):
    """The slippery gridworld, which only draws."""

    def sample(self, state, action, rng):
        place = rng.random()
        return self.step(state, (action + TURNS[(place >= CHANCES[0]) + (place >= CHANCES[0] + CHANCES[1])]) % 4)


class CompiledDrawnGrid:
    """The same for JAX."""

    num_actions = 4
    start = CompiledGrid.start
    grid = CompiledGrid()

    def sample(self, state: Any, action: Any, key: Any) -> uamcts.Transition:
        place = jax.random.uniform(key)
        turn = jnp.array(TURNS)[(place >= CHANCES[0]).astype(int) + (place >= CHANCES[0] + CHANCES[1]).astype(int)]
        return self.grid.step(state, (action + turn) % 4)


def plain_programs(config: uamcts.SearchConfig) -> list:
    """A search in each of the three models."""
    models = (Grid(), SlipperyGrid(), DrawnGrid())
    return [lambda model=model: reference.search(0, model.start, model, None, config) for model in models]


def compiled_programs(config: uamcts.SearchConfig, batch: int) -> list:
    """A batch of searches in each of the three models, compiled."""
    programs, keys = [], jax.random.split(jax.random.key(0), batch)
    for model in (CompiledGrid(), CompiledSlipperyGrid(), CompiledDrawnGrid()):
        plan = jax.jit(jax.vmap(lambda key, model=model: uamcts.search(key, model.start, model, None, config).values))
        jax.block_until_ready(plan(keys))
        programs.append(lambda plan=plan: jax.block_until_ready(plan(keys)))
    return programs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("plain", "jax", "both"), default="both")
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--rollouts", type=int, default=10)
    parser.add_argument("--batch", type=int, default=1, help="searches at once, in the JAX engine")
    parser.add_argument("--repeats", type=int, default=20)
    given = parser.parse_args()
    clock = time.process_time if jax.default_backend() == "cpu" else time.perf_counter
    print(f"{jax.devices()[0].device_kind}, {given.iterations} iterations, {given.rollouts} rollouts: us per iteration")
    print(f"{'':14}{'batch':>6}{'step':>9}{'exact':>9}{'sampled':>9}{'ratio':>8}{'ratio':>8}")
    for engine in ("plain", "jax"):
        if given.engine not in (engine, "both"):
            continue
        for config in settings(given.iterations, given.rollouts):
            batch = 1 if engine == "plain" else given.batch
            programs = plain_programs(config) if engine == "plain" else compiled_programs(config, batch)
            times = [1e6 * one / given.iterations / batch for one in least_times(programs, given.repeats, clock)]
            name = f"{engine} {'graph' if config.graph else 'tree'}"
            shown = "".join(f"{one:9.2f}" for one in times)
            print(f"{name:14}{batch:6}{shown}{times[1] / times[0]:8.2f}{times[2] / times[0]:8.2f}", flush=True)


if __name__ == "__main__":
    main()
