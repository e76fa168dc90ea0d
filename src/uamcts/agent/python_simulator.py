"""Simulators that users bring: what one must offer, and clear errors as soon as one cannot be used.

A simulator is a JAX one (`JaxSimulator`, planned in by the compiled search) or any Python object (planned in by
`uamcts.reference`). Of a Python object only `step(state, action) -> (state, reward, terminal)` and `num_actions` are
needed. It may also offer `legal_actions(state)`; `features(state)`, the numbers in which it is compared with reality;
`inputs(state)`, the numbers that U is learned from; `identity(state)`, what tells a state from others;
`action_names`; and `accept(thing)`, which makes a state of what a user has in hand, such as an observation.
"""

from __future__ import annotations

import math
import random
import time
import warnings
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.agent.identity import Identity
from uamcts.arguments import LARGEST, action_count, flag, function, legal_actions, names, real, shown
from uamcts.errors import SimulatorError, SlowSimulator
from uamcts.types import PyTree

SLOW = 0.5
"""Seconds a step above which a simulator is called slow."""
TRIES, SECONDS = 100, 0.5
"""How many steps are tried twice before a simulator is trusted, and how long that may take after the first state.

If a tenth of all steps slips, two tries of one step differ with a probability of 2 * 0.9 * 0.1 = 0.18, and a simulator
passes 100 pairs with a probability of 0.82^100, about 2e-9; if only every fifth step can slip at all, 2 %.
"""


State: TypeAlias = Any
"""A state of the user's own simulator: any object."""
Outcome: TypeAlias = tuple[State, float, bool]
"""The next state, the reward and whether the episode is over."""


