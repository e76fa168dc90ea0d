"""What moves or joins the entries of arrays in the lanes of a kernel: rules for `scalarize.evaluate`."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.mcts.kernels.table import Aval, Entries, Unsupported, broadcast, entries_of, fill, map_entries, row_of

Params: TypeAlias = dict[str, Any]


def _broadcast_in_dim(params: Params, _: Aval, array: Entries, *rest: Entries) -> Entries:
    shape, dimensions = params["shape"], params["broadcast_dimensions"]
    sizes = [1] * len(shape)
    for place, dimension in enumerate(dimensions):
        sizes[dimension] = array.shape[place]
    return np.broadcast_to(array.reshape(sizes), shape)


def _slice(params: Params, _: Aval, array: Entries) -> Entries:
    strides = params["strides"] or (1,) * array.ndim
    bounds = zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    return array[tuple(itertools.starmap(slice, bounds))]


def _pad(params: Params, out: Aval, array: Entries, padding: Entries) -> Entries:
    if any(low < 0 or high < 0 for low, high, _ in params["padding_config"]):
        raise Unsupported("a kernel cannot pad by less than nothing")
    result = fill(out.shape, padding[()])
    places = tuple(
        slice(low, low + (size - 1) * (inner + 1) + 1 if size else low, inner + 1)
        for (low, _, inner), size in zip(params["padding_config"], array.shape, strict=True)
    )
    result[places] = array
    return result


def _iota(params: Params, out: Aval) -> Entries:
    sizes = [1] * len(out.shape)
    sizes[params["dimension"]] = out.shape[params["dimension"]]
    row = entries_of(np.arange(out.shape[params["dimension"]], dtype=out.dtype)).reshape(sizes)
    return np.broadcast_to(row, out.shape)


def _split(params: Params, _: Aval, array: Entries) -> list[Entries]:
    ends = np.cumsum(params["sizes"])[:-1]
    return list(np.split(array, ends, axis=params["axis"]))


def _reduce(operation: Callable[[Any, Any], Any]) -> Callable[..., Entries]:
    """Joins the entries along some axes, from the first on."""

    def rule(params: Params, out: Aval, array: Entries) -> Entries:
        axes = params["axes"]
        kept = [axis for axis in range(array.ndim) if axis not in axes]
        rows = array.transpose(*kept, *axes).reshape(*(array.shape[axis] for axis in kept), -1)
        if not rows.shape[-1]:
            raise Unsupported("a kernel cannot reduce an empty axis")
        result = np.empty(out.shape, object)
        for place in np.ndindex(result.shape):
            result[place] = functools.reduce(lambda a, b: operation(*broadcast(a, b)), list(rows[place]))
        return result

    return rule


def _arg(better: Callable[[Any, Any], Any]) -> Callable[..., Entries]:
    """The index of the first of the best entries."""

    def rule(params: Params, out: Aval, array: Entries) -> Entries:
        (axis,) = params["axes"]
        rows, result = np.moveaxis(array, axis, -1), np.empty(out.shape, object)
        for place in np.ndindex(result.shape):
            best, index = rows[place][0], jnp.asarray(0, out.dtype)
            for number in range(1, rows.shape[-1]):
                best, other = broadcast(best, rows[place][number])
                wins = better(other, best)
                best = jnp.where(wins, other, best)
                index = jnp.where(wins, jnp.asarray(number, out.dtype), index)
            result[place] = index
        return result

    return rule


def _greater(a: jax.Array, b: jax.Array) -> jax.Array:
    """NaN counts as greater than every number."""
    return (a > b) | ((a != a) & (b == b))


def _less(a: jax.Array, b: jax.Array) -> jax.Array:
    return (a < b) | ((a != a) & (b == b))


def _cumulate(operation: Callable[[Any, Any], Any]) -> Callable[..., Entries]:
    def rule(params: Params, _: Aval, array: Entries) -> Entries:
        rows = np.moveaxis(array, params["axis"], 0)
        rows = rows[::-1] if params["reverse"] else rows
        summed = [row_of(rows, 0)]
        for number in range(1, rows.shape[0]):
            summed.append(map_entries(lambda a, b: operation(*broadcast(a, b)), summed[-1], row_of(rows, number)))
        result = np.stack(summed[::-1] if params["reverse"] else summed)
        return np.moveaxis(result, 0, params["axis"])

    return rule


def _dot(params: Params, out: Aval, left: Entries, right: Entries) -> Entries:
    """A small product of matrices, written out."""
    (left_axes, right_axes), (left_batch, right_batch) = params["dimension_numbers"]

    def arrange(array: Entries, batch: Sequence[int], axes: Sequence[int]) -> Entries:
        free = [axis for axis in range(array.ndim) if axis not in (*batch, *axes)]
        count = [math.prod(array.shape[axis] for axis in group) for group in (batch, free, axes)]
        return array.transpose(*batch, *free, *axes).reshape(count)

    one, two = arrange(left, left_batch, left_axes), arrange(right, right_batch, right_axes)
    result = np.empty((one.shape[0], one.shape[1], two.shape[1]), object)
    for b, i, j in np.ndindex(result.shape):
        products = [jnp.multiply(*broadcast(x, y)).astype(out.dtype) for x, y in zip(one[b, i], two[b, j], strict=True)]
        result[b, i, j] = functools.reduce(lambda x, y: jnp.add(*broadcast(x, y)), products)
    return result.reshape(out.shape)


def _bitcast(_: Params, out: Aval, array: Entries) -> Entries:
    """The bits of numbers as numbers of another type of the same size."""
    if out.shape != array.shape:
        raise Unsupported("a kernel cannot take numbers apart")

    def cast(entry: Any) -> Any:
        if isinstance(entry, np.generic):
            return entry.view(out.dtype)
        return jax.lax.bitcast_convert_type(entry, out.dtype)

    return map_entries(cast, array)


def _unstack(params: Params, _: Aval, array: Entries) -> list[Entries]:
    rows = np.moveaxis(array, params["axis"], 0)
    return [row_of(rows, number) for number in range(rows.shape[0])]


STRUCTURE: dict[str, Callable[..., Any]] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "slice": _slice,
    "pad": _pad,
    "iota": _iota,
    "split": _split,
    "reshape": lambda params, out, array, *rest: array.reshape(out.shape),
    "squeeze": lambda params, out, array: array.reshape(out.shape),
    "expand_dims": lambda params, out, array: array.reshape(out.shape),
    "transpose": lambda params, out, array: array.transpose(params["permutation"]),
    "rev": lambda params, out, array: np.flip(array, params["dimensions"]),
    "concatenate": lambda params, out, *arrays: np.concatenate(arrays, axis=params["dimension"]),
    "unstack": _unstack,
    "stack": lambda params, out, *arrays: np.stack(arrays, axis=params["axis"]),
    "reduce_sum": _reduce(jnp.add),
    "reduce_prod": _reduce(jnp.multiply),
    "reduce_max": _reduce(jnp.maximum),
    "reduce_min": _reduce(jnp.minimum),
    "reduce_and": _reduce(jnp.bitwise_and),
    "reduce_or": _reduce(jnp.bitwise_or),
    "reduce_xor": _reduce(jnp.bitwise_xor),
    "argmax": _arg(_greater),
    "argmin": _arg(_less),
    "cumsum": _cumulate(jnp.add),
    "cumprod": _cumulate(jnp.multiply),
    "cummax": _cumulate(jnp.maximum),
    "cummin": _cumulate(jnp.minimum),
    "dot_general": _dot,
    "bitcast_convert_type": _bitcast,
}
"""The rules by primitive: functions of its parameters, the type of the result, and the arrays."""
