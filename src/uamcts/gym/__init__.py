"""Gymnasium both ways: the worlds of this package as environments, and other people's environments to plan with.

`import uamcts.gym` registers the worlds: `gymnasium.make("uamcts/Breakout-v0")`. `Simulator(env)` turns an environment
into a simulator, `check_simulator(env)` says whether it can be one, and `from_gymnax` brings gymnax's environments to
the compiled search.
"""

from uamcts.errors import SimulatorError
from uamcts.gym.actions import grid
from uamcts.gym.check import Report, check_simulator
from uamcts.gym.jax_path import from_gymnax
from uamcts.gym.simulator import Simulator
from uamcts.gym.worlds import WorldEnv
from uamcts.runtime.gymnasium_environments import ENVIRONMENTS, register_environments

__all__ = [
    "ENVIRONMENTS",
    "Report",
    "Simulator",
    "SimulatorError",
    "WorldEnv",
    "check_simulator",
    "from_gymnax",
    "grid",
]

register_environments()
