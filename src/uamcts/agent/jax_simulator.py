"""`JaxSimulator`: a simulator that JAX can compile, and the checks that it has the right form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.arguments import action_count, function, names, shown
from uamcts.types import Legal, Model, PyTree


@dataclass(frozen=True, eq=False)
class JaxSimulator:
    """A simulator that JAX can compile: `step(state, action)` gives a `Transition`, pure, absorbing at terminals.

    `features` and `inputs` are functions of a state that give vectors; by default all its numbers. `example` is any one
    state: it tells what states look like. `legal(state)` gives conditions [num_actions].

    `identity(state)` gives the part of a state, a pytree of arrays, that tells it from others, for an agent's memory:
    by default all of it. Where a state carries a clock that nothing depends on, leave the clock out, else no state ever
    comes again and nothing that was seen is ever recognised.
    """

    step: Model
    num_actions: int
    example: PyTree
    features: Callable[[PyTree], jax.Array] | None = None
    inputs: Callable[[PyTree], jax.Array] | None = None
    legal: Legal | None = None
    name: str = "simulator"
    action_names: tuple[str, ...] = ()
    identity: Callable[[PyTree], PyTree] | None = None

    def __post_init__(self) -> None:
        if not callable(self.step):
            raise TypeError(f"step is {shown(self.step)}; give a function (state, action) -> Transition")
        object.__setattr__(self, "num_actions", action_count(self.num_actions))
        object.__setattr__(self, "action_names", names("action_names", self.action_names, self.num_actions))
        for argument in ("features", "inputs", "legal", "identity"):
            function(argument, getattr(self, argument), "of a state, or leave it out")
        if not isinstance(self.name, str):
            raise TypeError(f"name is {shown(self.name)}; give a string")
        for leaf in jax.tree.leaves(self.example) or [None]:
            if not isinstance(leaf, (bool, int, float, np.ndarray, np.generic, jax.Array)) or not _numeric(leaf):
                raise TypeError(f"example is {shown(self.example)}; give one state, a pytree of arrays of numbers")
        self._check_forms()

    def _check_forms(self) -> None:
        """Refuses functions whose results have the wrong form, before they are compiled into anything."""
        example = jax.tree.map(jnp.asarray, self.example)
        found = self._trace("step", self.step, example, jnp.int32(0))
        if not isinstance(found, tuple) or len(found) != 3:
            raise TypeError(f"step returns {shown(found)}; it must return a uamcts.Transition(state, reward, terminal)")
        after, reward, terminal = found
        if _form(after) != _form(example):
            raise TypeError(
                f"step returns a state of the form {shown(_form(after))} where example has {shown(_form(example))}; "
                "every state must have the structure, shapes and dtypes of example (see jnp.asarray, astype)"
            )
        for field, value in (("reward", reward), ("terminal", terminal)):
            if getattr(value, "shape", None) != ():
                raise TypeError(f"step returns {shown(value)} as {field}; it must be one number, without axes")
        if self.legal is not None:
            allowed = self._trace("legal", self.legal, example)
            if getattr(allowed, "shape", None) != (self.num_actions,) or allowed.dtype != bool:
                raise TypeError(f"legal returns {shown(allowed)}; it must return conditions, bool[{self.num_actions}]")

    def _trace(self, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return jax.eval_shape(call, *arguments)
        except Exception as error:
            text = str(error).split("\n")[0]
            raise TypeError(
                f"{name} of {self.name} cannot be compiled by JAX ({type(error).__name__}: {text}); it must be a pure "
                "function of arrays, or plan in it as a Python object with step and num_actions"
            ) from error


def _numeric(leaf: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(leaf), jnp.number) or jnp.result_type(leaf) == jnp.bool_


def _form(tree: PyTree) -> Any:
    """Structure, shapes and dtypes of a pytree."""
    return jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", tree)
