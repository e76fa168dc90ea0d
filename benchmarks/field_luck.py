"""What the agent gets on lake and cliff of the optimal reward, with the luck of the world taken out; prints Markdown.

    python benchmarks/field_luck.py

The reward of one episode is mostly luck: a single slip decides between 1 and -1. But what every action costs is known
exactly: V(state) - Q(state, action), with the steps that are left. The mean reward of a planner is the optimum minus
the mean of the discounted costs along its episodes, which vary far less. The episodes are those of `uamcts field`.
"""

from __future__ import annotations

import argparse

import numpy as np

from uamcts.domains.exact import Table
from uamcts.field.agent import play_agent
from uamcts.field.worlds import make_grid
from uamcts.lab.experiments.field import FIELD
from uamcts.lab.experiments.field_worlds import GridWorld
from uamcts.lab.run.field_units import FRESH


def action_values(table: Table, gamma: float, steps: int) -> np.ndarray:
    """What actions are worth by the steps that are left, [steps + 1, states, actions]."""
    values = [np.zeros(table.following.shape[:2])]
    for _ in range(steps):
        values.append(table.action_values(values[-1].max(axis=1), gamma))
    return np.array(values)


class Costs:
    """The discounted costs of the actions of each episode."""

    def __init__(self, values: np.ndarray, gamma: float):
        self.values, self.gamma, self.steps, self.each = values, gamma, len(values) - 1, []

    def watch(self, cell: int, action: int, left: int) -> None:
        """Takes note of an action; an episode begins with all steps left."""
        if left == self.steps:
            self.each.append(0.0)
        worth = self.values[left, cell]
        self.each[-1] += self.gamma ** (self.steps - left) * float(worth.max() - worth[action])


def measure(world: GridWorld, episodes: int, iterations: int, seed: int) -> tuple[float, np.ndarray]:
    """The optimum, and the costs of each episode of the agent."""
    grid = make_grid(world.map, world.slips, world.rewards, world.teleport)
    costs = Costs(action_values(grid.table(world.parameter), world.gamma, world.steps), world.gamma)
    play_agent(
        grid, world.parameter, world.believed, world.gamma, episodes, world.steps, iterations, seed, watch=costs.watch
    )
    return float(costs.values[-1, int(grid.start)].max()), np.array(costs.each)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", default=["lake", "cliff"], choices=["lake", "cliff"])
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--seed", type=int, default=FRESH, help=f"by default that of `uamcts field`, {FRESH}")
    chosen = parser.parse_args()
    print("| world | optimum | uamcts.Agent | % of the optimum |")
    print("|" + " --- |" * 4)
    for family in chosen.families:
        for cell in FIELD[family].experiments:
            optimum, costs = measure(cell.world, chosen.episodes, chosen.iterations, chosen.seed)
            reward, error = optimum - costs.mean(), costs.std(ddof=1) / len(costs) ** 0.5
            share = f"{100 * reward / optimum:.0f} ± {100 * error / optimum:.0f}"
            print(f"| {family}, p {cell.level:g} | {optimum:.3f} | {reward:.3f} ± {error:.3f} | {share} |", flush=True)


if __name__ == "__main__":
    main()
