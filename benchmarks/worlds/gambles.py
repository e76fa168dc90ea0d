"""Random worlds without shared odds: a casino, wear, a hunter, a jump that is drawn; and an end that is none."""

from __future__ import annotations

import random
from typing import Any

from worlds_apart import World

from worlds.odds import SHORT
from worlds.zoo import Setting, setting, world

LONG = {**SHORT, "longest": 40}


class Casino:
    """20 states, each action of which leads to five of them; `odds` draws the weights of these."""

    num_actions = 3

    def __init__(self, odds: int) -> None:
        places, weights = random.Random(0), random.Random(odds)  # noqa: S311 (a world, not secrets)
        table = {}
        for place in [(state, action) for state in range(20) for action in range(3)]:
            ends = [(places.randrange(20), places.choice((-1.0, 0.0, 1.0, 2.0)), False) for _ in range(5)]
            drawn = [weights.random() ** 2 for _ in ends]
            table[place] = [(weight / sum(drawn), end) for weight, end in zip(drawn, ends, strict=True)]
        self.outcomes = lambda state, action: table[state, action]


class Press:
    """A state is the wear. To run pays 1 and wears; it may break, which costs 6. Repair costs 1, to wait 0.05."""

    num_actions = 3
    action_names = ("wait", "repair", "run")

    def __init__(self, breaks: dict[int, float]) -> None:
        self.breaks = breaks

    def outcomes(self, wear: int, action: int) -> Any:
        if action < 2:
            return [(1.0, ((wear, -0.05, False), (0, -1.0, False))[action])]
        broken = self.breaks[wear]
        return [(1 - broken, (min(wear + 1, 6), 1.0, False)), (broken, (0, -6.0, False))]


def move(place: tuple[int, int], action: int) -> tuple[int, int]:
    row, column = place[0] + (-1, 0, 1, 0)[action], place[1] + (0, 1, 0, -1)[action]
    return min(max(row, 0), 3), min(max(column, 0), 3)


class Hunt:
    """(own place, cat's place) in four by four cells. The cat comes nearer with probability `hunts`, or strolls."""

    num_actions = 4

    def __init__(self, hunts: float) -> None:
        def outcomes(state: Any, action: int) -> Any:
            mouse, cat = move(state[0], action), state[1]
            if mouse in (cat, (3, 3)):
                return [(1.0, ((mouse, cat), -3.0 if mouse == cat else 3.0, True))]
            steps = [move(cat, step) for step in range(4)]
            apart = [abs(row - mouse[0]) + abs(column - mouse[1]) for row, column in steps]
            chances = [(1 - hunts) / 4 + hunts * (step == apart.index(min(apart))) for step in range(4)]
            return [
                (chance, ((mouse, after), -3.0 if after == mouse else -0.1, after == mouse))
                for chance, after in zip(chances, steps, strict=True)
            ]

        self.outcomes = outcomes


class Jumps:
    """A walk to 8: a step, or a jump by 3 that fails and leads back by 3; its odds are no attribute."""

    num_actions = 2

    def __init__(self, works: float) -> None:
        def outcomes(place: int, action: int) -> Any:
            if action == 0:
                return [(1.0, (place + 1, -0.3, place >= 7))]
            return [(works, (min(place + 3, 8), -0.3, place >= 5)), (1 - works, (max(place - 3, 0), -0.3, False))]

        self.outcomes = outcomes


class Drawn:
    """A simulator that can only be drawn from."""

    def __init__(self, simulator: Any) -> None:
        def sample(state: Any, action: int, rng: Any) -> Any:
            found = simulator.outcomes(state, action)
            return found[rng.choice(len(found), p=[chance for chance, _ in found])][1]

        self.num_actions, self.sample = simulator.num_actions, sample


class Passage:
    """Six cells in a row: the last one pays 5. The simulator believes that the third one ends the episode."""

    num_actions = 4

    def __init__(self, ends: bool) -> None:
        self.step = lambda place, action: self.move(place, action, ends)

    def move(self, place: int, action: int, ends: bool) -> Any:
        after = max(place + (0, 1, 0, -1)[action], 0)
        return after, 5.0 if after == 5 else -0.1, after == 5 or (ends and after == 2)


@world("right_casino", "20 states in which all is chance; nothing is wrong", **LONG)
def right_casino() -> Setting:
    return setting(Casino(1), Casino(1), 0)


@world("casino", "20 states in which all is chance, with other odds everywhere", **LONG)
def casino() -> Setting:
    return setting(Casino(1), Casino(2), 0)


@world("press", "a machine that breaks the more often the more it is worn, believed rarely; a dictionary", **LONG)
def press() -> Setting:
    real = {wear: min(0.02 + 0.15 * wear, 0.9) for wear in range(7)}
    return setting(Press(dict.fromkeys(real, 0.02)), Press(real), 0)


@world("hunt", "a cat that hunts, believed to stroll; without an attribute for it", **LONG, episodes=12)
def hunt() -> Setting:
    return setting(Hunt(0.0), Hunt(0.9), ((0, 0), (2, 2)))


@world("jumps", "jumps that work less often than believed; a simulator that can only be drawn from", **LONG)
def jumps() -> Setting:
    return Setting(Drawn(Jumps(0.9)), [Drawn(Jumps(0.25))], [World(Jumps(0.25), 0)])


@world("false_end", "a cell in the only way that is believed to end the episode, and does not", **LONG)
def false_end() -> Setting:
    return setting(Passage(True), Passage(False), 0)
