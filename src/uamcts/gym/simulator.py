"""`Simulator`: a Gymnasium environment that one can plan with."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from uamcts import arguments
from uamcts.agent.identity import Identity
from uamcts.agent.simulator_checks import refuse_batch
from uamcts.arguments import at_least_zero, short_repr, switch, whole
from uamcts.corrections.elements import parse_element
from uamcts.corrections.parameters import find_code_parameters, find_parameters
from uamcts.errors import SimulatorError
from uamcts.gym import classic, toy_text
from uamcts.gym.actions import ContinuousActions, action_space, env_actions, name_actions
from uamcts.gym.known_envs import Number
from uamcts.gym.pictures import find_picture
from uamcts.gym.probe import Trial, first_reset, microseconds, preserve_global_rng
from uamcts.gym.state_access import STATE_HOOKS, current_observation
from uamcts.gym.stepping import StepFinder
from uamcts.gym.wrappers import peel


class Simulator:
    """A Gymnasium environment as a simulator without side effects.

    A deterministic environment has `step(state, action) -> (state, reward, terminal)`. A random one with a table of its
    transitions, such as FrozenLake, has `outcomes(state, action)`, a list of `(probability, (state, reward,
    terminal))`. Any other random one has `sample(state, action, rng)`, which restores the state and seeds the
    environment's generators from `rng`: planning neither sees nor advances those of your environment.

    It plans in a private copy of the environment as it is now; yours is not touched. How the state is read and
    restored depends on the kind of environment and is verified on random episodes, bit for bit. Time limits are not
    part of the state and are left out; wrappers that change rewards or actions are kept.

    Args:
        env: The environment to plan in.
        actions: The actions to choose from, where the action space is continuous or large, for example
            `grid(env.action_space, 5)`. By default a Box has continuous actions (`num_actions` is None).
        action_names: Names of the actions for reports. By default the environment's own, or numbers.
        get: `get(env) -> state`, a function of the bare environment that reads its state, for simulators outside
            Python. The state must not change later. An environment may offer it as a method `uamcts_state()`.
        set: `set(env, state)`, which restores a state that `get` returned; as a method, `uamcts_restore(state)`.
        attributes: The names of the attributes that make up the state.
        features: A function of the bare environment that returns its state as a vector, in which simulator and
            reality are compared.
        inputs: The same for the vector that U is learned from.
        determinise: `"likeliest"` plans with the likeliest outcome where a table of transitions has several.
        truncation_ends: Whether the environment's own flag `truncated` ends an episode in the model as well.
        trial_steps: The most random steps on which it is tried.
        trial_seconds: The most seconds that the trial may take, after the first twenty steps.

    Raises:
        SimulatorError: The environment does not come back to a saved state, cannot be copied, or needs `actions`. The
            message says what to do.

    Example:
        ```python
        env = gymnasium.make("CartPole-v1")
        env.reset(seed=0)
        simulator = uamcts.gym.Simulator(env)
        state = simulator.accept(env)  # the state of the environment that you act in
        config = uamcts.SearchConfig(iterations=50)
        action = uamcts.reference.search(0, state, simulator, None, config).action
        ```
    """

    step: Callable[[Any, int], tuple[Any, float, bool]]
    """`step(state, action)`: the next state, the reward and whether the episode is over; `state` does not change."""
    outcomes: Callable[[Any, int], list[tuple[float, tuple[Any, float, bool]]]]
    """Instead of `step`, if the environment is random and has a table."""
    sample: Callable[[Any, int, np.random.Generator], tuple[Any, float, bool]]
    """Instead of `step`, if the environment is random and has no table."""
    kind: str
    """Which of the three it has."""
    how: str
    """How the state is read and restored."""
    trial: Trial
    """The random episodes on which it was tried."""

    def __init__(
        self,
        env: gymnasium.Env,
        *,
        actions: Sequence[Any] | None = None,
        action_names: Sequence[str] | None = None,
        get: Callable[[Any], Any] | None = None,
        set: Callable[[Any, Any], None] | None = None,
        attributes: Sequence[str] | None = None,
        features: Callable[[Any], Any] | None = None,
        inputs: Callable[[Any], Any] | None = None,
        determinise: str | None = None,
        truncation_ends: bool = False,
        trial_steps: int = 300,
        trial_seconds: float = 0.3,
    ):
        _check_arguments(env, get, set, attributes, features, inputs, determinise)
        switch("truncation_ends", truncation_ends)
        whole("trial_steps", trial_steps)
        at_least_zero("trial_seconds", trial_seconds)
        tried = env_actions(action_space(env), actions)
        self.actions: Any = tried
        """The environment's own actions, in the order of 0 .. num_actions - 1; None if they are continuous."""
        self.num_actions: int | None = len(tried)
        """How many actions there are; None if they are continuous, and `step` takes actions of the environment."""
        if isinstance(tried, ContinuousActions):
            self.actions, self.num_actions = None, None
            self.action_space = (tried.space.low, tried.space.high)
        hooked = get is not None or all(hasattr(env.unwrapped, hook) for hook in STATE_HOOKS)
        self._layers = peel(env, may_take_over=hooked)
        self._env, self._base = self._layers.env, self._layers.env.unwrapped
        self.name = env.spec.id if env.spec is not None else type(self._base).__name__
        self.action_names = name_actions(self._layers, self.actions, action_names)
        self.takes_over = self._layers.taken_over
        """Whether it plans in the very environment that was given, because that could not be copied."""
        self._own_features, self._own_inputs = features, inputs
        start = get(self._base) if self.takes_over and get is not None else None
        finder = StepFinder(self._layers, tried, self.name, (trial_steps, trial_seconds), truncation_ends)
        with preserve_global_rng():
            first_reset(self._env)
            found = finder.find(get, set, attributes, determinise)
        self._access, self._vectors = found.access, found.vectors
        self.kind, self.trial, self.how = found.kind, found.trial, found.access.how
        setattr(self, found.kind, found.call)
        self._opaque = self._is_opaque()
        self.feature_names = () if features or found.vectors else classic.name_numbers(self._base, self._access)
        self.seconds_per_step = found.seconds_per_step()
        self._tuned, self._changing = finder.tuned, found.trial.changing
        if start is not None and set is not None:
            set(self._base, start)

    @property
    def parameters(self) -> dict[str, float]:
        """The environment's numbers that no step changes, and their values; a table's `success_rate`."""
        if self._vectors is not None:
            return toy_text.parameters(self._base) if self.kind == "outcomes" else {}
        found = find_parameters(self._base) | find_code_parameters(self._base)
        return {name: value for name, value in found.items() if parse_element(name)[0] not in self._changing}

    def with_parameters(self, **values: float) -> Simulator:
        """This simulator with other values of `parameters`; your environment and this simulator do not change."""
        twin = copy.copy(self)
        setattr(twin, self.kind, self._tuned(self.kind, getattr(self, self.kind), values))
        return twin

    def with_features(self, state: Any, vector: np.ndarray) -> Any:
        """A state like `state` with other features; None where features are not simply the numbers of a state."""
        plain = self._own_features is None and self._vectors is None
        return self._access.with_numbers(state, np.asarray(vector, float)) if plain else None

    def read(self, env: gymnasium.Env) -> Any:
        """Reads the state of another environment of this kind, for example the one that you act in.

        Args:
            env: The environment.

        Returns:
            Its state.

        Raises:
            TypeError: `env` is of another kind, or its state cannot be read.
        """
        theirs = env.unwrapped
        kinds = (type(theirs), type(self._base))
        # A table's or a classic environment's state means the same in any environment that has one.
        if not self._access.whole and not (issubclass(kinds[0], kinds[1]) or issubclass(kinds[1], kinds[0])):
            raise TypeError(
                f"env is a {kinds[0].__name__} and the simulator a {kinds[1].__name__}: give one of its kind"
            )
        try:
            state = self._access.save(env)
        except (AttributeError, TypeError) as problem:
            raise TypeError(f"env is {env}; its state cannot be read: {problem} (was env.reset() called?)") from problem
        return state

    def accept(self, thing: Any) -> Any:
        """Turns what you have in hand into a state.

        Args:
            thing: An environment, an observation (where observations determine the state), or a state.

        Returns:
            The state.

        Raises:
            TypeError: `thing` does not determine a state.
        """
        if isinstance(thing, gymnasium.Env):
            return self.read(thing)
        if isinstance(thing, tuple) and len(thing) == 2 and isinstance(thing[1], dict):
            raise TypeError("state is a pair (observation, info), as env.reset() returns; give the environment, env")
        seen = None if self._layers.observed else self._access.from_observation(thing)
        if self._access.is_state(thing):
            return int(thing) if isinstance(self._access, Number) else thing
        if seen is not None:
            return seen
        raise TypeError(
            f"{short_repr(thing)} is not a state of {self.name}, and its observations do not determine the state; give "
            "uamcts.Agent a simulator = uamcts.gym.Simulator(env), and act and observe state = simulator.read(env)"
        )

    def reset(self, seed: int = 0) -> Any:
        """A start state, drawn with this seed."""
        self._access.restore(self._env, self.trial.steps[0].before)  # the state taken last may still share its parts
        observation, _ = self._env.reset(seed=seed)
        return self._access.save(self._env, observation)

    def identity(self, state: object) -> Any:
        """What tells a state from others: all that can change in it, or its observation if it cannot be inspected."""
        return self._flat_observation(state) if self._opaque else self._access.identity(self._env, state)

    def _is_opaque(self) -> bool:
        try:
            Identity()(self._access.identity(self._env, self.trial.steps[0].before))
        except TypeError:
            return True
        return False

    def features(self, state: Any) -> np.ndarray:
        """The state as a vector: decoded for toy text, else the environment's numbers or its flattened observation."""
        if self._own_features is not None:
            return self._evaluate(self._own_features, state)
        if self._vectors is not None:
            return self._vectors[0][state]
        numbers = self._access.numbers(self._env, state)
        return self._flat_observation(state) if numbers is None else numbers

    def inputs(self, state: Any) -> np.ndarray:
        """The vector that U is learned from: the features, but one-hot where a number is a name."""
        if self._own_inputs is not None:
            return self._evaluate(self._own_inputs, state)
        if self._vectors is not None and self._own_features is None:
            return self._vectors[1][state]
        vector = self.features(state)
        return vector / 255.0 if hasattr(self._base, "ale") and self._own_features is None else vector

    @property
    def every_state(self) -> tuple[int, ...]:
        """All states of an environment with a table of transitions; empty for others."""
        return () if self._vectors is None else tuple(self._vectors[0])

    @functools.cached_property
    def render(self) -> Callable[[Any], Any] | None:
        """Draws a state for `Agent.inspect`: as its `render_mode` does, or the board of a toy text; or None."""
        return None if self.takes_over else find_picture(self._env, self._access, self.trial.steps[0].before)

    def observation(self, state: object) -> np.ndarray:
        """The flattened observation of a state; its features where the environment has no method that observes."""
        self._access.restore(self._env, state)
        observation = current_observation(self._base)
        if observation is None:
            return self.features(state)
        return np.asarray(spaces.flatten(self._base.observation_space, observation), float).ravel()

    def _evaluate(self, function: Callable[[Any], Any], state: object) -> np.ndarray:
        self._access.restore(self._env, state)
        return np.array(function(self._base), float).ravel()

    def _flat_observation(self, state: object) -> np.ndarray:
        observation = getattr(state, "observation", None)
        if observation is None:
            self._access.restore(self._env, state)
            observation = current_observation(self._base)
        if observation is None:
            raise SimulatorError(
                f"{self.name}: its states are not made of numbers; give uamcts.gym.Simulator(env, features=...), a "
                "function of the bare environment that returns a vector, or give the environment a method _get_obs()"
            )
        return np.asarray(spaces.flatten(self._base.observation_space, observation), float).ravel()

    def __repr__(self) -> str:
        cost = microseconds(self.seconds_per_step)
        actions = "continuous" if self.num_actions is None else self.num_actions
        return f"Simulator({self.name}, {actions} actions, {cost} a step; state: {self.how})"


def _check_arguments(
    env: object, get: object, put: object, attributes: object, features: object, inputs: object, determinise: str | None
) -> None:
    refuse_batch("env", env)
    if not isinstance(env, gymnasium.Env):
        raise TypeError(f"env is {short_repr(env)}; give a gymnasium.Env")
    if (get is None) != (put is None):
        raise ValueError("get and set belong together; give both or neither")
    if determinise not in (None, "likeliest"):
        raise ValueError(f"determinise is {determinise!r}; it must be None or 'likeliest'")
    for name, given in (("get", get), ("set", put), ("features", features), ("inputs", inputs)):
        arguments.function(name, given, "of the bare environment")
    listed = attributes if isinstance(attributes, Sequence) and not isinstance(attributes, (str, bytes)) else ()
    if attributes is not None and not (listed and all(isinstance(name, str) for name in listed)):
        raise TypeError(
            f"attributes is {short_repr(attributes)}; give a list of names, for example attributes=['state']"
        )
