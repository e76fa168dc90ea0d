"""Parameters of a JAX simulator by name, and states whose features can be shifted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from uamcts.agent.compiled_residual import PackedResidual
from uamcts.agent.jax_simulator import JaxSimulator
from uamcts.corrections.links import resolve
from uamcts.corrections.parameters import LONGEST_VECTOR, MOST
from uamcts.corrections.settings import NOT_PARAMETERS, is_number
from uamcts.types import PyTree, Transition

MOST_SHIFTED = 64
"""Features of states that are shifted by a residual at most."""


class Variant(NamedTuple):
    """A simulator with other values of its parameters, and perhaps a residual, or other rates of its outcomes."""

    params: PyTree
    residual: PackedResidual | None = None
    rates: Float[Array, "actions outcomes"] | np.ndarray | None = None
    """By what the probabilities of listed outcomes are multiplied."""


class ParameterTree:
    """The numbers in a pytree by the names of their places: "gravity", "wind[0]", "arm.length".

    Whole numbers stay whole: a value for one is rounded.
    """

    def __init__(self, params: PyTree):
        self.params = jax.tree.map(_as_array, params)
        leaves, self._structure = jax.tree_util.tree_flatten_with_path(self.params)
        self._leaves = [leaf for _, leaf in leaves]
        self.places: dict[str, tuple[int, int | None]] = {}
        self.believed: dict[str, float] = {}
        for number, (path, leaf) in enumerate(leaves):
            self._add(number, _name(path), np.asarray(leaf))
        self.places = {name: self.places[name] for name in list(self.places)[:MOST]}
        self.believed = {name: self.believed[name] for name in self.places}

    def _add(self, number: int, name: str, leaf: np.ndarray) -> None:
        if leaf.dtype.kind not in "iuf" or name in NOT_PARAMETERS:
            return
        if leaf.ndim == 0 and is_number(leaf):
            self.places[name], self.believed[name] = (number, None), float(leaf)
        elif leaf.ndim == 1 and leaf.size <= LONGEST_VECTOR and np.isfinite(leaf).all():
            for place, value in enumerate(leaf.tolist()):
                self.places[f"{name}[{place}]"], self.believed[f"{name}[{place}]"] = (number, place), float(value)

    def vector(self, values: Mapping[str, float]) -> np.ndarray:
        """All parameters, with some other values."""
        values = resolve(values, self.believed)
        return np.array([values.get(name, value) for name, value in self.believed.items()], np.float32)

    def filled(self, vector: jax.Array, params: PyTree = None) -> PyTree:
        """The pytree, or another one of its form, with the parameters of a vector; may be traced."""
        leaves = list(self._leaves) if params is None else jax.tree.leaves(params)
        for place, (number, element) in enumerate(self.places.values()):
            value = vector[place]
            dtype = leaves[number].dtype
            value = (jnp.round(value) if jnp.issubdtype(dtype, jnp.integer) else value).astype(dtype)
            leaves[number] = value if element is None else leaves[number].at[element].set(value)
        return jax.tree.unflatten(self._structure, leaves)

    def with_values(self, values: Mapping[str, float]) -> PyTree:
        """The pytree with some other values; the others are exactly what they were."""
        leaves = [np.array(leaf) for leaf in self._leaves]
        for name, value in resolve(values, self.believed).items():
            number, element = self.places[name]
            exact = round(value) if leaves[number].dtype.kind in "iu" else value
            leaves[number][() if element is None else element] = exact
        return jax.tree.unflatten(self._structure, [jnp.asarray(leaf) for leaf in leaves])


def _as_array(leaf: Any) -> jax.Array:
    """A leaf as an array with a definite type."""
    array = jnp.asarray(leaf)
    return jnp.asarray(array, array.dtype)


def _name(path: Any) -> str:
    """The name of a place in a pytree."""
    found = ""
    for part in path:
        if isinstance(part, jax.tree_util.SequenceKey):
            found += f"[{part.idx}]"
            continue
        word = str(getattr(part, "key", getattr(part, "name", part)))
        found += f".{word}" if found else word
    return found or "params"


class Shift:
    """Which feature each real number of a state is, where features are such numbers and all of them.

    Features may hold whole numbers of a state besides; these are not shifted.
    """

    def __init__(self, features: Callable[[PyTree], jax.Array], example: PyTree):
        self.features = features
        leaves, self._structure = jax.tree.flatten(jax.tree.map(jnp.asarray, example))
        self._real = [place for place, leaf in enumerate(leaves) if jnp.issubdtype(leaf.dtype, jnp.floating)]
        self._sizes = [leaves[place].size for place in self._real]
        self.places = self._find(leaves)

    @property
    def possible(self) -> bool:
        return self.places is not None

    def _find(self, leaves: list[jax.Array]) -> np.ndarray | None:
        """For each real number of a state the feature that it is; None if there is not exactly one for each."""
        total = sum(self._sizes)
        if not 0 < total <= MOST_SHIFTED:
            return None

        def of_numbers(numbers: jax.Array) -> tuple[jax.Array, jax.Array]:
            values = jnp.ravel(self.features(self._fill(leaves, numbers)))
            return values, values

        look = jax.jit(jax.jacfwd(of_numbers, has_aux=True))
        found = None
        for seed in range(2):
            numbers = jnp.asarray(np.random.default_rng(seed).uniform(-1.0, 1.0, total), jnp.float32)
            try:
                slopes, values = map(np.asarray, look(numbers))
            except Exception:  # features may do anything with a state that was made up
                return None
            one = (
                np.isin(slopes, (0.0, 1.0)).all() and (slopes.sum(axis=0) == 1).all() and slopes.sum(axis=1).max() <= 1
            )
            places = slopes.argmax(axis=0)
            if not one or values.size > MOST_SHIFTED or not np.allclose(values[places], numbers, rtol=1e-6):
                return None
            if found is not None and not np.array_equal(found, places):
                return None
            found = places
        return found

    def _fill(self, leaves: list[jax.Array], numbers: jax.Array) -> PyTree:
        """A state with other real numbers."""
        filled, start = list(leaves), 0
        for place, size in zip(self._real, self._sizes, strict=True):
            part = numbers[start : start + size].reshape(leaves[place].shape)
            filled[place], start = part.astype(leaves[place].dtype), start + size
        return jax.tree.unflatten(self._structure, filled)

    def move(self, state: PyTree, by: jax.Array) -> PyTree:
        """A state whose features are shifted."""
        leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(state)]
        numbers = jnp.concatenate([jnp.ravel(leaves[place]) for place in self._real])
        return self._fill(leaves, numbers + by[self.places])


def shifted_step(
    simulator: JaxSimulator, shift: Shift, features: Callable[[PyTree], jax.Array], variant: Variant
) -> Callable[[PyTree, jax.Array], Transition]:
    """The `step` of a variant of a deterministic simulator.

    It does not absorb: a search looks at nothing that lies behind a terminal state. Every operation here is paid for in
    every step of a rollout.
    """
    step, residual = simulator.call("step", variant.params), variant.residual
    if residual is None:
        return step

    def corrected(state: PyTree, action: jax.Array) -> Transition:
        after, reward, over = jax.tree.map(jnp.asarray, tuple(step(state, action)))
        here = features(state)
        by = residual.difference(here, action)
        following = shift.move(after, by)
        if simulator.reward is not None:
            paid = simulator.call("reward", variant.params)(state, action, following)
            reward = jnp.asarray(paid, reward.dtype)
        if by.size > here.size:
            reward = reward + by[-1].astype(reward.dtype)
        if simulator.terminal is not None:
            over = jnp.asarray(simulator.call("terminal", variant.params)(following)).astype(over.dtype)
        return Transition(following, reward, over)

    return corrected
