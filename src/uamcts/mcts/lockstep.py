"""Many lanes in lockstep: the fast way to run a loop for all rollouts of all searches at once.

`lockstep(step, over, count, lanes)` is `vmap(lambda lane: fori_loop(0, count, step, lane))(lanes)`, ended when all
lanes are over. However many vmaps stand around it, all lanes lie on one flat axis in the end: on a CPU one long vector
loop, on a GPU one lockstep_kernel. `recorded` does the same and keeps what every step had to say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from uamcts.mcts import lockstep_kernel
from uamcts.types import PyTree

MANY_LANES = 256

Step = Callable[[jax.Array, PyTree], PyTree]


def lockstep(step: Step, over: Callable[[PyTree], jax.Array], count: int, lanes: PyTree) -> PyTree:
    """`count` times `lane <- step(k, lane)` for all lanes, an axis [n] in front of every leaf of `lanes`.

    It ends earlier when every lane is `over`: a step must not change what matters of a lane that is.
    """
    return run_recorded(lambda k, lane: (step(k, lane), ()), over, count, lanes)[0]


def run_recorded(
    step: Callable[[jax.Array, PyTree], tuple[PyTree, PyTree]],
    over: Callable[[PyTree], jax.Array],
    count: int,
    lanes: PyTree,
) -> tuple[PyTree, PyTree]:
    """The same for a step that also gives a record: the lanes at the end, and their records, [n, count, ...].

    Records of steps that were not taken, because all lanes were over, are zeros.
    """
    leaves, structure = jax.tree.flatten(lanes)
    one = [jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for leaf in leaves]
    records: list = []

    def flat_step(k: jax.Array, *lane: jax.Array) -> list[jax.Array]:
        after, record = step(k, jax.tree.unflatten(structure, lane))
        new = [new.astype(old.dtype) for new, old in zip(jax.tree.leaves(after), lane, strict=True)]
        records.append(jax.tree.structure(record))
        return new + jax.tree.leaves(record)

    closed = jax.make_jaxpr(flat_step)(jax.ShapeDtypeStruct((), jnp.int32), *one)
    constants = [jnp.asarray(constant) for constant in closed.consts]
    marks = jax.tree.leaves(over(jax.tree.unflatten(structure, list(range(len(leaves))))))
    after = _runner(closed.jaxpr, count, marks[0], (False,) * len(constants))(constants, leaves)
    return jax.tree.unflatten(structure, after[: len(leaves)]), jax.tree.unflatten(records[0], after[len(leaves) :])


def _runner(jaxpr: Any, count: int, over: int, per_lane: tuple[bool, ...]) -> Callable[[list, list], list]:
    """Runs the loop. `per_lane` says which of the values that the step closes over differ from lane to lane."""

    @custom_vmap
    def run(constants: list[jax.Array], lanes: list[jax.Array]) -> list[jax.Array]:
        if lockstep_kernel.usable(jaxpr, count, over, per_lane, constants, lanes):
            return lockstep_kernel.run(jaxpr, count, over, per_lane, constants, lanes)

        def one(constants: list[jax.Array], k: jax.Array, lane: list[jax.Array]) -> list[jax.Array]:
            return jaxpr_as_fun(ClosedJaxpr(jaxpr, constants))(k, *lane)

        every = jax.vmap(one, in_axes=([0 if own else None for own in per_lane], None, 0))
        # Whether all lanes are over is itself a pass over the lanes: where they are many, look only now and then.
        size = lanes[0].shape[0]
        stride = 8 if size >= MANY_LANES else 1
        records = [jnp.zeros((size, count, *out.aval.shape), out.aval.dtype) for out in jaxpr.outvars[len(lanes) :]]

        def goes_on(carry: tuple) -> jax.Array:
            return (carry[0] < count) & ~jnp.all(carry[1][over])

        def advance(k: jax.Array, carry: tuple) -> tuple:
            lanes, records = carry
            after = every(constants, k, lanes)
            said = [
                jax.lax.dynamic_update_index_in_dim(record, row, k, 1)
                for record, row in zip(records, after[len(lanes) :], strict=True)
            ]
            return after[: len(lanes)], said

        def body(carry: tuple) -> tuple:
            k, lanes, records = carry
            if stride == 1:
                return k + 1, *advance(k, (lanes, records))
            end = jnp.minimum(k + stride, count)
            return end, *jax.lax.fori_loop(k, end, advance, (lanes, records))

        _, lanes, records = jax.lax.while_loop(goes_on, body, (jnp.int32(0), lanes, records))
        return lanes + records

    @run.def_vmap
    def _flattened(size: int, batched: Any, constants: list[jax.Array], lanes: list[jax.Array]) -> tuple[list, list]:
        number = lanes[0].shape[1 if batched[1][0] else 0]

        def spread(leaf: jax.Array, is_batched: bool, own: bool) -> jax.Array:
            """One entry per lane: an axis for the batch and one for the lanes, then both as one."""
            leaf = leaf if is_batched else leaf[None]
            leaf = leaf if own else leaf[:, None]
            shape = leaf.shape[2:]
            return jnp.broadcast_to(leaf, (size, number, *shape)).reshape(size * number, *shape)

        owned = tuple(own or is_batched for own, is_batched in zip(per_lane, batched[0], strict=True))
        constants = [
            spread(constant, is_batched, own) if now else constant
            for constant, is_batched, own, now in zip(constants, batched[0], per_lane, owned, strict=True)
        ]
        lanes = [spread(leaf, is_batched, True) for leaf, is_batched in zip(lanes, batched[1], strict=True)]
        after = _runner(jaxpr, count, over, owned)(constants, lanes)
        return [leaf.reshape(size, number, *leaf.shape[1:]) for leaf in after], [True] * len(after)

    return run
