"""The loop over lanes as one GPU kernel: a lane stays in the registers of its thread from the first step to the last.

An acceleration behind `lockstep.run_lockstep` that gives the same numbers. It serves steps that can be written out
entry by entry (`scalarize`) and that Pallas can lower; everything else takes the compiler's own loop.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, jaxpr_as_fun

from uamcts.mcts.kernels import lanes as kernel_lanes
from uamcts.mcts.kernels.lanes import ALL, Groups, Program, Spec, spread
from uamcts.mcts.kernels.scalarize import Value, any_lane, evaluate
from uamcts.mcts.kernels.table import Entries, Table, fill

Arrays: TypeAlias = list[jax.Array]

SMALL = 16
"""Constants of at most so many numbers are read once; larger ones stay in memory."""
LARGE = 64
"""Shared constants with more numbers than this are not copied for every lane."""
MOST_NUMBERS = 256
"""The most numbers in a lane: more do not fit into the registers of a thread."""


class Loop(NamedTuple):
    """A loop over lanes: its step as a function of constants, k and the leaves of a lane."""

    jaxpr: Jaxpr
    """The step. It returns the leaves of the lane, and after them those of the record."""
    steps: int
    """The largest number of steps."""
    over: int
    """Which leaf of a lane says whether it is over."""
    groups: Groups
    """How many neighbouring lanes share each of the constants."""

    def step_lanes(self, constants: Arrays) -> tuple[Arrays, Callable[[Arrays, jax.Array, Arrays], Arrays]]:
        """The constants as it takes them, and the step for all lanes: a function of these, k and the lanes' leaves."""

        def step(constants: Arrays, k: jax.Array, lane: Arrays) -> Any:
            return jaxpr_as_fun(ClosedJaxpr(self.jaxpr, constants))(k, *lane)

        pairs = zip(constants, self.groups, strict=True)
        together = min((group for leaf, group in pairs if group > 1 and leaf[0].size > LARGE), default=1)
        axes = [None if group == ALL else 0 for group in self.groups]
        if together == 1:
            return spread(constants, self.groups), jax.vmap(step, in_axes=(axes, None, 0))

        # Large tables are not copied for each of the lanes that share them: these lanes have an axis of their own.
        def split(leaf: jax.Array) -> jax.Array:
            return leaf.reshape(-1, together, *leaf.shape[1:])

        inner = [0 if 0 < group < together else None for group in self.groups]
        both = jax.vmap(jax.vmap(step, in_axes=(inner, None, 0)), in_axes=(axes, None, 0))

        def step_groups(constants: Arrays, k: jax.Array, lanes: Arrays) -> Arrays:
            after = both(constants, k, [split(leaf) for leaf in lanes])
            return [leaf.reshape(-1, *leaf.shape[2:]) for leaf in after]

        return [
            split(spread([leaf], (group,))[0]) if 0 < group < together else spread([leaf], (group,), together)[0]
            for leaf, group in zip(constants, self.groups, strict=True)
        ], step_groups

    def record_types(self, leaves: int) -> list[Any]:
        """The shape and dtype of each leaf of one record; a lane has so many `leaves`."""
        return [out.aval for out in self.jaxpr.outvars[leaves:]]


def usable(loop: Loop, constants: Arrays, lanes: Arrays) -> bool:
    """Whether the loop can run as a kernel here: on a GPU, with few numbers in a lane, and with a step that lowers."""
    if jax.default_backend() != "gpu":
        return False
    specs = tuple(Spec(leaf.shape[one != ALL :], leaf.dtype) for leaf, one in zip(constants, loop.groups, strict=True))
    lane = tuple(Spec(leaf.shape[1:], leaf.dtype) for leaf in lanes)
    plain = all(jnp.issubdtype(spec.dtype, jnp.number) or spec.dtype == bool for spec in (*specs, *lane))
    return plain and sum(map(_size, lane)) <= MOST_NUMBERS and _lowers(loop, specs, lane)


def _size(spec: Spec) -> int:
    return int(np.prod(spec.shape, dtype=np.int64))


