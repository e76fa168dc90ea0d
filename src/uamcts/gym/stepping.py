"""How to step an environment from any of its states: find a state access that works, and verify it."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from uamcts.corrections.elements import is_in_code, parse_element
from uamcts.corrections.parameters import with_values
from uamcts.gym import classic, toy_text
from uamcts.gym.actions import ContinuousActions
from uamcts.gym.clocks import find_clocks
from uamcts.gym.deep_copy import DeepCopy
from uamcts.gym.known_envs import Number, candidates
from uamcts.gym.probe import (
    GLOBAL,
    Step,
    Trial,
    Unfit,
    global_rng_state,
    own_generators,
    play,
    refuse_random_emulator,
    reseed,
    rng_state,
    same,
    set_global_rng_state,
    set_rng_state,
)
from uamcts.gym.state_access import Get, Layered, Put, StateAccess
from uamcts.gym.wrappers import Layers

StepFunction = Callable[[Any, int], tuple[Any, float, bool]]
"""`step(state, action)` -> the next state, the reward and whether the episode is over."""
SampleFunction = Callable[[Any, int, np.random.Generator], tuple[Any, float, bool]]
"""`sample(state, action, rng)` -> the same, drawn with `rng`."""
TABLE_TRIES = 4
"""How often each random entry of a table is compared with the environment."""


@dataclass(frozen=True)
class Stepping:
    """A step function that reproduced what the environment itself did."""

    access: StateAccess
    kind: str
    """What `call` is: "step" (deterministic), "outcomes" (all outcomes with their probabilities) or "sample"."""
    call: Callable[..., Any]
    trial: Trial
    """The random episodes on which it was tried."""
    vectors: tuple[dict[int, np.ndarray], dict[int, np.ndarray]] | None = None
    """Features and inputs of every state, for environments with a table of transitions."""

    def seconds_per_step(self) -> float:
        """Time of a step: the best of several rounds, measured for at most 50 ms."""
        steps, step, clock = self.trial.steps[:20], self.call, time.perf_counter
        begin, best = clock(), float("inf")
        rng = (np.random.default_rng(0),) if self.kind == "sample" else ()
        for _ in range(50):
            start = clock()
            for one in steps:
                step(one.before, one.action, *rng)
            best = min(best, (clock() - start) / len(steps))
            if clock() - begin > 0.05:
                break
        return best


@dataclass
class StepFinder:
    """Looks for the cheapest way to step an environment that reproduces its random episodes bit for bit."""

    layers: Layers
    actions: Sequence[Any]
    name: str
    size: tuple[int, float]
    """The most steps and seconds of a trial."""
    truncation_ends: bool
    _observation: Any = field(default=None, init=False)
    """What the latest step of the environment showed."""
    before_step: Callable[[], None] | None = field(default=None, init=False)
    """Called between restoring a state and stepping: seeds generators, some of which a restore may have replaced."""
    overrides: Mapping[str, Any] = field(default_factory=dict, init=False)
    """Attributes that are set between restoring a state and stepping: parameters with other values."""
    _plain: bool = field(default=False, init=False)
    """Whether steps are those of `uamcts.gym.classic`."""

    @property
    def env(self) -> Any:
        return self.layers.env

    @property
    def base(self) -> Any:
        return self.layers.env.unwrapped

    def find(
        self, get: Get | None, put: Put | None, attributes: Sequence[str] | None, determinise: str | None
    ) -> Stepping:
        """Returns the first candidate that brings the environment back to where it was."""
        simple = get is None and attributes is None and not self.layers.kept
        if simple and toy_text.has_table(self.base):
            through_table = self._try_table(determinise)
            if through_table is not None:
                return through_table
        if determinise is not None:
            raise ValueError(f"determinise is {determinise!r}; {self.name} has no table of its outcomes")
        refuse_random_emulator(self.base)
        actions = [self._inner_action(action) for action in self.actions] if simple else []
        listed = not isinstance(self.actions, ContinuousActions)
        plain = classic.plain_step(self.base, actions) if simple and listed else None
        accesses = candidates(self.env, get, put, attributes, plain is not None)
        problem = ""
        for access in accesses:
            own = plain if access.how.endswith("plain Python") else None
            found = self._try(access, own)
            if isinstance(found, Stepping):
                self._plain = own is not None
                return found
            problem = found
        tried = "; ".join(access.how for access in accesses)
        raise Unfit(
            "restore",
            f"{self.name} does not come back to a saved state ({problem}; tried: {tried}); give get= and set=, to read "
            "the whole state and to put it back, or give it methods uamcts_state() and uamcts_restore(state)",
        )

    def _inner_action(self, action: object) -> Any:
        """The action that reaches the bare environment, if all wrappers are pure functions."""
        for function in self.layers.actions:
            action = function(action)
        return action

    def _wrapped_reward(self, reward: float) -> float:
        for function in self.layers.rewards:
            reward = function(reward)
        return float(reward)

    def _play(self, access: StateAccess, look: bool = False) -> Trial:
        return play(self.env, lambda: access.save(self.env), list(self.actions), self.size, self.truncation_ends, look)

    def _try_table(self, determinise: str | None) -> Stepping | None:
        """A step through the table, if there is one. Every entry is verified, or a sample of a large table."""
        table = toy_text.rows(self.base, [self._inner_action(action) for action in self.actions], determinise)
        if self.layers.rewards:
            table = {state: tuple(self._with_wrapped_rewards(one) for one in row) for state, row in table.items()}
        tries = 1 if toy_text.is_deterministic(table) else TABLE_TRIES
        pairs = list(itertools.product(table, range(len(self.actions))))
        for state, action in pairs[:: tries * len(pairs) // 5000 + 1] if determinise is None else ():
            possible = {outcome for _, outcome in table[state][action]}
            for _ in range(tries):
                self.base.s = state
                observation, reward, terminated, _, _ = self.env.step(self.actions[action])
                outcome = (int(self.base.s), float(reward), bool(terminated))
                if outcome not in possible or not same(observation, self.base.s):
                    self.env.reset(seed=0)
                    return None
        access, vectors = Number(self.env), toy_text.vectors(self.base)
        if toy_text.is_deterministic(table) and (determinise is not None or toy_text.slips(self.base) is None):
            return Stepping(access, "step", toy_text.step_through(table), self._play(access), vectors)
        return Stepping(access, "outcomes", toy_text.outcomes_in(table), self._play(access), vectors)

    def _with_wrapped_rewards(self, outcomes: Sequence[tuple[float, toy_text.Outcome]]) -> Any:
        return tuple((p, (after, self._wrapped_reward(reward), end)) for p, (after, reward, end) in outcomes)

    def _try(self, inner: StateAccess, plain: StepFunction | None) -> Stepping | str:
        """Builds a step function and replays a trial in another order; returns what went wrong if it differs."""
        access = Layered(inner, self.layers.kept) if self.layers.kept else inner
        trial = self._play(access, look=isinstance(inner, DeepCopy))
        if isinstance(inner, DeepCopy):
            after = [step.after.data[0] if access is not inner else step.after for step in trial.steps]
            inner.learn(self.base, trial, after)
        generators_at = rng_state(self.base)
        step = self._stepper(access) if plain is None else self._with_rewards(plain)
        order = np.random.default_rng(0).permutation(len(trial.steps))
        for index in order:
            set_rng_state(self.base, trial.steps[index].rng_state)
            if not self._repeats(access, step, trial.steps[index]):
                set_rng_state(self.base, generators_at)
                return f"step {index} of random episodes came out differently when repeated"
        if isinstance(access, DeepCopy):
            seconds = 0.0 if self.truncation_ends else self.size[1]
            access.leave_out(find_clocks(trial, self.base, step, lambda: self._observation, seconds), after)
            access.learn_observations(trial.steps)
        if trial.draws and self._is_random(access, step, trial, order):
            set_rng_state(self.base, generators_at)
            return Stepping(access, "sample", self._sampler(step, trial), trial)
        if trial.draws and plain is None:
            step = self._stepper(access, generators_at)
        set_rng_state(self.base, generators_at)
        return Stepping(access, "step", step, trial)

    def _is_random(self, access: StateAccess, take_step: StepFunction, trial: Trial, order: np.ndarray) -> bool:
        """Whether the result of any step of the trial changes with other random numbers."""
        if toy_text.draws_outside_its_table(self.base):  # which random episodes may well miss
            return True
        for index in order:
            self.before_step = functools.partial(reseed, self.base, int(index) + 1)
            repeats = self._repeats(access, take_step, trial.steps[index])
            self.before_step = None
            if not repeats:
                return True
        return False

    def _repeats(self, access: StateAccess, take_step: StepFunction, step: Step) -> bool:
        """Whether repeating a step of the trial gives the same result."""
        after, reward, terminal = take_step(step.before, step.action)
        if not same(reward, step.reward) or terminal != step.terminal:
            return False
        if access.whole:
            return same(after, step.after)
        numbers = access.numbers(self.env, after), access.numbers(self.env, step.after)
        known = numbers[0] is not None and numbers[1] is not None
        return same(self._observation, step.observation) and (not known or same(*numbers))

    def tuned(self, kind: str, call: Callable[..., Any], values: Mapping[str, float]) -> Callable[..., Any]:
        """`call` with other values of attributes of the environment: a classic step is built anew with them.

        Around any other step they are set for its duration. A restored state may bring the old values back with it, so
        they are set between restoring and stepping.
        """
        base = self.base
        if kind == "outcomes":  # a table, whose only parameter is the rate at which moves succeed
            listed = [self._inner_action(action) for action in self.actions]
            wrap = self._with_wrapped_rewards if self.layers.rewards else list
            return toy_text.outcomes_at(base, listed, values[toy_text.RATE], wrap)
        changed, own = with_values(base, values), type(base)
        roots = {parse_element(name)[0] for name in values if not is_in_code(name)}
        if kind == "step" and self._plain:
            listed = [self._inner_action(action) for action in self.actions]
            plain = classic.plain_step(changed, listed)
            if plain is not None:
                return self._with_rewards(plain)
        new = {name: getattr(changed, name) for name in roots}

        def tuned_call(*arguments: object) -> Any:
            held = {name: base.__dict__[name] for name in roots if name in base.__dict__}
            self.overrides, base.__class__ = new, type(changed)  # a class of its own if numbers in code differ
            try:
                return call(*arguments)
            finally:
                self.overrides, base.__class__ = {}, own
                for name in roots:
                    base.__dict__.pop(name, None)
                base.__dict__.update(held)

        return tuned_call

    def _with_rewards(self, plain: StepFunction) -> StepFunction:
        if not self.layers.rewards:
            return plain

        def step(state: object, action: int) -> tuple[Any, float, bool]:
            after, reward, terminal = plain(state, action)
            return after, self._wrapped_reward(reward), terminal

        return step

    def _sampler(self, step: StepFunction, trial: Trial) -> SampleFunction:
        """Samples a step, with the environment's generators seeded from the search's generator.

        Global generators that it draws from are restored afterwards, so that planning does not advance them.
        """
        base, borrows, own = self.base, bool(trial.draws & set(GLOBAL)), own_generators(self.base)

        def sample(state: object, action: int, rng: np.random.Generator) -> tuple[Any, float, bool]:
            before = global_rng_state() if borrows else None
            self.before_step = lambda: reseed(base, int(rng.integers(2**32)), borrows, own)
            try:
                return step(state, action)
            finally:
                self.before_step = None
                if before is not None:
                    set_global_rng_state(before)

        return sample

    def _stepper(self, access: StateAccess, generators_at: dict[str, Any] | None = None) -> StepFunction:
        """Steps the environment itself: restores the state, steps once, and saves the new state."""
        env, base, actions, ends, take = self.env, self.base, self.actions, self.truncation_ends, access.take

        def step(state: object, action: int) -> tuple[Any, float, bool]:
            access.restore(env, state)
            if self.overrides:
                base.__dict__.update(self.overrides)
            if generators_at is not None:  # it draws, to no visible effect: the same numbers every time
                set_rng_state(base, generators_at)
            if self.before_step is not None:
                self.before_step()
            observation, reward, terminated, truncated, _ = env.step(actions[action])
            self._observation = observation
            return take(env, observation), float(reward), bool(terminated or (ends and truncated))

        return step
