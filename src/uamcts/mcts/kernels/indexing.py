"""Traced indices in the lanes of a kernel: reads from memory, and selections among entries in registers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import GatherScatterMode

from uamcts.mcts.kernels.table import Aval, Entries, Entry, Table, Unsupported, row_of

Index: TypeAlias = Any
"""A Python integer, or a vector over lanes."""
Params: TypeAlias = dict[str, Any]


def slice_at(params: Params, out: Aval, operand: Entries | Table, *starts: Entries) -> Entries:
    """`dynamic_slice`: the window never leaves the array."""
    return _window(operand, [start[()] for start in starts], params["slice_sizes"]).reshape(out.shape)


def update_at(_: Params, out: Aval, operand: Entries | Table, update: Entries | Table, *starts: Entries) -> Entries:
    """`dynamic_update_slice`."""
    operand, update = (value.load() if isinstance(value, Table) else value for value in (operand, update))
    rooms = [size - width for size, width in zip(operand.shape, update.shape, strict=True)]
    first = [_clip(start[()], room) for start, room in zip(starts, rooms, strict=True)]
    result = operand.copy()
    for offset in np.ndindex(update.shape):
        _write(result, [_plus(start, step) for start, step in zip(first, offset, strict=True)], update[offset])
    return result.reshape(out.shape)


def gather(params: Params, out: Aval, operand: Entries | Table, indices: Entries | Table) -> Entries:
    """`gather`, one window for every index."""
    numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
    indices = indices.load() if isinstance(indices, Table) else indices
    clips, fill_value = _mode(params), _fill_value(params, out)
    batch = [axis for axis in range(len(out.shape)) if axis not in numbers.offset_dims]
    aside = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    windowed = [axis for axis in range(len(operand.shape)) if axis not in aside]
    result = np.empty(out.shape, object)
    for place in np.ndindex(out.shape):
        row = tuple(place[axis] for axis in batch)
        starts: list[Index] = [0] * len(operand.shape)
        for number, axis in enumerate(numbers.start_index_map):
            starts[axis] = indices[(*row, number)]
        for axis, other in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
            starts[axis] = row[other]
        good = [_inside(starts[axis], operand.shape[axis] - sizes[axis]) for axis in numbers.start_index_map]
        starts = [_clip(start, size - width) for start, size, width in zip(starts, operand.shape, sizes, strict=True)]
        for axis, number in zip(windowed, (place[axis] for axis in numbers.offset_dims), strict=True):
            starts[axis] = _plus(starts[axis], number)
        found = _read(operand, starts)
        result[place] = found if clips else _where_all(good, found, fill_value)
    return result


def scatter(
    join: Callable[[Any, Any], Any],
    params: Params,
    out: Aval,
    operand: Entries | Table,
    indices: Entries | Table,
    updates: Entries | Table,
) -> Entries:
    """`scatter` and `scatter_add`, one window for every index."""
    operand, indices, updates = (v.load() if isinstance(v, Table) else v for v in (operand, indices, updates))
    numbers = params["dimension_numbers"]
    clips = _mode(params)
    aside = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    windowed = [axis for axis in range(operand.ndim) if axis not in aside]
    widths = dict(zip(windowed, (updates.shape[axis] for axis in numbers.update_window_dims), strict=True))
    result = operand.copy()
    for place in np.ndindex(updates.shape):
        row = tuple(place[axis] for axis in range(updates.ndim) if axis not in numbers.update_window_dims)
        starts: list[Index] = [0] * operand.ndim
        for number, axis in enumerate(numbers.scatter_dims_to_operand_dims):
            starts[axis] = indices[(*row, number)]
        for axis, other in zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
            starts[axis] = row[other]
        rooms = [size - widths.get(axis, 1) for axis, size in enumerate(operand.shape)]
        good = [_inside(starts[axis], rooms[axis]) for axis in numbers.scatter_dims_to_operand_dims]
        if clips:
            starts, good = [_clip(start, room) for start, room in zip(starts, rooms, strict=True)], []
        for axis, number in zip(windowed, (place[axis] for axis in numbers.update_window_dims), strict=True):
            starts[axis] = _plus(starts[axis], number)
        _write(result, starts, updates[place], join, good)
    return result.reshape(out.shape)


def _window(operand: Entries | Table, starts: Sequence[Index], sizes: Sequence[int]) -> Entries:
    first = [_clip(start, size - width) for start, size, width in zip(starts, operand.shape, sizes, strict=True)]
    result = np.empty(tuple(sizes), object)
    for offset in np.ndindex(result.shape):
        result[offset] = _read(operand, [_plus(start, step) for start, step in zip(first, offset, strict=True)])
    return result


def _read(operand: Entries | Table, index: Sequence[Index]) -> Any:
    """One entry; the index lies inside."""
    if isinstance(operand, Table):
        place: Index = 0
        for number, size in zip(index, operand.shape, strict=True):
            place = place * size + number
        return operand.get(place)
    found = operand[tuple(slice(None) if _traced(number) else slice(int(number), int(number) + 1) for number in index)]
    for number in index:
        chosen = row_of(found, 0)
        for row in range(1, found.shape[0]):
            chosen = _select(number == row, row_of(found, row), chosen)
        found = chosen
    return found[()]


def _write(
    result: Entries,
    index: Sequence[Index],
    value: Entry,
    join: Callable[[Any, Any], Any] = lambda old, new: new,
    good: Sequence[Any] = (),
) -> None:
    """Changes one entry in place; an index that lies outside changes nothing."""
    sizes = zip(index, result.shape, strict=True)
    ranges = [range(size) if _traced(number) else (int(number),) for number, size in sizes]
    for place in itertools.product(*ranges):
        if any(position < 0 or position >= size for position, size in zip(place, result.shape, strict=True)):
            continue
        here = [number == position for number, position in zip(index, place, strict=True) if _traced(number)]
        old = result[place]
        result[place] = _where_all([*good, *here], join(old, value), old)


def _select(condition: Entry, new: Entries, old: Entries) -> Entries:
    result = np.empty(new.shape, object)
    for place in np.ndindex(new.shape):
        result[place] = jnp.where(condition, new[place], old[place])
    return result


def _where_all(conditions: Sequence[Entry], value: Entry, otherwise: Entry) -> Entry:
    """`value` where all conditions hold; Python's truth values are decided at once."""
    for condition in conditions:
        if isinstance(condition, (bool, np.bool_)):
            if not condition:
                return otherwise
        else:
            value = jnp.where(condition, value, otherwise)
    return value


