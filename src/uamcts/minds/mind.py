"""What an agent asks of a mind, and how a compiled search keeps to a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import jax

from uamcts.experience import Report
from uamcts.mcts.search import SearchResult


class Mind(Protocol):
    """Plans, takes in what happened, learns. `uamcts.Agent` describes each of these."""

    name: str
    action_names: tuple[str, ...]

    @property
    def tau(self) -> float: ...

    @property
    def steps(self) -> int: ...

    @property
    def loss(self) -> float | None: ...

    def act(self, state: Any) -> Any: ...

    def observe(self, state: Any, action: int, following: Any, reward: float | None, terminal: bool | None) -> bool: ...

    def learn(self) -> bool: ...

    def report(self, most: int) -> Report: ...

    def save(self, path: Any) -> None: ...

    def load(self, path: Any) -> None: ...


class Pace:
    """Iterations for a compiled search that has so many seconds: powers of two, by what earlier searches have taken.

    A compiled search cannot look at the clock. The first one of a size is compiled, which takes its own time; from the
    second on it counts, and the size doubles or halves.
    """

    def __init__(self, seconds: float, start: int = 16):
        if not seconds > 0:
            raise ValueError(f"budget_seconds is {seconds!r}; it must be above 0")
        self.seconds, self.iterations = seconds, start
        self._compiled: set[int] = set()

    def run(self, search: Callable[[int], SearchResult]) -> SearchResult:
        """What `search` of the present number of iterations finds."""
        iterations = self.iterations
        start = time.perf_counter()
        found = jax.block_until_ready(search(iterations))
        took = time.perf_counter() - start
        if iterations in self._compiled:
            if took > self.seconds:
                self.iterations = max(1, iterations // 2)
            elif 2.2 * took < self.seconds:
                self.iterations = 2 * iterations
        self._compiled.add(iterations)
        return found