class PythonSimulator:
    """A Python object or function as the planner sees it: every step is checked, and errors say what is wrong."""

    def __init__(
        self,
        model: Any,
        num_actions: int | None = None,
        features: Callable[[Any], Any] | None = None,
        identity: Callable[[Any], Any] | None = None,
    ):
        owner = model if hasattr(model, "step") else None
        step = getattr(model, "step", model)
        if not callable(step) or isinstance(model, type):
            raise TypeError(
                f"model is {shown(model)}; give a domain, a Gymnasium environment, a JaxSimulator, an object with "
                "step(state, action) and num_actions, or a function step(state, action) and num_actions=..."
            )
        if num_actions is None:
            num_actions = getattr(owner, "num_actions", None)
        if num_actions is None:
            raise ValueError("num_actions is not given and the model does not have it; pass num_actions=...")
        self.model, self._step = model, step
        self.num_actions = action_count(num_actions)
        name = getattr(owner, "name", None) or getattr(model, "__name__", None) or type(model).__name__
        self.name = name if isinstance(name, str) else type(model).__name__
        own = action_count(getattr(owner, "num_actions", num_actions))
        named = names("action_names", getattr(owner, "action_names", ()), own)
        self.action_names = named[: self.num_actions] if len(named) >= self.num_actions else ()
        self._features = features or getattr(owner, "features", None) or flatten
        self._inputs = getattr(owner, "inputs", None) if features is None else None
        self._identity = identity or getattr(owner, "identity", None)
        self._accept = getattr(owner, "accept", None)
        offered = {"features": self._features, "inputs": self._inputs, "identity": self._identity}
        for argument, given in {**offered, "accept": self._accept}.items():
            function(argument, given, "of a state")
        self.whole = Identity()
        legal = getattr(owner, "legal_actions", None)
        function("legal_actions", legal, "of a state")
        if legal is not None:
            self.legal_actions = lambda state: self._legal(legal, state)

    def step(self, state: State, action: int) -> Outcome:
        """One step of the simulator."""
        try:
            outcome = self._step(state, action)
        except Exception as error:
            raise SimulatorError(
                f"{self.name}: step raised {type(error).__name__}: {error} (state {shown(state)}, action {action}); "
                "it must answer for every state it has led to and every action"
            ) from error
        if type(outcome) is not tuple or len(outcome) != 3:
            raise SimulatorError(_not_three(self.name, outcome))
        return outcome

    def features(self, state: State) -> np.ndarray:
        """The numbers in which states are compared: always equally many, all finite."""
        return self._vector(self._features, state, "features")

    def inputs(self, state: State) -> np.ndarray:
        """The numbers that U is learned from; by default the features."""
        if self._inputs is None:
            return self.features(state)
        return self._vector(self._inputs, state, "inputs").astype(np.float32)

    def key(self, state: State) -> Hashable:
        """What tells a state from others: the simulator's `identity`, or the whole state."""
        try:
            return self.whole(state if self._identity is None else self._identity(state))
        except Exception as error:
            raise SimulatorError(
                f"{self.name}: state {shown(state)} cannot be told from others ({type(error).__name__}: {error}); pass "
                "identity=, a function that gives numbers, strings or tuples of them for a state"
            ) from error

    def accept(self, thing: Any) -> Any:
        """Turns what the user has in hand into a state."""
        return thing if self._accept is None else self._accept(thing)

    def _vector(self, function: Callable[[Any], Any], state: State, what: str) -> np.ndarray:
        try:
            vector = np.asarray(function(state), np.float64).reshape(-1)
        except SimulatorError:
            raise
        except Exception as error:
            raise SimulatorError(
                f"{self.name}: the {what} of state {shown(state)} are not numbers ({type(error).__name__}: {error}); "
                "pass features=, a function that gives a vector for a state"
            ) from error
        if not np.all(np.abs(vector) <= LARGEST):
            raise SimulatorError(
                f"{self.name}: the {what} of state {shown(state)} are {shown(vector.tolist())}; they must be finite "
                "numbers of at most 3.4e38"
            )
        return vector

    def _legal(self, legal: Callable[[Any], Any], state: State) -> list[int]:
        try:
            return legal_actions(legal(state), self.num_actions)
        except Exception as error:
            what = error if isinstance(error, ValueError) else f"legal_actions raised {type(error).__name__}: {error}"
            raise SimulatorError(f"{self.name}: {what} (in state {shown(state)})") from error

    def probe(self, state: State, depth: int, steps_a_move: int, budget_seconds: float | None) -> None:
        """Tries every action in `state` twice, and then steps on the way of random walks from there.

        Raises an error for what cannot be planned with, and warns of slowness.
        """
        actions = self._choices(state)
        if not actions:
            raise SimulatorError(f"{self.name}: there is no legal action in state {shown(state)}; an agent needs one")
        begin = time.perf_counter()
        for action in actions:
            start = time.perf_counter()
            first = self.repeat_step(state, action, 1)
            seconds = time.perf_counter() - start
            if seconds > SLOW:
                self._warn(seconds, steps_a_move, budget_seconds)
                return
            self.refuse_chance(state, action, first, self.repeat_step(state, action, 1))
        rng, here, walked = random.Random(0), state, 0  # noqa: S311 (any walk will do)
        for _ in range(TRIES):
            if time.perf_counter() - begin > SECONDS:
                return
            choices = self._choices(here)
            following, _, over = self.repeat_step(here, rng.choice(choices), 2) if choices else (state, 0.0, True)
            walked += 1
            here, walked = (state, 0) if over or walked >= depth else (following, walked)

    def _choices(self, state: State) -> Any:
        legal = getattr(self, "legal_actions", None)
        return range(self.num_actions) if legal is None else legal(state)

    def repeat_step(self, state: State, action: int, times: int) -> Outcome:
        """Takes a step several times; its outcome must be the same every time."""
        before, text, numbers = self.key(state), shown(state), self.features(state)
        first = None
        for _ in range(times):
            outcome = self.checked_step(state, action)
            if self.key(state) != before or not np.array_equal(numbers, self.features(state)):
                raise SimulatorError(
                    f"{self.name}: step changed the state it was given ({text} became {shown(state)} after "
                    f"action {action}); return a new state and leave the old one alone"
                )
            first = outcome if first is None else first
            self.refuse_chance(state, action, first, outcome)
        assert first is not None  # noqa: S101 (it is taken at least once)
        return first

    def refuse_chance(self, state: State, action: int, first: Outcome, second: Outcome) -> None:
        """Raises an error if two outcomes of one step differ, in the whole state, in the reward or in the end."""
        if first[1:] != second[1:] or self.key(first[0]) != self.key(second[0]):
            raise SimulatorError(randomness_message(self.name, state, action, first, second))

    def checked_step(self, state: State, action: int) -> Outcome:
        """One step whose reward, end and next state were checked."""
        following, reward, terminal = self.step(state, action)
        where = f"(state {shown(state)}, action {action})"
        try:
            number = real(f"{self.name}: the reward", reward, f"it must be a finite number {where}")
            over = flag(f"{self.name}: terminal", terminal, f"it must be True or False {where}")
        except ValueError as error:
            raise SimulatorError(str(error)) from None
        for what in ("features", "inputs"):
            sizes = getattr(self, what)(state).size, getattr(self, what)(following).size
            if sizes[0] != sizes[1]:
                raise SimulatorError(
                    f"{self.name}: state {shown(following)} has {sizes[1]} {what} where the state before it had "
                    f"{sizes[0]} {where}; every state must have as many (pass features= if the states cannot)"
                )
        return following, number, over

    def _warn(self, seconds: float, steps_a_move: int, budget_seconds: float | None) -> None:
        if budget_seconds is None:
            remedy = f"a move of up to {steps_a_move} steps may take {duration(seconds * steps_a_move)}: give "
            remedy += "budget_seconds=..., or fewer iterations and rollouts in config"
        else:
            remedy = f"budget_seconds={budget_seconds:g} leaves room for {int(budget_seconds / seconds)} steps a move"
        warnings.warn(f"{self.name}: one step took {seconds:.1f} s; {remedy}", SlowSimulator, stacklevel=4)


