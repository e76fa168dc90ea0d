"""The loop over lanes as one GPU kernel: a block of lanes stays in registers from the first step to the last.

An acceleration behind `lockstep.run_lockstep` that gives the same numbers. It serves lanes whose leaves are plain
numbers, for steps that Pallas can lower; everything else takes the compiler's own loop.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, jaxpr_as_fun

BLOCK = 32
"""Lanes in one block: one warp, which stops as soon as its own lanes are over."""

Arrays: TypeAlias = list[jax.Array]
DType: TypeAlias = Any
"""Whatever NumPy takes for a dtype."""


class Loop(NamedTuple):
    """A loop over lanes: its step as a function of constants, k and the leaves of a lane."""

    jaxpr: Jaxpr
    """The step. It returns the leaves of the lane, and after them those of the record."""
    steps: int
    """The largest number of steps."""
    over: int
    """Which leaf of a lane says whether it is over."""
    per_lane: tuple[bool, ...]
    """Which of the constants differ from lane to lane."""

    def step_lanes(self) -> Callable[[Arrays, jax.Array, Arrays], Arrays]:
        """The step for all lanes: a function of constants, k and the leaves of the lanes."""

        def step(constants: Arrays, k: jax.Array, lane: Arrays) -> Any:
            return jaxpr_as_fun(ClosedJaxpr(self.jaxpr, constants))(k, *lane)

        return jax.vmap(step, in_axes=([0 if own else None for own in self.per_lane], None, 0))

    def record_types(self, leaves: int) -> list[Any]:
        """The shape and dtype of each leaf of one record; a lane has so many `leaves`."""
        return [out.aval for out in self.jaxpr.outvars[leaves:]]


def usable(loop: Loop, constants: Arrays, lanes: Arrays) -> bool:
    """Whether the loop can run as a kernel here: on a GPU, with numbers only, and with a step that can be lowered."""
    if jax.default_backend() != "gpu":
        return False
    plain = all(leaf.ndim == 1 for leaf in lanes) and all(
        constant.ndim == (1 if own else 0) for constant, own in zip(constants, loop.per_lane, strict=True)
    )
    plain = plain and all(out.ndim == 0 for out in loop.record_types(len(lanes)))
    return plain and _lowers(loop, tuple(leaf.dtype for leaf in (*constants, *lanes)))


@functools.lru_cache(maxsize=256)
def _lowers(loop: Loop, dtypes: tuple[DType, ...]) -> bool:
    """Tries it once on a single block. To compile it as well would wait for whatever the GPU is doing."""
    shapes = [
        jax.ShapeDtypeStruct((BLOCK,) if own else (), dtype) for own, dtype in zip(loop.per_lane, dtypes, strict=False)
    ]
    lanes = [jax.ShapeDtypeStruct((BLOCK,), dtype) for dtype in dtypes[len(loop.per_lane) :]]
    try:
        jax.jit(functools.partial(run, loop)).lower(shapes, lanes)
    except Exception:  # whatever stops the lowering, the plain loop does the same work
        return False
    return True


def run(loop: Loop, constants: Arrays, lanes: Arrays, interpret: bool = False) -> Arrays:
    """Runs the loop in all lanes; a block stops when all its lanes are over.

    Args:
        loop: the step and how often to take it.
        constants: the constants of the step, [n] if they differ from lane to lane.
        lanes: the leaves of the lanes, [n].
        interpret: emulate the kernel, slowly and on any device.

    Returns:
        The leaves of the lanes after the last step, [n], and after them the leaves of the records, [n, steps].
    """
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    number = lanes[0].shape[0]
    padded = -(-number // BLOCK) * BLOCK
    records = loop.record_types(len(lanes))
    block = pl.BlockSpec((BLOCK,), lambda i: (i,))
    shared = pl.BlockSpec((1,), lambda i: (0,))
    rows = pl.BlockSpec((loop.steps, BLOCK), lambda i: (0, i))
    owned = (*loop.per_lane, *(True,) * len(lanes))
    leaves = [*constants, *lanes]
    arguments = [_store(leaf, own, padded) for leaf, own in zip(leaves, owned, strict=True)]
    after = pl.pallas_call(
        functools.partial(_kernel, loop, owned, [leaf.dtype for leaf in leaves]),
        grid=(padded // BLOCK,),
        in_specs=[block if own else shared for own in owned],
        out_specs=[block] * len(lanes) + [rows] * len(records),
        out_shape=[jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in arguments[len(constants) :]]
        + [jax.ShapeDtypeStruct((loop.steps, padded), _storable(record.dtype)) for record in records],
        compiler_params=triton.CompilerParams(num_warps=1, num_stages=1),
        name="uamcts_lanes",
        interpret=interpret,
    )(*arguments)
    ends = [leaf[:number].astype(lane.dtype) for leaf, lane in zip(after, lanes, strict=False)]
    recorded = zip(after[len(lanes) :], records, strict=True)
    return ends + [leaf[:, :number].T.astype(record.dtype) for leaf, record in recorded]


def _kernel(loop: Loop, owned: tuple[bool, ...], dtypes: list[DType], *refs: Any) -> None:
    """One block. `refs` are the inputs (constants, then lanes) and the outputs (lanes, then records)."""
    constant_count, lane_count = len(loop.per_lane), len(dtypes) - len(loop.per_lane)
    inputs, outputs, records = refs[: len(dtypes)], refs[len(dtypes) :][:lane_count], refs[len(dtypes) + lane_count :]
    values = [
        (ref[...] if own else ref[0]).astype(dtype) for ref, own, dtype in zip(inputs, owned, dtypes, strict=True)
    ]
    constants, lanes = values[:constant_count], values[constant_count:]
    step = loop.step_lanes()

    def goes_on(carry: tuple[jax.Array, Arrays]) -> jax.Array:
        return (carry[0] < loop.steps) & (jnp.min(carry[1][loop.over].astype(jnp.int32)) == 0)

    def advance(carry: tuple[jax.Array, Arrays]) -> tuple[jax.Array, Arrays]:
        after = step(constants, *carry)
        for ref, row in zip(records, after[lane_count:], strict=True):
            ref[carry[0], :] = row.astype(ref.dtype)
        return carry[0] + 1, after[:lane_count]

    def leave_empty(k: jax.Array) -> jax.Array:
        for ref in records:
            ref[k, :] = jnp.zeros(BLOCK, ref.dtype)
        return k + 1

    taken, lanes = jax.lax.while_loop(goes_on, advance, (jnp.int32(0), lanes))
    if records:
        jax.lax.while_loop(lambda k: k < loop.steps, leave_empty, taken)
    for ref, leaf in zip(outputs, lanes, strict=True):
        ref[...] = leaf.astype(ref.dtype)


def _store(leaf: jax.Array, own: bool, padded: int) -> jax.Array:
    """Conditions as integers, shared numbers as vectors of one, and whole blocks."""
    leaf = leaf.astype(_storable(leaf.dtype))
    return jnp.pad(leaf, (0, padded - leaf.size), mode="edge") if own else leaf.reshape(1)


def _storable(dtype: DType) -> DType:
    """Conditions travel as integers."""
    return jnp.int32 if dtype == jnp.bool_ else dtype