@functools.lru_cache(maxsize=256)
def _lowers(loop: Loop, constants: tuple[Spec, ...], lane: tuple[Spec, ...]) -> bool:
    """Tries it once on a single block. To compile it as well would wait for whatever the GPU is doing."""
    number = kernel_lanes.BLOCK
    shapes = [
        jax.ShapeDtypeStruct(spec.shape if group == ALL else (-(-number // group), *spec.shape), spec.dtype)
        for spec, group in zip(constants, loop.groups, strict=True)
    ]
    lanes = [jax.ShapeDtypeStruct((number, *spec.shape), spec.dtype) for spec in lane]
    try:
        jax.jit(functools.partial(run, loop)).trace(shapes, lanes).lower(lowering_platforms=("cuda",))
    except Exception:  # whatever stops the lowering, the plain loop does the same work
        return False
    return True


def run(loop: Loop, constants: Arrays, lanes: Arrays, interpret: bool = False) -> Arrays:
    """Runs the loop in all lanes; a block stops when all its lanes are over.

    Args:
        loop: the step and how often to take it.
        constants: the constants of the step, with an axis over groups of lanes unless all lanes share them.
        lanes: the leaves of the lanes, [n, ...].
        interpret: emulate the kernel, slowly and on any device.

    Returns:
        The leaves of the lanes after the last step, [n, ...], and after them those of the records, [n, steps, ...].
    """
    lane = tuple(Spec(leaf.shape[1:], leaf.dtype) for leaf in lanes)
    records = tuple(Spec((loop.steps, *out.shape), out.dtype) for out in loop.record_types(len(lanes)))

    def body(arguments: list[Value], changed: list[Table], results: list[Table]) -> None:
        del changed
        _run_lane(loop, arguments[: len(constants)], arguments[len(constants) :], results)

    program = Program(body, lane + records, "uamcts_lanes")
    groups = (*loop.groups, *(1,) * len(lanes))
    return kernel_lanes.run(program, [*constants, *lanes], groups, [], interpret, lanes[0].shape[0])[1]


def _run_lane(loop: Loop, constants: list[Value], lane: list[Value], results: list[Table]) -> None:
    """All steps of one lane: `results` are its leaves at the end, and the records."""
    ends, records = results[: len(lane)], results[len(lane) :]
    shape = ends[0].lanes
    start = [leaf.load() if isinstance(leaf, Table) else leaf for leaf in lane]
    shapes = [leaf.shape for leaf in start]
    small = [value.load() if isinstance(value, Table) and value.size <= SMALL else value for value in constants]

    def pack(arrays: list[Any]) -> list[jax.Array]:
        return [jnp.broadcast_to(entry, shape) for array in arrays for entry in array.ravel()]

    def unpack(flat: list[jax.Array]) -> list[Entries]:
        remaining, arrays = iter(flat), []
        for size in shapes:
            array = fill(size, None)
            for place in np.ndindex(size):
                array[place] = next(remaining)
            arrays.append(array)
        return arrays

    def goes_on(carry: tuple[jax.Array, list[jax.Array]]) -> jax.Array:
        over: Any = unpack(carry[1])[loop.over][()]
        return (carry[0] < loop.steps) & any_lane(~over)

    def advance(carry: tuple[jax.Array, list[jax.Array]]) -> tuple[jax.Array, list[jax.Array]]:
        k, flat = carry
        after = evaluate(loop.jaxpr, small, [fill((), k), *unpack(flat)])
        arrays = [value.load() if isinstance(value, Table) else value for value in after]
        for table, row in zip(records, arrays[len(lane) :], strict=True):
            for place, entry in enumerate(row.ravel()):
                table.put(k * row.size + place, entry)
        return k + 1, pack(arrays[: len(lane)])

    def leave_empty(k: jax.Array) -> jax.Array:
        for table in records:
            width = table.size // loop.steps
            for place in range(width):
                table.put(k * width + place, jnp.zeros((), table.ref.dtype))
        return k + 1

    taken, flat = jax.lax.while_loop(goes_on, advance, (jnp.int32(0), pack(start)))
    if records:
        jax.lax.while_loop(lambda k: k < loop.steps, leave_empty, taken)
    for table, array in zip(ends, unpack(flat), strict=True):
        table.put_all(array)