def flatten(state: State) -> np.ndarray:
    """All numbers in a state that is made of numbers, arrays, tuples, lists, dictionaries and dataclasses."""
    if isinstance(state, (bool, int, float, np.ndarray, np.generic)):
        return np.asarray(state, np.float64).reshape(-1)
    if isinstance(state, dict):
        state = [state[key] for key in sorted(state)]
    elif hasattr(state, "__dataclass_fields__"):
        state = [getattr(state, name) for name in state.__dataclass_fields__]
    elif isinstance(state, jax.Array):
        return np.asarray(state, np.float64).reshape(-1)
    if not isinstance(state, (list, tuple)):
        raise TypeError(f"a {type(state).__name__} is not a number, an array, a tuple, a list, a dict or a dataclass")
    return np.concatenate([flatten(part) for part in state]) if state else np.zeros(0)


def flatten_jax(state: PyTree) -> jax.Array:
    """All numbers in a state, as a vector."""
    return jnp.concatenate([jnp.ravel(jnp.asarray(leaf)).astype(jnp.float32) for leaf in jax.tree.leaves(state)])


def duration(seconds: float) -> str:
    for limit, unit, size in ((120, "s", 1), (7200, "min", 60), (math.inf, "h", 3600)):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    raise AssertionError


def randomness_message(name: str, state: State, action: int, first: Outcome, second: Outcome) -> str:
    """The message about a simulator that gave two outcomes for one step."""
    return (
        f"{name}: the simulator is random: the same step gave two results (state {shown(state)}, action {action}: "
        f"{shown(first)} and {shown(second)}); a simulator to plan with must be deterministic and must not remember "
        "what it was asked: draw from a generator with the same seed in every step, or return the likeliest outcome"
    )


def _not_three(name: str, outcome: Any) -> str:
    hint = ""
    if isinstance(outcome, tuple) and len(outcome) == 5:
        hint = " (five things is what a Gymnasium environment returns: give the environment itself)"
    return f"{name}: step returned {shown(outcome)}{hint}; it must return a tuple (state, reward, terminal)"
