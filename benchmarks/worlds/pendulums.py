"""Pendulums to swing up: in plain Python and of Gymnasium."""

from __future__ import annotations

import math
import random
from typing import Any

from heavy_pendulum import Pendulum, wrap
from worlds_apart import GymWorld

from worlds.zoo import Setting, setting, world

BUDGET = {"iterations": 60, "rollouts": 1, "depth": 10, "gamma": 0.98, "episodes": 6, "longest": 30}


def start(rng: random.Random) -> Any:
    return wrap(math.pi + rng.uniform(-0.2, 0.2)), rng.uniform(-0.2, 0.2)


@world("pendulum_mass", "a pendulum of 1.4 times the mass", **BUDGET)
def pendulum_mass() -> Setting:
    return setting(Pendulum(), Pendulum(m=1.4), start)


@world("pendulum_mass_length", "a pendulum of 0.8 times the mass and 1.4 times the length", **BUDGET)
def pendulum_mass_length() -> Setting:
    return setting(Pendulum(), Pendulum(m=0.8, l=1.4), start)


@world(
    "gym_pendulum", "Gymnasium's Pendulum of 1.4 times the mass, five torques", **{**BUDGET, "depth": 20, "longest": 80}
)
def gym_pendulum() -> Setting:
    import gymnasium

    import uamcts.gym

    believed, real = gymnasium.make("Pendulum-v1"), gymnasium.make("Pendulum-v1")
    real.unwrapped.m = 1.4  # type: ignore[attr-defined]
    actions = uamcts.gym.grid(real.action_space, 5)
    wrong, true = (uamcts.gym.Simulator(env, actions=actions) for env in (believed, real))
    return Setting(wrong, [true], [GymWorld(real, wrong)])
