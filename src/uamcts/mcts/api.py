"""`uamcts.search`: validates the arguments, runs the search, and raises what its flags report."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uamcts.arguments import refuse_beyond_memory, search_bytes, short_repr, whole
from uamcts.mcts.best_sequence import is_sought
from uamcts.mcts.config import SETTINGS, STATIC_FIELDS, SearchConfig
from uamcts.mcts.graph.graph import Graph, graph_bytes
from uamcts.mcts.graph.search import OTHER_SETTINGS, graph_search
from uamcts.mcts.growth import BAD_PROBABILITY, BAD_REWARD, BAD_UNCERTAINTY, NO_ACTION
from uamcts.mcts.problem import Problem, make_problem
from uamcts.mcts.search import SearchResult, tree_search
from uamcts.mcts.tree import Tree
from uamcts.runtime.alone import jit_alone
from uamcts.types import AnyModel, BatchedUncertainty, Legal, Number, Policy, Prior, PyTree, Uncertainty, Value

_Maker: TypeAlias = Any
"""A cached function of a problem and of built-in settings that makes a program."""
Fixed: TypeAlias = tuple[tuple[str, Any], ...]
"""The settings that are built into a program."""


def search(
    key: PRNGKeyArray,
    state: PyTree,
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
    tree: SearchResult | Tree | Graph | None = None,
) -> SearchResult:
    """Plans one move from `state` in `model`, avoiding transitions with a high `uncertainty`.

    A pure function, to be used with `jax.jit` and `jax.vmap`. Called outside of them it compiles itself and keeps the
    program for later calls with the same functions. A new lambda is a new program, and values that a function closes
    over must not change.

    Args:
        key: a JAX random key.
        state: the state to plan from, a pytree of arrays.
        model: the simulator, a function `(state, action) -> Transition`; or an object with `outcomes(state, action) ->
            (Transition over [K], probabilities [K])`, with `sample(state, action, key) -> Transition`, or with `step`,
            which is planned in by the first of these that it has.
        uncertainty: how wrong the model is about a transition, `(state, action) -> U`. None: the model is right.
        config: the settings of the search.
        num_actions: how many actions there are. None: `num_actions` of the model, or of the object whose method it is.
        legal: which actions are legal, `(state) -> [num_actions]`. None: `legal` of that object, or all actions.
        policy: rolls out instead of uniform random actions, `(state, key) ->` an action, or probabilities
            [num_actions].
        value: the value of a state, `(state) -> float`, instead of rollouts, or mixed with them by
            `config.value_weight`.
        prior: prior probabilities `(state) -> [num_actions]`, which guide selection: x + c P(a) sqrt(N) / (1 + n_a).
        horizon: how many steps are left. None: as many as you like.
        tree: the result of an earlier search with the same model and uncertainty. What it found out about the states
            that can be reached from `state` is kept, visits and values included. With `config.follow`, the rest of the
            sequence that it found is kept instead, and tried first.

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
    if horizon is not None and not isinstance(horizon, jax.core.Tracer):
        horizon = whole("horizon", horizon)
    uncertainty = no_uncertainty if uncertainty is None else uncertainty
    guides = {"policy": policy, "value": value, "prior": prior}
    problem = make_problem(model, uncertainty, num_actions, legal, samples=config.outcomes, **guides)
    previous = _previous(tree, state, problem, config)
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((key, state, config, horizon, previous))):
        return run_search(key, state, problem, config, horizon=horizon, previous=previous)
    check_size(state, problem, config)
    fixed, free = partition(config)
    result = find_program(_program, problem, fixed)(key, state, free, horizon, previous)
    if not isinstance(result.flags, jax.core.Tracer):  # else the model or the uncertainty is being transformed
        raise_flags(result)
    return result


def no_uncertainty(state: PyTree, action: Int[Array, ""]) -> Float[Array, ""]:
    """U = 0 everywhere: the model is trusted."""
    return jnp.zeros((), float)


