"""Spreads a batch over all devices of a machine: its accelerators, or the cores of its processor."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from uamcts.types import PyTree


def spread(function: Callable[..., Any], devices: list | None = None, shared: int = 0) -> Any:
    """Compiles a function of batches (the first axis of every argument) so that each device computes its share.

    The last `shared` arguments are not batches: every device gets them whole. The entries of a
    batch must not depend on each other. If they do not divide evenly, the last one is computed several times. Like the
    result of `jax.jit`, the returned function has `lower`, for batches that divide evenly.
    """
    devices = jax.devices() if devices is None else devices
    if len(devices) == 1:
        return jax.jit(function)
    mesh = Mesh(np.array(devices), ("batch",))
    batch = PartitionSpec("batch")

    def compute(batches: tuple, common: tuple) -> Any:
        return function(*batches, *common)

    run: Any = jax.jit(
        jax.shard_map(compute, mesh=mesh, in_specs=(batch, PartitionSpec()), out_specs=batch, check_vma=False)
    )

    def divide(arguments: tuple) -> tuple[tuple, tuple]:
        return arguments[: len(arguments) - shared], arguments[len(arguments) - shared :]

    @functools.wraps(function)
    def run_evenly(*arguments: PyTree) -> Any:
        batches, common = divide(arguments)
        number = jax.tree.leaves(batches)[0].shape[0]
        missing = -number % len(devices)
        if not missing:
            return run(batches, common)
        found = run(_take(batches, np.append(np.arange(number), [number - 1] * missing)), common)
        # Dropping the surplus makes the devices exchange data. A device that is done would wait for the others in the
        # middle of that, and XLA aborts the process if a CPU device waits for more than 40 seconds.
        return _take(jax.block_until_ready(found), np.arange(number))

    run_evenly.lower = lambda *arguments: run.lower(*divide(arguments))  # type: ignore[attr-defined]
    return run_evenly


@jax.jit
def _take(batch: PyTree, indices: jax.Array) -> PyTree:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[indices], batch)


def on_a_core() -> AbstractContextManager[Any]:
    """A context in which JAX computes on a CPU core, where small programs such as single searches are faster."""
    try:
        return jax.default_device(jax.devices("cpu")[0])
    except RuntimeError:  # JAX was told to look for accelerators only
        return nullcontext()
