"""How to read and restore the state of known families of environments, in the cheapest way that is exact."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.envs.classic_control.acrobot import AcrobotEnv
from gymnasium.envs.classic_control.continuous_mountain_car import Continuous_MountainCarEnv
from gymnasium.envs.classic_control.pendulum import PendulumEnv
from gymnasium.envs.toy_text.taxi import TaxiEnv

from uamcts.gym.classic import CLASSIC
from uamcts.gym.deep_copy import DeepCopy
from uamcts.gym.state_access import STATE_HOOKS, Attributes, Get, Hooks, Put, Saved, StateAccess

if TYPE_CHECKING:
    from uamcts.types import Environment


class Number(StateAccess):
    """Toy text: the state is the number `s`."""

    how = "the state's number, stepped through the table of transitions"
    whole = True

    def __init__(self, env: Environment):
        self.states = frozenset(int(state) for state in env.unwrapped.P)

    def save(self, env: Environment, observation: object = None) -> int:
        return int(env.unwrapped.s)

    def restore(self, env: Environment, state: int) -> None:
        env.unwrapped.s = state

    def is_state(self, thing: object) -> bool:
        return isinstance(thing, (int, np.integer)) and not isinstance(thing, bool) and int(thing) in self.states

    def from_observation(self, observation: Any) -> int | None:
        return int(observation) if self.is_state(observation) else None


class Classic(StateAccess):
    """Classic control: the few numbers in `state`, as a tuple."""

    whole = True

    def __init__(self, env: Environment, plain: bool):
        self.kind = env.unwrapped
        self.how = "the numbers in its attribute `state`" + (", stepped in plain Python" if plain else "")
        self.length = len(env.unwrapped.state)

    def save(self, env: Environment, observation: object = None) -> tuple:
        return tuple(map(float, env.unwrapped.state))

    def restore(self, env: Environment, state: tuple) -> None:
        base = env.unwrapped
        base.state = np.array(state)
        base.steps_beyond_terminated = None  # only the end sets it, and nobody plans beyond

    def is_state(self, thing: object) -> bool:
        return isinstance(thing, tuple) and len(thing) == self.length

    def from_observation(self, observation: object) -> tuple | None:
        if not isinstance(observation, (np.ndarray, list, tuple)):
            return None
        seen = [float(number) for number in np.ravel(np.asarray(observation))]
        if isinstance(self.kind, AcrobotEnv) and len(seen) == 6:
            return (math.atan2(seen[1], seen[0]), math.atan2(seen[3], seen[2]), *seen[4:])
        if isinstance(self.kind, PendulumEnv) and len(seen) == 3:
            return math.atan2(seen[1], seen[0]), seen[2]
        return tuple(seen) if len(seen) == self.length else None

    def numbers(self, env: Environment, state: tuple) -> np.ndarray:
        if isinstance(self.kind, PendulumEnv):  # its angle counts the turns, of which no observation tells
            return np.array([math.remainder(state[0], 2 * math.pi), *state[1:]], float)
        return np.array(state, float)


class ClassicArray(Classic):
    """The same for an environment whose arithmetic depends on the dtype of its state, which is preserved."""

    whole = False

    def save(self, env: Environment, observation: object = None) -> Any:
        state = np.array(env.unwrapped.state)
        state.flags.writeable = False
        return state

    def restore(self, env: Environment, state: Any) -> None:
        env.unwrapped.state = state.copy()
        env.unwrapped.steps_beyond_terminated = None

    def is_state(self, thing: object) -> bool:
        return isinstance(thing, np.ndarray) and thing.shape == (self.length,)

    def from_observation(self, observation: Any) -> Any:
        return observation.copy() if self.is_state(observation) else None


class Mujoco(StateAccess):
    """MuJoCo's state vector, plus derived quantities if a step reads them before it recomputes them."""

    DERIVED = ("xpos", "xquat", "xipos", "cvel", "cinert", "subtree_com", "cfrc_ext", "qfrc_actuator", "site_xpos")

    def __init__(self, env: Environment, derived: bool):
        import mujoco

        model = env.unwrapped.model
        self.what = mujoco.mjtState.mjSTATE_INTEGRATION
        self.size = mujoco.mj_stateSize(model, self.what)
        self.length = model.nq + model.nv + model.na
        self.get, self.set = mujoco.mj_getState, mujoco.mj_setState
        self.derived = self.DERIVED if derived else ()
        self.how = "MuJoCo's state vector" + (" and the positions and forces computed from it" if derived else "")

    def save(self, env: Environment, observation: object = None) -> Saved:
        base, vector = env.unwrapped, np.empty(self.size)
        self.get(base.model, base.data, vector, self.what)
        return Saved((vector, *(getattr(base.data, name).copy() for name in self.derived)), observation)

    def restore(self, env: Environment, state: Saved) -> None:
        base = env.unwrapped
        self.set(base.model, base.data, state.data[0], self.what)
        for name, value in zip(self.derived, state.data[1:], strict=True):
            getattr(base.data, name)[:] = value

    def numbers(self, env: Environment, state: Saved) -> np.ndarray:
        return state.data[0][1 : 1 + self.length]  # behind the time: positions, speeds, activations

    def identity(self, env: Environment, state: Saved) -> Any:
        return (state.data[0][1:], *state.data[1:])  # all but the time: the solver starts from its last solution


