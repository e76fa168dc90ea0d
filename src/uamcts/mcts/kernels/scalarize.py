"""Runs an unbatched function in the lanes of a GPU kernel.

Inside a Pallas kernel there are only vectors over lanes, one entry per thread. An unbatched function has small arrays: a
state, one number per action. `evaluate` walks through its jaxpr and keeps every entry of such an array as a vector over
lanes of its own, so that `values + rewards` over three actions becomes three additions. Arrays that were indexed by
something traced become chains of selections, or reads from memory if they are `Table`s.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from uamcts.mcts.kernels.indexing import gather, scatter, slice_at, update_at
from uamcts.mcts.kernels.table import Entries, Table, Unsupported, broadcast, entries_of, fill, row_of

Value: TypeAlias = Entries | Table
Params: TypeAlias = dict[str, Any]

LONGEST_UNROLLED = 64
"""The longest scan that is written out."""

ELEMENTWISE = frozenset(
    "abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil clamp clz convert_element_type copy copy_p cos "
    "cosh div eq erf erf_inv erfc exp exp2 expm1 floor ge gt integer_pow is_finite le log log1p logistic lt max min mul "
    "ne neg nextafter not or population_count pow reduce_precision rem round rsqrt select_n shift_left "
    "shift_right_arithmetic shift_right_logical sign sin sinh sqrt square stop_gradient sub tan tanh xor".split()
)
INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr", "call")
"""The parameters under which a call keeps the jaxpr of what it calls."""


def evaluate(jaxpr: Jaxpr, constants: Sequence[Value], arguments: Sequence[Value]) -> list[Value]:
    """The outputs of a jaxpr in every lane.

    Raises:
        Unsupported: if it does something that cannot be written out.
    """
    values: dict[Any, Value] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*constants, *arguments), strict=True))

    def read(atom: Any) -> Value:
        return entries_of(atom.val) if isinstance(atom, Literal) else values[atom]

    for equation in jaxpr.eqns:
        found = _apply(equation, [read(atom) for atom in equation.invars])
        values.update(zip(equation.outvars, found, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _apply(equation: Any, values: list[Value]) -> list[Value]:
    """The results of one equation."""
    name, params = equation.primitive.name, equation.params
    if name in _ON_TABLES:
        return [_ON_TABLES[name](params, equation.outvars[0].aval, *values)]
    if name in _CONTROL:
        return _CONTROL[name](params, values)
    arrays = [value.load() if isinstance(value, Table) else value for value in values]
    if name in ELEMENTWISE:
        return [_elementwise(equation.primitive, params, *arrays)]
    if name in _STRUCTURE:
        found = _STRUCTURE[name](params, equation.outvars[0].aval, *arrays)
        return found if isinstance(found, list) else [found]
    for key in INNER:
        if key in params:
            inner = params[key]
            if isinstance(inner, ClosedJaxpr):
                return evaluate(inner.jaxpr, [entries_of(constant) for constant in inner.consts], values)
            if isinstance(inner, Jaxpr):
                return evaluate(inner, [], values)
    raise Unsupported(f"a kernel cannot do {name!r}")


def _elementwise(primitive: Any, params: Params, *arrays: Entries) -> Entries:
    """The primitive for every entry. Entries that are the same object, as after a broadcast, are computed once."""
    done: dict[tuple[int, ...], jax.Array] = {}

    def bind(*entries: jax.Array) -> jax.Array:
        key = tuple(map(id, entries))
        if key not in done and all(isinstance(entry, np.generic) for entry in entries):
            with jax.ensure_compile_time_eval():
                done[key] = np.asarray(primitive.bind(*map(jnp.asarray, entries), **params))[()]
        elif key not in done:
            done[key] = primitive.bind(*broadcast(*entries), **params)
        return done[key]

    return _map(bind, *arrays)


def _map(function: Callable[..., Any], *arrays: Entries) -> Entries:
    """`function` of every entry of arrays that are broadcast to one shape."""
    spread = np.broadcast_arrays(*arrays)
    result = np.empty(spread[0].shape, object)
    for place in np.ndindex(result.shape):
        result[place] = function(*(array[place] for array in spread))
    return result


# What only moves entries about. The rules of this group get the parameters, the type of the result, and the arrays.


def _broadcast_in_dim(params: Params, _: Any, array: Entries, *rest: Entries) -> Entries:
    shape, dimensions = params["shape"], params["broadcast_dimensions"]
    sizes = [1] * len(shape)
    for place, dimension in enumerate(dimensions):
        sizes[dimension] = array.shape[place]
    return np.broadcast_to(array.reshape(sizes), shape)


def _slice(params: Params, _: Any, array: Entries) -> Entries:
    strides = params["strides"] or (1,) * array.ndim
    return array[tuple(itertools.starmap(slice, zip(params["start_indices"], params["limit_indices"], strides, strict=True)))]


def _pad(params: Params, out: Any, array: Entries, padding: Entries) -> Entries:
    if any(low < 0 or high < 0 for low, high, _ in params["padding_config"]):
        raise Unsupported("a kernel cannot pad by less than nothing")
    result = fill(out.shape, padding[()])
    places = tuple(
        slice(low, low + (size - 1) * (inner + 1) + 1 if size else low, inner + 1)
        for (low, _, inner), size in zip(params["padding_config"], array.shape, strict=True)
    )
    result[places] = array
    return result


def _iota(params: Params, out: Any) -> Entries:
    sizes = [1] * len(out.shape)
    sizes[params["dimension"]] = out.shape[params["dimension"]]
    row = entries_of(np.arange(out.shape[params["dimension"]], dtype=out.dtype)).reshape(sizes)
    return np.broadcast_to(row, out.shape)


def _split(params: Params, _: Any, array: Entries) -> list[Value]:
    ends = np.cumsum(params["sizes"])[:-1]
    return list(np.split(array, ends, axis=params["axis"]))


def _reduce(operation: Callable[[Any, Any], Any]) -> Callable[..., Entries]:
    """Joins the entries along some axes, from the first on."""

    def rule(params: Params, out: Any, array: Entries) -> Entries:
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

    def rule(params: Params, out: Any, array: Entries) -> Entries:
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
    def rule(params: Params, _: Any, array: Entries) -> Entries:
        rows = np.moveaxis(array, params["axis"], 0)
        rows = rows[::-1] if params["reverse"] else rows
        summed = [row_of(rows, 0)]
        for number in range(1, rows.shape[0]):
            summed.append(_map(lambda a, b: operation(*broadcast(a, b)), summed[-1], row_of(rows, number)))
        result = np.stack(summed[::-1] if params["reverse"] else summed)
        return np.moveaxis(result, 0, params["axis"])

    return rule


def _dot(params: Params, out: Any, left: Entries, right: Entries) -> Entries:
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


_STRUCTURE: dict[str, Callable[..., Any]] = {
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
    "stack": lambda params, out, *arrays: np.stack(arrays, axis=params["axis"] if "axis" in params else params["dimension"]),
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
}
_ON_TABLES: dict[str, Callable[..., Value]] = {
    "gather": gather,
    "dynamic_slice": slice_at,
    "dynamic_update_slice": update_at,
    "scatter": functools.partial(scatter, lambda old, new: new),
    "scatter-add": functools.partial(scatter, jnp.add),
    "scatter_add": functools.partial(scatter, jnp.add),
}


# Control flow. These rules get the parameters and the values.


def _while(params: Params, values: list[Value]) -> list[Value]:
    """A loop that goes on while any lane does; a lane that is done keeps what it has."""
    condition, body = params["cond_jaxpr"], params["body_jaxpr"]
    first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    outside, inside, carry = values[:first], values[first:second], [_loaded(value) for value in values[second:]]
    shapes = [array.shape for array in carry]
    lanes = lane_shape(values)

    def pack(arrays: Sequence[Value]) -> list[jax.Array]:
        return [jnp.broadcast_to(entry, lanes) for array in arrays for entry in _loaded(array).ravel()]

    def unpack(flat: Sequence[jax.Array]) -> list[Value]:
        remaining = iter(flat)
        return [_from_list(shape, [next(remaining) for _ in range(math.prod(shape))]) for shape in shapes]

    def goes_on(flat: Sequence[jax.Array]) -> jax.Array:
        (active,) = _run(condition, [*outside, *unpack(flat)])
        return jnp.broadcast_to(_loaded(active)[()], lanes)

    def step(carry: tuple[jax.Array, list[jax.Array]]) -> tuple[jax.Array, list[jax.Array]]:
        active, flat = carry
        after = pack(_run(body, [*inside, *unpack(flat)]))
        kept = [jnp.where(active, new, old) for new, old in zip(after, flat, strict=True)]
        return active & goes_on(kept), kept

    start = pack(carry)
    _, after = jax.lax.while_loop(lambda carry: any_lane(carry[0]), step, (goes_on(start), start))
    return unpack(after)


def any_lane(condition: jax.Array) -> jax.Array:
    """Whether a condition holds in any lane."""
    return jnp.max(condition.astype(jnp.int32)) > 0 if condition.ndim else condition


def lane_shape(values: Sequence[Value]) -> tuple[int, ...]:
    """The shape of vectors over lanes: () if all values are the same in all lanes."""
    for value in values:
        if isinstance(value, Table):
            return value.lanes
        for entry in value.ravel():
            if jnp.ndim(entry):
                return jnp.shape(entry)
    return ()


def _scan(params: Params, values: list[Value]) -> list[Value]:
    if params["length"] > LONGEST_UNROLLED:
        raise Unsupported(f"a kernel cannot write out a scan of {params['length']} steps")
    first, second = params["num_consts"], params["num_consts"] + params["num_carry"]
    constants, carry, rows = values[:first], values[first:second], [_loaded(value) for value in values[second:]]
    order = range(params["length"])
    collected: list[list[Entries]] = []
    for index in reversed(order) if params["reverse"] else order:
        found = _run(params["jaxpr"], [*constants, *carry, *(row_of(row, index) for row in rows)])
        carry = found[: params["num_carry"]]
        collected.append([_loaded(value) for value in found[params["num_carry"] :]])
    collected = collected[::-1] if params["reverse"] else collected
    return [*carry, *(np.stack(column) for column in zip(*collected, strict=True))]


def _cond(params: Params, values: list[Value]) -> list[Value]:
    """All branches, of which the results of one are taken."""
    index, arguments = _loaded(values[0])[()], values[1:]
    branches = [[_loaded(value) for value in _run(branch, arguments)] for branch in params["branches"]]
    found = branches[0]
    for number, branch in enumerate(branches[1:], start=1):
        last = number == len(branches) - 1
        chosen = index >= number if last else index == number
        found = [_map(lambda new, old, c=chosen: jnp.where(c, new, old), *pair) for pair in zip(branch, found, strict=True)]
    return list(found)


def _run(closed: ClosedJaxpr, arguments: Sequence[Value]) -> list[Value]:
    return evaluate(closed.jaxpr, [entries_of(constant) for constant in closed.consts], arguments)


def _loaded(value: Value) -> Entries:
    return value.load() if isinstance(value, Table) else value


def _from_list(shape: tuple[int, ...], entries: list[jax.Array]) -> Entries:
    result = np.empty(len(entries), object)
    result[:] = entries
    return result.reshape(shape)


_CONTROL: dict[str, Callable[[Params, list[Value]], list[Value]]] = {"while": _while, "scan": _scan, "cond": _cond}
