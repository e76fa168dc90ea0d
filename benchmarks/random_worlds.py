"""How close search gets to the exact optimum in random worlds, when the planner knows the world.

    python benchmarks/random_worlds.py                     # lake 4x4 and cliff, 100 and 1,000 iterations
    python benchmarks/random_worlds.py --quick
    python benchmarks/random_worlds.py --worlds frozen_lake --map 8x8 --iterations 1000
    python benchmarks/random_worlds.py --worlds frozen_lake --iterations 100 --episodes 1000

The reward of a planner is computed, not sampled. It searches in every state with several keys. That gives a policy, the
probability of each action, and the policy is evaluated exactly over the world's time limit: the mean of infinitely many
episodes of a planner that draws one of these keys at every move. The score is (reward + 1) / (optimum + 1).

With `--episodes` it also plays that many episodes, with a fresh search at every move, and reports their mean with a 95%
interval: a check of the computed reward.

Two yardsticks: a planner that is not told the steps left is compared with the best stationary plan, one that is told
with the optimum under the time limit.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import uamcts
from uamcts.domains.exact import best_plan, evaluate, tabulate

GAMMA = {"frozen_lake": 0.998, "cliff": 0.996}
TOLD = 100
"""Up to so many iterations the planner is also told the steps left, which takes a search per state and step."""
CHANCES = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@functools.partial(jax.jit, static_argnames=("iterations", "graph"))
def plan_all(domain: Any, keys: jax.Array, states: Any, left: Any, gamma: Any, iterations: int, graph: bool) -> Any:
    """The actions that searches with `keys` [states, n] choose in `states` [states]."""
    config = uamcts.SearchConfig(graph=graph, rules="trust", iterations=iterations, gamma=gamma)

    def plan(key: jax.Array, state: Any) -> jax.Array:
        return uamcts.search(key, state, domain.model, None, config, horizon=left).action

    return jax.vmap(jax.vmap(plan, (0, None)))(keys, states)


@functools.partial(jax.jit, static_argnames=("iterations", "graph"))
def move_all(domain: Any, key: jax.Array, states: Any, over: Any, gamma: Any, iterations: int, graph: bool) -> Any:
    """One planned move in each of the episodes in `states` [n]: their states, rewards and whether they are over."""
    config = uamcts.SearchConfig(graph=graph, rules="trust", iterations=iterations, gamma=gamma)

    def move(key: jax.Array, state: Any, over: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
        planning, luck = jax.random.split(key)
        action = uamcts.search(planning, state, domain.model, None, config).action
        after = domain.world(state, action, luck)
        kept = jax.tree.map(lambda new, old: jnp.where(over, old, new), after.state, state)
        return kept, jnp.where(over, 0.0, after.reward), over | after.terminal

    return jax.vmap(move)(jax.random.split(key, over.size), states, over)


def play(domain: Any, gamma: float, iterations: int, graph: bool, steps: int, episodes: int) -> dict[str, float]:
    """The mean discounted reward of `episodes` that are really played, and half its 95% interval."""
    key = jax.random.key(1)
    states = jax.vmap(domain.reset)(jax.random.split(key, episodes))
    over, total = jnp.zeros(episodes, bool), jnp.zeros(episodes)
    for step in range(steps):
        states, reward, over = move_all(domain, jax.random.fold_in(key, step), states, over, gamma, iterations, graph)
        total = total + gamma**step * reward
        if bool(over.all()):
            break
    return {"played": float(total.mean()), "interval": float(1.96 * total.std(ddof=1) / episodes**0.5)}


def measure(
    world: str, p: float, iterations: int, keys: int, graph: bool, episodes: int, options: dict[str, Any]
) -> dict[str, Any]:
    """Rewards and scores of one planner in one world."""
    gamma = GAMMA[world]
    domain = uamcts.make(world, p=p, model_p=p, **options)
    steps = domain.time_limit
    tables = tabulate(domain)
    count, start = len(tables.world.legal), time.perf_counter()
    seeds = jax.random.split(jax.random.key(0), (count, keys))
    found = np.asarray(plan_all(domain, seeds, tables.states, None, gamma, iterations, graph))
    policy = np.stack([np.mean(found == action, axis=1) for action in range(domain.num_actions)], axis=1)
    reward = evaluate(tables.world, policy, gamma, steps)[0]
    stationary = evaluate(tables.world, best_plan(tables.world, gamma).actions, gamma, steps)[0]
    row = {
        "world": world, "p": p, "iterations": iterations, "search": "graph" if graph else "tree", **options,
        "reward": float(reward), "stationary": float(stationary),
        "score": float((reward + 1) / (stationary + 1)),
    }  # fmt: skip
    if graph and iterations <= TOLD:
        plans = []
        for left in range(1, steps + 1):
            seeds = jax.random.split(jax.random.key(left), (count, 1))
            plans.append(np.asarray(plan_all(domain, seeds, tables.states, left, gamma, iterations, graph))[:, 0])
        told = evaluate(tables.world, np.stack(plans), gamma, steps)[0]
        optimum = best_plan(tables.world, gamma, steps).values[0]
        row |= {"told": float(told), "optimum": float(optimum), "told_score": float((told + 1) / (optimum + 1))}
    if episodes:
        row |= play(domain, gamma, iterations, graph, steps, episodes)
    return row | {"seconds": time.perf_counter() - start}


def show(row: dict[str, Any]) -> str:
    told = ""
    if "told" in row:
        told = f"   told the steps left {row['told']:6.3f} of {row['optimum']:6.3f} = {row['told_score']:.3f}"
    if "played" in row:
        told += f"   played {row['played']:6.3f} ± {row['interval']:.3f}"
    name = f"{row['world']} {row.get('map', '')}".strip()
    return (
        f"{name:16} p {row['p']:.1f} {row['search']:5} {row['iterations']:5} iterations: {row['reward']:6.3f} of "
        f"{row['stationary']:6.3f} = {row['score']:.3f}{told}   ({row['seconds']:.0f} s)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three p and 100 iterations")
    parser.add_argument("--worlds", nargs="*", default=["frozen_lake", "cliff"], choices=list(GAMMA))
    parser.add_argument("--map", help="map of the lake: 8x8")
    parser.add_argument("--iterations", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--keys", type=int, default=20, help="searches per state")
    parser.add_argument("--p", type=float, nargs="*", default=CHANCES, help="probabilities of the intended move")
    parser.add_argument("--episodes", type=int, default=0, help="episodes to play besides")
    parser.add_argument("--tree", action="store_true", help="search a tree instead of a graph")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    given = parser.parse_args()
    chances, budgets = (CHANCES[::3], [100]) if given.quick else (given.p, given.iterations)
    rows = []
    for world in given.worlds:
        options = {"map": given.map} if given.map and world == "frozen_lake" else {}
        for iterations in budgets:
            for p in chances:
                rows.append(measure(world, p, iterations, given.keys, not given.tree, given.episodes, options))
                print(show(rows[-1]), flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