class MujocoData(StateAccess):
    """All of MuJoCo's data, copied."""

    how = "a copy of all of MuJoCo's data"

    def save(self, env: Environment, observation: object = None) -> Saved:
        base = env.unwrapped
        return Saved(copy.copy(base.data), observation)

    def restore(self, env: Environment, state: Saved) -> None:
        import mujoco

        mujoco.mj_copyData(env.unwrapped.data, env.unwrapped.model, state.data)

    def numbers(self, env: Environment, state: Saved) -> np.ndarray:
        return np.concatenate([state.data.qpos, state.data.qvel, state.data.act])


class Atari(StateAccess):
    """The emulator's clone of its state. As a vector, the state is the 128 bytes of RAM."""

    how = "the emulator's clone of its state"

    def save(self, env: Environment, observation: object = None) -> Saved:
        return Saved((env.unwrapped.ale.cloneState(), env.unwrapped.ale.getRAM()), observation)

    def restore(self, env: Environment, state: Saved) -> None:
        env.unwrapped.ale.restoreState(state.data[0])

    def numbers(self, env: Environment, state: Saved) -> np.ndarray:
        return state.data[1].astype(float)


def candidates(
    env: Environment,
    get: Get | None,
    put: Put | None,
    attributes: Sequence[str] | None,
    plain: bool,
) -> list[StateAccess]:
    """The kinds of state access to try, best first."""
    base = env.unwrapped
    if get is not None and put is not None:
        return [Hooks(get, put, "the functions get and set that were given")]
    if attributes is not None:
        return [Attributes(env, attributes)]
    if all(hasattr(base, hook) for hook in STATE_HOOKS):
        return [Hooks(lambda e: e.uamcts_state(), lambda e, s: e.uamcts_restore(s), "its own uamcts_state")]
    if hasattr(base, "ale"):
        return [Atari()]
    if isinstance(base, TaxiEnv):  # with a fickle passenger; else it has a table
        return [Attributes(env, ("s", "fickle_step")), DeepCopy()]
    if type(getattr(base, "data", None)).__name__ == "MjData":
        return [Mujoco(env, derived=False), Mujoco(env, derived=True), MujocoData()]
    if isinstance(base, Continuous_MountainCarEnv):
        return [ClassicArray(env, False), DeepCopy()]
    if isinstance(base, CLASSIC):
        return [*([Classic(env, True)] if plain else []), Classic(env, False), DeepCopy()]
    return [DeepCopy()]
