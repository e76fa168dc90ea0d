"""`uamcts.search`: the search with its arguments looked at before and its flags looked at after."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.arguments import refuse_beyond_memory, search_bytes
from uamcts.mcts.config import STATIC_FIELDS, SearchConfig
from uamcts.mcts.graph.graph import Graph, graph_bytes
from uamcts.mcts.graph.search import BAD_PROBABILITY, graph_search
from uamcts.mcts.problem import Problem, make_problem
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
    policy: Any = None,
    value: Any = None,
    prior: Any = None,
    horizon: Any = None,
    tree: Any = None,
) -> SearchResult:
    """Plans one move from `state` in `model`, leaning away from transitions with a high `uncertainty`.

    A pure function: `jit` it, `vmap` it. Called plainly it compiles itself once and keeps the program for as long as it
    gets the same functions: a new lambda is a new program, and what a function reads must not change behind its back.
    The number of actions, and which of them are legal, are the model's own (`domain.model` knows) or given here.

    `model` is a function (state, action) -> Transition, or an object with `outcomes(state, action)` -> (Transition over
    [K], probabilities [K]), `sample(state, action, key)` -> Transition, or `step`; it is planned in by the first of
    these that it has.

    `policy(state, key)`, an action or probabilities [num_actions], rolls out instead of uniform random actions.
    `value(state)` takes the place of rollouts at a leaf, or is mixed with them (`config.value_weight`). `prior(state)`,
    probabilities [num_actions], guides selection: x + c P(a) sqrt(N) / (1 + n_a). `horizon` is how many steps are left.
    `tree` is the result of an earlier search with the same model and uncertainty: what it knows about the states that
    can be reached from `state` is kept, visits and values included; where it does not hold `state`, nothing is.

    What only shows while the search runs (an uncertainty that is negative or not finite, a reward that is not finite,
    no legal action at the root) is an error when called plainly and a flag on the result otherwise: see `raise_flags`.
    """
    uncertainty = no_uncertainty if uncertainty is None else uncertainty
    previous = getattr(tree, "tree", tree)
    guides = {"policy": policy, "value": value, "prior": prior}
    problem = make_problem(model, uncertainty, num_actions, legal, samples=config.outcomes, **guides)
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((key, state, config, horizon, previous))):
        return run_search(key, state, problem, config, horizon=horizon, previous=previous)
    what = f"a search of {config.iterations} iterations with {config.rollouts} rollouts each"
    if config.graph:
        needed = graph_bytes(state, config, problem.num_actions, problem.slots(state))
    else:
        needed = search_bytes(state, config, problem.num_actions)
    refuse_beyond_memory(needed, what, "give fewer iterations or rollouts")
    fixed, free = _partition(config)
    try:
        program = _compiled(problem, fixed)
    except TypeError:  # a function that cannot be a key is compiled anew for every call
        program = _compiled.__wrapped__(problem, fixed)
    result = program(key, state, free, horizon, previous)
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
    if flags & BAD_PROBABILITY:
        raise ValueError(
            "probabilities of outcomes, or of a prior, are negative, not numbers, or do not sum to 1; make `outcomes` "
            "return probabilities [K] that do, and `prior` numbers of at least 0 that are not all 0"
        )


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


def run_search(
    key: jax.Array,
    state: PyTree,
    problem: Problem,
    config: SearchConfig,
    memory: PyTree = None,
    horizon: jax.Array | int | None = None,
    previous: Graph | None = None,
) -> SearchResult:
    """The search that the settings ask for, on a tree or on a graph: pure and unbatched."""
    if config.graph:
        return graph_search(key, state, problem, config, memory, horizon, previous)
    for name, given in (("value", problem.value), ("prior", problem.prior), ("horizon", horizon), ("tree", previous)):
        if given is not None:
            raise ValueError(f"{name} is given, which only graph search reads; add graph=True to the settings")
    if problem.is_random:
        raise ValueError("the model is random, which only graph search plans in; add graph=True to the settings")
    return tree_search(key, state, problem, config, memory)


@functools.lru_cache(maxsize=64)
def _compiled(problem: Problem, fixed: tuple) -> Callable[..., SearchResult]:
    """The compiled program of one problem and set of built-in settings."""

    def program(key: jax.Array, state: PyTree, free: dict[str, Any], horizon: Any, previous: Any) -> SearchResult:
        config = SearchConfig(**dict(fixed), **free)
        return run_search(key, state, problem, config, horizon=horizon, previous=previous)

    return jax.jit(program)
