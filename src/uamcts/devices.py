"""Lanes spread over all devices of a machine: its accelerators, or the cores of its processor."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from uamcts.types import PyTree


def spread(function: Callable[..., Any], devices: list | None = None) -> jax.stages.Wrapped:
    """`function` of arguments with an axis of lanes in front, run on all devices, each with its share of the lanes.

    Lanes must not depend on each other. Where they do not divide evenly, the last one is computed more than once.
    """
    devices = jax.devices() if devices is None else devices
    if len(devices) == 1:
        return jax.jit(function)
    mesh = Mesh(np.array(devices), ("lanes",))
    lanes = PartitionSpec("lanes")
    shared = jax.shard_map(function, mesh=mesh, in_specs=lanes, out_specs=lanes, check_vma=False)

    @jax.jit
    def run(*arguments: PyTree) -> Any:
        number = jax.tree.leaves(arguments)[0].shape[0]
        missing = -number % len(devices)
        if not missing:
            return shared(*arguments)
        every = np.append(np.arange(number), [number - 1] * missing)
        found = shared(*jax.tree.map(lambda leaf: jnp.asarray(leaf)[every], arguments))
        return jax.tree.map(lambda leaf: leaf[:number], found)

    return run


def on_a_core() -> Any:
    """A context in which JAX computes on a core: small things, such as single searches, are quicker there."""
    try:
        return jax.default_device(jax.devices("cpu")[0])
    except RuntimeError:  # JAX was told to look for accelerators only
        return nullcontext()
