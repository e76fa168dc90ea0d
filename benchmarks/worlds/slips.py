"""Actions that do something else than a deterministic simulator believes, by chance."""

from __future__ import annotations

from typing import Any

from worlds_apart import GymWorld

from worlds.grids import BUDGET, START, Grid
from worlds.zoo import Setting, setting, world


def gym_slips(name: str) -> Setting:
    """A world of Gymnasium that is slippery, and a simulator that is not."""
    import gymnasium

    import uamcts.gym

    real = gymnasium.make(name, is_slippery=True)
    wrong = uamcts.gym.Simulator(gymnasium.make(name, is_slippery=False))
    return Setting(wrong, [uamcts.gym.Simulator(gymnasium.make(name, is_slippery=True))], [GymWorld(real, wrong)])


@world("gym_lake_certain", "Gymnasium's slippery FrozenLake, believed not to be slippery", episodes=30, longest=100)
def gym_lake_certain() -> Setting:
    return gym_slips("FrozenLake-v1")


@world("gym_cliff_certain", "Gymnasium's slippery CliffWalking, believed not to be slippery", episodes=9, longest=100)
def gym_cliff_certain() -> Setting:
    return gym_slips("CliffWalking-v1")


class Worn(Grid):
    """Half of the steps to the right go up or down instead, as in the other directions none do."""

    def outcomes(self, state: Any, action: int) -> Any:
        if action != 1:
            return [(1.0, self.step(state, action))]
        return [(0.5, self.step(state, 1)), (0.25, self.step(state, 0)), (0.25, self.step(state, 2))]


@world("worn_wheel", "a robot whose steps to the right go astray half of the time", **BUDGET)
def worn_wheel() -> Setting:
    traps = {(1, 3), (3, 2)}
    return setting(Grid(traps=traps), Worn(traps=traps), START)
