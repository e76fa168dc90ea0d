"""`Simulator`: a Gymnasium environment that one can plan with."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from uamcts import arguments
from uamcts.agent.identity import Identity
from uamcts.arguments import real, shown, switch, whole
from uamcts.gym import classic, toy_text
from uamcts.gym.actions import env_actions
from uamcts.gym.known_envs import Number, candidates
from uamcts.gym.probe import Step, Trial, Unfit, other_luck, play, rng_state, same, set_luck
from uamcts.gym.state_access import STATE_HOOKS, DeepCopy, Layered, Way, observed
from uamcts.gym.wrappers import peel


class Simulator:
    """A Gymnasium environment as a simulator: `step(state, action) -> (state, reward, terminal)`, and nothing changes.

        simulator = uamcts.gym.Simulator(gymnasium.make("CartPole-v1"))
        state = simulator.accept(env)                   # of the environment that you act in, or an observation
        uamcts.reference.search(0, state, simulator, None, config)

    It plans in a copy of the environment as it is now; the one that is given is not touched. How the state is read and
    restored is chosen by the kind of environment and tried out on random episodes, bit for bit (`how`). Time limits
    are no part of the state and are left out; wrappers that change rewards or actions are kept.

    `actions`: what to choose from where the action space is continuous, for example `grid(env.action_space, 5)`.
    `get` and `set`: functions `get(env) -> state` and `set(env, state)` of the bare environment, for simulators outside
    Python; the same as its methods `uamcts_state()` and `uamcts_restore(state)`. A state must not change later.
    `attributes`: the names of the attributes that make up the state. `features`, `inputs`: functions of the bare
    environment that give the state as a vector. `determinise="likeliest"`: of a table's several outcomes the likeliest.
    `truncation_ends`: the environment's own flag `truncated` ends an episode in the model as well.
    """

    def __init__(
        self,
        env: gymnasium.Env,
        *,
        actions: Sequence[Any] | None = None,
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
        real("trial_seconds", trial_seconds, "it must be a finite number of at least 0", lambda s: s >= 0)
        self.actions = env_actions(env.action_space, actions)
        """What the environment calls the actions 0 .. num_actions - 1."""
        self.num_actions = len(self.actions)
        hooked = get is not None or all(hasattr(env.unwrapped, hook) for hook in STATE_HOOKS)
        self._layers = peel(env, may_take_over=hooked)
        self._env = self._layers.env
        self._base = self._env.unwrapped
        self.name = env.spec.id if env.spec is not None else type(self._base).__name__
        self.action_names = self._action_names()
        self.takes_over = self._layers.taken_over
        """Whether it plans in the very environment that was given, because that could not be copied."""
        self._own_features, self._own_inputs = features, inputs
        self._ends, self._size = truncation_ends, (trial_steps, trial_seconds)
        self._luck: list | None = None
        self._seen: Any = None
        self._vectors: tuple[dict, dict] | None = None
        start = get(self._base) if self.takes_over and get is not None else None
        self._env.reset(seed=0)
        self._choose(get, set, attributes, determinise)
        self._opaque = self._is_opaque()
        self.seconds_per_step = self._timed()
        if start is not None and set is not None:
            set(self._base, start)

    step: Callable[[Any, int], tuple[Any, float, bool]]
    """`step(state, action)`: the state after, the reward and whether the episode is over; `state` stays as it is."""
    how: str
    """How the state is read and restored."""
    trial: Trial
    """The random episodes on which it was tried."""

    # The state of something

    def read(self, env: gymnasium.Env) -> Any:
        """The state that another environment of this kind is in, for example the one that you act in."""
        theirs = env.unwrapped
        kinds = (type(theirs), type(self._base))
        # A table's or a classic environment's state means the same in any environment that has one.
        if not self._way.whole and not (issubclass(kinds[0], kinds[1]) or issubclass(kinds[1], kinds[0])):
            raise TypeError(
                f"env is a {kinds[0].__name__} and the simulator a {kinds[1].__name__}: give one of its kind"
            )
        try:
            state = self._way.save(env)
        except (AttributeError, TypeError) as problem:
            raise TypeError(f"env is {env}; its state cannot be read: {problem} (was env.reset() called?)") from problem
        return state

    def accept(self, thing: Any) -> Any:
        """A state, from what is at hand: an environment, an observation where that is the state, or a state."""
        if isinstance(thing, gymnasium.Env):
            return self.read(thing)
        seen = None if self._layers.observed else self._way.from_observation(thing)
        if self._way.is_state(thing):
            return int(thing) if isinstance(self._way, Number) else thing
        if seen is not None:
            return seen
        raise TypeError(
            f"{thing!r} is no state of {self.name}, and its observations do not say the state; "
            "give the environment itself: simulator.accept(env)"
        )

    def reset(self, seed: int = 0) -> Any:
        """A start state."""
        self._way.restore(self._env, self.trial.steps[0].before)  # the state taken last may still share its parts
        observation, _ = self._env.reset(seed=seed)
        return self._way.save(self._env, observation)

    def identity(self, state: Any) -> Any:
        """What tells a state from others: all that can change in it; what it shows where nobody can look inside."""
        return self._flattened(state) if self._opaque else self._way.identity(self._env, state)

    def _is_opaque(self) -> bool:
        try:
            Identity()(self._way.identity(self._env, self.trial.steps[0].before))
        except TypeError:
            return True
        return False

    # The state as numbers

    def features(self, state: Any) -> np.ndarray:
        """The state as a vector: decoded for toy text, else the environment's numbers or its flattened observation."""
        if self._own_features is not None:
            return self._asked(self._own_features, state)
        if self._vectors is not None:
            return self._vectors[0][state]
        numbers = self._way.numbers(self._env, state)
        return self._flattened(state) if numbers is None else numbers

    def inputs(self, state: Any) -> np.ndarray:
        """The same for learning from: one-hot where a number is a name."""
        if self._own_inputs is not None:
            return self._asked(self._own_inputs, state)
        if self._vectors is not None and self._own_features is None:
            return self._vectors[1][state]
        vector = self.features(state)
        return vector / 255.0 if hasattr(self._base, "ale") and self._own_features is None else vector

    def shown(self, state: Any) -> np.ndarray:
        """What the environment shows in a state, flat; its features where it has no method that says so."""
        self._way.restore(self._env, state)
        observation = observed(self._base)
        if observation is None:
            return self.features(state)
        return np.asarray(spaces.flatten(self._base.observation_space, observation), float).ravel()

    def _asked(self, function: Callable[[Any], Any], state: Any) -> np.ndarray:
        self._way.restore(self._env, state)
        return np.array(function(self._base), float).ravel()

    def _flattened(self, state: Any) -> np.ndarray:
        observation = getattr(state, "observation", None)
        if observation is None:
            self._way.restore(self._env, state)
            observation = observed(self._base)
        if observation is None:
            raise ValueError(
                f"a state of {self.name} has no numbers: give features=, a function of the environment that returns a "
                "vector, or an environment method _get_obs()"
            )
        return np.asarray(spaces.flatten(self._base.observation_space, observation), float).ravel()

    def __repr__(self) -> str:
        cost = microseconds(self.seconds_per_step)
        return f"Simulator({self.name}, {self.num_actions} actions, {cost} a step; state: {self.how})"

    # How it came to be

    def _action_names(self) -> tuple[str, ...]:
        plain = isinstance(self._env.action_space, spaces.Discrete) and not self._layers.actions
        names = getattr(self._base, "action_names", toy_text.ACTION_NAMES.get(type(self._base).__name__))
        for kind, known in classic.ACTION_NAMES.items():
            names = known if isinstance(self._base, kind) else names
        if hasattr(self._base, "get_action_meanings"):
            names = tuple(name.lower() for name in self._base.get_action_meanings())
        if plain and names is not None and len(names) == self.num_actions:
            return tuple(names)
        numbers = [
            action if isinstance(action, int) else np.round(np.asarray(action, float), 3) for action in self.actions
        ]
        return tuple(str(np.asarray(number).tolist()) for number in numbers)

    def _choose(self, get: Any, put: Any, attributes: Any, determinise: str | None) -> None:
        """Takes the first way that brings the environment back to where it was."""
        simple = get is None and attributes is None and not self._layers.kept
        if simple and toy_text.has_table(self._base) and self._take_table(determinise):
            return
        if determinise is not None:
            raise ValueError(f"determinise is {determinise!r}; {self.name} has no table of its outcomes")
        refuse_known_chance(self._base)
        actions = [self._inner(action) for action in self.actions] if simple else []
        plain = classic.plain_step(self._base, actions) if simple else None
        ways = candidates(self._env, get, put, attributes, plain is not None)
        problem = ""
        for way in ways:
            fast = plain if way.how.endswith("plain Python") else None
            problem = self._try(way, fast)
            if not problem:
                return
        tried = "; ".join(way.how for way in ways)
        raise Unfit(
            "restore",
            f"{self.name} does not come back to a saved state ({problem}; tried: {tried}); give get= and set=, to read "
            "the whole state and to put it back, or give it methods uamcts_state() and uamcts_restore(state)",
        )

    def _inner(self, action: Any) -> Any:
        """What the bare environment gets for an action, where all wrappers are functions."""
        for function in self._layers.actions:
            action = function(action)
        return action

    def _take_table(self, determinise: str | None) -> bool:
        """Steps through the table, if the environment does: every entry is compared, of large tables some."""
        inner = [self._inner(action) for action in self.actions]
        table = toy_text.rows(self._base, inner, determinise)
        if self._layers.rewards:
            table = {s: tuple((f, self._paid(r), end) for f, r, end in row) for s, row in table.items()}
        self._way: Way = Number(self._env)
        pairs = list(itertools.product(table, range(self.num_actions)))
        for state, action in pairs[:: len(pairs) // 5000 + 1] if determinise is None else ():
            self._base.s = state
            observation, reward, terminated, _, _ = self._env.step(self.actions[action])
            if (int(self._base.s), float(reward), bool(terminated)) != table[state][action] or not same(
                observation, self._base.s
            ):
                self._env.reset(seed=0)
                return False
        self.trial = self._play()
        self._vectors = toy_text.vectors(self._base)
        self.step, self.how = toy_text.step_through(table), self._way.how
        return True

    def _play(self, look: bool = False) -> Trial:
        return play(self._env, lambda: self._way.save(self._env), self.actions, self._size, self._ends, look)

    def _try(self, way: Way, plain: Callable | None) -> str:
        """Makes `step` by this way and replays a trial in another order; returns what went wrong, '' if nothing did."""
        self._way = Layered(way, self._layers.kept) if self._layers.kept else way
        self._luck = None
        self.trial = self._play(look=isinstance(way, DeepCopy))
        if isinstance(way, DeepCopy):
            way.learn(self._base, self.trial.changing, [self._bare(step.after) for step in self.trial.steps])
        around = rng_state(self._base)
        self.step = self._stepper() if plain is None else self._with_rewards(plain)
        order = np.random.default_rng(0).permutation(len(self.trial.steps))
        wrong = next((index for index in order if not self._repeats(self.trial.steps[index])), None)
        if wrong is None and self.trial.draws:
            for index in order:
                other_luck(self._base, int(index) + 1)
                if not self._repeats(self.trial.steps[index], lucky=False):
                    raise Unfit("stochastic", chance_sentence(self.name))
            self._luck = around
            self.step = self._stepper() if plain is None else self.step
        set_luck(self._base, around)
        self.how = self._way.how
        return "" if wrong is None else f"step {wrong} of random episodes came out differently when repeated"

    def _bare(self, state: Any) -> Any:
        """The part of a state that is the bare environment's."""
        return state.data[0] if isinstance(self._way, Layered) else state

    def _repeats(self, step: Step, lucky: bool = True) -> bool:
        if lucky:
            set_luck(self._base, step.luck)
        after, reward, terminal = self.step(step.before, step.action)
        if not same(reward, step.reward) or terminal != step.terminal:
            return False
        if self._way.whole:
            return same(after, step.after)
        numbers = self._way.numbers(self._env, after), self._way.numbers(self._env, step.after)
        known = numbers[0] is not None and numbers[1] is not None
        return same(self._seen, step.observation) and (not known or same(*numbers))

    def _paid(self, reward: float) -> float:
        for function in self._layers.rewards:
            reward = function(reward)
        return float(reward)

    def _with_rewards(self, plain: Callable) -> Callable:
        if not self._layers.rewards:
            return plain

        def step(state: Any, action: int) -> tuple[Any, float, bool]:
            after, reward, terminal = plain(state, action)
            return after, self._paid(reward), terminal

        return step

    def _stepper(self) -> Callable[[Any, int], tuple[Any, float, bool]]:
        """A step of the environment itself: back to the state, one step, and the state is taken out again."""
        env, base, actions, ends, luck = self._env, self._base, self.actions, self._ends, self._luck
        restore, take, move = self._way.restore, self._way.take, self._env.step

        def step(state: Any, action: int) -> tuple[Any, float, bool]:
            restore(env, state)
            if luck is not None:  # it draws, to no effect that was seen: the same numbers every time
                set_luck(base, luck)
            observation, reward, terminated, truncated, _ = move(actions[action])
            self._seen = observation
            return take(env, observation), float(reward), bool(terminated or (ends and truncated))

        return step

    def _timed(self) -> float:
        """Seconds a step: the best of several rounds, 50 ms of them at most."""
        steps, step, clock = self.trial.steps[:20], self.step, time.perf_counter
        begin, best = clock(), float("inf")
        for _ in range(50):
            start = clock()
            for one in steps:
                step(one.before, one.action)
            best = min(best, (clock() - start) / len(steps))
            if clock() - begin > 0.05:
                break
        return best


def microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.2g} us" if seconds < 1e-4 else f"{seconds * 1e6:.0f} us"


