"""Many lanes in lockstep: the fast way to run a loop for all rollouts of all searches at once.

`run_lockstep(step, over, count, lanes)` is `vmap(lambda lane: fori_loop(0, count, step, lane))(lanes)`, ended when all
lanes are over, with a record of every step. However many vmaps surround it, all lanes end up on one flat axis: on a CPU
one long vector loop, on a GPU one kernel (`lockstep_kernel`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp

from uamcts.mcts import lockstep_kernel
from uamcts.mcts.kernels.lanes import ALL, Groups, merge_batches
from uamcts.mcts.lockstep_kernel import Loop
from uamcts.types import PyTree

MANY_LANES = 256

Lane = TypeVar("Lane")
Record = TypeVar("Record")
Arrays: TypeAlias = list[jax.Array]


def run_lockstep(
    step: Callable[[jax.Array, Lane], tuple[Lane, Record]],
    over: Callable[[Lane], PyTree],
    count: int,
    lanes: Lane,
) -> tuple[Lane, Record]:
    """Runs `lane, record = step(k, lane)` for k = 0 .. count - 1 in all lanes, until every lane is over.

    Args:
        step: one step of one lane. It must not change what matters of a lane that is over.
        over: picks the leaf of a lane that says whether it is over.
        count: the largest number of steps.
        lanes: the lanes before the first step, with a leading axis [n].

    Returns:
        The lanes after the last step, [n, ...], and the records of all steps, [n, count, ...]. The records of steps
        that were not taken, because all lanes were over, are zeros.
    """
    leaves, structure = jax.tree.flatten(lanes)
    one = [jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for leaf in leaves]
    records: list[Any] = []

    def flat_step(k: jax.Array, *lane: jax.Array) -> Arrays:
        after, record = step(k, jax.tree.unflatten(structure, lane))
        new = [new.astype(old.dtype) for new, old in zip(jax.tree.leaves(after), lane, strict=True)]
        records.append(jax.tree.structure(record))
        return new + jax.tree.leaves(record)

    closed = jax.make_jaxpr(flat_step)(jax.ShapeDtypeStruct((), jnp.int32), *one)
    constants = [jnp.asarray(constant) for constant in closed.consts]
    marks = jax.tree.leaves(over(jax.tree.unflatten(structure, list(range(len(leaves))))))
    loop = Loop(closed.jaxpr, count, marks[0], (ALL,) * len(constants))
    after = _runner(loop)(constants, leaves)
    return jax.tree.unflatten(structure, after[: len(leaves)]), jax.tree.unflatten(records[0], after[len(leaves) :])


def _runner(loop: Loop) -> Callable[[Arrays, Arrays], Arrays]:
    """A function of constants and lanes that runs the loop, and that merges the axes of vmaps around it."""

    def run_lanes(groups: Groups, constants: Arrays, lanes: Arrays) -> Arrays:
        merged = loop._replace(groups=groups)
        if lockstep_kernel.usable(merged, constants, lanes):
            return lockstep_kernel.run(merged, constants, lanes)
        return _run_vectorized(merged, constants, lanes)

    return merge_batches(run_lanes, loop.groups)


def _run_vectorized(loop: Loop, constants: Arrays, lanes: Arrays) -> Arrays:
    """The loop as the compiler's own, every step vectorized over the lanes."""
    count, size = loop.steps, lanes[0].shape[0]
    constants, step = loop.step_lanes(constants)
    # Whether all lanes are over is itself a pass over the lanes: where they are many, look only now and then.
    stride = 8 if size >= MANY_LANES else 1
    records = [jnp.zeros((size, count, *out.shape), out.dtype) for out in loop.record_types(len(lanes))]

    def goes_on(carry: tuple[jax.Array, Arrays, Arrays]) -> jax.Array:
        return (carry[0] < count) & ~jnp.all(carry[1][loop.over])

    def advance(k: jax.Array, carry: tuple[Arrays, Arrays]) -> tuple[Arrays, Arrays]:
        lanes, records = carry
        after = step(constants, k, lanes)
        written = [
            jax.lax.dynamic_update_index_in_dim(record, row, k, 1)
            for record, row in zip(records, after[len(lanes) :], strict=True)
        ]
        return after[: len(lanes)], written

    def body(carry: tuple[jax.Array, Arrays, Arrays]) -> tuple[jax.Array, Arrays, Arrays]:
        k, lanes, records = carry
        if stride == 1:
            return k + 1, *advance(k, (lanes, records))
        end = jnp.minimum(k + stride, count)
        return end, *jax.lax.fori_loop(k, end, advance, (lanes, records))

    _, lanes, records = jax.lax.while_loop(goes_on, body, (jnp.int32(0), lanes, records))
    return lanes + records
