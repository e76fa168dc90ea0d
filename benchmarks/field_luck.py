"""What planners of lake and cliff get of the optimal reward, with the luck of the world taken out; prints Markdown.

    python benchmarks/field_luck.py --episodes 100

The reward of one episode is mostly luck: a single slip decides between 1 and -1. But the optimum is known exactly, and
so is what every action costs: V(state) - Q(state, action), with the steps that are left. The mean reward of a planner
is the optimum minus the mean of the discounted costs along its episodes, which vary far less.
"""

from __future__ import annotations

import argparse

import numpy as np

from uamcts import Agent
from uamcts.domains.exact import Table
from uamcts.field.worlds import GridSimulator, make_grid
from uamcts.lab.experiments.field import FIELD
from uamcts.lab.experiments.field_worlds import GridWorld

PARAMETERS = np.linspace(0.0, 1.0, 101)


def action_values(table: Table, gamma: float, steps: int) -> np.ndarray:
    """What actions are worth by the steps that are left, [steps + 1, states, actions]."""
    values = [np.zeros(table.following.shape[:2])]
    for _ in range(steps):
        values.append(table.action_values(values[-1].max(axis=1), gamma))
    return np.array(values)


class ExactLearner:
    """Takes the best action for the posterior mean of p, after a uniform prior; rounded to hundredths."""

    def __init__(self, tables: list[np.ndarray], models: list[GridSimulator]):
        self.tables, self.models, self.nats = tables, models, np.zeros(len(models))

    def act(self, state: int, steps_left: int) -> int:
        weights = np.exp(self.nats - self.nats.max())
        mean = PARAMETERS @ weights / weights.sum()
        return int(self.tables[round(100 * mean)][steps_left, state].argmax())

    def observe(self, state: int, action: int, following: int, reward: float, terminal: bool) -> None:
        for place, model in enumerate(self.models):
            found = [chance for chance, (after, _, over) in model.outcomes(state, action) if after == following]
            self.nats[place] += np.log(max(sum(found), 1e-9))


def cost(planner, world: GridSimulator, values: np.ndarray, start: int, gamma: float, rng: np.random.Generator):
    """The discounted costs of the actions of one episode, and its reward."""
    state, over, left, total, paid = start, False, len(values) - 1, 0.0, 0.0
    while not over and left:
        action = planner.act(state, steps_left=left)
        discount = gamma ** (len(values) - 1 - left)
        total += discount * (values[left, state].max() - values[left, state, action])
        chances, outcomes = zip(*world.outcomes(state, action), strict=True)
        following, reward, over = outcomes[rng.choice(len(chances), p=np.array(chances) / sum(chances))]
        planner.observe(state, action, following, reward=reward, terminal=over)
        state, left, paid = following, left - 1, paid + discount * reward
    return total, paid


def measure(cell: GridWorld, episodes: int, seed: int, iterations: int) -> tuple[float, dict[str, np.ndarray]]:
    """The optimum, and costs and rewards [episodes, 2] of each planner."""
    grid = make_grid(cell.map, cell.slips, cell.rewards, cell.teleport)
    start, world = int(grid.start), GridSimulator(grid, cell.parameter)
    values = action_values(grid.table(cell.parameter), cell.gamma, cell.steps)
    tables = [action_values(grid.table(one), cell.gamma, cell.steps) for one in PARAMETERS]
    models = [GridSimulator(grid, one) for one in PARAMETERS]

    def agent(own: int) -> Agent:
        return Agent(
            GridSimulator(grid, cell.believed), parameters={"p": (0.0, 1.0)}, seed=own, iterations=iterations,
            gamma=cell.gamma, rollouts=1, depth=cell.steps,
        )  # fmt: skip

    makers = {"uamcts.Agent": agent, "exact plan, parameter learned": lambda own: ExactLearner(tables, models)}
    found = {}
    for name, make in makers.items():
        rows = []
        for own in range(seed, seed + (episodes if cell.parameter < 1 else 4)):  # p = 1 has no luck
            rows.append(cost(make(own), world, values, start, cell.gamma, np.random.default_rng(own)))
        found[name] = np.array(rows)
    return float(values[-1, start].max()), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", default=["lake", "cliff"], choices=["lake", "cliff"])
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--seed", type=int, default=3_000_000)
    chosen = parser.parse_args()
    print("| world | optimum | uamcts.Agent | % of the optimum | exact plan, parameter learned | % of the optimum |")
    print("|" + " --- |" * 6)
    for family in chosen.families:
        for cell in FIELD[family].experiments:
            optimum, found = measure(cell.world, chosen.episodes, chosen.seed, chosen.iterations)
            words = [f"{family}, p {cell.level:g}", f"{optimum:.3f}"]
            for rows in found.values():
                reward, error = optimum - rows[:, 0].mean(), rows[:, 0].std(ddof=1) / len(rows) ** 0.5
                words += [f"{reward:.3f} ± {error:.3f}", f"{100 * reward / optimum:.0f}"]
            print("| " + " | ".join(words) + " |", flush=True)


if __name__ == "__main__":
    main()
