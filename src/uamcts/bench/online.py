"""The online scenario: a real step of many runs compared with the offline step, and a round of training."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from uamcts.domains import make
from uamcts.episodes.online import Run, advance, over_runs, train_run
from uamcts.presets import search_config
from uamcts.types import PyTree
from uamcts.uncertainty import make_estimator
from uamcts.uncertainty.learner import UncertaintyLearner, empty_cache
from uamcts.uncertainty.schedule import Schedule

WARM_UP, PIECE = 500, 250


def time_once(program: Callable, *arguments: PyTree) -> tuple[Any, float]:
    """The result of a program, and the seconds it took."""
    start = time.perf_counter()
    found = jax.block_until_ready(program(*arguments))
    return found, time.perf_counter() - start


def measure(names: list[str], runs: int = 15, steps: int = 1000) -> dict[str, Any]:
    """Milliseconds per real step of all runs, offline with the true U and online with the paper's network.

    Online: `steps` steps at tau 0.1, after 500 steps and one round of training, from an empty prediction cache.
    """
    return {"benchmark": "online", "runs": runs, "rows": [_row(name, runs, steps) for name in names]}


def _row(name: str, runs: int, steps: int) -> dict[str, Any]:
    domain, schedule = make(name), Schedule()
    config = search_config(domain, "combined")
    keys = jax.random.split(jax.random.key(0), runs)

    def fresh(estimator: str, key: jax.Array, at: Schedule) -> Run:
        fitted = make_estimator(estimator, key, domain, capacity=WARM_UP + steps, minibatches=5000)
        return Run.fresh(key, domain, UncertaintyLearner(fitted), at)

    def piece(run: Run, memory: PyTree) -> tuple:
        run, memory, said = advance(run, memory, domain, config, PIECE)
        return run, memory, jnp.sum(said.ended)

    cold = Schedule(start=schedule.least)
    offline = jax.jit(jax.vmap(lambda run: piece(run, None)[0]))
    known = jax.vmap(lambda key: fresh("true", key, cold))(keys)
    known, _ = time_once(offline, known)
    pieces = steps // PIECE
    offline_seconds = 0.0
    for _ in range(pieces):
        known, seconds = time_once(offline, known)
        offline_seconds += seconds

    learned = jax.vmap(lambda key: fresh("network", key, cold))(keys)
    fresh_cache = jax.jit(over_runs(lambda run: empty_cache(run.knowledge.learner, domain)))
    online = jax.jit(over_runs(piece))
    cache = fresh_cache(learned)
    for _ in range(WARM_UP // PIECE):
        learned, cache, _ = online(learned, cache)
    train = jax.jit(over_runs(lambda run: train_run(run, schedule)))
    time_once(train, learned)
    learned, training_seconds = time_once(train, learned)
    cache = fresh_cache(learned)
    online_seconds = 0.0
    for _ in range(pieces):
        (learned, cache, _), seconds = time_once(online, learned, cache)
        online_seconds += seconds
    return {
        "domain": name,
        "offline_ms_per_step": 1e3 * offline_seconds / (pieces * PIECE),
        "online_ms_per_step": 1e3 * online_seconds / (pieces * PIECE),
        "times the offline step": online_seconds / offline_seconds,
        "training_round_seconds_per_run": training_seconds / runs,
        "training_round_seconds": training_seconds,
    }
