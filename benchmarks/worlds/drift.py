"""Worlds that change: half-way through the agent's life, or a little at every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from boat import Boat
from closing_street import CLOSED, START, Streets
from heavy_pendulum import Pendulum
from worlds_apart import World

from worlds.pendulums import BUDGET as SWING
from worlds.pendulums import start as hanging
from worlds.points import BUDGET as SAIL
from worlds.points import quay
from worlds.poles import BUDGET as BALANCE
from worlds.poles import CartPole
from worlds.poles import start as upright
from worlds.zoo import Setting, setting, world

VAN = {"iterations": 50, "rollouts": 2, "depth": 20, "gamma": 0.95, "episodes": 12, "longest": 40}
UPPER, LOWER = (0, 3), (4, 3)
"""With the middle street gone, one cell each of the two ways that are left."""


@world("street_closes", "a street closes half-way through", **VAN)
def street_closes() -> Setting:
    return setting(Streets(), [Streets(), Streets({CLOSED})], START)


@world("corridor_swaps", "one corridor is closed, then it opens and the other closes; believed: both open", **VAN)
def corridor_swaps() -> Setting:
    believed = Streets({CLOSED})
    return setting(believed, [Streets({CLOSED, UPPER}), Streets({CLOSED, LOWER})], START)


@world("corridor_opens", "the corridor that is believed closed opens while the one believed open closes", **VAN)
def corridor_opens() -> Setting:
    believed = Streets({CLOSED, LOWER})
    return setting(believed, [Streets({CLOSED, LOWER}), Streets({CLOSED, UPPER})], START)


@world("pole_gravity_changes", "a cart pole whose gravity becomes six times as large", **{**BALANCE, "episodes": 8})
def pole_gravity_changes() -> Setting:
    return setting(CartPole(), [CartPole(), CartPole(gravity=58.8)], upright)


@world("pendulum_mass_changes", "a pendulum that becomes heavier", **{**SWING, "episodes": 8})
def pendulum_mass_changes() -> Setting:
    return setting(Pendulum(), [Pendulum(), Pendulum(m=1.4)], hanging)


class Drifting(World):
    """A world whose simulator changes at every step; the planner that is told plans in it as it is now.

    `change` is a function of the simulator and of the steps since the beginning.
    """

    def __init__(self, simulator: Any, start: Any, change: Callable[[Any, int], None]) -> None:
        super().__init__(simulator, start)
        self.change, self.steps = change, 0
        change(simulator, 0)

    def step(self, action: int) -> Any:
        found = super().step(action)
        self.steps += 1
        self.change(self.simulator, self.steps)
        return found


def drifting(make: Callable[[], Any], start: Any, change: Callable[[Any, int], None]) -> Setting:
    """The setting of a simulator that is right at the beginning."""
    world = Drifting(make(), start, change)
    return Setting(make(), [world.simulator], [world], drifts=True)


def gain_mass(pole: CartPole, steps: int) -> None:
    pole.masspole = 0.1 + 0.1 * steps
    pole.total_mass, pole.polemass_length = pole.masscart + pole.masspole, pole.masspole * pole.length


def lose_force(pole: CartPole, steps: int) -> None:
    pole.force_mag = max(10.0 - 0.025 * steps, 1.0)


def gain_current(boat: Boat, steps: int) -> None:
    share = min(steps / 120, 1.0)
    boat.current_x, boat.current_y = -0.2 * share, 0.25 * share


ONE_LIFE = {**BALANCE, "episodes": 1, "longest": 400}


@world("pole_mass_drifts", "a pole that gains its own mass at every step of a single episode", **ONE_LIFE)
def pole_mass_drifts() -> Setting:
    return drifting(CartPole, upright, gain_mass)


@world("pole_force_drifts", "a motor that loses force at every step of a single episode", **ONE_LIFE)
def pole_force_drifts() -> Setting:
    return drifting(CartPole, upright, lose_force)


@world("current_drifts", "a current that grows at every step, from 0", **SAIL)
def current_drifts() -> Setting:
    return drifting(Boat, quay, gain_current)
