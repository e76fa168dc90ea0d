"""Graph search against tree search: time per iteration with the same number of rollouts, in both engines.

taskset -c 0 python benchmarks/graph_search.py [--engine plain|jax|both] [--iterations 300] [--repeats 20]

"recur": a gridworld of 50 x 50 cells, in which paths meet all the time. "never recur": every path leads to another
state, so that sharing nodes only costs. "random": a slippery gridworld with three outcomes per action. Breakout is
compiled only. Times are the least of several, taken in turns: other programs disturb both searches alike.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import uamcts
from uamcts import reference

MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))
SIDE = 50
CHANCES = (0.8, 0.1, 0.1)
TURNS = (0, -1, 1)


class Grid:
    """50 x 50 cells; the goal is in the far corner."""

    num_actions = 4
    start = (0, 0)

    def step(self, state, action):
        row, column = state
        down, right = MOVES[action]
        row, column = min(max(row + down, 0), SIDE - 1), min(max(column + right, 0), SIDE - 1)
        return (row, column), float(row == column == SIDE - 1), row == column == SIDE - 1


class Paths:
    """A state is the number of the path to it; every seventh pays."""

    num_actions = 4
    start = 0

    def step(self, state, action):
        state = (4 * state + action + 1) % (2**61 - 1)
        return state, float(state % 7 == 0), False


class SlipperyGrid:
    """The gridworld in which one move in five goes to a side."""

    num_actions = 4
    start = (0, 0)
    grid = Grid()

    def outcomes(self, state, action):
        return [(p, self.grid.step(state, (action + turn) % 4)) for p, turn in zip(CHANCES, TURNS, strict=True)]


class CompiledGrid:
    """The gridworld for JAX."""

    num_actions = 4
    start = jnp.zeros(2, jnp.int32)

    def step(self, state: Any, action: Any) -> uamcts.Transition:
        state = jnp.clip(state + jnp.array(MOVES, jnp.int32)[action], 0, SIDE - 1)
        ends = jnp.all(state == SIDE - 1)
        return uamcts.Transition(state, ends.astype(jnp.float32), ends)


class CompiledPaths:
    """A state is a hash of the path to it."""

    num_actions = 4
    start = jnp.uint32(1)

    def step(self, state: Any, action: Any) -> uamcts.Transition:
        state = state * jnp.uint32(2654435761) + action.astype(jnp.uint32) * jnp.uint32(40503) + jnp.uint32(1)
        return uamcts.Transition(state, (state % 7 == 0).astype(jnp.float32), jnp.bool_(False))


class CompiledSlipperyGrid:
    """The slippery gridworld for JAX. The tree plans in the deterministic one: three outcomes are the graph's alone."""

    num_actions = 4
    start = CompiledGrid.start
    grid = CompiledGrid()

    def outcomes(self, state: Any, action: Any) -> tuple[uamcts.Transition, Any]:
        after = jax.vmap(lambda turn: self.grid.step(state, (action + turn) % 4))(jnp.array(TURNS))
        return after, jnp.array(CHANCES)


def settings(iterations: int, rollouts: int) -> list[uamcts.SearchConfig]:
    """Those of the tree and those of the graph."""
    common = {"iterations": iterations, "rollouts": rollouts, "gamma": 0.95, "rules": "trust"}
    return [uamcts.SearchConfig(**common, graph=graph) for graph in (False, True)]


def least_times(
    programs: list[Callable[[], Any]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """The least time of each program in seconds, taken in turns."""
    times: list[list[float]] = [[] for _ in programs]
    for _ in range(repeats):
        for program, found in zip(programs, times, strict=True):
            start = clock()
            program()
            found.append(clock() - start)
    return [min(found) for found in times]


def report(name: str, rollouts: int, times: list[float], iterations: int) -> None:
    tree, graph = (1e6 * seconds / iterations for seconds in times)
    print(f"{name:14}{rollouts:9}{tree:9.1f}{graph:9.1f}{graph / tree:8.2f}", flush=True)


def plain_engine(iterations: int, repeats: int) -> None:
    """Prints a line per world and number of rollouts."""
    for name, model in {"recur": Grid(), "never recur": Paths(), "random": SlipperyGrid()}.items():
        for rollouts in (4, 10):
            programs = [
                lambda model=model, config=config: reference.search(0, model.start, model, None, config)
                for config in settings(iterations, rollouts)
            ]
            report(name, rollouts, least_times(programs, repeats), iterations)


def compiled_engine(iterations: int, repeats: int) -> None:
    """Prints a line per world."""
    key, breakout = jax.random.key(0), uamcts.make("breakout")
    grid, paths, slippery = CompiledGrid(), CompiledPaths(), CompiledSlipperyGrid()
    cases = [
        ("recur", grid.start, grid.step, grid.step, 4),
        ("never recur", paths.start, paths.step, paths.step, 4),
        ("random", grid.start, grid.step, slippery, 4),
        ("breakout", breakout.reset(key), breakout.model, breakout.model, breakout.num_actions),
    ]
    for name, state, *models, actions in cases:
        programs = []
        for model, config in zip(models, settings(iterations, 10), strict=True):
            plan = jax.jit(
                lambda key, state, model=model, config=config, actions=actions: uamcts.search(
                    key, state, model, None, config, num_actions=actions
                ).values
            )
            jax.block_until_ready(plan(key, state))
            programs.append(lambda plan=plan, state=state: jax.block_until_ready(plan(key, state)))
        report(name, 10, least_times(programs, repeats), iterations)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("plain", "jax", "both"), default="both")
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=20)
    chosen = parser.parse_args(arguments)
    for name, part in {"plain": plain_engine, "jax": compiled_engine}.items():
        if chosen.engine in (name, "both"):
            print(f"{name}, {chosen.iterations} iterations: microseconds per iteration")
            print(f"{'':14}{'rollouts':>9}{'tree':>9}{'graph':>9}{'ratio':>8}")
            part(chosen.iterations, chosen.repeats)


if __name__ == "__main__":
    main()