def _check_arguments(
    env: Any, get: Any, put: Any, attributes: Any, features: Any, inputs: Any, determinise: str | None
) -> None:
    if not isinstance(env, gymnasium.Env):
        raise TypeError(f"env is {env!r}; give a gymnasium.Env (vector environments cannot be planned with)")
    if (get is None) != (put is None):
        raise ValueError("get and set belong together; give both or neither")
    if determinise not in (None, "likeliest"):
        raise ValueError(f"determinise is {determinise!r}; there are None and 'likeliest'")
    for name, given in (("get", get), ("set", put), ("features", features), ("inputs", inputs)):
        arguments.function(name, given, "of the bare environment")
    if isinstance(attributes, (str, bytes)) or (attributes is not None and not isinstance(attributes, Sequence)):
        raise TypeError(f"attributes is {shown(attributes)}; give a list of names, for example attributes=['state']")
    if attributes is not None and not (attributes and all(isinstance(name, str) for name in attributes)):
        raise TypeError(f"attributes is {shown(attributes)}; give at least one name, for example attributes=['state']")


def chance_sentence(name: str) -> str:
    return (
        f"{name} is stochastic: the same step from the same state came out differently with other random numbers, and "
        "this planner needs a deterministic simulator; make it without noise"
    )


def refuse_known_chance(env: Any) -> None:
    """The chance in an emulator lies outside Python, where a trial may not see it."""
    if not hasattr(env, "ale"):
        return
    if env.ale.getFloat("repeat_action_probability") > 0:
        raise Unfit("stochastic", "ALE repeats actions at random; make the game with repeat_action_probability=0.0")
    if isinstance(env._frameskip, tuple):
        raise Unfit("stochastic", "ALE skips a random number of frames; make the game with frameskip=4")
