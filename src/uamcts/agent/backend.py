"""What an agent asks of a backend, and how a compiled search keeps to a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.agent.report import Report
from uamcts.arguments import shown
from uamcts.mcts.search import SearchResult
from uamcts.types import PyTree

Result = TypeVar("Result")


class Backend(Protocol):
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

    def preload(self, samples: Iterable[tuple]) -> int: ...

    def report(self, most: int) -> Report: ...

    def save(self, path: Any) -> None: ...

    def load(self, path: Any) -> None: ...


class IterationBudget:
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


def all_or_nothing(backend: Any, change: Callable[[Any], Result]) -> Result:
    """Lets a copy of a backend change, and replaces the backend by it in one assignment if nothing was raised."""
    twin = backend.twin()
    result = change(twin)
    backend.__dict__ = twin.__dict__
    return result


def split_groups(arrays: dict[str, np.ndarray], groups: tuple[str, ...]) -> list[dict[str, np.ndarray]]:
    """The arrays of a file by the first part of their names, which is taken off."""
    odd = [name for name in arrays if not name.startswith(tuple(f"['{group}']" for group in groups))]
    if odd:
        raise ValueError(f"{odd[0]} is not part of it")
    return [
        {name.removeprefix(f"['{group}']"): array for name, array in arrays.items() if name.startswith(f"['{group}']")}
        for group in groups
    ]


def counter(arrays: dict[str, np.ndarray], name: str, kind: Any, good: Callable = lambda number: number >= 0) -> Any:
    """A single number out of a file."""
    array = arrays[f"['{name}']"]
    if array.shape != () or array.dtype != kind or not good(array):
        raise ValueError(f"{name} is {array.dtype}{list(array.shape)} {shown(array.tolist())}")
    return array.item()


def pad_sample(number: int, sample: tuple) -> tuple:
    """A sample of `Agent.preload` with None for what is not known of it, or an error that names it."""
    if not isinstance(sample, (tuple, list)):
        raise TypeError(f"sample {number} is {shown(sample)}; give a tuple (state, action, next_state)")
    if not 3 <= len(sample) <= 5:
        raise ValueError(
            f"sample {number} has {len(sample)} entries; give (state, action, next_state), and reward and terminal "
            "behind them where they are known"
        )
    return (*sample, *(None,) * (5 - len(sample)))


def match_structure(state: PyTree, like: PyTree, argument: str, name: str, remedy: str) -> PyTree:
    """`state` as arrays of the form of `like`, or an error if it has another."""
    if repr(jax.tree.structure(state)) != repr(jax.tree.structure(like)):
        raise TypeError(f"{argument} is {shown(state)}; {remedy}")
    wanted = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)), like)
    for leaf, form in zip(jax.tree.leaves(state), jax.tree.leaves(wanted), strict=True):
        if np.shape(leaf) != form.shape:
            raise ValueError(
                f"{argument} has an array of shape {np.shape(leaf)} where {name} has {form.shape}; "
                "give one state, not a batch"
            )
    return jax.tree.map(lambda leaf, form: jnp.asarray(leaf, form.dtype), state, wanted)
