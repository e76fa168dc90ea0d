"""What an agent asks of a backend, and how a compiled search keeps to a time budget."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from uamcts.agent.report import Report
from uamcts.arguments import short_repr
from uamcts.runtime.lazy_jax import jax, jnp
from uamcts.types import PyTree

if TYPE_CHECKING:
    from uamcts.mcts.config import SearchConfig
    from uamcts.mcts.search import SearchResult
    from uamcts.uncertainty.estimator import Estimator

State: TypeAlias = Any
"""A state of the user's own simulator: any object. A pytree for JAX simulators and domains."""
ParameterChoice: TypeAlias = Iterable[str] | Mapping[str, tuple[float, float]] | None
"""What a user says about parameters: nothing, names, or bounds by name."""
Plan: TypeAlias = Any
"""What a search found: a `uamcts.SearchResult` or a `uamcts.reference.Result`; None before the first search."""
Sample: TypeAlias = tuple[Any, ...]
"""(state, action, next_state), and behind them reward and terminal where they are known."""
Arrays: TypeAlias = dict[str, np.ndarray]
"""The arrays of a file, by name."""
FilePath: TypeAlias = str | os.PathLike[str]


class Guides(NamedTuple):
    """What a user brings to the searches of an agent: see `uamcts.search`."""

    policy: Callable[..., Any] | None = None
    value: Callable[..., Any] | None = None
    prior: Callable[..., Any] | None = None


class Backend(Protocol):
    """Plans, observes and learns. `uamcts.Agent` documents the methods."""

    name: str
    action_names: tuple[str, ...]
    config: SearchConfig

    @property
    def estimator(self) -> Estimator | None: ...

    @property
    def tau(self) -> float: ...

    @property
    def steps(self) -> int: ...

    @property
    def loss(self) -> float | None: ...

    @property
    def note(self) -> str:
        """A sentence about the last search, or nothing."""
        ...

    def act(self, state: State, steps_left: int | None = None) -> Plan: ...

    def observe(
        self, state: State, action: int, following: State, reward: float | None, terminal: bool | None
    ) -> bool: ...

    def learn(self) -> bool: ...

    def preload(self, samples: Iterable[Sample]) -> int: ...

    def report(self, most: int) -> Report: ...

    def save(self, path: FilePath) -> None: ...

    def load(self, path: FilePath) -> None: ...


class IterationBudget:
    """The number of iterations of a compiled search that fits a time budget: a power of two, by earlier searches.

    A compiled search cannot look at the clock. The first one of a size includes compilation and does not count; from
    the second one on the size doubles or halves.
    """

    def __init__(self, seconds: float, start: int = 16):
        if not seconds > 0:
            raise ValueError(f"budget_seconds is {seconds!r}; it must be above 0")
        self.seconds, self.iterations = seconds, start
        self._compiled: set[int] = set()

    def run(self, search: Callable[[int], SearchResult]) -> SearchResult:
        """Runs `search` with the present number of iterations."""
        iterations = self.iterations
        start = time.perf_counter()
        found: SearchResult = jax.block_until_ready(search(iterations))
        took = time.perf_counter() - start
        if iterations in self._compiled:
            if took > self.seconds:
                self.iterations = max(1, iterations // 2)
            elif 2.2 * took < self.seconds:
                self.iterations = 2 * iterations
        self._compiled.add(iterations)
        return found


class _Copyable(Protocol):
    def twin(self) -> Self: ...

    def undo(self) -> None: ...


Changing = TypeVar("Changing", bound=_Copyable)
Result = TypeVar("Result")


def all_or_nothing(backend: Changing, change: Callable[[Changing], Result]) -> Result:
    """Applies `change` to a copy of a backend, and replaces the backend by the copy if nothing was raised."""
    twin = backend.twin()
    try:
        result = change(twin)
    except BaseException:
        twin.undo()
        raise
    backend.__dict__ = twin.__dict__
    return result


def split_groups(arrays: Arrays, groups: tuple[str, ...]) -> list[Arrays]:
    """The arrays of a file by the first part of their names, which is removed."""
    odd = [name for name in arrays if not name.startswith(tuple(f"['{group}']" for group in groups))]
    if odd:
        raise ValueError(f"{odd[0]} is not part of it")
    return [
        {name.removeprefix(f"['{group}']"): array for name, array in arrays.items() if name.startswith(f"['{group}']")}
        for group in groups
    ]


def counter(
    arrays: Arrays, name: str, kind: type[np.generic], good: Callable[[Any], Any] = lambda number: number >= 0
) -> Any:
    """A single number out of a file."""
    array = arrays[f"['{name}']"]
    if array.shape != () or array.dtype != kind or not good(array):
        raise ValueError(f"{name} is {array.dtype}{list(array.shape)} {short_repr(array.tolist())}")
    return array.item()


def pad_sample(number: int, sample: Sample) -> Sample:
    """A sample of `Agent.preload` with None for what is not known; raises an error that names a bad sample."""
    if not isinstance(sample, (tuple, list)):
        raise TypeError(f"sample {number} is {short_repr(sample)}; give a tuple (state, action, next_state)")
    if not 3 <= len(sample) <= 5:
        raise ValueError(
            f"sample {number} has {len(sample)} entries; give (state, action, next_state), and reward and terminal "
            "behind them where they are known"
        )
    return (*sample, *(None,) * (5 - len(sample)))


def match_structure(state: PyTree, like: PyTree, argument: str, name: str, remedy: str) -> PyTree:
    """`state` as arrays with the structure, shapes and dtypes of `like`; raises an error if it does not match."""
    if repr(jax.tree.structure(state)) != repr(jax.tree.structure(like)):
        raise TypeError(f"{argument} is {short_repr(state)}; {remedy}")
    wanted = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)), like)
    for leaf, form in zip(jax.tree.leaves(state), jax.tree.leaves(wanted), strict=True):
        if np.shape(leaf) != form.shape:
            raise ValueError(
                f"{argument} has an array of shape {np.shape(leaf)} where {name} has {form.shape}; "
                "give one state, not a batch"
            )
    return jax.tree.map(lambda leaf, form: jnp.asarray(leaf, form.dtype), state, wanted)
