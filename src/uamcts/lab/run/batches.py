"""Batches of episodes: how they are arranged, compiled and played."""

from __future__ import annotations

import functools
import math
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from uamcts.domains.base import Domain
from uamcts.episodes.offline import Score, play_in_turn
from uamcts.mcts.api import raise_flags
from uamcts.mcts.config import SearchConfig
from uamcts.runtime.devices import on_a_core, spread

BATCH = 128
"""Episodes in a batch for one core."""
WIDE = 1400
"""The smallest batch on an accelerator: the paper's largest unit, 28 pairs on 50 seeds."""
_compiling: defaultdict[Any, threading.Lock] = defaultdict(threading.Lock)
"""A lock for each program, so that two threads do not compile the same one."""


class Job(NamedTuple):
    """One episode: the domain that is planned in, the search settings, and the number of its random key."""

    domain: Domain
    config: SearchConfig
    number: int
    steps_left: bool = False
    """Whether searches know how many steps are left in the episode."""


class Batch(NamedTuple):
    """Jobs of one kind of search, arranged for the program that plays them."""

    places: np.ndarray
    """The indices of these jobs among all of them."""
    arguments: tuple[Any, ...]
    steps_left: bool


def compile_jobs(jobs: Sequence[Job], seed: int) -> None:
    """Compiles the programs that `play_jobs` needs, unless they are compiled already. Safe in another thread."""
    for batch in _batches(jobs, seed):
        _compile(batch)


def play_jobs(jobs: Sequence[Job], seed: int) -> Score:
    """The score of each job, in their order."""
    parts, places = [], []
    for batch in _batches(jobs, seed):
        _compile(batch)
        score = _program(batch.steps_left)(*batch.arguments)
        raise_flags(score)
        places.append(batch.places)
        parts.append(jax.tree.map(lambda leaf, b=batch: np.asarray(leaf).T.reshape(-1)[: len(b.places)], score))
    order = np.argsort(np.concatenate(places))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[order], *parts)


def batch_size(jobs: int, devices: int) -> int:
    """How many episodes are played at the same time: a few for each core of a CPU; all of them on an accelerator.

    On an accelerator a smaller unit leaves a part of the batch idle instead of getting a program of its own, because
    compiling takes longer than playing. All devices get the same number, so that none waits (`devices.spread`).
    """
    wanted = min(BATCH * devices, math.ceil(jobs / 4)) if jax.default_backend() == "cpu" else max(jobs, WIDE)
    return wanted + -wanted % devices


def _batches(jobs: Sequence[Job], seed: int) -> Iterator[Batch]:
    """Jobs by kind of search, because each kind needs a program of its own."""
    kinds = [(job.config.rules, job.config.graph, job.steps_left) for job in jobs]
    for kind in dict.fromkeys(kinds):
        places = np.array([place for place, other in enumerate(kinds) if other == kind])
        yield Batch(places, _arrange([jobs[place] for place in places], seed), kind[2])


def _arrange(jobs: list[Job], seed: int) -> tuple[Any, ...]:
    """Keys, domains, settings and the number of jobs of each place in the batch, which plays several in turn."""
    size = batch_size(len(jobs), len(jax.devices()))
    turns = math.ceil(len(jobs) / size)
    order = np.arange(size * turns).reshape(turns, size).T
    taken = np.minimum(order, len(jobs) - 1)
    with on_a_core():  # an accelerator may be busy
        base = jax.random.key(seed)
        keys = jax.vmap(lambda number: jax.random.fold_in(base, number))(np.array([job.number for job in jobs]))[taken]
    stacked = (
        jax.tree.map(lambda *leaves: np.stack(leaves)[taken], *trees)
        for trees in ([job.domain for job in jobs], [job.config for job in jobs])
    )
    return keys, *stacked, np.sum(order < len(jobs), axis=1).astype(np.int32)


def _compile(batch: Batch) -> None:
    """Compiles the program of a batch. JAX keeps it for every thread."""
    leaves, structure = jax.tree.flatten(batch.arguments)
    with _compiling[structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves), batch.steps_left]:
        _program(batch.steps_left).lower(*batch.arguments).compile()


@functools.cache
def _program(steps_left: bool) -> Any:
    """The function that plays a batch; JAX compiles it once for every game, budget and rule set."""
    return spread(jax.vmap(functools.partial(play_in_turn, steps_left=steps_left)))
