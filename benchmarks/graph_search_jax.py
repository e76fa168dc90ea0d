"""Times the compiled graph search beside the compiled tree, for one search at a time.

taskset -c 0 python benchmarks/graph_search_jax.py --iterations 1000
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import uamcts

LAKE = ("SFFF", "FHFH", "FFFH", "HFFG")


class Lake:
    """FrozenLake 4x4: a move goes where it should with probability `intended`, else to either side."""

    num_actions = 4

    def __init__(self, intended: float):
        moves = np.array([(0, -1), (1, 0), (0, 1), (-1, 0)])
        cells = np.stack(np.divmod(np.arange(16), 4), axis=1)
        turned = (np.arange(4)[:, None] + np.array([0, 1, -1])) % 4
        after = np.clip(cells[:, None, None] + moves[turned], 0, 3)
        letters = np.array([list(row) for row in LAKE])[after[..., 0], after[..., 1]]
        self.following = jnp.asarray(after[..., 0] * 4 + after[..., 1], jnp.int32)
        self.reward = jnp.asarray((letters == "G") * 1.0 - (letters == "H") * 1.0, jnp.float32)
        self.terminal = jnp.asarray((letters == "G") | (letters == "H"))
        self.probabilities = jnp.array([intended, (1 - intended) / 2, (1 - intended) / 2])

    def outcomes(self, state: Any, action: Any) -> tuple[uamcts.Transition, Any]:
        parts = (self.following, self.reward, self.terminal)
        return uamcts.Transition(*(part[state, action] for part in parts)), self.probabilities

    def step(self, state: Any, action: Any) -> uamcts.Transition:
        return uamcts.Transition(*(part[state, action, 0] for part in (self.following, self.reward, self.terminal)))


def milliseconds(program: Callable[..., Any], *arguments: Any, repeats: int = 20) -> tuple[float, float]:
    """The median time of a call, and that of the first one with its compilation."""
    start = time.perf_counter()
    jax.block_until_ready(program(*arguments))
    first, times = time.perf_counter() - start, []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(program(*arguments))
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times), 1e3 * first


def main() -> None:
    """Prints a line per world."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=1000)
    iterations = parser.parse_args().iterations
    key = jax.random.key(0)
    breakout = uamcts.make("breakout")
    lake, start = Lake(0.7), jnp.int32(0)
    cases = [
        ("lake 4x4, no slipping: states recur", start, lake.step, 4, (False, True)),
        ("lake 4x4, slipping: 3 outcomes", start, lake, 4, (True,)),
        ("breakout", breakout.reset(key), breakout.model, 3, (False, True)),
    ]
    for name, state, model, actions, kinds in cases:
        for graph in kinds:
            config = uamcts.SearchConfig(iterations=iterations, rules="trust", graph=graph)

            def plan(key: Any, state: Any, model: Any = model, config: Any = config, actions: int = actions) -> Any:
                return uamcts.search(key, state, model, None, config, num_actions=actions).values

            run, first = milliseconds(jax.jit(plan), key, state)
            print(f"{name:40} {'graph' if graph else 'tree':6} {run:8.2f} ms a move, first call {first:8.0f} ms")


if __name__ == "__main__":
    main()