def raise_flags(result: PyTree) -> None:
    """Raises an error if a search, or any search of a batch, met something that it cannot plan with.

    `uamcts.search` does this itself unless it runs under `jax.jit` or `jax.vmap`, where values are not known yet.

    Args:
        result: a `SearchResult`, or anything else with the `flags` of searches.

    Raises:
        ValueError: if there was no legal action at the root, if an uncertainty was negative or not finite, if a
            reward was not finite, or if probabilities were none.

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
    if flags & BAD_PROBABILITY:
        raise ValueError(
            "probabilities of outcomes, or of a prior, are negative, not numbers, or do not sum to 1; make `outcomes` "
            "return probabilities [K] that do, and `prior` numbers of at least 0 that are not all 0"
        )
    if flags & OTHER_SETTINGS:
        raise ValueError(
            "tree is the result of a search with another gamma or other settings of trust; give the same settings as "
            "there, or leave tree out"
        )


BUILT_IN = {"gamma": 1.0, "value_weight": 1.0, "follow": 0.0}
"""Values of settings with which a program is simpler."""


def partition(config: SearchConfig) -> tuple[Fixed, dict[str, Any]]:
    """Settings that decide how the program is built, and those that are its arguments.

    Plain booleans, a discount of 1, a full `value_weight` and a `follow` of 0 are built in: the program then leaves out
    what they switch off.
    """
    fixed: dict[str, Any] = {}
    free: dict[str, Any] = {}
    for name in SETTINGS:
        value = getattr(config, name)
        static = isinstance(value, (bool, str)) or value is None or name in STATIC_FIELDS
        usual = BUILT_IN.get(name)
        usual = usual if np.ndim(value) == 0 and value == usual else None
        (fixed if static or usual is not None else free)[name] = value if usual is None else usual
    return tuple(fixed.items()), free


def run_search(
    key: PRNGKeyArray,
    state: PyTree,
    problem: Problem,
    config: SearchConfig,
    cache: PyTree = None,
    horizon: Number = None,
    previous: Tree | Graph | Int[Array, " steps"] | None = None,
) -> SearchResult:
    """The search that the settings ask for, on a tree or on a graph: pure and unbatched."""
    if config.graph:
        return graph_search(key, state, problem, config, cache, horizon, previous)
    return tree_search(key, state, problem, config, cache, horizon, cast(Tree | jax.Array | None, previous))


def _previous(
    tree: SearchResult | Tree | Graph | None, state: PyTree, problem: Problem, config: SearchConfig
) -> Tree | Graph | Int[Array, " steps"] | None:
    """What a search keeps of an earlier one: its tree or graph, or the sequence that it found."""
    if tree is None:
        return None
    if is_sought(config, problem):
        sequence = tree.sequence if isinstance(tree, SearchResult) else None
        if sequence is None:
            raise ValueError(
                f"tree is a {type(tree).__name__} without a sequence of actions, from which a search with follow goes "
                "on; give the whole result of an earlier search with follow above 0, or leave tree out"
            )
        return sequence
    previous = tree.tree if isinstance(tree, SearchResult) else tree
    _check_previous(previous, state, problem, config)
    return previous


def _check_previous(previous: PyTree, state: PyTree, problem: Problem, config: SearchConfig) -> None:
    """Refuses a tree that this search cannot go on from; graph search checks a graph by itself."""
    if config.graph and isinstance(previous, Graph):
        return
    if config.graph or not isinstance(previous, Tree):
        kinds = {Graph: "the graph of a search", Tree: "the tree of a search"}
        raise ValueError(
            f"tree is {kinds.get(type(previous), short_repr(previous))}, and this search has graph={config.graph}; "
            f"give the result of an earlier search with graph={config.graph}"
        )
    guided = bool(previous.prior is not None and previous.prior.shape[-1])
    sizes = (previous.num_actions, previous.slots, jax.tree.structure(previous.state), guided)
    if sizes != (problem.num_actions, problem.slots(state), jax.tree.structure(state), problem.prior is not None):
        raise ValueError(
            f"tree has {previous.num_actions} actions with {previous.slots} outcomes each, and this search has "
            f"{problem.num_actions} with {problem.slots(state)}, or they differ in the form of states or in a prior; "
            "give the result of an earlier search in the same model"
        )


def check_size(state: PyTree, problem: Problem, config: SearchConfig, count: int = 1) -> None:
    """Refuses `count` searches that need more memory than the machine has."""
    if config.graph:
        needed = graph_bytes(state, config, problem.num_actions, problem.slots(state))
    else:
        slots = problem.slots(state) if problem.is_random else 1
        needed = search_bytes(state, config, problem.num_actions * slots)
    what = f"a search of {config.iterations} iterations with {config.rollouts} rollouts each"
    what = what if count == 1 else f"{count} times {what}"
    refuse_beyond_memory(needed * count, what, "give fewer iterations or rollouts")


def find_program(make: _Maker, problem: Problem, fixed: Fixed) -> Callable[..., SearchResult]:
    """The program, cached if the functions of the problem can be hashed, and compiled for this call otherwise."""
    try:
        program: Callable[..., SearchResult] = make(problem, fixed)
    except TypeError:
        program = make.__wrapped__(problem, fixed)
    return program


@functools.lru_cache(maxsize=64)
def _program(problem: Problem, fixed: Fixed) -> Callable[..., SearchResult]:
    """The compiled program of one problem and set of built-in settings."""

    def program(
        key: PRNGKeyArray, state: PyTree, free: dict[str, Any], horizon: Number, previous: Tree | Graph | None
    ) -> SearchResult:
        config = SearchConfig(**dict(fixed), **free)
        return run_search(key, state, problem, config, horizon=horizon, previous=previous)

    return jit_alone(program)
