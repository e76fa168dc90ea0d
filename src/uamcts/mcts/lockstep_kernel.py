"""The lanes' loop as one GPU kernel: a block of lanes stays in registers from the first step to the last.

It is an acceleration behind `lanes.lockstep` and gives the same numbers. It serves lanes whose leaves are plain
numbers, for steps that Pallas can lower; everything else takes the compiler's own loop.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

BLOCK = 32
"""Lanes in one block: one warp, which stops as soon as its own lanes are over."""


def usable(jaxpr: Any, count: int, over: int, per_lane: tuple[bool, ...], constants: list, lanes: list) -> bool:
    """Whether the loop can run as a kernel here: on a GPU, with numbers only, and with a step that can be lowered."""
    if jax.default_backend() != "gpu":
        return False
    plain = all(leaf.ndim == 1 for leaf in lanes) and all(
        constant.ndim == (1 if own else 0) for constant, own in zip(constants, per_lane, strict=True)
    )
    plain = plain and all(out.aval.ndim == 0 for out in jaxpr.outvars[len(lanes) :])
    return plain and _lowers(jaxpr, count, over, per_lane, tuple(leaf.dtype for leaf in (*constants, *lanes)))


@functools.lru_cache(maxsize=256)
def _lowers(jaxpr: Any, count: int, over: int, per_lane: tuple[bool, ...], dtypes: tuple) -> bool:
    """Tries it once on a single block. To compile it as well would wait for whatever the GPU is doing."""
    shapes = [
        jax.ShapeDtypeStruct((BLOCK,) if own else (), dtype) for own, dtype in zip(per_lane, dtypes, strict=False)
    ]
    lanes = [jax.ShapeDtypeStruct((BLOCK,), dtype) for dtype in dtypes[len(per_lane) :]]
    program = functools.partial(run, jaxpr, count, over, per_lane)
    try:
        jax.jit(program).lower(shapes, lanes)
    except Exception:  # whatever stops the lowering, the plain loop does the same work
        return False
    return True


def run(
    jaxpr: Any,
    count: int,
    over: int,
    per_lane: tuple[bool, ...],
    constants: list,
    lanes: list,
    interpret: bool = False,
) -> list:
    """`count` steps of all lanes, fewer where a whole block is over before; `interpret` needs no GPU and no speed.

    What a step gives beyond the lane is its record: all records come after the lanes, [lanes, count].
    """
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    number = lanes[0].shape[0]
    padded = -(-number // BLOCK) * BLOCK
    dtypes = [leaf.dtype for leaf in (*constants, *lanes)]
    records = [_storable(out.aval.dtype) for out in jaxpr.outvars[len(lanes) :]]

    def stored(leaf: jax.Array, own: bool) -> jax.Array:
        """Conditions as integers, shared numbers as vectors of one, and whole blocks."""
        leaf = leaf.astype(_storable(leaf.dtype))
        return jnp.pad(leaf, (0, padded - number), mode="edge") if own else leaf.reshape(1)

    def kernel(*refs: Any) -> None:
        inputs, outputs = refs[: len(dtypes)], refs[len(dtypes) :]
        owned = (*per_lane, *(True,) * len(lanes))
        values = [
            (ref[...] if own else ref[0]).astype(dtype) for ref, own, dtype in zip(inputs, owned, dtypes, strict=True)
        ]
        fixed, lane = values[: len(per_lane)], values[len(per_lane) :]

        def one(fixed: list, k: jax.Array, lane: list) -> list:
            return jaxpr_as_fun(ClosedJaxpr(jaxpr, fixed))(k, *lane)

        every = jax.vmap(one, in_axes=([0 if own else None for own in per_lane], None, 0))

        def goes_on(carry: tuple) -> jax.Array:
            return (carry[0] < count) & (jnp.min(carry[1][over].astype(jnp.int32)) == 0)

        def advance(carry: tuple) -> tuple:
            after = every(fixed, *carry)
            for ref, row in zip(outputs[len(lanes) :], after[len(lanes) :], strict=True):
                ref[carry[0], :] = row.astype(ref.dtype)
            return carry[0] + 1, after[: len(lanes)]

        def leave_empty(k: jax.Array) -> jax.Array:
            for ref in outputs[len(lanes) :]:
                ref[k, :] = jnp.zeros(BLOCK, ref.dtype)
            return k + 1

        taken, lane = jax.lax.while_loop(goes_on, advance, (jnp.int32(0), lane))
        if records:
            jax.lax.while_loop(lambda k: k < count, leave_empty, taken)
        for ref, leaf in zip(outputs[: len(lanes)], lane, strict=True):
            ref[...] = leaf.astype(ref.dtype)

    block = pl.BlockSpec((BLOCK,), lambda i: (i,))
    shared = pl.BlockSpec((1,), lambda i: (0,))
    rows = pl.BlockSpec((count, BLOCK), lambda i: (0, i))
    arguments = [stored(leaf, own) for leaf, own in zip(constants, per_lane, strict=True)]
    arguments += [stored(leaf, True) for leaf in lanes]
    after = pl.pallas_call(
        kernel,
        grid=(padded // BLOCK,),
        in_specs=[block if own else shared for own in per_lane] + [block] * len(lanes),
        out_specs=[block] * len(lanes) + [rows] * len(records),
        out_shape=[jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in arguments[len(per_lane) :]]
        + [jax.ShapeDtypeStruct((count, padded), dtype) for dtype in records],
        compiler_params=triton.CompilerParams(num_warps=1, num_stages=1),
        name="uamcts_lanes",
        interpret=interpret,
    )(*arguments)
    ends = [leaf[:number].astype(lane.dtype) for leaf, lane in zip(after, lanes, strict=False)]
    said = [
        leaf[:, :number].T.astype(out.aval.dtype)
        for leaf, out in zip(after[len(lanes) :], jaxpr.outvars[len(lanes) :], strict=True)
    ]
    return ends + said


def _storable(dtype: Any) -> Any:
    """Conditions travel as integers."""
    return jnp.int32 if dtype == jnp.bool_ else dtype
