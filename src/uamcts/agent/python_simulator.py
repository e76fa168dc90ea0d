"""Simulators that users bring: what one must offer, and clear errors as soon as one cannot be used.

A simulator is a JAX one (`JaxSimulator`, planned in by the compiled search) or any Python object (planned in by
`uamcts.reference`). A Python object needs `num_actions` and one of

- `outcomes(state, action)`: every outcome, a list of `(probability, (state, reward, terminal))`
- `sample(state, action, rng)`: a draw of `(state, reward, terminal)` from `rng`, a `numpy.random.Generator`, alone
- `step(state, action)`: what happens in a deterministic simulator, `(state, reward, terminal)`

and is planned in by the first of these that it has. It may also offer `legal_actions(state)`; `features(state)`, the
numbers in which it is compared with reality; `inputs(state)`, the numbers that U is learned from; `identity(state)`,
what tells a state from others; `action_names`; and `accept(thing)`, which makes a state of what a user has in hand,
such as an observation.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from uamcts.agent import simulator_checks as checks
from uamcts.agent.identity import Identity
from uamcts.agent.state_vectors import fingerprint, flatten, is_vector, unflatten
from uamcts.arguments import LARGEST, action_count, function, legal_actions, names, short_repr
from uamcts.corrections.links import WITH, resolve
from uamcts.corrections.memories import Memory, before_steps
from uamcts.corrections.mixture import KINDS, model_kind
from uamcts.corrections.parameters import find_code_parameters, find_parameters, with_values
from uamcts.errors import SimulatorError
from uamcts.reference.widening import Proposals
from uamcts.runtime.watch import PASSED_ON

State: TypeAlias = Any
"""A state of the user's own simulator: any object."""
Outcome: TypeAlias = tuple[State, float, bool]
"""The next state, the reward and whether the episode is over."""


