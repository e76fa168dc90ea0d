"""The planning problem that is given to a search."""

from __future__ import annotations

from typing import NamedTuple

from uamcts.types import BatchedUncertainty, Legal, Model, Uncertainty


class Problem(NamedTuple):
    """A model, what is uncertain about it, and which actions there are."""

    model: Model
    uncertainty: Uncertainty | BatchedUncertainty
    num_actions: int
    legal: Legal | None = None
