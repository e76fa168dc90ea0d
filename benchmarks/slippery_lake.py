"""Slippery FrozenLake beside ns-gym's MCTS: simulations per second, and reward at equal simulations and equal time.

    python benchmarks/slippery_lake.py [--simulations 100] [--peer-python PYTHON]

The world is Gymnasium's FrozenLake-v1 (4x4, slippery, 100 steps, the goal pays 1), and every planner knows it. Each
searches in every state several times, with one random rollout of at most 50 steps per simulation. That gives a policy,
which is evaluated exactly over the time limit: the probability of reaching the goal. The interval is that of 95% of
resampled searches. ns-gym runs in a virtual environment of its own: give its Python, or let `peer.py` make one. One
core; times count only while the process has it.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from peer import FOLDER, PEER, peer_python, run_with_peer

from uamcts.bench.timing import use_one_core

C, GAMMA, DEPTH = 1.44, 0.99, 50
OFF = dict.fromkeys(("selection", "expansion", "simulation", "backpropagation"), False)
CELLS = [0, 1, 2, 3, 4, 6, 8, 9, 10, 13, 14]
"""Those that are neither a hole nor the goal."""
RESAMPLES = 500


def theirs(simulations: int, searches: int) -> dict[str, Any]:
    """In ns-gym's environment: the actions of its MCTS, [cells][searches], and its seconds per search."""
    import random
    import warnings

    warnings.simplefilter("ignore")
    import gymnasium
    import numpy as np
    from ns_gym.benchmark_algorithms import MCTS

    env = gymnasium.make("FrozenLake-v1", is_slippery=True)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 (ns-gym draws from it)
    actions, start = [], time.process_time()
    for cell in CELLS:
        found = []
        for number in range(searches):
            env.reset(seed=number)
            env.unwrapped.s = cell
            found.append(int(MCTS(env, cell, DEPTH, simulations, C, GAMMA).search()[0]))
        actions.append(found)
    seconds = (time.process_time() - start) / (len(CELLS) * searches)
    return {"actions": actions, "seconds": seconds, "simulations": simulations}


def ours(simulations: int, searches: int, graph: bool) -> dict[str, Any]:
    """The same of our plain engine, on the same environment."""
    import gymnasium

    import uamcts
    import uamcts.gym

    simulator = uamcts.gym.Simulator(gymnasium.make("FrozenLake-v1", is_slippery=True))
    config = uamcts.SearchConfig(
        iterations=simulations, rollouts=1, depth=DEPTH, gamma=GAMMA, **({"graph": True} if graph else {"c": C, **OFF})
    )
    actions, done, start = [], 0, time.process_time()
    for cell in CELLS:
        results = [uamcts.reference.search(number, cell, simulator, None, config) for number in range(searches)]
        actions.append([result.action for result in results])
        done += sum(result.iterations for result in results)
    count = len(CELLS) * searches
    seconds = (time.process_time() - start) / count
    return {"actions": actions, "seconds": seconds, "simulations": done / count}


def fitting(seconds: float, first: int) -> int:
    """How many simulations a tree search of ours can do in so many seconds: looked for, since paths grow longer."""
    simulations = first
    for _ in range(4):
        simulations = max(1, int(simulations * (seconds / ours(simulations, 2, graph=False)["seconds"]) ** 0.9))
    return simulations


def rewards(actions: list[list[int]]) -> tuple[float, float, float]:
    """The probability of reaching the goal, and the bounds of its interval."""
    import numpy as np

    import uamcts
    from uamcts.domains.exact import evaluate, tabulate

    domain = uamcts.make("frozen_lake", p=1 / 3, model_p=1 / 3, hole_reward=0)
    world, _, states = tabulate(domain)
    rows = [CELLS.index(int(cell)) for cell in np.asarray(states.cell)]
    found = np.array(actions)[rows]
    rng = np.random.default_rng(0)

    def worth(found: Any) -> float:
        policy = np.stack([np.mean(found == action, axis=1) for action in range(4)], axis=1)
        return float(evaluate(world, policy, 1.0, domain.time_limit)[0])

    width = found.shape[1]
    again = [worth(np.take_along_axis(found, rng.integers(width, size=found.shape), 1)) for _ in range(RESAMPLES)]
    return worth(found), *np.quantile(again, [0.025, 0.975])


def optimum() -> tuple[float, float]:
    """The best plan's probability of reaching the goal in time, told the steps left and not told."""
    import uamcts
    from uamcts.domains.exact import best_plan, evaluate, tabulate

    domain = uamcts.make("frozen_lake", p=1 / 3, model_p=1 / 3, hole_reward=0)
    world, steps = tabulate(domain).world, domain.time_limit
    return best_plan(world, 1.0, steps).values[0], evaluate(world, best_plan(world, GAMMA).actions, 1.0, steps)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, nargs="*", default=[100])
    parser.add_argument("--searches", type=int, default=40, help="per state")
    parser.add_argument("--peer-python", type=Path, help=f"a Python that has {PEER}; made in {FOLDER} if not given")
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    use_one_core()
    if given.peer:
        print(json.dumps(theirs(given.simulations[0], given.searches)))
        return
    python = given.peer_python or peer_python(FOLDER)
    told, stationary = optimum()
    print(f"best plan told the steps left {told:.3f}, best stationary plan {stationary:.3f}; {given.searches} searches")
    print(f"{'':30}{'simulations':>12}{'ms a move':>11}{'per second':>12}   reward")
    for simulations in given.simulations:
        size = (f"--simulations={simulations}", f"--searches={given.searches}")
        peer = run_with_peer(python, __file__, "--peer", *size)
        fit = fitting(peer["seconds"], 20 * simulations)
        rows = {
            "ns-gym": peer,
            "ours, tree": ours(simulations, given.searches, graph=False),
            "ours, graph": ours(simulations, given.searches, graph=True),
            "ours, tree, in ns-gym's time": ours(fit, given.searches, graph=False),
        }
        for name, row in rows.items():
            reward, low, high = rewards(row["actions"])
            rate = row["simulations"] / row["seconds"]
            print(
                f"{name:30}{row['simulations']:12.0f}{1e3 * row['seconds']:11.2f}{rate:12.0f}   {reward:.3f} "
                f"({low:.3f} to {high:.3f})   {rate * peer['seconds'] / peer['simulations']:.0f}x",
                flush=True,
            )


if __name__ == "__main__":
    main()
