"""`uamcts.search`: validates the arguments, runs the search, and raises what its flags report."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uamcts.arguments import action_count, refuse_beyond_memory, search_bytes
from uamcts.mcts.config import STATIC_FIELDS, SearchConfig
from uamcts.mcts.problem import Problem
from uamcts.mcts.search import BAD_REWARD, BAD_UNCERTAINTY, NO_ACTION, SearchResult, tree_search
from uamcts.types import BatchedUncertainty, Legal, Model, PyTree, Uncertainty

_Fixed: TypeAlias = tuple[tuple[str, Any], ...]
"""The settings that are built into a program."""


def search(
    key: PRNGKeyArray,
    state: PyTree,
    model: Model,
    uncertainty: Uncertainty | BatchedUncertainty | None,
    config: SearchConfig,
    *,
    num_actions: int | None = None,
    legal: Legal | None = None,
) -> SearchResult:
    """Plans one move from `state` in `model`, avoiding transitions with a high `uncertainty`.

    A pure function, to be used with `jax.jit` and `jax.vmap`. Called outside of them it compiles itself and keeps the
    program for later calls with the same functions. A new lambda is a new program, and values that a function closes
    over must not change.

    Args:
        key: a JAX random key.
        state: the state to plan from, a pytree of arrays.
        model: the simulator, `(state, action) -> Transition`.
        uncertainty: how wrong the model is about a transition, `(state, action) -> U`. None: the model is right.
        config: the settings of the search.
        num_actions: how many actions there are. None: `num_actions` of the model, or of the object whose method it is.
        legal: which actions are legal, `(state) -> [num_actions]`. None: `legal` of that object, or all actions.

    Returns:
        The chosen action, and visits, values and uncertainties of all actions.

    Raises:
        ValueError: if the number of actions is unknown, if the search needs more memory than the machine has, or if
            `raise_flags` finds an error in the result. Under `jax.jit` and `jax.vmap` call `raise_flags` yourself.

    Example:
        ```python
        domain = uamcts.make("space_invaders")
        key = jax.random.key(0)
        config = uamcts.SearchConfig(iterations=10, rollouts=10, depth=20)
        result = uamcts.search(key, domain.reset(key), domain.model, uamcts.true_uncertainty(domain), config)
        ```
    """
    owner = getattr(model, "__self__", model)
    num_actions = getattr(owner, "num_actions", None) if num_actions is None else num_actions
    if num_actions is None:
        raise ValueError("num_actions is not given and the model does not have it; pass num_actions=...")
    num_actions = action_count(num_actions)
    legal = getattr(owner, "legal", None) if legal is None else legal
    uncertainty = no_uncertainty if uncertainty is None else uncertainty
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((key, state, config))):
        return tree_search(key, state, Problem(model, uncertainty, num_actions, legal), config)
    what = f"a search of {config.iterations} iterations with {config.rollouts} rollouts each"
    refuse_beyond_memory(search_bytes(state, config, num_actions), what, "give fewer iterations or rollouts")
    fixed, free = _partition(config)
    parts: Any = (model, uncertainty, num_actions, legal, fixed)
    try:
        program = _program(*parts)
    except TypeError:  # a function that cannot be a key is compiled anew for every call
        program = _program.__wrapped__(*parts)
    result = program(key, state, free)
    if not isinstance(result.flags, jax.core.Tracer):  # else the model or the uncertainty is being transformed
        raise_flags(result)
    return result


def no_uncertainty(state: PyTree, action: Int[Array, ""]) -> Float[Array, ""]:
    """U = 0 everywhere: the model is trusted."""
    return jnp.zeros((), float)


def raise_flags(result: Any) -> None:
    """Raises an error if a search, or any search of a batch, met something that it cannot plan with.

    `uamcts.search` does this itself unless it runs under `jax.jit` or `jax.vmap`, where values are not known yet.

    Args:
        result: a `SearchResult`, or anything else with the `flags` of searches.

    Raises:
        ValueError: if there was no legal action at the root, if an uncertainty was negative or not finite, or if a
            reward was not finite.

    Example:
        ```python
        results = jax.jit(jax.vmap(plan))(keys, states)
        uamcts.raise_flags(results)
        ```
    """
    flags = np.bitwise_or.reduce(np.ravel(np.asarray(result.flags)))
    if flags & NO_ACTION:
        raise ValueError("there is no legal action at the root, or the search was too short to try one")
    if flags & BAD_UNCERTAINTY:
        raise ValueError("the uncertainty function returned a number that is negative or not finite")
    if flags & BAD_REWARD:
        raise ValueError("the model returned a reward that is not a finite number")


def _partition(config: SearchConfig) -> tuple[_Fixed, dict[str, Any]]:
    """Settings that decide how the program is built, and those that are its arguments.

    Plain booleans and a discount of 1 are built in: the program then leaves out what they switch off.
    """
    fixed: dict[str, Any] = {}
    free: dict[str, Any] = {}
    for name in SearchConfig.__dataclass_fields__:
        value = getattr(config, name)
        static = isinstance(value, (bool, str)) or value is None or name in STATIC_FIELDS
        (fixed if static or (name == "gamma" and np.ndim(value) == 0 and value == 1) else free)[name] = value
    return tuple(fixed.items()), free


@functools.lru_cache(maxsize=64)
def _program(
    model: Model,
    uncertainty: Uncertainty | BatchedUncertainty,
    num_actions: int,
    legal: Legal | None,
    fixed: _Fixed,
) -> Callable[..., SearchResult]:
    """The compiled program of one model, uncertainty function and set of built-in settings."""

    def program(key: PRNGKeyArray, state: PyTree, free: dict[str, Any]) -> SearchResult:
        config = SearchConfig(**dict(fixed), **free)
        return tree_search(key, state, Problem(model, uncertainty, num_actions, legal), config)

    return jax.jit(program)
