"""The plain engine on a Python gridworld: simulated steps per second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uamcts import reference
from uamcts.bench.timing import time_calls
from uamcts.mcts.config import SearchConfig

Uncertainty = Callable[[tuple[int, int], int], float]


class Grid:
    """9 x 9 cells with a wall in the middle; the goal is in the far corner."""

    num_actions = 4
    moves = ((0, 1), (1, 0), (0, -1), (-1, 0))
    walls = frozenset({(3, 3), (3, 4), (4, 4)})

    def step(self, state: tuple[int, int], action: int) -> tuple[tuple[int, int], float, bool]:
        row, column = state
        down, right = self.moves[action]
        there = (row + down, column + right)
        if 0 <= there[0] < 9 and 0 <= there[1] < 9 and there not in self.walls:
            state = there
        return state, float(state == (8, 8)), state == (8, 8)


class CountedGrid(Grid):
    """The same grid, which counts its steps."""

    steps = 0

    def step(self, state: tuple[int, int], action: int) -> tuple[tuple[int, int], float, bool]:
        self.steps += 1
        return super().step(state, action)


def uncertainty_at(state: tuple[int, int], action: int) -> float:
    return 0.5 if state == (2, 2) else 0.0


def _search(uncertainty: Uncertainty | None, config: SearchConfig) -> Callable[[int], Any]:
    """A function that runs one search. It ignores its argument, the number of the call."""
    return lambda number: reference.search(0, (0, 0), Grid(), uncertainty, config)


def measure(seconds: float) -> dict[str, Any]:
    """Simulated steps per second, without and with an uncertainty function in the rollouts."""
    rows = []
    for uncertainty in (None, uncertainty_at):
        config = SearchConfig(iterations=100, simulation=uncertainty is not None)
        counted = CountedGrid()
        reference.search(0, (0, 0), counted, uncertainty, config)
        search = _search(uncertainty, config)
        rate = counted.steps / time_calls(search, seconds).seconds
        rows.append({"uncertainty in the rollouts": uncertainty is not None, "steps_per_second": rate})
    return {"benchmark": "reference", "rows": rows}
