"""What a fit of parameters needs to know about a simulator, and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np


class Trials(Protocol):
    """Real transitions beside a simulator whose parameters can be set."""

    random: bool
    """Whether outcomes are random: `losses` are then negative log-likelihoods, and there are no `residuals`."""

    def losses(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """How badly a simulator with each of the `values` [G, names] predicts the `rows`: nats [G, rows]."""
        ...

    def residuals(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Differences for one set of values, so scaled that their squares sum to the squared errors: [rows, ...]."""
        ...


class Fit(NamedTuple):
    """Values of parameters that explain what was seen."""

    values: dict[str, float]
    ranges: dict[str, tuple[float, float]]
    """About 95 % of where a value may lie, given the rest of the fit."""
    instead: tuple[str, ...] = ()
    """Parameters that explain the same as the single one that was fitted."""
