"""A policy trained elsewhere halves the iterations that a search needs.

python examples/trained_policy.py

A picker in a warehouse (examples/warehouse.py), with a simulator that is right. A few lines of tabular Q-learning give
a policy that is not good enough on its own. The search uses it twice: rollouts follow it (`policy=`), and the values
that it has learned stand at the leaves beside them (`value=`, `value_weight=`).
"""

import argparse
import random
from collections import defaultdict

import numpy as np
from warehouse import PALLETS, PLAN, Warehouse

import uamcts

START, LONGEST, GAMMA = (0, 0, True, True), 70, 0.95
OPTIMUM = 17.1


def learn(model, episodes, seed=0):
    """Tabular Q-learning with epsilon-greedy exploration; returns Q[state], an array over actions."""
    rng, table = random.Random(seed), defaultdict(lambda: np.zeros(model.num_actions))  # noqa: S311 (play)
    for _ in range(episodes):
        state, over, steps = START, False, 0
        while not over and steps < 200:
            greedy = rng.random() > 0.3
            action = int(np.argmax(table[state])) if greedy else rng.randrange(model.num_actions)
            after, reward, over = model.step(state, action)
            target = reward + GAMMA * np.max(table[after]) * (not over)
            table[state][action] += 0.5 * (target - table[state][action])
            state, steps = after, steps + 1
    return table


def reward(choose, model):
    """The reward of an episode."""
    state, over, total, steps = START, False, 0.0, 0
    while not over and steps < LONGEST:
        state, paid, over = model.step(state, choose(state))
        total, steps = total + paid, steps + 1
    return total


def draw(model, table):
    """Prints the floor with what the policy does while both items wait; a dot where it never was."""
    print("the warehouse, about which the simulator is right, with the trained policy on it; # is a shelf or a pallet")
    for row, cells in enumerate(PLAN):
        shown = [
            cell if cell in "D12" else "#" if (row, column) not in model.free
            else "↑→↓←"[int(np.argmax(table[row, column, True, True]))] if (row, column, True, True) in table else "·"
            for column, cell in enumerate(cells)
        ]  # fmt: skip
        print(f"  {''.join(shown)}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="agents of each kind")
    parser.add_argument("--training", type=int, default=20, help="episodes of Q-learning")
    parser.add_argument("--quick", action="store_true", help="2 agents only")
    chosen = parser.parse_args(arguments)
    runs, model = 2 if chosen.quick else chosen.runs, Warehouse(PALLETS)
    table = learn(model, chosen.training)
    draw(model, table)
    print(
        f"the trained policy alone: {reward(lambda state: int(np.argmax(table[state])), model):.1f}; optimum {OPTIMUM}"
    )
    guides = {
        "policy": lambda state, rng: int(np.argmax(table[state])) if rng.random() > 0.2 else int(rng.integers(4)),
        "value": lambda state: float(np.max(table[state])),
        "value_weight": 0.5,
    }
    needed = {}
    for name, guide in (("search alone", {}), ("with the policy", guides)):
        for iterations in (5, 10, 20, 40, 80, 160):
            settings = {"iterations": iterations, "rollouts": 3, "depth": 30, "gamma": GAMMA, "reuse": False}
            agents = [uamcts.Agent(model, **settings, **guide, seed=seed) for seed in range(runs)]
            mean = float(np.mean([reward(agent.act, model) for agent in agents]))
            print(f"{name:16} {iterations:4} iterations: {mean:6.2f}", flush=True)
            if mean > 0.99 * OPTIMUM:
                needed[name] = iterations
                break
    alone, guided = (needed.get(name, 999) for name in ("search alone", "with the policy"))
    print(f"With a policy trained elsewhere {guided} iterations are enough where the search alone needs {alone}.")
    return needed


if __name__ == "__main__":
    main()
