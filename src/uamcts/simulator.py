"""Simulators that people bring: what one must offer, and a clear word at the first moment that one cannot be used.

A simulator is a JAX one (`JaxSimulator`, planned in by the compiled search) or any Python object (planned in by
`uamcts.reference`). Of a Python object only `step(state, action) -> (state, reward, terminal)` and `num_actions` are
needed. It may also offer `legal_actions(state)`; `features(state)`, the numbers in which it is compared with reality;
`inputs(state)`, the numbers from which doubt is learned; `action_names`; and `accept(thing)`, which makes a state of
what a user has in hand, such as an observation.
"""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.errors import SimulatorError, SlowSimulator
from uamcts.types import Legal, Model, PyTree

SLOW = 0.5
"""Seconds a step above which a simulator is called slow."""


@dataclass(frozen=True, eq=False)
class JaxSimulator:
    """A simulator that JAX can compile: `step(state, action)` gives a `Transition`, pure, absorbing at terminals.

    `features` and `inputs` are functions of a state that give vectors; by default all its numbers. `example` is any one
    state: it tells what states look like.
    """

    step: Model
    num_actions: int
    example: PyTree
    features: Callable[[PyTree], jax.Array] | None = None
    inputs: Callable[[PyTree], jax.Array] | None = None
    legal: Legal | None = None
    name: str = "simulator"
    action_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not callable(self.step):
            raise TypeError(f"step is {self.step!r}; give a function (state, action) -> Transition")
        whole("num_actions", self.num_actions)


class PythonSimulator:
    """A Python object or function as the planner sees it: every step is looked at, and an error says what is wrong."""

    def __init__(
        self, model: Any, num_actions: int | None = None, features: Callable[[Any], Any] | None = None, name: str = ""
    ):
        owner = model if hasattr(model, "step") else None
        step = getattr(model, "step", model)
        if not callable(step):
            raise TypeError(
                f"model is {model!r}; give a domain, a Gymnasium environment, a JaxSimulator, an object with "
                "step(state, action) and num_actions, or a function step(state, action) and num_actions=..."
            )
        if num_actions is None:
            num_actions = getattr(owner, "num_actions", None)
        if num_actions is None:
            raise ValueError("num_actions is not given and the model does not have it; pass num_actions=...")
        self.model, self._step = model, step
        self.num_actions = whole("num_actions", num_actions)
        self.name = name or getattr(owner, "name", None) or getattr(model, "__name__", None) or type(model).__name__
        self.action_names = tuple(getattr(owner, "action_names", ()))
        self._features = features or getattr(owner, "features", None) or flattened
        self._inputs = getattr(owner, "inputs", None) if features is None else None
        self._accept = getattr(owner, "accept", None)
        self._size: int | None = None
        legal = getattr(owner, "legal_actions", None)
        if legal is not None:
            self.legal_actions = lambda state: self._legal(legal, state)

    def step(self, state: Any, action: int) -> tuple[Any, float, bool]:
        """One step as the simulator believes it."""
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

    def features(self, state: Any) -> np.ndarray:
        """The numbers in which a state is compared with another, always as many, all finite."""
        return self._vector(self._features, state, "features")

    def inputs(self, state: Any) -> np.ndarray:
        """The numbers that doubt is learned from; the features where the simulator says nothing else."""
        if self._inputs is None:
            return self.features(state)
        return np.asarray(self._inputs(state), np.float32).reshape(-1)

    def key(self, state: Any) -> Hashable:
        """What tells a state from others: the state itself where it is a value, else its numbers."""
        if type(state).__hash__ not in (None, object.__hash__):
            try:
                hash(state)
                return state
            except TypeError:  # a tuple with a list or an array in it
                pass
        return self.features(state).tobytes()

    def accept(self, thing: Any) -> Any:
        """A state out of what the user has in hand."""
        return thing if self._accept is None else self._accept(thing)

    def _vector(self, function: Callable[[Any], Any], state: Any, what: str) -> np.ndarray:
        try:
            vector = np.asarray(function(state), np.float64).reshape(-1)
        except SimulatorError:
            raise
        except Exception as error:
            raise SimulatorError(
                f"{self.name}: the {what} of state {shown(state)} are not numbers ({type(error).__name__}: {error}); "
                "pass features=, a function that gives a vector for a state"
            ) from error
        if self._size is None:
            self._size = vector.size
        if vector.size != self._size:
            raise SimulatorError(
                f"{self.name}: state {shown(state)} has {vector.size} numbers, earlier ones had {self._size}; every "
                "state must have as many (pass features= if the states themselves cannot)"
            )
        if not np.all(np.isfinite(vector)):
            raise SimulatorError(
                f"{self.name}: the {what} of state {shown(state)} are {vector.tolist()}; they must be finite numbers"
            )
        return vector

    def _legal(self, legal: Callable[[Any], Sequence[int]], state: Any) -> Sequence[int]:
        actions = legal(state)
        for action in actions:
            if not 0 <= action < self.num_actions:
                raise SimulatorError(
                    f"{self.name}: legal_actions gave {action!r} in state {shown(state)}; actions are 0 to "
                    f"{self.num_actions - 1}"
                )
        return actions

    # Before it is trusted

    def probe(self, state: Any, steps_a_move: int, budget_seconds: float | None) -> None:
        """Tries every action in `state` twice; raises an error for what cannot be planned with, warns of slowness."""
        untouched, numbers = kept(state), self.features(state)
        legal = getattr(self, "legal_actions", None)
        actions = range(self.num_actions) if legal is None else sorted(legal(state))
        if not actions:
            raise SimulatorError(f"{self.name}: there is no legal action in state {shown(state)}; an agent needs one")
        for action in actions:
            start = time.perf_counter()
            outcomes = [self.checked(state, action)]
            seconds = time.perf_counter() - start
            if seconds > SLOW:
                self._warn(seconds, steps_a_move, budget_seconds)
            else:
                outcomes.append(self.checked(state, action))
            if not np.array_equal(numbers, self.features(state)) or not alike(untouched, state):
                raise SimulatorError(
                    f"{self.name}: step changed the state it was given ({shown(untouched)} became {shown(state)} after "
                    f"action {action}); return a new state and leave the old one alone"
                )
            if len({(tuple(self.features(after)), reward, over) for after, reward, over in outcomes}) > 1:
                raise SimulatorError(
                    f"{self.name}: the same step gave two results (state {shown(state)}, action {action}: "
                    f"{shown(outcomes[0])} and {shown(outcomes[1])}); a simulator to plan with must be deterministic: "
                    "fix its seed in every step, or give its likeliest outcome"
                )
            if seconds > SLOW:
                return

    def checked(self, state: Any, action: int) -> tuple[Any, float, bool]:
        """One step whose reward, end and new state were looked at."""
        following, reward, terminal = self.step(state, action)
        where = f"(state {shown(state)}, action {action})"
        try:
            number = float(reward)
        except (TypeError, ValueError):
            raise SimulatorError(f"{self.name}: the reward is {reward!r} {where}; it must be a number") from None
        if not math.isfinite(number):
            raise SimulatorError(f"{self.name}: the reward is {number} {where}; it must be a finite number")
        if np.ndim(terminal) or np.asarray(terminal).dtype.kind not in "bui":
            raise SimulatorError(f"{self.name}: terminal is {terminal!r} {where}; it must be True or False")
        self.features(following)
        return following, number, bool(terminal)

    def _warn(self, seconds: float, steps_a_move: int, budget_seconds: float | None) -> None:
        if budget_seconds is None:
            remedy = f"a move of up to {steps_a_move} steps may take {duration(seconds * steps_a_move)}: give "
            remedy += "budget_seconds=..., or fewer iterations and rollouts in config"
        else:
            remedy = f"budget_seconds={budget_seconds:g} leaves room for {int(budget_seconds / seconds)} steps a move"
        warnings.warn(f"{self.name}: one step took {seconds:.1f} s; {remedy}", SlowSimulator, stacklevel=4)


