"""How wrong the model is about a transition, known or learned.

An estimator is one file with a subclass of `Estimator`, and one entry in `ESTIMATORS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from uamcts.domains.base import Domain
from uamcts.names import suggestion
from uamcts.uncertainty.bayes import Bayes
from uamcts.uncertainty.conformal_gate import Gated
from uamcts.uncertainty.dropout import Dropout
from uamcts.uncertainty.ensemble import Ensemble
from uamcts.uncertainty.estimator import Estimator, ZeroUncertainty
from uamcts.uncertainty.nearest import Nearest
from uamcts.uncertainty.network import LinearEstimator, NetworkEstimator, raw_features
from uamcts.uncertainty.trees import Trees
from uamcts.uncertainty.true import TrueEstimator, true_uncertainty
from uamcts.uncertainty.two_part import TwoPart

__all__ = ["ESTIMATORS", "GATED", "Estimator", "make_estimator", "true_uncertainty"]


def _keyed(fresh: Callable[..., Estimator]) -> Callable[..., Estimator]:
    """Of a class whose start is random."""
    return lambda key, domain, **options: fresh(key, domain.reset(key), domain.inputs, domain.num_actions, **options)


def _fixed(fresh: Callable[..., Estimator], *unused: str) -> Callable[..., Estimator]:
    """Of a class whose start is not; `unused` are options that others have and that mean nothing to it."""

    def make(key: jax.Array, domain: Domain, **options: Any) -> Estimator:
        used = {name: value for name, value in options.items() if name not in unused}
        return fresh(domain.reset(key), domain.inputs, domain.num_actions, **used)

    return make


ESTIMATORS: dict[str, Callable[..., Estimator]] = {
    "true": lambda key, domain, **_: TrueEstimator(domain),
    "network": _keyed(NetworkEstimator.fresh),
    "linear": lambda key, domain, **options: LinearEstimator.fresh(
        key, domain.reset(key), raw_features(domain), domain.num_actions, **options
    ),
    "two_part": _keyed(TwoPart.fresh),
    "bayes": _fixed(Bayes.fresh, "capacity", "minibatches", "most_copies"),
    "trees": _fixed(Trees.fresh, "minibatches"),
    "nearest": _fixed(Nearest.fresh, "minibatches"),
    "ensemble": _keyed(Ensemble.fresh),
    "dropout": _keyed(Dropout.fresh),
    "none": lambda key, domain, **_: ZeroUncertainty(),
}
"""Estimators by name: functions of a key, a domain and options (`capacity`, `minibatches`, `most_copies`)."""

GATE = "+gate"
GATED = tuple(f"{name}{GATE}" for name in ESTIMATORS if name not in ("true", "none"))
"""Names of estimators behind a conformal gate (`conformal_gate.py`); options `level` and `every` are the gate's."""


def make_estimator(name: str, key: jax.Array, domain: Domain, **options: Any) -> Estimator:
    """An estimator that has learned nothing yet."""
    check_name(name)
    if name in GATED:
        gate = {option: options.pop(option) for option in ("level", "every") if option in options}
        inner = make_estimator(name.removesuffix(GATE), key, domain, **options)
        return Gated.around(inner, domain.reset(key), options.get("capacity", 1024), **gate)
    try:
        return ESTIMATORS[name](key, domain, **options)
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        option = str(error).rsplit("argument ", 1)[-1]
        raise TypeError(f"the estimator {name!r} has no option {option}; see docs/estimators.md") from None


def check_name(name: str) -> None:
    """Refuses a name that no estimator has."""
    known = (*ESTIMATORS, *GATED)
    if name not in known:
        hint = suggestion(name, known)
        raise ValueError(f"unknown estimator {name!r}; {hint}there are {', '.join(ESTIMATORS)}, and each with {GATE}")
