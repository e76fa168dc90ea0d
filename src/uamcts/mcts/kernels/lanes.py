"""Kernels with a lane per thread: what they read, change and return lies in memory, for each lane or for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from uamcts.mcts.kernels.scalarize import Value
from uamcts.mcts.kernels.table import DType, Ref, Table, fill

BLOCK = 32
"""Lanes in one block: one warp, whose loops end as soon as its own lanes are done."""

ALL = 0
"""Instead of a number of lanes, for a constant that all lanes share."""

Arrays: TypeAlias = list[jax.Array]
Groups: TypeAlias = tuple[int, ...]
"""How many neighbouring lanes share each constant. A constant has an entry for every such group, and no axis of groups
if all lanes share it."""
Body: TypeAlias = Callable[[list[Value], list[Table], list[Table]], None]
"""What one lane does: it reads its arguments, changes some tables, and fills in the results."""


class Spec(NamedTuple):
    """The type of an array of one lane."""

    shape: tuple[int, ...]
    dtype: Any


class Program(NamedTuple):
    """A kernel for one lane."""

    body: Body
    results: tuple[Spec, ...]
    name: str


def call(program: Program, arguments: Arrays, changed: Arrays, interpret: bool = False) -> tuple[Arrays, Arrays]:
    """Runs a program for one search, or for all searches of the vmaps around it in one kernel.

    Args:
        program: what one lane does.
        arguments: what it reads.
        changed: what it changes in place: no conditions.
        interpret: emulate the kernel, slowly and on any device.

    Returns:
        `changed` afterwards, and the results.
    """

    def run_lanes(groups: Groups, arguments: Arrays, lanes: Arrays) -> Arrays:
        after, results = run(program, arguments, groups, lanes, interpret)
        return after + results

    found = merge_batches(run_lanes, (ALL,) * len(arguments))(arguments, [leaf[None] for leaf in changed])
    found = [leaf[0] for leaf in found]
    return found[: len(changed)], found[len(changed) :]


def merge_batches(
    run_lanes: Callable[[Groups, Arrays, Arrays], Arrays], groups: Groups
) -> Callable[[Arrays, Arrays], Arrays]:
    """A function of constants and lanes for which every vmap around it just means more lanes.

    `run_lanes(groups, constants, lanes)` gets all lanes on one axis, and returns arrays with that axis. Constants are
    not copied for every lane: what belongs to one search is shared by all its lanes.
    """

    @custom_vmap
    def run_all(constants: Arrays, lanes: Arrays) -> Arrays:
        return run_lanes(groups, constants, lanes)

    @run_all.def_vmap
    def _merge(size: int, batched: Sequence[list[bool]], constants: Arrays, lanes: Arrays) -> tuple[Arrays, list[bool]]:
        number = lanes[0].shape[1 if batched[1][0] else 0]

        def merge(leaf: jax.Array, has_batch: bool) -> jax.Array:
            """Merges the axis of a batch with the next one."""
            leaf = leaf if has_batch else jnp.broadcast_to(leaf, (size, *leaf.shape))
            return leaf.reshape(-1, *leaf.shape[2:])

        merged = tuple(number if has and group == ALL else group for has, group in zip(batched[0], groups, strict=True))
        constants = [
            leaf if group == ALL else merge(leaf, has)
            for leaf, has, group in zip(constants, batched[0], groups, strict=True)
        ]
        lanes = [merge(leaf, has) for leaf, has in zip(lanes, batched[1], strict=True)]
        after = merge_batches(run_lanes, merged)(constants, lanes)
        return [leaf.reshape(size, number, *leaf.shape[1:]) for leaf in after], [True] * len(after)

    return run_all


def spread(constants: Arrays, groups: Groups, lanes: int = 1) -> Arrays:
    """Constants of groups of lanes, repeated so that `lanes` lanes share each; by default each lane has its own."""

    def repeat(leaf: jax.Array, times: int) -> jax.Array:
        shape = leaf.shape[1:]
        return jnp.broadcast_to(leaf[:, None], (leaf.shape[0], times, *shape)).reshape(-1, *shape)

    return [
        repeat(leaf, group // lanes) if group > lanes else leaf for leaf, group in zip(constants, groups, strict=True)
    ]


def run(
    program: Program,
    arguments: Arrays,
    groups: Groups,
    changed: Arrays,
    interpret: bool = False,
    number: int | None = None,
) -> tuple[Arrays, Arrays]:
    """The kernel for `number` lanes.

    Args:
        program: what one lane does.
        arguments: what it reads, with an axis over groups of lanes unless all lanes share it.
        groups: how many neighbouring lanes share each of the arguments.
        changed: what it changes in place, with an axis over lanes.
        interpret: emulate the kernel.
        number: how many lanes there are; by default as `changed` says.

    Returns:
        `changed` afterwards, and the results, all with an axis over lanes.
    """
    number = changed[0].shape[0] if number is None else number
    largest = max([leaf.size for leaf in (*arguments, *changed)] + [number * _size(spec) for spec in program.results])
    if largest < 2**31 or number == 1:
        return _launch(program, arguments, groups, changed, interpret, number)
    if any(group > 1 for group in groups):
        arguments, groups = spread(arguments, groups), tuple(min(group, 1) for group in groups)
    # Places are numbers of 32 bits: so many lanes take two kernels.
    halves = []
    for part in (slice(0, number // 2), slice(number // 2, number)):
        inputs = [leaf if group == ALL else leaf[part] for leaf, group in zip(arguments, groups, strict=True)]
        halves.append(run(program, inputs, groups, [leaf[part] for leaf in changed], interpret, part.stop - part.start))
    after, results = ([jnp.concatenate(pair) for pair in zip(*both, strict=True)] for both in zip(*halves, strict=True))
    return after, results


def _launch(
    program: Program, arguments: Arrays, groups: Groups, changed: Arrays, interpret: bool, number: int
) -> tuple[Arrays, Arrays]:
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    specs = [Spec(leaf.shape[group != ALL :], leaf.dtype) for leaf, group in zip(arguments, groups, strict=True)]
    kept = [Spec(leaf.shape[1:], leaf.dtype) for leaf in changed]
    sizes = [_size(spec) for spec in program.results]
    block = number if interpret else BLOCK  # emulated, a lane that writes nothing would write what was there before

    def kernel(*refs: Ref) -> None:
        lane = pl.program_id(0) * block + jnp.arange(block, dtype=jnp.int32)
        here = Here(jnp.minimum(lane, number - 1), lane < number, number)
        inputs = [here.shared(ref, spec, group) for ref, spec, group in zip(refs, specs, groups, strict=False)]
        written = refs[len(specs) + len(kept) :]
        updated = [here.table(ref, spec) for ref, spec in zip(written, kept, strict=False)]
        results = [
            here.table(ref, spec, apart=True) for ref, spec in zip(written[len(kept) :], program.results, strict=True)
        ]
        program.body([fill((), table.get(0)) if not table.shape else table for table in inputs], updated, results)

    outputs = [(leaf.size, leaf.dtype) for leaf in changed]
    outputs += [(size * number, storable(spec.dtype)) for size, spec in zip(sizes, program.results, strict=True)]
    after = pl.pallas_call(
        kernel,
        grid=(-(-number // block),),
        out_shape=[jax.ShapeDtypeStruct((size,), dtype) for size, dtype in outputs],
        input_output_aliases={len(arguments) + place: place for place in range(len(changed))},
        compiler_params=triton.CompilerParams(num_warps=1, num_stages=1),
        name=program.name,
        interpret=interpret,
    )(*(leaf.astype(storable(leaf.dtype)).reshape(-1) for leaf in arguments), *(leaf.reshape(-1) for leaf in changed))
    ends = [leaf.reshape(old.shape) for leaf, old in zip(after, changed, strict=False)]
    results = [
        leaf.reshape(size, number).T.reshape(number, *spec.shape).astype(spec.dtype)
        for leaf, size, spec in zip(after[len(changed) :], sizes, program.results, strict=True)
    ]
    return ends, results


class Here(NamedTuple):
    """The lanes of one block."""

    lane: jax.Array
    """Their numbers; those that fill up the block stand for the last one."""
    active: jax.Array
    total: int
    """How many lanes there are in all blocks."""

    def table(self, ref: Ref, spec: Spec, apart: bool = False) -> Table:
        """An array in memory; `apart`: equal places of all lanes lie side by side, instead of all places of a lane."""
        start, step = (self.lane, self.total) if apart else (self.lane * _size(spec), 1)
        return Table(ref, spec.shape, spec.dtype, start, self.active, step)

    def shared(self, ref: Ref, spec: Spec, group: int) -> Table:
        """An array in memory that groups of lanes share."""
        start = 0 if group == ALL else self.lane // group * _size(spec)
        return Table(ref, spec.shape, spec.dtype, start, self.active)


def _size(spec: Spec) -> int:
    return int(np.prod(spec.shape, dtype=np.int64))


def storable(dtype: DType) -> DType:
    """Conditions lie in memory as integers; as those take no more memory, the compiler converts them only once."""
    return jnp.int8 if dtype == jnp.bool_ else dtype
