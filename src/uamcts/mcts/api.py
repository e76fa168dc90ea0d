"""`uamcts.search`: the search with its arguments looked at before and its flags looked at after."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.arguments import action_count, refuse_beyond_memory, search_bytes
from uamcts.mcts.config import STATIC_FIELDS, SearchConfig
from uamcts.mcts.problem import Problem
from uamcts.mcts.search import BAD_REWARD, BAD_UNCERTAINTY, NO_ACTION, SearchResult, tree_search
from uamcts.types import Legal, Model, PyTree, Uncertainty


def search(
    key: jax.Array,
    state: PyTree,
    model: Model,
    uncertainty: Uncertainty | None,
    config: SearchConfig,
    *,
    num_actions: int | None = None,
    legal: Legal | None = None,
) -> SearchResult:
    """Plans one move from `state` in `model`, leaning away from transitions with a high `uncertainty`.

    A pure function: `jit` it, `vmap` it. Called plainly it compiles itself once and keeps the program for as long as it
    gets the same functions: a new lambda is a new program, and what a function reads must not change behind its back.
    The number of actions, and which of them are legal, are the model's own (`domain.model` knows) or given here.

    What only shows while the search runs (an uncertainty that is negative or not finite, a reward that is not finite,
    no legal action at the root) is an error when called plainly and a flag on the result otherwise: see `raise_flags`.
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
        program = _compiled(*parts)
    except TypeError:  # a function that cannot be a key is compiled anew for every call
        program = _compiled.__wrapped__(*parts)
    result = program(key, state, free)
    if not isinstance(result.flags, jax.core.Tracer):  # else the model or the uncertainty is being transformed
        raise_flags(result)
    return result


def no_uncertainty(state: PyTree, action: jax.Array) -> jax.Array:
    """U = 0 everywhere: the model is believed."""
    return jnp.zeros((), float)


def raise_flags(result: Any) -> None:
    """Raises an error if a search, or any of a batch of them, met something that it cannot plan with.

    `result` is anything that has the `flags` of searches.
    """
    flags = np.bitwise_or.reduce(np.ravel(np.asarray(result.flags)))
    if flags & NO_ACTION:
        raise ValueError("there is no legal action at the root, or the search was too short to try one")
    if flags & BAD_UNCERTAINTY:
        raise ValueError("the uncertainty function returned a number that is negative or not finite")
    if flags & BAD_REWARD:
        raise ValueError("the model returned a reward that is not a finite number")


def _partition(config: SearchConfig) -> tuple[tuple, dict[str, Any]]:
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
def _compiled(model: Any, uncertainty: Any, num_actions: int, legal: Any, fixed: tuple) -> Callable[..., SearchResult]:
    """The compiled program of one model, uncertainty function and set of built-in settings."""

    def program(key: jax.Array, state: PyTree, free: dict[str, Any]) -> SearchResult:
        config = SearchConfig(**dict(fixed), **free)
        return tree_search(key, state, Problem(model, uncertainty, num_actions, legal), config)

    return jax.jit(program)
