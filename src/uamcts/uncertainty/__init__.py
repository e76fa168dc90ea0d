"""How wrong the model is about a transition, known or learned.

Names are imported when they are first used: a search with a known U needs neither Equinox nor Optax, which take half as
long to import as JAX.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uamcts.uncertainty.estimator import Estimator
    from uamcts.uncertainty.registry import ESTIMATORS, GATE, GATED, check_name, make_estimator
    from uamcts.uncertainty.true import true_uncertainty

__all__ = ["ESTIMATORS", "GATE", "GATED", "Estimator", "check_name", "make_estimator", "true_uncertainty"]

_HOMES = {"Estimator": "estimator", "true_uncertainty": "true"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'uamcts.uncertainty' has no attribute {name!r}")
    return getattr(importlib.import_module(f"uamcts.uncertainty.{_HOMES.get(name, 'registry')}"), name)
