"""The worlds of this package as Gymnasium environments: their names, and how Gymnasium gets to know them.

This module imports neither JAX nor `uamcts.gym`, so that registering costs nothing.
"""

from __future__ import annotations

ENVIRONMENTS = {
    "SpaceInvaders-v0": ("space_invaders", 300),
    "Freeway-v0": ("freeway", None),
    "Breakout-v0": ("breakout", None),
    "TwoWay-v0": ("two_way", 50),
    "IcyTwoWay-v0": ("two_way_icy", 50),
}
"""Gymnasium's name, behind `uamcts/`; the domain's name and its time limit in real steps.

The limits are the domains' own, written here again so that registering does not load JAX; a test compares them.
"""


def register_environments() -> None:
    """Registers the environments with Gymnasium; those that are registered already stay as they are."""
    from gymnasium.envs.registration import register, registry

    for name, (domain, time_limit) in ENVIRONMENTS.items():
        if f"uamcts/{name}" not in registry:
            register(
                f"uamcts/{name}",
                entry_point="uamcts.gym:WorldEnv",
                max_episode_steps=time_limit,
                kwargs={"domain": domain},
            )
