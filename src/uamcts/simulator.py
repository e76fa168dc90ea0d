"""Simulators of your own for the compiled search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from uamcts.types import PyTree, Transition


@dataclass(frozen=True)
class JaxSimulator:
    """A simulator in JAX: `step(state, action) -> Transition` is pure, unbatched and absorbing at terminals."""

    step: Callable[[PyTree, Any], Transition]
    num_actions: int
    features: Callable[[PyTree], Any] | None = None
    inputs: Callable[[PyTree], Any] | None = None
    legal: Callable[[PyTree], Any] | None = None
    name: str = "simulator"
    example: PyTree = None
    """One state."""
