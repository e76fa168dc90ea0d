"""How wrong the model is about a transition, known or learned.

An estimator is one file with a subclass of `Estimator`, and one entry in `ESTIMATORS`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable

import jax

from uamcts.domains.base import Domain
from uamcts.uncertainty.estimator import Estimator, Nothing
from uamcts.uncertainty.network import LinearEstimator, NetworkEstimator, raw_features
from uamcts.uncertainty.true import TrueEstimator, true_uncertainty

__all__ = ["ESTIMATORS", "Estimator", "make_estimator", "true_uncertainty"]

ESTIMATORS: dict[str, Callable[..., Estimator]] = {
    "true": lambda key, domain, **_: TrueEstimator(domain),
    "network": lambda key, domain, **options: NetworkEstimator.fresh(
        key, domain.reset(key), domain.inputs, domain.num_actions, **options
    ),
    "linear": lambda key, domain, **options: LinearEstimator.fresh(
        key, domain.reset(key), raw_features(domain), domain.num_actions, **options
    ),
    "none": lambda key, domain, **_: Nothing(),
}
"""Estimators by name: functions of a key, a domain and options (`capacity`, `minibatches`, `most_copies`)."""


def make_estimator(name: str, key: jax.Array, domain: Domain, **options: int) -> Estimator:
    """An estimator that has learned nothing yet."""
    check_name(name)
    return ESTIMATORS[name](key, domain, **options)


def check_name(name: str) -> None:
    """Refuses a name that no estimator has."""
    if name not in ESTIMATORS:
        nearest = difflib.get_close_matches(name, ESTIMATORS, n=1, cutoff=0.4)
        hint = f"did you mean {nearest[0]!r}? " if nearest else ""
        raise ValueError(f"unknown estimator {name!r}; {hint}there are {', '.join(ESTIMATORS)}")
