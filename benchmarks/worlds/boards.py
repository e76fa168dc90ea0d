"""Boards and mazes: wind, a key that is elsewhere, trapdoors, dead jumps, streets, machines, cards, another lake."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np
from worlds_apart import GymWorld

from worlds.zoo import Setting, setting, world

BOARD = {"iterations": 60, "rollouts": 1, "depth": 25, "gamma": 0.97, "longest": 50}
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
NAMES = ("north", "east", "south", "west")


class WindyColumns:
    """Seven by ten cells, as arrays. The wind of a column drives every step in it to the north."""

    num_actions, action_names = 4, NAMES

    def __init__(self, wind: tuple[int, ...]) -> None:
        self.step = lambda state, action: self.blow(state, action, wind)

    def blow(self, state: Any, action: int, wind: tuple[int, ...]) -> Any:
        after = np.clip(state + MOVES[action] - np.array([wind[int(state[1])], 0]), 0, (6, 9))
        over = bool((after == (3, 7)).all())
        return after, 10.0 if over else -0.3, over


class Keys:
    """(place, what one has): five by five cells; the door in the wall opens with a key that lies somewhere."""

    num_actions, action_names = 4, NAMES

    def __init__(self, key: tuple[int, int]) -> None:
        self.step = lambda state, action: self.walk(state, action, key)

    def walk(self, state: Any, action: int, key: tuple[int, int]) -> Any:
        place, has = state
        row, column = place[0] + MOVES[action][0], place[1] + MOVES[action][1]
        wall = column == 3 and not (row == 2 and "key" in has)
        if not (0 <= row < 5 and 0 <= column < 5) or wall:
            return (place, has), -0.1, False
        has = has | {"key"} if (row, column) == key else has
        over = (row, column) == (2, 4)
        return ((row, column), has), 10.0 if over else -0.1, over


class Trapdoors:
    """Six by six cells. Half of the steps on a trapdoor lead back to the start."""

    num_actions, action_names = 4, NAMES

    def __init__(self, traps: set[tuple[int, int]]) -> None:
        self.traps = frozenset(traps)

    def step(self, state: Any, action: int) -> Any:
        row, column = state[0] + MOVES[action][0], state[1] + MOVES[action][1]
        after = (min(max(row, 0), 5), min(max(column, 0), 5))
        over = after == (5, 5)
        return after, 8.0 if over else -0.2, over


class Falling(Trapdoors):
    """The same, with chance."""

    def outcomes(self, state: Any, action: int) -> Any:
        after, paid, over = self.step(state, action)
        if after not in self.traps:
            return [(1.0, (after, paid, over))]
        return [(0.5, (after, paid, over)), (0.5, ((0, 0), paid - 1.0, False))]


class Stairs:
    """A walk to 12: a step, or a jump by two that does nothing at all if it fails."""

    num_actions, action_names = 2, ("step", "jump")

    def step(self, place: int, action: int) -> Any:
        after = min(place + 1 + action, 12)
        return after, (8.0 if after == 12 else 0.0) - (0.3, 0.4)[action], after == 12


class DeadJump(Stairs):
    """Jumps fail with this probability."""

    def __init__(self, fails: float) -> None:
        self.fails = fails

    def outcomes(self, place: int, action: int) -> Any:
        works = super().step(place, action)
        return [(1.0, works)] if action == 0 else [(1 - self.fails, works), (self.fails, (place, -0.4, False))]


class Streets:
    """20 crossings with names; every street has a cost, and in each crossing other streets begin."""

    num_actions = 4

    def __init__(self, seed: int, off: float) -> None:
        plan, costs = random.Random(1), random.Random(seed)  # noqa: S311 (a world, not secrets)
        self.streets = {}
        for place in range(20):
            ends = plan.sample([end for end in range(place - 3, place + 5) if 0 <= end < 20 and end != place], 3)
            ends += [min(place + 1, 19)]
            for action, end in enumerate(ends):
                base = abs(end - place) * plan.uniform(0.5, 1.5)
                self.streets[f"X{place}", action] = f"X{end}", base * costs.uniform(1 / off, 2 * off - 1 / off)

    def step(self, state: str, action: int) -> Any:
        end, cost = self.streets[state, action]
        return end, -cost + 10.0 * (end == "X19"), end == "X19"


class Range:
    """(place, charge): ten cells to the goal, which pays 8; home pays 1 for coming back. Without charge it is over."""

    num_actions, action_names = 3, ("back", "wait", "on")

    def __init__(self, use: int) -> None:
        self.step = lambda state, action: self.drive(state, action, use)

    def drive(self, state: Any, action: int, use: int) -> Any:
        place, charge = state[0] + action - 1, state[1] - use * (action != 1)
        if place == 10:
            return (place, charge), 8.0, True
        if place <= 0:
            return (0, charge), 2.0, True
        return (place, charge), -6.0 if charge <= 0 else -0.1, charge <= 0


class Machines:
    """Four machines; a state is the number of plays left. Each pays with a probability."""

    num_actions = 4

    def __init__(self, pays: tuple[float, ...]) -> None:
        self.outcomes = lambda left, action: [
            (pays[action], (left - 1, 1.0, left == 1)),
            (1 - pays[action], (left - 1, -0.5, left == 1)),
        ]


@cache
def cards() -> Any:
    """A game of cards as a Gymnasium environment: draw or stop; beyond 21 is lost. Cards begin with `lowest`."""
    import gymnasium

    class Cards(gymnasium.Env):  # type: ignore[misc]
        observation_space = gymnasium.spaces.Box(0, 60, (1,), np.int64)
        action_space = gymnasium.spaces.Discrete(2)

        def __init__(self, lowest: int) -> None:
            self.lowest, self.total = lowest, 0

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self.total = int(self.np_random.integers(2, 13))
            return np.array([self.total]), {}

        def step(self, action: Any) -> Any:
            if action == 1:
                self.total += int(self.np_random.integers(self.lowest, 12))
                lost = self.total > 21
                return np.array([self.total]), -1.0 if lost else 0.0, lost, False, {}
            return np.array([self.total]), (self.total / 21) ** 2, True, False, {}

    return Cards


def gym_lake(rows: list[str]) -> Any:
    import gymnasium

    return gymnasium.make("FrozenLake-v1", desc=rows, is_slippery=True)


@world("windy_columns", "wind in six of ten columns, believed calm; states are arrays", **BOARD, episodes=12)
def windy_columns() -> Setting:
    calm = (0,) * 10
    return setting(WindyColumns(calm), WindyColumns((0, 0, 0, 1, 1, 1, 2, 2, 1, 0)), lambda rng: np.array([3, 0]))


@world("key_elsewhere", "the key of a door lies in another corner than believed; states hold sets", **BOARD)
def key_elsewhere() -> Setting:
    return setting(Keys((0, 2)), Keys((4, 0)), ((2, 1), frozenset()))


@world("trapdoors", "five trapdoors that lead back to the start half of the time, not believed", **BOARD, episodes=12)
def trapdoors() -> Setting:
    traps = {(2, 2), (3, 3), (1, 3), (3, 5), (4, 1)}
    return setting(Trapdoors(traps), Falling(traps), (0, 0))


@world("dead_jump", "jumps do nothing in two of three cases; the simulator is deterministic", **BOARD, episodes=12)
def dead_jump() -> Setting:
    return setting(Stairs(), DeadJump(0.67), 0)


@world("streets", "80 streets with other costs each, all at once; states are strings", **BOARD, episodes=12)
def streets() -> Setting:
    return setting(Streets(2, 1.0), Streets(3, 3.0), "X0")


@world("range", "every move takes twice the charge, which ends the episode early; no attribute", **BOARD)
def short_range() -> Setting:
    return setting(Range(1), Range(2), (4, 10))


@world("machines_change", "four machines whose odds change twice", **{**BOARD, "gamma": 0.9}, episodes=18)
def machines_change() -> Setting:
    odds = [(0.2, 0.9, 0.3, 0.1), (0.9, 0.2, 0.3, 0.1), (0.1, 0.2, 0.3, 0.9)]
    return setting(Machines((0.6, 0.5, 0.4, 0.3)), [Machines(one) for one in odds], 20)


@world("high_cards", "a deck without low cards, in a Gymnasium environment of one's own", **BOARD, episodes=60)
def high_cards() -> Setting:
    import uamcts.gym

    simulator, true = uamcts.gym.Simulator(cards()(1)), uamcts.gym.Simulator(cards()(6))
    return Setting(simulator, [true], [GymWorld(cards()(6), simulator)])


@world("other_lake", "Gymnasium's slippery FrozenLake with the holes elsewhere", **BOARD, episodes=24)
def other_lake() -> Setting:
    import uamcts.gym

    believed, real = ["SFFF", "FFHH", "FFHF", "FFFG"], ["SFFF", "HFFF", "HHFF", "HFFG"]
    simulator, true = uamcts.gym.Simulator(gym_lake(believed)), uamcts.gym.Simulator(gym_lake(real))
    return Setting(simulator, [true], [GymWorld(gym_lake(real), simulator)])
