"""Episodes as lanes of one program: how they are laid out, compiled and played."""

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

LANES = 128
"""Episodes side by side on one core."""
WIDE = 1400
"""The fewest lanes on an accelerator: as many as the paper's largest unit has, 28 pairs on 50 seeds."""
_compiling: defaultdict[Any, threading.Lock] = defaultdict(threading.Lock)
"""A lock for each program: two threads that need the same one would both compile it."""


class Job(NamedTuple):
    """One episode: the domain as it is planned in, the search, and the number of its key."""

    domain: Domain
    config: SearchConfig
    number: int


class Batch(NamedTuple):
    """Jobs of one rule set, laid out for the program that plays them."""

    places: np.ndarray
    """Which of all jobs they are."""
    arguments: tuple[Any, ...]


def compile_for(jobs: Sequence[Job], seed: int) -> None:
    """Compiles what `play_all` needs, if nobody has: another thread may do it while something else is played."""
    for batch in _batches(jobs, seed):
        _compile(batch)


def play_all(jobs: Sequence[Job], seed: int) -> Score:
    """The scores of all jobs, in their order."""
    parts, places = [], []
    for batch in _batches(jobs, seed):
        _compile(batch)
        score = _program()(*batch.arguments)
        raise_flags(score)
        places.append(batch.places)
        parts.append(jax.tree.map(lambda leaf, b=batch: np.asarray(leaf).T.reshape(-1)[: len(b.places)], score))
    order = np.argsort(np.concatenate(places))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[order], *parts)


def lanes_of(jobs: int, devices: int) -> int:
    """Episodes side by side: on a CPU a few for each core, in turns; on an accelerator all.

    There, units with fewer have idle lanes instead of a program of their own: compiling takes longer than playing. All
    devices have equally many, so that none waits for another (`devices.spread`).
    """
    wanted = min(LANES * devices, math.ceil(jobs / 4)) if jax.default_backend() == "cpu" else max(jobs, WIDE)
    return wanted + -wanted % devices


def _batches(jobs: Sequence[Job], seed: int) -> Iterator[Batch]:
    """Jobs in batches: rules decide what a program looks like, so that those with others are played apart."""
    rules = np.array([job.config.rules for job in jobs])
    for each in dict.fromkeys(rules.tolist()):
        places = np.flatnonzero(rules == each)
        yield Batch(places, _laid_out([job for job in jobs if job.config.rules == each], seed))


def _laid_out(jobs: list[Job], seed: int) -> tuple[Any, ...]:
    """Keys, domains, settings and counts of the lanes, each of which plays every so many of the jobs."""
    lanes = lanes_of(len(jobs), len(jax.devices()))
    turns = math.ceil(len(jobs) / lanes)
    order = np.arange(lanes * turns).reshape(turns, lanes).T
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
    """Has JAX keep the program of a batch, which it does for any thread that calls it later."""
    leaves, structure = jax.tree.flatten(batch.arguments)
    with _compiling[structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves)]:
        _program().lower(*batch.arguments).compile()


@functools.cache
def _program() -> Any:
    """What plays a batch; JAX keeps a compiled program for every game, budget and rule set."""
    return spread(jax.vmap(play_in_turn))
