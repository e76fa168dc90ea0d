"""The estimators by name. An estimator is one file with a subclass of `Estimator`, and one entry in `ESTIMATORS`."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import jax

from uamcts.names import suggestion
from uamcts.uncertainty.bayes import Bayes
from uamcts.uncertainty.conformal_gate import Gated
from uamcts.uncertainty.dropout import Dropout
from uamcts.uncertainty.ensemble import Ensemble
from uamcts.uncertainty.estimator import Estimator, Space, TrueEstimator, ZeroUncertainty
from uamcts.uncertainty.nearest import Nearest
from uamcts.uncertainty.network import LinearEstimator, NetworkEstimator
from uamcts.uncertainty.trees import Trees
from uamcts.uncertainty.two_part import TwoPart

ESTIMATORS: dict[str, Callable[..., Estimator]] = {
    "true": lambda key, domain, **_: TrueEstimator(domain),
    "network": NetworkEstimator.fresh,
    "linear": LinearEstimator.fresh,
    "two_part": TwoPart.fresh,
    "bayes": Bayes.fresh,
    "trees": Trees.fresh,
    "nearest": Nearest.fresh,
    "ensemble": Ensemble.fresh,
    "dropout": Dropout.fresh,
    "none": lambda key, domain, **_: ZeroUncertainty(),
}
"""Estimators by name: functions `(key, domain, **options)` that return an untrained estimator.

All of them accept the options `capacity` (samples to make room for), `minibatches` (of a round of training) and
`most_copies` (how often a sample may count), and ignore those that mean nothing to them. `docs/concepts/estimators.md`
compares them and lists the options that each one has of its own.

Example:
    ```python
    domain = uamcts.make("two_way")
    estimator = uamcts.ESTIMATORS["nearest"](jax.random.key(0), domain, radius=1.0)
    ```
"""

GATE = "+gate"
GATED = tuple(f"{name}{GATE}" for name in ESTIMATORS if name not in ("true", "none"))
"""Names of estimators behind a conformal gate, which has the options `level` and `every`."""


def make_estimator(name: str, key: jax.Array, domain: Space, **options: Any) -> Estimator:
    """Creates an untrained estimator.

    Args:
        name: A name out of `ESTIMATORS`, with `+gate` behind it for a conformal gate.
        key: Randomness for its initial weights.
        domain: The domain to learn about.
        **options: Options of the estimator and of the gate.

    Returns:
        The estimator.

    Raises:
        ValueError: There is no estimator of this name, or an option is out of range.
        TypeError: The estimator has no such option.

    Example:
        ```python
        estimator = make_estimator("network+gate", jax.random.key(0), uamcts.make("two_way"), level=0.05)
        ```
    """
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
        raise TypeError(f"the estimator {name!r} has no option {option}; see docs/concepts/estimators.md") from None


def check_name(name: str) -> None:
    """Refuses a name that no estimator has, and an estimator whose package is not installed."""
    known = (*ESTIMATORS, *GATED)
    if name not in known:
        hint = suggestion(name, known)
        raise ValueError(f"unknown estimator {name!r}; {hint}there are {', '.join(ESTIMATORS)}, and each with {GATE}")
    if name.removesuffix(GATE) == "trees" and importlib.util.find_spec("sklearn") is None:
        raise ImportError("the estimator `trees` needs scikit-learn: pip install scikit-learn")
