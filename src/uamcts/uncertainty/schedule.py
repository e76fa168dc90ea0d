"""When to train, and how tau decays: I, E and tau of the paper's online scenario."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Float

from uamcts.arguments import real, whole
from uamcts.runtime.lazy_jax import jnp
from uamcts.types import Array


@dataclass(frozen=True)
class Schedule:
    """When an agent trains its estimator, and how its tau decays.

    Training stops once tau has reached `least` and the loss of the last round is at most `good_enough`. With the
    paper's estimators it stops for good; with all others it resumes when something unexpected happens.

    Args:
        interval: Real steps between two rounds of training.
        start: tau before the first round.
        divisor: What tau is divided by after each round.
        least: The smallest tau.
        good_enough: The mean loss of a round at which training stops.

    Raises:
        ValueError: A setting is out of range.

    Example:
        ```python
        agent = uamcts.Agent.paper(uamcts.make("two_way"), schedule=uamcts.Schedule(interval=500, start=1.0))
        ```
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

    def due(self, steps: int) -> bool:
        """Whether a round of training follows this many real steps."""
        return steps > 0 and steps % self.interval == 0

    def goes_on(self, tau: Float[Array, ""], loss: Float[Array, ""]) -> Bool[Array, ""]:
        """Whether to train again, given tau and the mean loss of the last round (infinite before the first)."""
        return (tau > self.least) | (loss > self.good_enough)

    def decay(self, tau: Float[Array, ""]) -> Float[Array, ""]:
        """tau after a round of training."""
        return jnp.maximum(tau / jnp.float32(self.divisor), jnp.float32(self.least))
