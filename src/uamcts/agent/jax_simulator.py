"""`JaxSimulator`: a simulator that JAX can compile, and checks of its functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.agent.jax_code import Coded, find_code_params
from uamcts.arguments import action_count, function, names, short_repr
from uamcts.corrections.elements import is_in_code
from uamcts.types import Legal, Model, PyTree, Transition

ARGUMENTS = {"step": 2, "outcomes": 2, "sample": 3, "terminal": 1, "reward": 3}
"""Functions that take params, and how many arguments each has before them."""


@dataclass(frozen=True, eq=False)
class JaxSimulator:
    """A simulator that JAX can compile, for the compiled search.

    Args:
        step: A pure function `(state, action) -> uamcts.Transition`, absorbing in terminal states. None if the
            simulator is random and has `outcomes` or `sample`.
        num_actions: The number of actions.
        example: Any state; it defines the structure, shapes and dtypes of states.
        features: A function of a state that returns the vector in which simulator and reality are compared. By default
            all numbers of the state.
        inputs: A function of a state that returns the vector that U is learned from. By default the features.
        legal: A function of a state that returns which actions are legal, bool [num_actions].
        name: A name for messages.
        action_names: Names of the actions for reports.
        identity: A function of a state that returns the part, a pytree of arrays, that tells it from other states, for
            an agent's memory. By default the whole state. Leave out a clock that nothing depends on; otherwise no
            state is ever seen again.
        outcomes: A pure function `(state, action) -> (uamcts.Transition over [K], probabilities [K])` of a random
            simulator: all outcomes with their probabilities.
        sample: A pure function `(state, action, key) -> uamcts.Transition` of a random simulator, which draws. Of
            `outcomes`, `sample` and `step` the first that is given is planned in.
        params: The parameters of the simulator, a pytree of numbers. If given, `step`, `outcomes` and `sample` take it
            as their last argument, and so do `terminal` and `reward`: `step(state, action, params)`. An agent corrects
            its numbers and the elements of its short vectors ("gravity", "wind[0]", "arm.length"). A call without
            params uses these. If they are not given, real numbers that the functions take from their module, a closure
            or default arguments become params (`global GRAVITY`).
        terminal: A function `next_state -> bool`: whether the episode is over there. An agent that shifts next states
            by what it has learned then judges the end anew.
        reward: A function `(state, action, next_state) -> number`; likewise for the reward.
        render: A function of a state that draws it for `Agent.inspect`: a text, a 2-D array of whole numbers or names,
            or an image.

    Raises:
        TypeError: A function cannot be compiled, or returns something of the wrong shape or type.
        ValueError: `num_actions` or `action_names` is not legal.

    Example:
        ```python
        def step(state, action):
            following = jnp.clip(state + 2 * action - 1, 0, 4)
            following = jnp.where(state == 4, state, following)  # terminal states are absorbing
            return uamcts.Transition(following, jnp.where(state == 4, 0.0, 1.0 * (following == 4)), following == 4)

        agent = uamcts.Agent(uamcts.JaxSimulator(step, num_actions=2, example=jnp.int32(0)))
        ```
    """

    step: Model | None
    num_actions: int
    example: PyTree
    features: Callable[[PyTree], jax.Array] | None = None
    inputs: Callable[[PyTree], jax.Array] | None = None
    legal: Legal | None = None
    name: str = "simulator"
    action_names: tuple[str, ...] = ()
    identity: Callable[[PyTree], PyTree] | None = None
    outcomes: Callable[[PyTree, jax.Array], tuple[Transition, jax.Array]] | None = None
    sample: Callable[[PyTree, jax.Array, jax.Array], Transition] | None = None
    params: PyTree = None
    terminal: Callable[..., jax.Array] | None = None
    reward: Callable[..., jax.Array] | None = None
    render: Callable[[PyTree], object] | None = None

    @property
    def kind(self) -> str:
        """Which of `outcomes`, `sample` and `step` it is planned in by."""
        return next(name for name in ("outcomes", "sample", "step") if getattr(self, name) is not None)

    def __post_init__(self) -> None:
        function("outcomes", self.outcomes, "(state, action) -> (Transition over [K], probabilities [K])")
        function("sample", self.sample, "(state, action, key) -> Transition")
        if not callable(self.step) and (self.step is not None or (self.outcomes is None and self.sample is None)):
            raise TypeError(
                f"step is {short_repr(self.step)}; give a function (state, action) -> Transition, or None with "
                "outcomes= or sample= if the simulator is random"
            )
        object.__setattr__(self, "num_actions", action_count(self.num_actions))
        object.__setattr__(self, "action_names", names("action_names", self.action_names, self.num_actions))
        for argument in ("features", "inputs", "legal", "identity", "render"):
            function(argument, getattr(self, argument), "of a state, or leave it out")
        function("terminal", self.terminal, "of the next state, or leave it out")
        function("reward", self.reward, "(state, action, next_state) -> number, or leave it out")
        if not isinstance(self.name, str):
            raise TypeError(f"name is {short_repr(self.name)}; give a string")
        for leaf in jax.tree.leaves(self.example) or [None]:
            if not isinstance(leaf, (bool, int, float, np.ndarray, np.generic, jax.Array)) or not _numeric(leaf):
                raise TypeError(f"example is {short_repr(self.example)}; give one state, a pytree of arrays of numbers")
        self._bind_params()
        self._check_forms()

    def _bind_params(self) -> None:
        """Gives every function that takes params those of this simulator by default."""
        for leaf in jax.tree.leaves(self.params):
            if not isinstance(leaf, (bool, int, float, np.ndarray, np.generic, jax.Array)) or not _numeric(leaf):
                raise TypeError(f"params is {short_repr(self.params)}; give a pytree of numbers and arrays of numbers")
        if self.params is None or self._has_new_code():
            self._bind_code()
            return
        for name, arguments in ARGUMENTS.items():
            call = getattr(self, name)
            if call is not None:
                call = call.call if isinstance(call, Parametric) else call
                object.__setattr__(self, name, Parametric(call, self.params, arguments))

    def _has_new_code(self) -> bool:
        """Whether params stand for numbers in code, and a function was replaced by another one."""
        own = [call for name in ARGUMENTS if (call := getattr(self, name)) is not None]
        coded = all(isinstance(call, Parametric) and isinstance(call.call, Coded) for call in own)
        return not coded and isinstance(self.params, dict) and all(is_in_code(str(name)) for name in self.params)

    def _bind_code(self) -> None:
        """Makes numbers in the code of the functions params, if there are any."""
        for name in ARGUMENTS:
            call = getattr(self, name)
            if isinstance(call, Parametric) and isinstance(call.call, Coded):
                object.__setattr__(self, name, call.call.function)
        object.__setattr__(self, "params", None)
        own = {name: call for name in ARGUMENTS if (call := getattr(self, name)) is not None}
        state = jax.tree.map(jnp.asarray, self.example)
        given: dict[str, tuple[PyTree, ...]] = dict.fromkeys(own, (state, jnp.int32(0)))
        given |= {"sample": (state, jnp.int32(0), jax.random.key(0)), "terminal": (state,)}
        given["reward"] = state, jnp.int32(0), state
        try:
            params, coded = find_code_params(own, given)
        except Exception:  # a function that cannot be traced is refused below
            return
        if params:
            object.__setattr__(self, "params", params)
            for name, call in coded.items():
                object.__setattr__(self, name, Parametric(call, params, ARGUMENTS[name]))

    def call(self, name: str, params: PyTree) -> Callable[..., Any]:
        """One of its functions with other params. A transition may be returned as a plain tuple."""
        function = getattr(self, name)
        inner = function if not isinstance(function, Parametric) else lambda *given: function.call(*given, params)
        if name == "outcomes":
            return lambda *given: (Transition(*(found := inner(*given))[0]), found[1])
        return (lambda *given: Transition(*inner(*given))) if name in ("step", "sample") else inner

    def _check_forms(self) -> None:
        """Refuses functions whose results have the wrong shapes or types, before anything is compiled."""
        example = jax.tree.map(jnp.asarray, self.example)
        if self.step is not None:
            self._check_transition("step", self._trace("step", self.step, example, jnp.int32(0)), example)
        if self.sample is not None:
            drawn = self._trace("sample", self.sample, example, jnp.int32(0), jax.random.key(0))
            self._check_transition("sample", drawn, example)
        if self.outcomes is not None:
            self._check_outcomes(self._trace("outcomes", self.outcomes, example, jnp.int32(0)), example)
        for name in ("terminal", "reward"):
            given = (example,) if name == "terminal" else (example, jnp.int32(0), example)
            if getattr(self, name) is not None:
                found = self._trace(name, getattr(self, name), *given)
                if getattr(found, "shape", None) != ():
                    raise TypeError(f"{name} returns {short_repr(found)}; it must return one number, without axes")
        if self.legal is not None:
            allowed = self._trace("legal", self.legal, example)
            if getattr(allowed, "shape", None) != (self.num_actions,) or allowed.dtype != bool:
                raise TypeError(
                    f"legal returns {short_repr(allowed)}; it must return conditions, bool[{self.num_actions}]"
                )

    def _check_outcomes(self, found: Any, example: PyTree) -> None:
        """Refuses outcomes without a leading axis [K], or with other probabilities than [K]."""
        sizes = getattr(found[1], "shape", None) if isinstance(found, tuple) and len(found) == 2 else None
        leaves = jax.tree.leaves(found[0]) if sizes is not None else []
        if sizes is None or len(sizes) != 1 or sizes[0] < 1 or any(leaf.shape[:1] != sizes for leaf in leaves):
            raise TypeError(
                f"outcomes returns {short_repr(found)}; it must return a uamcts.Transition whose arrays have a leading "
                "axis [K] of at least one outcome, and probabilities [K]"
            )
        single = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), found[0])
        self._check_transition("outcomes", single, example)

    def _check_transition(self, name: str, found: Any, example: PyTree) -> None:
        if not isinstance(found, tuple) or len(found) != 3:
            raise TypeError(
                f"{name} returns {short_repr(found)}; it must return a uamcts.Transition(state, reward, terminal)"
            )
        after, reward, terminal = found
        if _form(after) != _form(example):
            raise TypeError(
                f"{name} returns a state of the form {short_repr(_form(after))} where example has "
                f"{short_repr(_form(example))}; "
                "every state must have the structure, shapes and dtypes of example (see jnp.asarray, astype)"
            )
        for field, value in (("reward", reward), ("terminal", terminal)):
            if getattr(value, "shape", None) != ():
                raise TypeError(
                    f"{name} returns {short_repr(value)} as {field}; it must be one number: give a function of one "
                    "state, not of a batch"
                )

    def _trace(self, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return jax.eval_shape(call, *arguments)
        except Exception as error:
            text = str(error).split("\n")[0]
            raise TypeError(
                f"{name} of {self.name} cannot be compiled by JAX ({type(error).__name__}: {text}); it must be a pure "
                "function of arrays, or plan in it as a Python object with step and num_actions"
            ) from error


class Parametric:
    """A function of a simulator whose last argument, params, may be left out."""

    def __init__(self, call: Callable[..., Any], params: PyTree, arguments: int):
        self.call, self.params, self.arguments = call, params, arguments

    def __call__(self, *given: Any) -> Any:
        return self.call(*given, self.params) if len(given) == self.arguments else self.call(*given)


def _numeric(leaf: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(leaf), jnp.number) or jnp.result_type(leaf) == jnp.bool_


def _form(tree: PyTree) -> Any:
    """Structure, shapes and dtypes of a pytree."""
    return jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", tree)
