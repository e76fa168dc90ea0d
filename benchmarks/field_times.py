"""Seconds per decision of the field's planners on one core: single searches from the start, with 100 iterations.

    python benchmarks/field_times.py
    python benchmarks/field_times.py --iterations 1000 --worlds lake

Medians of `--repeats` moves after the program was compiled. `uamcts.Agent` is timed over whole episodes, learning
included. ADA-MCTS's paper gives 6.7 s (lake), 6.3 s (cliff) and 3.7 s (bridge), RATS 23.7, 20.1 and 24.7.
"""

from __future__ import annotations

import argparse
import statistics
import time

from uamcts.bench.timing import use_one_core

WORLDS = ("lake", "cliff", "bridge")
PUBLISHED = {"lake": {"ada_mcts": 6.7, "rats": 23.7}, "cliff": {"ada_mcts": 6.3, "rats": 20.1},
             "bridge": {"ada_mcts": 3.7, "rats": 24.7}}  # fmt: skip


def time_planner(name: str, world: str, iterations: int, repeats: int) -> float:
    """The median seconds of a decision."""
    import jax
    import jax.numpy as jnp

    from uamcts import field
    from uamcts.lab.experiments.field import FIELD
    from uamcts.lab.run.field import make_planner

    cell = FIELD[world].experiments[0].world
    grid = field.make_grid(cell.map, cell.slips, cell.rewards, cell.teleport)
    if name == "agent":
        start = time.process_time()
        _, steps, _ = field.play_agent(grid, cell.parameter, cell.believed, cell.gamma, 5, cell.steps, iterations, 0)
        return (time.process_time() - start) / int(steps.sum())
    planner = make_planner(name, cell.usual(name), iterations, cell)
    believed = jnp.asarray(cell.believed)
    act = jax.jit(planner.act)
    memory, place = planner.begin(grid, believed), field.Place(grid.start, jnp.asarray(cell.steps))
    seconds = []
    for number in range(repeats + 1):
        start = time.process_time()
        act(jax.random.key(number), grid, believed, memory, place).block_until_ready()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", default=WORLDS, choices=WORLDS)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=15)
    chosen = parser.parse_args()
    use_one_core()
    from uamcts.lab.experiments.field_worlds import GRID_PLANNERS, PLANNERS

    print(f"| planner, ms per decision at {chosen.iterations} iterations | " + " | ".join(chosen.worlds) + " |")
    print("| --- |" + " --- |" * len(chosen.worlds))
    for name in GRID_PLANNERS:
        cells = []
        for world in chosen.worlds:
            text = f"{1000 * time_planner(name, world, chosen.iterations, chosen.repeats):.2f}"
            published = PUBLISHED.get(world, {}).get(name)
            cells.append(text + (f" (published {1000 * published:,.0f})" if published else ""))
        print(f"| {PLANNERS[name].title} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
