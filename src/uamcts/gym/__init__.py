"""Gymnasium both ways: the worlds of this package as environments, and existing environments as simulators.

`import uamcts.gym` registers the worlds: `gymnasium.make("uamcts/Breakout-v0")`. `Simulator(env)` turns an environment
into a simulator, `check_simulator(env)` checks whether that works, and `from_gymnax` makes gymnax's environments
available to the compiled search.
"""

try:
    import gymnasium  # noqa: F401
except ModuleNotFoundError as missing:
    if missing.name != "gymnasium":
        raise
    problem = "uamcts.gym needs Gymnasium: pip install 'gymnasium>=1.3', or in a checkout pip install '.[gym]'"
    raise ModuleNotFoundError(problem, name="gymnasium") from None

from uamcts.errors import SimulatorError
from uamcts.gym.actions import grid
from uamcts.gym.check import Report, check_simulator
from uamcts.gym.jax_path import from_gymnax
from uamcts.gym.ns_gym import NsGymAgent
from uamcts.gym.simulator import Simulator
from uamcts.gym.worlds import WorldEnv
from uamcts.runtime.gymnasium_environments import ENVIRONMENTS, register_environments

__all__ = [
    "ENVIRONMENTS",
    "NsGymAgent",
    "Report",
    "Simulator",
    "SimulatorError",
    "WorldEnv",
    "check_simulator",
    "from_gymnax",
    "grid",
]

register_environments()
