"""When to learn, and how much to believe in what was learned: I, E and tau of the paper's online scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from uamcts.arguments import real, whole


@dataclass(frozen=True)
class Schedule:
    """Every `interval` real steps a round of training; after each, tau is divided by `divisor`, never below `least`.

    Training stops once tau has reached `least` and the last round's mean loss is at most `good_enough`: for good with
    the paper's estimators, with all others until something unexpected comes (`uamcts.uncertainty.learner.goes_on`).
    """

    interval: int = 5000
    start: float = 10.0
    divisor: float = 10.0
    least: float = 0.1
    good_enough: float = 1e-7

    def __post_init__(self) -> None:
        whole("interval", self.interval)
        for name in ("start", "divisor", "least"):
            real(name, getattr(self, name), "it must be a finite number above 0", lambda number: number > 0)
        real("good_enough", self.good_enough, "it must be a finite number of at least 0", lambda loss: loss >= 0)
        if not self.least <= self.start:
            raise ValueError(f"least is {self.least} and start {self.start}; tau falls from start to least, above 0")
        if not self.divisor >= 1:
            raise ValueError(f"divisor is {self.divisor}; tau is divided by it, so it must be at least 1")

    def due(self, steps: Any) -> Any:
        """Whether a round of training comes after this many real steps."""
        return (steps > 0) & (steps % self.interval == 0)

    def goes_on(self, tau: jax.Array, loss: jax.Array) -> jax.Array:
        """Whether another round is worth it, given tau and the last round's mean loss (infinite before the first)."""
        return (tau > self.least) | (loss > self.good_enough)

    def decay(self, tau: jax.Array) -> jax.Array:
        """tau after a round of training."""
        return jnp.maximum(tau / jnp.float32(self.divisor), jnp.float32(self.least))
