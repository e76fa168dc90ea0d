"""Grids: nothing wrong, wrong rewards, ends that the simulator does not know of."""

from __future__ import annotations

from typing import Any

from worlds.zoo import Setting, setting, world

BUDGET = {"iterations": 60, "rollouts": 2, "depth": 20, "gamma": 0.95, "longest": 40}
ROOM = ("......", ".##.#.", "......", ".#.##.", "......", "....#.")
START, GOAL = (0, 0), (5, 5)


class Grid:
    """A state is (row, column). Steps cost `step_cost`; the goal pays 5, the near goal, if there is one, 2."""

    num_actions = 4
    action_names = ("up", "right", "down", "left")

    def __init__(
        self,
        tolls: Any = (),
        traps: Any = (),
        scale: float = 1.0,
        step_cost: float = 0.1,
        near: Any = None,
        closed: Any = (),
    ) -> None:
        self.tolls, self.traps, self.step_cost, self.near = frozenset(tolls), frozenset(traps), step_cost, near
        self.pay = tuple(scale * amount for amount in (5.0, 2.0, -1.5))
        cells = ((row, column) for row, cells in enumerate(ROOM) for column, cell in enumerate(cells) if cell == ".")
        self.free = frozenset(cells) - frozenset(closed)

    def step(self, state: Any, action: int) -> Any:
        place = state[0] + (-1, 0, 1, 0)[action], state[1] + (0, 1, 0, -1)[action]
        place = place if place in self.free else state
        goal, near, toll = self.pay
        if place in (GOAL, self.near):
            return place, goal if place == GOAL else near, True
        return place, (toll if place in self.tolls else 0.0) - self.step_cost, place in self.traps


@world("right_grid", "a grid; nothing is wrong", **BUDGET)
def right_grid() -> Setting:
    return setting(Grid(), Grid(), START)


@world("reward_cells", "a toll in two cells that the simulator does not know of", **BUDGET)
def reward_cells() -> Setting:
    return setting(Grid(), Grid(tolls={(2, 2), (2, 4)}), START)


@world("reward_scale", "all goals pay ten times what is believed", **BUDGET)
def reward_scale() -> Setting:
    return setting(Grid(near=(2, 0)), Grid(near=(2, 0), scale=10.0), START)


@world("reward_step", "a step costs eight times what is believed, so that the near goal is the better one", **BUDGET)
def reward_step() -> Setting:
    return setting(Grid(near=(2, 0)), Grid(near=(2, 0), step_cost=0.8), START)


@world("unknown_end", "two cells end the episode without a reward", **BUDGET)
def unknown_end() -> Setting:
    return setting(Grid(), Grid(traps={(2, 3), (2, 5)}), START)