class PythonSimulator:
    """A Python object or function as the planner sees it: every step is checked, and errors say what is wrong."""

    policy: Callable[..., Any] | None = None
    """What proposes continuous actions, if the user brings it."""
    memories: Mapping[str, Memory] = {}  # replaced, never changed
    """What its steps remember (`uamcts.corrections.memories`), once that was found out."""
    _parameters: dict[str, float] | None = None
    """The numbers that may be off, once they were asked for."""

    def __init__(
        self,
        model: Any,
        num_actions: int | None = None,
        action_names: Sequence[str] | None = None,
        features: Callable[[Any], Any] | None = None,
        identity: Callable[[Any], Any] | None = None,
    ):
        owner = model if any(callable(getattr(model, name, None)) for name in KINDS) else None
        checks.check_kind(model, owner)
        if num_actions is None:
            num_actions = getattr(owner, "num_actions", None)
        self.continuous = num_actions is None and any(hasattr(owner, name) for name in ("action_space", "actions"))
        """Whether actions are continuous: numbers or arrays within `action_space`, or those that `actions` proposes."""
        if num_actions is None:
            checks.check_continuous(owner, self.continuous)
        self.kind = "step" if owner is None else model_kind(owner)
        """Which of `outcomes`, `sample` and `step` it is planned in by."""
        self.owner, self.before, self.model = owner, before_steps(owner), model
        self.call, (self.holder, self.entry) = checks.find_call(model, owner, self.kind)
        self.bind()
        self.num_actions: Any = None if self.continuous else action_count(num_actions)
        name = getattr(owner, "name", None) or getattr(model, "__name__", None) or type(model).__name__
        self.name = name if isinstance(name, str) else type(model).__name__
        checks.check_arguments_of(self.name, self.kind, self.call)
        self.action_names: tuple[str, ...] = ()
        if self.continuous:
            if action_names is not None:
                raise ValueError(f"action_names is given, but the actions of {self.name} are continuous; leave it out")
            self.action_space, self.actions = (getattr(owner, name, None) for name in ("action_space", "actions"))
        else:
            count, own = action_count(num_actions), action_count(getattr(owner, "num_actions", num_actions))
            named = names("action_names", getattr(owner, "action_names", ()), own)
            self.action_names = named[:count] if len(named) >= count else ()
            if action_names is not None:
                self.action_names = names("action_names", action_names, count)
        self._features = features or getattr(owner, "features", None) or flatten
        self._inputs = getattr(owner, "inputs", None) if features is None else None
        self._identity = identity or getattr(owner, "identity", None)
        self._accept = getattr(owner, "accept", None)
        offered = {"features": self._features, "inputs": self._inputs, "identity": self._identity}
        for argument, given in {**offered, "accept": self._accept}.items():
            function(argument, given, "of a state")
        self.whole, self.normalises = Identity(), False
        legal = getattr(owner, "legal_actions", None)
        function("legal_actions", legal, "of a state")
        if legal is not None:
            self.legal_actions = functools.partial(self._legal, legal)
            self.legal_actions.checked = True  # type: ignore[attr-defined]

    @property
    def parameters(self) -> dict[str, float]:
        """The numbers in the simulator that may be off, and their believed values."""
        if self._parameters is None:
            plain = find_parameters(self.holder) if self.entry else {}
            checks.check_with_parameters(self.name, self.kind, self.owner, plain)
            self._parameters = plain | find_code_parameters(self.holder, self.entry)
        return self._parameters

    def with_parameters(self, values: Mapping[str, float], laboratory: Any = None) -> PythonSimulator:
        """This simulator with other values of parameters; trials use a `laboratory`, a copy of the user's object."""
        if not values and laboratory is None:
            return self
        if any(WITH in name for name in values):
            values = resolve(values, self.parameters)
        twin, holder = copy.copy(self), self.holder if laboratory is None else laboratory
        holder = with_values(holder, values, self.memories, self.entry)
        twin.call, twin.normalises = getattr(holder, self.entry) if self.entry else holder, bool(values)
        return twin.bind()

    def bind(self) -> PythonSimulator:
        """Makes a copy use its own `call`, and returns it."""
        if self.kind != "step":
            setattr(self, self.kind, {"outcomes": self._outcomes, "sample": self._sample}[self.kind])
        return self

    @property
    def own_keys(self) -> bool:
        """Whether a tuple of numbers is its own key."""
        return self._identity is None

    @property
    def plain_features(self) -> bool:
        """Whether the features of a state are all of its numbers."""
        return self._features is flatten

    def compare_whole(self, one: State, other: State) -> bool:
        """Compares states as a whole from now on if two of them hold unequally many numbers, and may.

        Lists and arrays of another length, or states of two types, are taken for mistakes. Returns whether it does.
        """
        if not self.plain_inputs or type(one) is not type(other) or isinstance(one, (list, np.ndarray)):
            return False
        self._features = fingerprint
        return True

    @property
    def marks_whole(self) -> bool:
        """Whether states are compared as a whole."""
        return self._features is fingerprint

    @property
    def plain_inputs(self) -> bool:
        """Whether the inputs of U are all numbers of a state."""
        return self.plain_features and self._inputs is None

    @property
    def all_numbers(self) -> bool:
        """Whether the features of a state are all of its numbers, and it is rebuilt from them."""
        return self.plain_features and not callable(getattr(self.owner, "with_features", None))

    @property
    def judges(self) -> bool:
        """Whether it says itself what a state pays, or whether it is an end."""
        return any(callable(getattr(self.owner, name, None)) for name in ("reward", "terminal"))

    def judge(self, state: State, action: int, following: State, reward: float, over: bool) -> tuple[float, bool]:
        """Reward and end of a corrected next state: by the simulator's `reward` and `terminal`, if it offers them."""
        own_reward, own_end = (getattr(self.owner, name, None) for name in ("reward", "terminal"))
        try:
            paid = float(own_reward(state, action, following)) if callable(own_reward) else reward
            return paid, bool(own_end(following)) if callable(own_end) else over
        except (Exception, SystemExit) as error:
            raise SimulatorError(f"{self.name}: judging {short_repr(following)} raised {error!r}") from error

    def rebuild(self, state: State, vector: np.ndarray) -> State:
        """A state like `state` with other features; None if that cannot be done.

        The simulator's own `with_features(state, vector)` does it, or the features are all numbers of a state.
        """
        own = getattr(self.owner, "with_features", None)
        if callable(own):
            return own(state, vector)
        return unflatten(state, vector) if self._features is flatten else None

    def step(self, state: State, action: int) -> Outcome:
        """One step of a deterministic simulator."""
        return self._three(self._ask(state, action))

    def _outcomes(self, state: State, action: int) -> Any:
        """All outcomes of a step. The search checks their probabilities."""
        found = self._ask(state, action)
        if not isinstance(found, (list, tuple)) or not all(isinstance(one, tuple) and len(one) == 2 for one in found):
            raise SimulatorError(
                f"{self.name}: outcomes returned {short_repr(found)}; it must return a list of (probability, (state, "
                "reward, terminal))"
            )
        for _, outcome in found:
            self._three(outcome)
        return checks.normalise(self.name, found) if self.normalises else found

    def _sample(self, state: State, action: int, rng: np.random.Generator) -> Outcome:
        """A draw from the outcomes of a step."""
        return self._three(self._ask(state, action, rng))

    def _ask(self, state: State, action: int, *rng: np.random.Generator) -> Any:
        try:
            return self.call(state, action, *rng)
        except PASSED_ON:
            raise
        except BaseException as error:
            every = "every action" if self.continuous else f"every action, a number from 0 to {self.num_actions - 1}"
            said = (
                f"{self.name}: {self.kind} raised {type(error).__name__}: {error} (state {short_repr(state)}, action "
            )
            raise SimulatorError(
                f"{said}{action}); it must answer for every state it has led to and {every}"
            ) from error

    def _three(self, outcome: Any) -> Outcome:
        if type(outcome) is not tuple or len(outcome) != 3:
            raise SimulatorError(checks.not_three(self.name, self.kind, outcome))
        return outcome

    def features(self, state: State) -> np.ndarray:
        """The numbers in which states are compared: always equally many, all finite."""
        plain = self._features is flatten and is_vector(state) and state
        if plain and min(state) >= -LARGEST and max(state) <= LARGEST and not math.isnan(sum(state)):
            return np.array(state, np.float64)
        return self._vector(self._features, state, "features")

    def quick_features(self, state: State) -> np.ndarray:
        """The features of a state, not checked: for trials, which may meet anything."""
        if self._features is flatten and is_vector(state):
            return np.array(state, np.float64)
        return np.asarray(self._features(state), np.float64).reshape(-1)

    def inputs(self, state: State) -> np.ndarray:
        """The numbers that U is learned from; by default the features."""
        if self._inputs is None:
            return self.features(state)
        return self._vector(self._inputs, state, "inputs").astype(np.float32)

    def key(self, state: State) -> Hashable:
        """What tells a state from others: the simulator's `identity`, or the whole state."""
        if self._identity is None and is_vector(state) and (total := sum(state)) == total:  # it holds no NaN
            return state  # type: ignore[no-any-return]
        try:
            found = state if self._identity is None else self._identity(state)
            return found if type(found) is int else self.whole(found)
        except (Exception, SystemExit) as error:
            raise SimulatorError(
                f"{self.name}: state {short_repr(state)} cannot be told from others ({type(error).__name__}: {error}); "
                "pass identity=, a function that gives numbers, strings or tuples of them for a state"
            ) from error

    def identity(self, state: State) -> Hashable:
        """The key of a state, for searches."""
        return self.key(state)

    def accept(self, thing: Any) -> Any:
        """Turns what the user has in hand into a state."""
        return thing if self._accept is None else self._accept(thing)

    def _vector(self, function: Callable[[Any], Any], state: State, what: str) -> np.ndarray:
        try:
            vector = np.asarray(function(state), np.float64).reshape(-1)
        except (Exception, SystemExit) as error:
            if isinstance(error, SimulatorError):
                raise
            raise SimulatorError(
                f"{self.name}: the {what} of state {short_repr(state)} are not numbers ({type(error).__name__}: "
                f"{error}); pass features=, a function that gives a vector for a state"
            ) from error
        if not np.all(np.abs(vector) <= LARGEST):
            raise SimulatorError(
                f"{self.name}: the {what} of state {short_repr(state)} are {short_repr(vector.tolist())}; they must be "
                "finite numbers of at most 3.4e38"
            )
        return vector

    def _legal(self, legal: Callable[[Any], Any], state: State) -> list[int]:
        try:
            return legal_actions(legal(state), self.num_actions)
        except (Exception, SystemExit) as error:
            what = error if isinstance(error, ValueError) else f"legal_actions raised {type(error).__name__}: {error}"
            raise SimulatorError(f"{self.name}: {what} (in state {short_repr(state)})") from error

    def choices(self, state: State) -> Any:
        """The legal actions of a state; a few of them, if they are continuous."""
        if self.continuous:
            propose = Proposals(self, self.policy, np.random.default_rng(0))
            return [propose(state) for _ in range(3)]
        legal = getattr(self, "legal_actions", None)
        return range(self.num_actions) if legal is None else legal(state)
