"""`uamcts.search_many`: a batch of searches on all devices."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from uamcts.arguments import whole
from uamcts.mcts.api import Fixed, check_size, find_program, no_uncertainty, partition, raise_flags, run_search
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.problem import Problem, make_problem
from uamcts.mcts.search import SearchResult
from uamcts.runtime.devices import spread
from uamcts.types import AnyModel, BatchedUncertainty, Legal, Number, Policy, Prior, PyTree, Uncertainty, Value

LANES = 640
"""How many rollouts run side by side on a CPU. XLA splits longer loops between threads, which takes longer."""


def search_many(
    keys: PRNGKeyArray,
    states: PyTree,
    model: AnyModel,
    uncertainty: Uncertainty | BatchedUncertainty | None,
    config: SearchConfig,
    *,
    num_actions: int | None = None,
    legal: Legal | None = None,
    policy: Policy | None = None,
    value: Value | None = None,
    prior: Prior | None = None,
    horizon: Number = None,
) -> SearchResult:
    """Plans one move from each of many states, on all devices: every GPU, or every core after `uamcts.configure()`.

    The same as `jax.vmap` of `search` over keys and states; the searches do not depend on each other. The first call
    compiles a program that later calls with the same functions, settings and number of states use again.

    Args:
        keys: JAX random keys, [n].
        states: the states to plan from, a pytree of arrays with a leading axis [n].
        model: the simulator, as for `search`.
        uncertainty: how wrong the model is, as for `search`.
        config: the settings of all searches.
        num_actions: how many actions there are, as for `search`.
        legal: which actions are legal, as for `search`.
        policy: rolls out instead of uniform random actions, as for `search`.
        value: the value of a state, as for `search`.
        prior: prior probabilities of actions, as for `search`.
        horizon: how many steps are left, in all searches.

    Returns:
        The result of every search, all arrays with a leading axis [n].

    Raises:
        ValueError: if there are not as many keys as states, or for the same reasons as `search`.

    Example:
        ```python
        domain = uamcts.make("space_invaders")
        keys = jax.random.split(jax.random.key(0), 64)
        config = uamcts.SearchConfig(iterations=10, rollouts=10, depth=20)
        results = uamcts.search_many(keys, jax.vmap(domain.reset)(keys), domain.model, None, config)
        print(results.action)
        ```
    """
    count = _count(keys, states)
    horizon = None if horizon is None else whole("horizon", horizon)
    uncertainty = no_uncertainty if uncertainty is None else uncertainty
    guides = {"policy": policy, "value": value, "prior": prior}
    problem = make_problem(model, uncertainty, num_actions, legal, samples=config.outcomes, **guides)
    check_size(jax.tree.map(_one_of, states), problem, config, count)
    fixed, free = partition(config)
    result = find_program(_many_program, problem, fixed)(keys, states, free, horizon)
    raise_flags(result)
    return result


def _one_of(leaf: jax.Array) -> jax.ShapeDtypeStruct:
    """The type of one entry of a batch: looking at an entry itself would take as long as some searches."""
    return jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)


def _count(keys: PRNGKeyArray, states: PyTree) -> int:
    """How many searches there are; refuses keys and states that do not match."""
    leaves = jax.tree.leaves(states)
    if jnp.ndim(keys) != 1 or not leaves or any(jnp.shape(leaf)[:1] != keys.shape for leaf in leaves):
        shapes = ", ".join(str(jnp.shape(leaf)) for leaf in leaves)
        raise ValueError(
            f"keys have shape {jnp.shape(keys)} and the arrays of states {shapes or 'none'}; give n keys "
            "(jax.random.split(key, n)) and arrays whose first axis has n entries"
        )
    return int(keys.shape[0])


@functools.lru_cache(maxsize=64)
def _many_program(problem: Problem, fixed: Fixed) -> Callable[..., SearchResult]:
    """The program of a batch of keys and states with common settings and a common horizon, on all devices."""

    def program(key: PRNGKeyArray, state: PyTree, free: dict[str, Any], horizon: Number) -> SearchResult:
        return run_search(key, state, problem, SearchConfig(**dict(fixed), **free), horizon=horizon)

    share = max(1, LANES // dict(fixed)["rollouts"])

    def batch(keys: PRNGKeyArray, states: PyTree, *settings: PyTree) -> SearchResult:
        if jax.default_backend() != "cpu" or keys.shape[0] <= share:
            return jax.vmap(lambda *one: program(*one, *settings))(keys, states)
        results: SearchResult = jax.lax.map(lambda one: program(*one, *settings), (keys, states), batch_size=share)
        return results

    spread_program: Callable[..., SearchResult] = spread(batch, shared=2)
    return spread_program
