"""`uamcts.reference.search`: the arguments of a search, and which search answers them."""

from __future__ import annotations

import numbers
import random
import time
from collections.abc import Callable
from typing import Any

from uamcts.arguments import short_repr, whole
from uamcts.mcts.config import SearchConfig
from uamcts.reference.graph_search import GraphSearch
from uamcts.reference.guides import Guides
from uamcts.reference.models import Dynamics
from uamcts.reference.setup import Setup
from uamcts.reference.tree import Draws, PythonModel, Result
from uamcts.reference.tree_search import TreeSearch
from uamcts.reference.widening import Proposals, WideningSearch, check_widening, refuse_finite_only


def search(
    rng: random.Random | Draws | int,
    state: object,
    model: PythonModel | Any,
    uncertainty: Callable[[Any, int], float] | None,
    config: SearchConfig,
    budget_seconds: float | None = None,
    *,
    policy: Callable | None = None,
    value: Callable[[Any], float] | None = None,
    prior: Callable | None = None,
    horizon: int | None = None,
    tree: Result | None = None,
    widening: tuple[float, float] = (2.0, 0.5),
) -> Result:
    """Plans one move from `state`. Stops after `config.iterations`, or after `budget_seconds` if that comes first.

    Args:
        rng: a seed, a `random.Random`, or an object like `reference.Draws` that decides every random choice.
        state: any object; never copied.
        model: has `num_actions` and `outcomes`, `sample` or `step`: see `uamcts.reference`.
        uncertainty: U(state, action), or None for plain MCTS.
        config: the settings. With `config.graph` equal states share a node: see `uamcts.reference.graph_search`.
        budget_seconds: the time limit.
        policy: `policy(state, rng)` returns an action or a probability for each action; rollouts follow it. Legal
            actions are drawn from where it wants none of them.
        value: `value(state)` stands for rollouts, or is mixed with them: see `config.value_weight`.
        prior: `prior(state)` returns a probability for each action; selection explores in proportion to it.
        horizon: how many steps are left. Nothing after them counts.
        tree: the result of an earlier search in the same model with the same uncertainty. What it holds below `state`
            is kept, visits and values. Where it does not hold `state`, the search starts afresh. With `config.follow`,
            the rest of the sequence that it found is kept instead, and tried first.
        widening: (k, alpha) for a model with continuous actions, whose `num_actions` is None. They are proposed by
            `policy(state, rng)`, by the model's `actions(state, rng)`, or drawn within its `action_space`, (low, high).
            A node with n visits tries ceil(k n^alpha) of them. `result.actions` are those of the root.

    Returns:
        The chosen action, and visits, values and uncertainties of all actions.

    Raises:
        TypeError: if `rng`, `model` or `tree` is not one of the above.
        ValueError: if a setting is out of range, if `tree` comes from a search with other settings, or if the model or
            one of the functions returns something that cannot be planned with.

    Example:
        ```python
        config = uamcts.SearchConfig(iterations=100, rules="trust")
        result = uamcts.reference.search(0, state, model, lambda state, action: 0.0, config, budget_seconds=0.5)
        ```
    """
    if budget_seconds is not None and not budget_seconds > 0:
        raise ValueError(f"budget_seconds is {budget_seconds!r}; it must be above 0")
    draws = _make_draws(rng)
    horizon = None if horizon is None else whole("horizon", horizon)
    dynamics = Dynamics(model, draws, config.outcomes)
    check_reuse(tree, config)
    end = None if budget_seconds is None else time.perf_counter() + budget_seconds
    parts = draws, dynamics, uncertainty, config
    if dynamics.continuous:
        refuse_finite_only(config, prior, model)
        dynamics.propose = propose = Proposals(model, policy, draws.generator())
        dynamics.refuse_hidden_state(state)
        setup = Setup(*parts, Guides(None, value, None, 1), horizon)
        return WideningSearch(setup, tree, propose, check_widening(widening)).search(state, end)
    dynamics.refuse_hidden_state(state)
    setup = Setup(*parts, Guides(policy, value, prior, dynamics.num_actions), horizon)
    return (GraphSearch if config.graph else TreeSearch)(setup, tree).search(state, end)


def _make_draws(rng: random.Random | Draws | int) -> Any:
    """`rng` as an object like `Draws`."""
    if isinstance(rng, numbers.Integral):
        rng = random.Random(int(rng))  # noqa: S311 (planning, not secrets)
    elif not isinstance(rng, (random.Random, Draws)) and not hasattr(rng, "deletion"):
        raise TypeError(f"rng is {rng!r}; give a whole number, a random.Random or an object like reference.Draws")
    return Draws(rng) if isinstance(rng, random.Random) else rng


def check_reuse(tree: object, config: SearchConfig) -> None:
    """Refuses an earlier result that the new search cannot go on from."""
    if tree is None:
        return
    if not isinstance(tree, Result):
        raise TypeError(f"tree is {short_repr(tree)}; give the result of an earlier search, or None")
    for name in ("rules", "graph", "gamma", "follow"):
        before, now = getattr(tree.config, name), getattr(config, name)
        if (bool(before) != bool(now)) if name == "follow" else (before != now):
            raise ValueError(
                f"tree is the result of a search with {name}={before!r}, and this one has {name}={now!r}; search with "
                "the same settings, or leave tree out"
            )
