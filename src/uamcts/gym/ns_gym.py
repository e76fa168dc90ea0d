"""`NsGymAgent`: `uamcts.Agent` with the interface of NS-Gym's agents, for its non-stationary environments."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from uamcts.gym.simulator import Simulator

if TYPE_CHECKING:
    from uamcts.agent.agent import Agent


SHORT_TRIAL = 30
"""Steps on which the environment is tried after a change: before the change it was tried on more."""


class NsGymAgent:
    """An agent for NS-Gym's environments: plans in its planning environment and learns from what really happens.

    NS-Gym shows an agent an observation and a planning environment at every step. The observation of the next step
    tells what came of the last action, so calls of `act` are all that the agent needs. With `finish`, it also learns
    how an episode ended. Where NS-Gym notifies the agent of the amount of a change, its planning environment is up to
    date: the agent takes it over, and forgets what it saw of the world before the change. At the other levels of
    notification the agent finds the change by itself. NS-Gym begins every episode with the world as it was at first,
    and so does the agent; only if the environment has `persistent_params` does it keep what it has learned.

    Args:
        **settings: The arguments of `uamcts.Agent`, except for the model.

    Example:
        ```python
        env = ns_gym.wrappers.NSFrozenLakeWrapper(gymnasium.make("FrozenLake-v1"), {"P": update})
        agent = uamcts.gym.NsGymAgent(iterations=100)
        observation, _ = env.reset(seed=0)
        reward, over = None, False
        while not over:
            action = agent.act(observation, env.get_planning_env(), reward=reward)
            observation, reward, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
        agent.finish(observation, reward, terminated)
        ```
    """

    def __init__(self, **settings: Any):
        self.settings = settings
        self.agent: Agent | None = None
        """The agent inside, after the first `act`: its `report()` says what was learned."""
        self._last: tuple[Any, int] | None = None

    def act(
        self, obs: Mapping[str, Any], planning_env: gymnasium.Env, reward: object = None, done: bool | None = None
    ) -> Any:
        """Chooses an action.

        Args:
            obs: NS-Gym's observation: a dictionary with `state` and `relative_time`, and with `env_change` and
                `delta_change` where the agent is notified.
            planning_env: What `env.get_planning_env()` returned.
            reward: What the last action paid, if known.
            done: Whether the last action ended the episode. NS-Gym's competition passes it along; it is not needed.

        Returns:
            The action to take.

        Raises:
            ValueError: `obs` is not an observation of NS-Gym.
        """
        del done
        state, first = _state_of(obs), _is_first(obs)
        restored = first and self.agent is not None and not getattr(planning_env, "persistent_params", False)
        if self.agent is None:
            from uamcts.agent.agent import Agent  # JAX is loaded only now

            self.agent = Agent(bare_environment(planning_env), **self.settings)
        elif self._last is not None and not first:
            self._learn(state, reward, False)
        if restored or _tells_how(obs):
            simulator = Simulator(bare_environment(planning_env), trial_steps=SHORT_TRIAL)
            self.agent.replace(simulator, keep=False)
        action = self.agent.act(state)
        self._last = (state, action)
        return action

    def get_action(
        self, obs: Mapping[str, Any], planning_env: gymnasium.Env, reward: object = None, done: bool | None = None
    ) -> Any:
        """The name under which NS-Gym's competition calls `act`."""
        return self.act(obs, planning_env, reward, done)

    def finish(self, obs: Mapping[str, Any], reward: object, terminal: bool) -> None:
        """Learns from the last step of an episode, which no call of `act` follows.

        Args:
            obs: The last observation.
            reward: What the last action paid.
            terminal: Whether the episode ended, and was not cut at a time limit.
        """
        if self.agent is not None and self._last is not None:
            self._learn(_state_of(obs), reward, terminal)
        self._last = None

    def _learn(self, state: object, reward: object, terminal: bool) -> None:
        if self.agent is not None and self._last is not None:
            before, action = self._last
            self.agent.observe(before, action, state, reward=_number(reward), terminal=terminal)


class TableEnv(gymnasium.Env):
    """An environment that steps through a transition table: NS-Gym's Bridge, which has a table but does not use it.

    Args:
        env: An environment with a `transition_matrix`, `P[state][action]` as in Gymnasium's toy text, and a state `s`.
    """

    def __init__(self, env: gymnasium.Env):
        inner: Any = env.unwrapped
        self.P, self.s, self._start = inner.transition_matrix, int(inner.s), int(inner.s)
        self.nrow, self.ncol = inner.nrow, inner.ncol
        self.observation_space, self.action_space = inner.observation_space, inner.action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.s = self._start
        return self.s, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        outcomes = self.P[self.s][action]
        chances = [one[0] for one in outcomes]
        _, self.s, reward, over = outcomes[int(self.np_random.choice(len(outcomes), p=chances))]
        return self.s, float(reward), bool(over), False, {}


def bare_environment(planning_env: gymnasium.Env) -> gymnasium.Env:
    """NS-Gym's planning environment without NS-Gym: the environment inside, with the parameters that it has now."""
    inner: Any = planning_env.unwrapped
    if hasattr(inner, "transition_matrix") and hasattr(inner, "s"):
        return TableEnv(inner)
    bare = copy.copy(inner)
    bare.__dict__.pop("get_planning_env", None)  # leads back to the wrapper, which must not be copied along
    return bare


def _state_of(obs: object) -> Any:
    if not isinstance(obs, Mapping) or "state" not in obs:
        raise ValueError(f"obs is {obs!r}; give an observation of NS-Gym, a dictionary with a state")
    state = obs["state"]
    return int(state) if isinstance(state, (int, np.integer)) else state


def _tells_how(obs: Mapping[str, Any]) -> bool:
    """Whether NS-Gym says by how much the world has changed."""
    changes = obs.get("delta_change") or {}
    return any(float(change) != 0.0 for change in changes.values())


def _is_first(obs: Mapping[str, Any]) -> bool:
    return float(obs.get("relative_time", 1)) == 0


def _number(reward: object) -> float | None:
    """The reward as a number; None for what the competition passes before the first step."""
    value = getattr(reward, "reward", reward)
    return float(value) if isinstance(value, (int, float, np.number)) else None
