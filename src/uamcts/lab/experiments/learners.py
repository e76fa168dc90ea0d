"""Learners by name: `network`, `memory`, `linear+penalty=2`, `linear+bonus+memory`, `cmax`."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from uamcts.baselines.mcts_variants import CmaxMcts, CmaxPlusMcts, NearestResidual, Penalised
from uamcts.baselines.transition import HIDDEN, TransitionLearner
from uamcts.corrections.facts import Patched
from uamcts.domains.base import Domain
from uamcts.mcts.config import SearchConfig
from uamcts.names import CORRECTIONS, suggestion
from uamcts.uncertainty import ESTIMATORS, GATE, GATED, make_estimator
from uamcts.uncertainty.estimator import ConstantUncertainty
from uamcts.uncertainty.learner import Learner, UncertaintyLearner, fresh_learner

RELEASED = SearchConfig()
TRANSITION = "transition_"
"""The prefix of learners of the transition function, like `transition_8_units` and `transition_linear_residual`."""

BASELINES: dict[str, Callable[[Domain, Any, int], Learner]] = {
    "memory": lambda domain, state, steps: Patched.fresh(state, capacity=steps),
    "cmax": lambda domain, state, steps: CmaxMcts.fresh(state, steps),
    "cmax_plus": lambda domain, state, steps: CmaxPlusMcts.fresh(state, steps),
    "nearest_residual": lambda domain, state, steps: NearestResidual.fresh(domain, capacity=steps),
    "unseen": lambda domain, state, steps: UncertaintyLearner(ConstantUncertainty()),
}
"""Learners without an estimate of U: functions of a domain, one of its states, and the number of real steps."""

TRANSITIONS = tuple(f"{TRANSITION}{size}{end}" for end in ("", "_residual") for size in HIDDEN)
LEARNERS = (*ESTIMATORS, *TRANSITIONS, *BASELINES)
TREES = "trees"
"""The estimator that needs scikit-learn, an optional dependency."""
MEMORY = "memory"
"""A suffix of learners, after a plus: remembered facts override what is learned."""
SIGNS = {"penalty": 1.0, "bonus": -1.0}
"""More suffixes: the estimate of U is subtracted from rewards, or added to them."""


def check_learner(name: str) -> None:
    """Raises a ValueError for an unknown learner, and for one whose package is not installed."""
    first, rest = _parts(name)
    wrong = [part for part in rest if part != MEMORY and not _is_weight(part)]
    if first not in (*LEARNERS, *GATED) or wrong:
        hint = suggestion(first, LEARNERS) if first not in LEARNERS else ""
        raise ValueError(
            f"unknown learner {name!r}; {hint}there are {', '.join(LEARNERS)}, and behind any of them "
            f"{GATE} (estimators only), +{MEMORY}, " + ", ".join(f"+{word} or +{word}=WEIGHT" for word in SIGNS)
        )
    if first in (TREES, TREES + GATE) and importlib.util.find_spec("sklearn") is None:
        raise ValueError(f"learner {name!r} needs scikit-learn: pip install scikit-learn")


def check_planner(algorithm: str, learner: str) -> None:
    """Raises a ValueError for a learner that does not exist, or not with this algorithm."""
    if algorithm != "agent":
        check_learner(learner)
    elif learner != CORRECTIONS:
        raise ValueError(f"learner is {learner!r}, which --algorithm agent does not read; leave --learner out")


def _parts(name: str) -> tuple[str, list[str]]:
    """The name of a learner, including its gate, and its other suffixes."""
    first, *rest = name.split("+")
    if rest and f"+{rest[0]}" == GATE:
        first += f"+{rest.pop(0)}"
    return first, rest


def _is_weight(part: str) -> bool:
    word, equals, weight = part.partition("=")
    try:
        return word in SIGNS and (not equals or 0 <= float(weight) < float("inf"))
    except ValueError:
        return False


def make_learner(
    name: str, key: jax.Array, domain: Domain, options: dict[str, int], config: SearchConfig = RELEASED
) -> Learner:
    """A learner for runs that plan with `config`; `options` are `capacity`, `minibatches` and `most_copies`."""
    check_learner(name)
    first, rest = _parts(name)
    state, learner = domain.reset(key), _first(first, key, domain, options, config)
    for part in rest:
        if part == MEMORY:
            learner = Patched.fresh(state, learner, _steps(options))
        else:
            word, _, weight = part.partition("=")
            learner = Penalised(learner, jnp.float32(SIGNS[word] * float(weight or 1.0)))
    return learner


def _first(name: str, key: jax.Array, domain: Domain, options: dict[str, int], config: SearchConfig) -> Learner:
    if name in BASELINES:
        return BASELINES[name](domain, domain.reset(key), _steps(options))
    if not name.startswith(TRANSITION):
        return fresh_learner(make_estimator(name, key, domain, **options), config, domain.reset(key))
    size = name.removeprefix(TRANSITION).removesuffix("_residual")
    return TransitionLearner.fresh(key, domain, HIDDEN[size], name.endswith("_residual"), **options)


def _steps(options: dict[str, int]) -> int:
    """The number of real steps behind the samples: a fact is stored once, however often its sample is."""
    return options["capacity"] // options["most_copies"]
