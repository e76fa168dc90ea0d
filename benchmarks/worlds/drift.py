"""Worlds that change half-way through the agent's life."""

from __future__ import annotations

from closing_street import CLOSED, START, Streets
from heavy_pendulum import Pendulum

from worlds.pendulums import BUDGET as SWING
from worlds.pendulums import start as hanging
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
