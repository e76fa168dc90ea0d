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


def spread(function: Callable[..., Any], devices: list | None = None) -> Any:
    """Compiles a function of batches (the first axis of every argument) so that each device computes its share.

    The entries of a batch must not depend on each other. If they do not divide evenly, the last one is computed several
    times. Like the result of `jax.jit`, the returned function has `lower`, for batches that divide evenly.
    """
    devices = jax.devices() if devices is None else devices
    if len(devices) == 1:
        return jax.jit(function)
    mesh = Mesh(np.array(devices), ("batch",))
    batch = PartitionSpec("batch")
    run: Any = jax.jit(jax.shard_map(function, mesh=mesh, in_specs=batch, out_specs=batch, check_vma=False))

    @functools.wraps(function)
    def run_evenly(*arguments: PyTree) -> Any:
        number = jax.tree.leaves(arguments)[0].shape[0]
        missing = -number % len(devices)
        if not missing:
            return run(*arguments)
        found = run(*_take(arguments, np.append(np.arange(number), [number - 1] * missing)))
        # Dropping the surplus makes the devices exchange data. A device that is done would wait for the others in the
        # middle of that, and XLA aborts the process if a CPU device waits for more than 40 seconds.
        return _take(jax.block_until_ready(found), np.arange(number))

    run_evenly.lower = run.lower  # type: ignore[attr-defined]
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