def whole(argument: str, value: Any) -> int:
    """`value` as a whole number of at least 1, or an error that names the argument."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{argument} is {value!r}; it must be a whole number of at least 1")
    return int(value)


def flattened(state: Any) -> np.ndarray:
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
    return np.concatenate([flattened(part) for part in state]) if state else np.zeros(0)


def flattened_jax(state: PyTree) -> jax.Array:
    """All numbers in a state, as a vector."""
    return jnp.concatenate([jnp.ravel(jnp.asarray(leaf)).astype(jnp.float32) for leaf in jax.tree.leaves(state)])


def kept(state: Any) -> Any:
    """A copy to compare with later; the state itself where it cannot be copied."""
    try:
        return copy.deepcopy(state)
    except Exception:  # an object that holds a lock or a handle: its features are still compared
        return state


def alike(first: Any, second: Any) -> bool:
    """Whether two states are equal, as far as they can be compared."""
    if type(second).__eq__ is object.__eq__:
        return True  # equal only to itself; its numbers are compared as features
    try:
        return bool(np.all(first == second))
    except (ValueError, TypeError):
        return True  # several arrays: the same


def shown(thing: Any) -> str:
    """A state or an outcome in a message: its beginning."""
    words = repr(thing)
    return words if len(words) <= 80 else f"{words[:77]}..."


def duration(seconds: float) -> str:
    for limit, unit, size in ((120, "s", 1), (7200, "min", 60), (math.inf, "h", 3600)):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    raise AssertionError


def _not_three(name: str, outcome: Any) -> str:
    hint = ""
    if isinstance(outcome, tuple) and len(outcome) == 5:
        hint = " (five things is what a Gymnasium environment returns: give the environment itself)"
    return f"{name}: step returned {shown(outcome)}{hint}; it must return a tuple (state, reward, terminal)"
