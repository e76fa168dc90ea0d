"""Lanes spread over all devices of a machine: its accelerators, or the cores of its processor."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from uamcts.types import PyTree


def spread(function: Callable[..., Any], devices: list | None = None) -> Any:
    """`function` of arguments with an axis of lanes in front, run on all devices, each with its share of the lanes.

    Lanes must not depend on each other. Where they do not divide evenly, the last one is computed more than once. Like
    what `jax.jit` gives, it has `lower`, for lanes that divide evenly.
    """
    devices = jax.devices() if devices is None else devices
    if len(devices) == 1:
        return jax.jit(function)
    mesh = Mesh(np.array(devices), ("lanes",))
    lanes = PartitionSpec("lanes")
    run: Any = jax.jit(jax.shard_map(function, mesh=mesh, in_specs=lanes, out_specs=lanes, check_vma=False))

    @functools.wraps(function)
    def evenly(*arguments: PyTree) -> Any:
        number = jax.tree.leaves(arguments)[0].shape[0]
        missing = -number % len(devices)
        if not missing:
            return run(*arguments)
        found = run(*_chosen(arguments, np.append(np.arange(number), [number - 1] * missing)))
        # To leave some out, devices exchange what they have. One that is done would wait for the others in the middle
        # of it, and a CPU's are ended, with all their work, when that takes longer than 40 seconds.
        return _chosen(jax.block_until_ready(found), np.arange(number))

    evenly.lower = run.lower  # type: ignore[attr-defined]
    return evenly


@jax.jit
def _chosen(lanes: PyTree, which: jax.Array) -> PyTree:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[which], lanes)


def on_a_core() -> Any:
    """A context in which JAX computes on a core: small things, such as single searches, are quicker there."""
    try:
        return jax.default_device(jax.devices("cpu")[0])
    except RuntimeError:  # JAX was told to look for accelerators only
        return nullcontext()
