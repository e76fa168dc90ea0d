"""Random worlds with other odds than believed: with an attribute for them or without, as a table, and changing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slippery_lake import Lake

from worlds.drift import drifting
from worlds.zoo import Setting, setting, world

SHORT = {"iterations": 50, "rollouts": 1, "depth": 20, "gamma": 0.95, "longest": 30}
WALK = {**SHORT, "longest": 50, "episodes": 12}


class Closed:
    """A simulator without attributes: whatever is off in it can only be seen."""

    def __init__(self, simulator: Any) -> None:
        self.num_actions = simulator.num_actions
        self.outcomes = simulator.outcomes


class Battery:
    """(place, charge): walk to 6, or charge. A step takes 1 of the charge, or 3 with probability `drain`."""

    num_actions = 3
    action_names = ("on", "back", "charge")

    def __init__(self, drain: float) -> None:
        self.drain = drain

    def outcomes(self, state: Any, action: int) -> Any:
        place, charge = state
        if action == 2:
            return [(1.0, ((place, min(charge + 3, 6)), -0.3, False))]
        place = min(max(place + (1, -1)[action], 0), 6)
        found = []
        for chance, used in ((1 - self.drain, 1), (self.drain, 3)):
            if charge < used:
                found.append((chance, ((place, 0), -2.0, True)))
            else:
                found.append((chance, ((place, charge - used), 2.0 if place == 6 else -0.1, place == 6)))
        return found


class Lights:
    """(place, red): eight cells to cross; every other one has a light, which changes with probability `rate`."""

    num_actions = 2
    action_names = ("wait", "walk")

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def outcomes(self, state: Any, action: int) -> Any:
        place, red = state
        pays = -1.5 if action and place % 2 and red else -0.1
        after, over = place + action, place + action >= 8
        pays += 2.0 * over
        return [(self.rate, ((after, 1 - red), pays, over)), (1 - self.rate, ((after, red), pays, over))]


class Opponent:
    """Ten rounds of rock, paper, scissors: (own last move, round). The opponent moves by a table, relative to it."""

    num_actions = 3
    action_names = ("rock", "paper", "scissors")

    def __init__(self, table: tuple[float, ...] = (1 / 3, 1 / 3, 1 / 3)) -> None:
        self.table = table

    def outcomes(self, state: Any, action: int) -> Any:
        last, played = state
        after = (action, played + 1)
        return [
            (self.table[(last + move) % 3], (after, (0.0, -1.0, 1.0)[(move - action) % 3], played >= 9))
            for move in range(3)
        ]


class Bets:
    """A few bets, each on one of several machines, which pay 1 or -1. A state is the number of bets."""

    def __init__(self, chances: tuple[float, ...], most: int = 6) -> None:
        self.num_actions, self.chances, self.most = len(chances), chances, most

    def outcomes(self, state: int, action: int) -> Any:
        chance, over = self.chances[action], state >= self.most - 1
        return [(chance, (state + 1, 1.0, over)), (1 - chance, (state + 1, -1.0, over))]


class Menu:
    """Five meals. A state is the number of meals."""

    def __init__(self, joys: tuple[float, ...]) -> None:
        self.num_actions = len(joys)
        self.step = lambda state, action: (state + 1, joys[action], state >= 4)


def change(name: str, values: Callable[[int], Any]) -> Callable[[Any, int], None]:
    """Sets an attribute of a simulator at every step."""
    return lambda simulator, steps: setattr(simulator, name, values(steps))


@world("lake_closed", "a lake with p 0.4, believed 0.8, without an attribute for it", **WALK)
def lake_closed() -> Setting:
    return setting(Closed(Lake(0.8)), Lake(0.4), (0, 0))


@world("right_lake", "a lake with p 0.8; nothing is wrong", **WALK)
def right_lake() -> Setting:
    return setting(Lake(0.8), Lake(0.8), (0, 0))


@world("battery", "half of all steps take more charge, believed a twentieth, without an attribute for it", **SHORT)
def battery() -> Setting:
    return setting(Closed(Battery(0.05)), Battery(0.5), (0, 4))


@world("lights", "lights that change more often than believed", **SHORT)
def lights() -> Setting:
    return setting(Lights(0.05), Lights(0.6), (0, 1))


@world("bets", "three machines that pay with other probabilities", **SHORT)
def bets() -> Setting:
    return setting(Bets((0.7, 0.5, 0.3)), Bets((0.3, 0.5, 0.8)), 0)


@world("ten_bets", "ten machines, all of which pay with other probabilities", **SHORT)
def ten_bets() -> Setting:
    believed = (0.7, 0.65, 0.6, 0.55, 0.5, 0.5, 0.45, 0.4, 0.35, 0.3)
    return setting(Bets(believed, 20), Bets((0.3, 0.5, 0.35, 0.65, 0.2, 0.5, 0.2, 0.9, 0.4, 0.1), 20), 0)


@world("menu", "eight dishes that please more or less than believed, always the same", **SHORT)
def menu() -> Setting:
    believed = (3.0, 2.8, 2.5, 2.2, 2.0, 1.5, 1.0, 0.5)
    return setting(Menu(believed), Menu((1.0, 2.0, 2.4, 1.2, 3.5, 1.0, 2.2, 0.2)), 0)


@world("opponent", "an opponent that is not as random as believed", **SHORT)
def opponent() -> Setting:
    return setting(Opponent(), Opponent((0.1, 0.7, 0.2)), (0, 0))


@world("opponent_switches", "an opponent that plays otherwise after the first half", **SHORT, episodes=18)
def opponent_switches() -> Setting:
    return setting(Opponent(), [Opponent((0.1, 0.7, 0.2)), Opponent((0.7, 0.1, 0.2))], (0, 0))


@world("slip_drifts", "a lake that becomes more slippery at every step, p from 0.95 to 0.35", **WALK)
def slip_drifts() -> Setting:
    return drifting(lambda: Lake(0.95), (0, 0), change("p", lambda steps: max(0.95 - 0.005 * steps, 0.35)))


@world("slip_drifts_slowly", "the same over ten episodes and more, p from 0.95 to 0.8", **WALK)
def slip_drifts_slowly() -> Setting:
    return drifting(lambda: Lake(0.95), (0, 0), change("p", lambda steps: max(0.95 - 0.001 * steps, 0.8)))
