"""Reuse of the last search: reward at a quarter of the iterations with reuse, beside all of them without.

    python benchmarks/reuse.py [--worlds taxi ...] [--episodes 100]

An `Agent` plays Gymnasium's environments with the environment itself as its simulator, so that there is nothing to
learn, and it observes nothing. Taxi and CartPole are deterministic. FrozenLake slips: a move goes in one of three
directions, the intended one with probability 1/3 (8x8, on a graph) or 0.9 (4x4, on a tree). Every episode has a new
agent and its own seed, the same for all variants. Intervals are those of 95%.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import uamcts
import uamcts.gym


class World(NamedTuple):
    """An environment, and how it is searched."""

    name: str
    options: dict[str, Any]
    graph: bool
    iterations: int
    rollouts: int
    depth: int
    gamma: float
    steps: int


WORLDS = {
    "taxi": World("Taxi", {}, True, 40, 4, 20, 0.99, 30),
    "cart pole, tree": World("CartPole-v1", {}, False, 12, 1, 10, 0.99, 150),
    "lake 8x8": World("FrozenLake-v1", {"map_name": "8x8"}, True, 40, 4, 30, 0.998, 200),
    "lake 4x4, tree": World("FrozenLake-v1", {"success_rate": 0.9}, False, 200, 4, 30, 0.98, 100),
}


def happen(simulator: Any, state: Any, action: int, rng: np.random.Generator) -> tuple[Any, float, bool]:
    """What the world does, which is what the simulator says."""
    if simulator.kind == "step":
        return simulator.step(state, action)
    outcomes = simulator.outcomes(state, action)
    return outcomes[rng.choice(len(outcomes), p=[chance for chance, _ in outcomes])][1]


def play(world: World, iterations: int, reuse: bool, seed: int) -> tuple[float, float]:
    """The reward of an episode, and the seconds of its moves, while the process had a core."""
    env = gymnasium.make(world.name, **world.options)
    simulator = uamcts.gym.Simulator(env)
    config = uamcts.SearchConfig(
        rules="trust", graph=world.graph, iterations=iterations, rollouts=world.rollouts, depth=world.depth,
        gamma=world.gamma,
    )  # fmt: skip
    agent = uamcts.Agent(simulator, config=config, corrections=(), reuse=reuse, seed=seed)
    rng = np.random.default_rng(seed)
    state, total, seconds = simulator.reset(seed=seed), 0.0, 0.0
    for _ in range(world.steps):
        began = time.process_time()
        action = agent.act(state)
        seconds += time.process_time() - began
        after, reward, over = happen(simulator, state, action, rng)
        state, total = after, total + reward
        if over:
            break
    return total, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--episodes", type=int, default=100)
    given = parser.parse_args()
    print(f"{'':18}{'iterations':>11}{'reuse':>7}   reward of {given.episodes} episodes     seconds an episode")
    for name in given.worlds:
        world = WORLDS[name]
        for iterations, reuse in (
            (world.iterations, False),
            (world.iterations // 4, True),
            (world.iterations // 4, False),
        ):
            found = np.array([play(world, iterations, reuse, seed) for seed in range(given.episodes)])
            width = 1.96 * found[:, 0].std(ddof=1) / math.sqrt(given.episodes)
            print(
                f"{name:18}{iterations:11}{'yes' if reuse else 'no':>7}{found[:, 0].mean():12.3f} ± {width:.3f}"
                f"{found[:, 1].mean():18.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
