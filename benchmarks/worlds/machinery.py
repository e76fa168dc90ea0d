"""Irrigation, an opponent, a quadrotor, a conveyor belt, a warehouse robot, a battery: what engineers simulate."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from worlds.trades import Sampled
from worlds.zoo import Setting, setting, world

SHORT = {"iterations": 40, "rollouts": 2, "depth": 12}


class Field:
    """(moisture, day). The soil dries, is watered a little or a lot, and on some days it rains, by a random amount."""

    num_actions, action_names = 3, ("nothing", "a little", "a lot")

    def __init__(self, dries: float = 0.05, rain: float = 0.3) -> None:
        self.dries, self.rain = dries, rain

    def sample(self, state: Any, action: int, rng: Any) -> Any:
        moisture, day = state
        wet = 0.25 * rng.random() if rng.random() < self.rain else 0.0
        moisture += (0.0, 0.1, 0.25)[action] + wet - self.dries * (1.0 + moisture)
        moisture = min(max(moisture, 0.0), 1.0)
        reward = 1.0 - 4.0 * abs(moisture - 0.6) - (0.0, 0.1, 0.3)[action]
        return (moisture, day + 1), reward, day >= 39


LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


def has_won(board: Any, player: int) -> bool:
    return any(all(board[place] == player for place in line) for line in LINES)


class Noughts:
    """Noughts and crosses against an opponent who plays anywhere at random, or `wise`: wins, blocks, or goes first."""

    num_actions = 9

    def __init__(self, wise: bool) -> None:
        self.legal_actions = lambda board: [place for place in range(9) if not board[place]]
        self.outcomes = lambda board, action: self.play(board, action, wise)

    def replies(self, board: Any, wise: bool) -> list[int]:
        free = [place for place in range(9) if not board[place]]
        for player in (2, 1) if wise else ():
            for place in free:
                if has_won((*board[:place], player, *board[place + 1 :]), player):
                    return [place]
        return [place for place in (1, 3, 5, 7, 0, 2, 6, 8, 4) if place in free][:1] if wise else free

    def play(self, board: Any, action: int, wise: bool) -> Any:
        board = (*board[:action], 1, *board[action + 1 :])
        if has_won(board, 1) or 0 not in board:
            return [(1.0, (board, float(has_won(board, 1)), True))]
        found, replies = [], self.replies(board, wise)
        for place in replies:
            after = (*board[:place], 2, *board[place + 1 :])
            lost = has_won(after, 2)
            found.append((1.0 / len(replies), (after, -float(lost), lost or 0 not in after)))
        return found


@dataclass
class Body:
    mass: float = 1.0
    thrust: float = 20.0


@dataclass
class Craft:
    body: Body = field(default_factory=Body)
    gravity: float = 9.81


class Quadrotor:
    """(height, speed) of a quadrotor that is to hover at 3, and crashes below 0 and above 6; its numbers are nested."""

    num_actions, action_names = 3, ("idle", "half", "full")

    def __init__(self, craft: Craft) -> None:
        self.craft = craft

    def step(self, state: Any, action: int) -> Any:
        body = self.craft.body
        speed = state[1] + 0.1 * (body.thrust * action / 2 / body.mass - self.craft.gravity)
        height = state[0] + 0.1 * speed
        crash = not 0.0 <= height <= 6.0
        return (height, speed), -abs(height - 3.0) - 40.0 * crash, crash


class Belt:
    """A dictionary: cells of a conveyor belt, and parcels left. A belt that is `weak` trips with two parcels on it."""

    num_actions, action_names = 4, ("wait", "load", "slow", "fast")

    def __init__(self, weak: bool) -> None:
        self.step = lambda state, action: self.run(state, action, weak)

    def run(self, state: Any, action: int, weak: bool) -> Any:
        cells, left, reward = list(state["cells"]), state["left"], -0.2
        if action == 3 and weak and sum(cells) >= 2:
            return {"cells": cells, "left": left}, -2.0, False
        if action == 1 and not cells[0] and left:
            cells[0], left = 1, left - 1
        for _ in range((0, 0, 1, 2)[action]):
            reward += 5.0 * cells[-1]
            cells = [0, *cells[:-1]]
        return {"cells": cells, "left": left}, reward - 0.1 * (action == 3), not left and not any(cells)


class Heading(Enum):
    NORTH, EAST, SOUTH, WEST = range(4)


@dataclass(frozen=True)
class Robot:
    x: int
    y: int
    heading: Heading
    carries: bool


class Shelves:
    """A robot that turns and drives, fetches something at (7, 0) and brings it to (0, 5); states are dataclasses."""

    num_actions, action_names = 3, ("forward", "left", "right")
    plan = ("........", ".##.##..", ".##.##..", "........", ".##.##..", "........")

    def __init__(self, blocked: Any = (), slow: Any = ()) -> None:
        self.step = lambda state, action: self.drive(state, action, frozenset(blocked), frozenset(slow))

    def drive(self, state: Robot, action: int, blocked: Any, slow: Any) -> Any:
        if action:
            heading = Heading((state.heading.value + (0, -1, 1)[action]) % 4)
            return Robot(state.x, state.y, heading, state.carries), -1.0, False
        east, south = ((0, -1), (1, 0), (0, 1), (-1, 0))[state.heading.value]
        x, y = state.x + east, state.y + south
        if not (0 <= x < 8 and 0 <= y < 6) or self.plan[y][x] == "#" or (x, y) in blocked:
            return state, -2.0, False
        carries = state.carries or (x, y) == (7, 0)
        over = carries and (x, y) == (0, 5)
        return Robot(x, y, state.heading, carries), (-4.0 if (x, y) in slow else -1.0) + 20.0 * over, over


OLD, NEW = (1, 1, 1, 2, 3, 5, 5, 4, 3, 3, 2, 1), (1, 1, 4, 5, 5, 3, 2, 1, 1, 3, 5, 4)


class Battery:
    """A dictionary: charge and hour. Buys and sells at `prices`, which are no attribute, with a loss both ways."""

    num_actions, action_names = 3, ("sell", "hold", "buy")

    def __init__(self, efficiency: float, prices: tuple[int, ...]) -> None:
        self.step = lambda state, action: self.trade(state, action - 1, efficiency, prices)

    def trade(self, state: Any, power: int, efficiency: float, prices: tuple[int, ...]) -> Any:
        before, hour = state["charge"], state["hour"]
        charge = min(before + efficiency * power, 4.0) if power > 0 else max(before + power, 0.0)
        paid = prices[hour % 12] * (before - charge) * (efficiency if power < 0 else 1.0 / efficiency)
        return {"charge": charge, "hour": hour + 1}, paid - 0.05 * abs(power), hour >= 23


@world(
    "right_rain", "a field on which it rains on some days, by a random amount; nothing is wrong", **SHORT, longest=40
)
def right_rain() -> Setting:
    return Setting(Field(), [Field()], [Sampled(Field(), (0.5, 0))])


@world("rain", "the same on a soil that dries faster, with less rain; it can only be drawn", **SHORT, longest=40)
def rain() -> Setting:
    return Setting(Field(), [Field(0.12, 0.1)], [Sampled(Field(0.12, 0.1), (0.5, 0))])


@world("noughts", "an opponent who always answers alike, believed to play at random", iterations=60, rollouts=2,
       depth=9, episodes=45, longest=9)  # fmt: skip
def noughts() -> Setting:
    return setting(Noughts(wise=False), Noughts(wise=True), (0,) * 9)


@world("quadrotor", "a quadrotor that is heavier; the mass is nested in a dataclass", **SHORT, longest=40)
def quadrotor() -> Setting:
    start = lambda random: (1.5 + 2.5 * random.random(), 0.0)  # noqa: E731
    return setting(Quadrotor(Craft()), Quadrotor(Craft(Body(1.6))), start)


@world("belt", "a conveyor belt that trips with two parcels on it; states are dictionaries", iterations=60, rollouts=2,
       depth=25, longest=40)  # fmt: skip
def belt() -> Setting:
    return setting(Belt(weak=False), Belt(weak=True), {"cells": [0] * 5, "left": 4})


@world("turning_robot", "a robot that turns; two blocked cells and a slow aisle", iterations=100, rollouts=2, depth=40)
def turning_robot() -> Setting:
    real = Shelves({(3, 0), (3, 1)}, {(x, 3) for x in range(2, 6)})
    return setting(Shelves(), real, Robot(0, 0, Heading.EAST, False))


@world("tariff", "a battery with more loss, and another tariff, in closures; states are dictionaries", iterations=80,
       rollouts=2, depth=24, longest=24)  # fmt: skip
def tariff() -> Setting:
    return setting(Battery(0.9, OLD), Battery(0.7, NEW), {"charge": 1.0, "hour": 0})