def _traced(number: Index) -> bool:
    return isinstance(number, jax.Array)


def _clip(number: Index, most: int) -> Index:
    """An index kept within 0 .. most."""
    if _traced(number):
        if not jnp.issubdtype(number.dtype, jnp.signedinteger):
            number = number.astype(jnp.int32)
        return jnp.minimum(jnp.maximum(number, 0), most) if most > 0 else 0
    return min(max(int(number), 0), most)


def _inside(number: Index, most: int) -> Any:
    return (number >= 0) & (number <= most) if _traced(number) else bool(0 <= int(number) <= most)


def _plus(number: Index, step: int) -> Index:
    return number + step if step else number


def _mode(params: Params) -> bool:
    """Whether windows are moved into the array; otherwise those that lie outside are left out."""
    mode = GatherScatterMode.from_any(params["mode"]) if isinstance(params["mode"], str) else params["mode"]
    if mode in (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS):
        return True
    if mode == GatherScatterMode.FILL_OR_DROP:
        return False
    raise Unsupported(f"a kernel cannot index with mode={params['mode']}")


def _fill_value(params: Params, out: Aval) -> Any:
    given = params.get("fill_value")
    if given is not None:
        return np.asarray(given, out.dtype)[()]
    if jnp.issubdtype(out.dtype, jnp.inexact):
        return np.asarray(np.nan, out.dtype)[()]
    if out.dtype == np.bool_:
        return np.bool_(True)
    limits = np.iinfo(out.dtype)
    return np.asarray(limits.min if jnp.issubdtype(out.dtype, jnp.signedinteger) else limits.max, out.dtype)[()]
