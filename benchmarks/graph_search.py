"""Graph search against tree search: time per iteration with the same number of rollouts.

python benchmarks/graph_search.py [--iterations 200] [--repeats 5]

"recur": a gridworld of 50 x 50 cells, in which paths meet all the time. "never recur": every path leads to another
state, so that sharing nodes only costs. "random": a slippery gridworld with three outcomes per action.
"""

import argparse
import time

from uamcts import reference
from uamcts.mcts.config import SearchConfig


class Grid:
    """50 x 50 cells; the goal is in the far corner."""

    num_actions = 4
    moves = ((0, 1), (1, 0), (0, -1), (-1, 0))
    start = (0, 0)

    def step(self, state, action):
        row, column = state
        down, right = self.moves[action]
        row, column = min(max(row + down, 0), 49), min(max(column + right, 0), 49)
        return (row, column), float(row == column == 49), row == column == 49


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
        step = self.grid.step
        return [
            (0.8, step(state, action)),
            (0.1, step(state, (action - 1) % 4)),
            (0.1, step(state, (action + 1) % 4)),
        ]


def microseconds(model, config):
    """CPU time per iteration of one search."""
    start = time.process_time()
    result = reference.search(0, model.start, model, None, config)
    return 1e6 * (time.process_time() - start) / result.iterations


def plain_engine(iterations, repeats):
    """The least of several measurements, taken in turns: other programs disturb both searches alike."""
    print(f"plain engine, {iterations} iterations: microseconds per iteration")
    print(f"{'':14}{'rollouts':>9}{'tree':>9}{'graph':>9}{'ratio':>8}")
    for name, model in {"recur": Grid(), "never recur": Paths(), "random": SlipperyGrid()}.items():
        for rollouts in (4, 10):
            common = {"iterations": iterations, "rollouts": rollouts, "gamma": 0.95, "rules": "trust"}
            tree, graph = (SearchConfig(**common, graph=graph) for graph in (False, True))
            times = [(microseconds(model, tree), microseconds(model, graph)) for _ in range(repeats)]
            slow, fast = (min(column) for column in zip(*times, strict=True))
            print(f"{name:14}{rollouts:9}{slow:9.0f}{fast:9.0f}{fast / slow:8.2f}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args(arguments)
    plain_engine(chosen.iterations, chosen.repeats)


if __name__ == "__main__":
    main()
