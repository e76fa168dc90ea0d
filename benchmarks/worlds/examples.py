"""The worlds of the examples with a Gymnasium environment or a floor plan: a few places are wrong."""

from __future__ import annotations

from worlds_apart import GymWorld

from worlds.zoo import Setting, setting, world


@world("cliff", "wind in four cells beside a cliff", iterations=100, rollouts=5, depth=10, gamma=0.95)
def cliff() -> Setting:
    from cliff_walking import WINDY, Cliff

    import uamcts.gym

    wrong, true = uamcts.gym.Simulator(Cliff()), uamcts.gym.Simulator(Cliff(WINDY))
    return Setting(wrong, [true], [GymWorld(Cliff(WINDY), wrong)])


@world("warehouse", "two pallets in the way", iterations=100, rollouts=3, depth=30, gamma=0.95, longest=70)
def warehouse() -> Setting:
    from warehouse import PALLETS, Warehouse

    return setting(Warehouse(), Warehouse(PALLETS), (0, 0, True, True))


@world("taxi", "a closed street", iterations=100, rollouts=5, depth=30, gamma=0.95, longest=40)
def taxi() -> Setting:
    from taxi import CLOSED, Map, Town

    wrong, true = Map(Town()), Map(Town(CLOSED))
    return Setting(wrong, [true], [GymWorld(Town(CLOSED), wrong)])


@world("lake", "new holes", iterations=100, rollouts=5, depth=80, gamma=0.95, episodes=12, longest=50)
def lake() -> Setting:
    from frozen_lake import MAP, REALLY
    from frozen_lake import lake as make_lake

    import uamcts.gym

    wrong, true = uamcts.gym.Simulator(make_lake(MAP)), uamcts.gym.Simulator(make_lake(REALLY))
    return Setting(wrong, [true], [GymWorld(make_lake(REALLY), wrong)])
