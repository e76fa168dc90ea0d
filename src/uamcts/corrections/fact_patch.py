"""A model and its uncertainty in JAX, corrected by facts: by what is known of a transition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uamcts.mcts.charge import Charged
from uamcts.mcts.lockstep import run_lockstep
from uamcts.types import BatchedUncertainty, Model, PyTree, Transition, Uncertainty

Find: TypeAlias = Callable[[PyTree, Int[Array, ""]], tuple[Transition, Bool[Array, ""]]]
"""The known outcome of an action in a state, and whether there is one."""


def identity_of(owner: Any) -> Callable[[PyTree], PyTree]:
    """What tells the states of a domain or a simulator apart: its own `identity(state)`, or the state itself."""
    own: Callable[[PyTree], PyTree] | None = getattr(owner, "identity", None)
    return (lambda state: state) if own is None else own


def patch_model(model: Model, find: Find) -> Model:
    """`model`, corrected by what is known."""

    def step(state: PyTree, action: Int[Array, ""]) -> Transition:
        fact, known = find(state, action)
        after: Transition = jax.tree.map(lambda real, guess: jnp.where(known, real, guess), fact, model(state, action))
        return after

    return step


def patch_uncertainty(uncertainty: Uncertainty | BatchedUncertainty, find: Find) -> Uncertainty | BatchedUncertainty:
    """`uncertainty`, and 0 for what is known."""
    if isinstance(uncertainty, Charged):
        return replace(uncertainty, uncertainty=patch_uncertainty(uncertainty.uncertainty, find))
    if isinstance(uncertainty, BatchedUncertainty):
        return PatchedUncertainty(uncertainty, find)

    def patched(state: PyTree, action: Int[Array, ""]) -> Float[Array, ""]:
        return jnp.where(find(state, action)[1], 0.0, uncertainty(state, action))

    return patched


@dataclass(frozen=True, eq=False)
class PatchedUncertainty:
    """The same for an uncertainty that is evaluated in batches; it keeps its own prediction cache."""

    uncertainty: Any
    """A `BatchedUncertainty` that is an `Uncertainty` as well."""
    find: Find

    def __call__(self, state: PyTree, action: Int[Array, ""]) -> Float[Array, ""]:
        return jnp.where(self.find(state, action)[1], 0.0, self.uncertainty(state, action))

    def empty_cache(self) -> PyTree:
        return self.uncertainty.empty_cache()

    def lookup(self, cache: PyTree, state: PyTree, action: Int[Array, ""]) -> tuple[Float[Array, ""], Bool[Array, ""]]:
        fact = self.find(state, action)[1]
        found, known = self.uncertainty.lookup(cache, state, action)
        return jnp.where(fact, 0.0, found), fact | known

    def predict_batch(
        self, cache: PyTree, states: PyTree, actions: Int[Array, " batch"], wanted: Bool[Array, " batch"]
    ) -> tuple[Float[Array, " batch"], PyTree]:
        fact = _are_known(self.find, states, actions)
        found, cache = self.uncertainty.predict_batch(cache, states, actions, wanted & ~fact)
        return jnp.where(fact, 0.0, found), cache


def _are_known(find: Find, states: PyTree, actions: Int[Array, " batch"]) -> Bool[Array, " batch"]:
    """Which transitions of a batch are known: on a GPU, all of them are looked up by one kernel."""

    def look(_: jax.Array, lane: tuple[PyTree, jax.Array, jax.Array]) -> tuple[PyTree, tuple[()]]:
        state, action, _ = lane
        return (state, action, find(state, action)[1]), ()

    lanes = (states, actions, jnp.zeros(actions.shape, bool))
    known: jax.Array = run_lockstep(look, lambda lane: lane[2], 1, lanes)[0][2]
    return known
