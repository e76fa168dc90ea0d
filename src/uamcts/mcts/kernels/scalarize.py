"""Runs an unbatched function in the lanes of a GPU kernel.

Inside a Pallas kernel there are only vectors over lanes, one entry per thread. An unbatched function has small arrays,
such as a state or one number per action. `evaluate` walks through its jaxpr and keeps every entry of such an array as a
vector over lanes of its own, so that `values + rewards` over three actions becomes three additions. Arrays that are
indexed by something traced become chains of selections, or reads from memory if they are `Table`s.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from uamcts.mcts.kernels.indexing import gather, scatter, slice_at, update_at
from uamcts.mcts.kernels.structure import STRUCTURE
from uamcts.mcts.kernels.table import Entries, Entry, Table, Unsupported, broadcast, entries_of, map_entries, row_of

Value: TypeAlias = Entries | Table
Params: TypeAlias = dict[str, Any]
Equation: TypeAlias = Any
"""An equation of a jaxpr, its primitive, or one of its operands: JAX has no public types for them."""

LONGEST_UNROLLED = 64
"""The longest scan that is written out."""

ELEMENTWISE = frozenset(
    """
    abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil clamp clz convert_element_type copy copy_p cos
    cosh div eq erf erf_inv erfc exp exp2 expm1 floor ge gt integer_pow is_finite le log log1p logistic lt max min mul
    ne neg nextafter not or population_count pow reduce_precision rem round rsqrt select_n shift_left
    shift_right_arithmetic shift_right_logical sign sin sinh sqrt square stop_gradient sub tan tanh xor
    """.split()  # noqa: SIM905
)
"""The primitives that treat every entry alike."""
INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr", "call")
"""The parameters under which a call keeps the jaxpr of what it calls."""


def evaluate(jaxpr: Jaxpr, constants: Sequence[Value], arguments: Sequence[Value]) -> list[Value]:
    """The outputs of a jaxpr in every lane.

    Raises:
        Unsupported: if it does something that cannot be written out.
    """
    values: dict[Any, Value] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*constants, *arguments), strict=True))

    def read(atom: Equation) -> Value:
        return entries_of(atom.val) if isinstance(atom, Literal) else values[atom]

    for equation in jaxpr.eqns:
        found = _apply(equation, [read(atom) for atom in equation.invars])
        values.update(zip(equation.outvars, found, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _apply(equation: Equation, values: list[Value]) -> list[Value]:
    """The results of one equation."""
    name, params = equation.primitive.name, equation.params
    if name in _ON_TABLES:
        return [_ON_TABLES[name](params, equation.outvars[0].aval, *values)]
    if name in _CONTROL:
        return _CONTROL[name](params, values)
    arrays = [value.load() if isinstance(value, Table) else value for value in values]
    if name in ELEMENTWISE:
        return [_elementwise(equation.primitive, params, *arrays)]
    if name in STRUCTURE:
        found = STRUCTURE[name](params, equation.outvars[0].aval, *arrays)
        return found if isinstance(found, list) else [found]
    for key in INNER:
        if key in params:
            inner = params[key]
            if isinstance(inner, ClosedJaxpr):
                return evaluate(inner.jaxpr, [entries_of(constant) for constant in inner.consts], values)
            if isinstance(inner, Jaxpr):
                return evaluate(inner, [], values)
    raise Unsupported(f"a kernel cannot do {name!r}")


def _elementwise(primitive: Equation, params: Params, *arrays: Entries) -> Entries:
    """The primitive for every entry. Entries that are the same object, as after a broadcast, are computed once."""
    done: dict[tuple[int, ...], Any] = {}

    def bind(*entries: Entry) -> Entry:
        key = tuple(map(id, entries))
        if key not in done and all(isinstance(entry, np.generic) for entry in entries):
            with jax.ensure_compile_time_eval():
                done[key] = np.asarray(primitive.bind(*map(jnp.asarray, entries), **params))[()]
        elif key not in done:
            done[key] = primitive.bind(*broadcast(*entries), **params)
        return done[key]

    return map_entries(bind, *arrays)


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

    def goes_on(flat: Sequence[jax.Array]) -> list[jax.Array]:
        (active,) = _run(condition, [*outside, *unpack(flat)])
        return pack([active])

    def step(carry: tuple[list[jax.Array], list[jax.Array]]) -> tuple[list[jax.Array], list[jax.Array]]:
        active, flat = carry
        after = pack(_run(body, [*inside, *unpack(flat)]))
        kept = [jnp.where(active[row], new, old) for row, new, old in zip(rows, after, flat, strict=True)]
        return [one & still for one, still in zip(active, goes_on(kept), strict=True)], kept

    start = pack(carry)
    active = goes_on(start)
    # A condition that vmap gave axes stands for a loop in each of its rows; what is carried has these axes in front.
    rows = [row for shape in shapes for row in range(len(active)) for _ in range(math.prod(shape) // len(active))]

    def any_active(carry: tuple[list[jax.Array], list[jax.Array]]) -> jax.Array:
        return any_lane(functools.reduce(jnp.logical_or, carry[0]))

    _, after = jax.lax.while_loop(any_active, step, (active, start))
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


def _scan_sizes(params: Params) -> tuple[int, int]:
    """How many constants and carried values a scan has; since JAX 0.11 its parameters hold them as trees."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    constants, carry, _ = params["ft_in"].unpack()
    return len(constants), len(carry)


def _scan(params: Params, values: list[Value]) -> list[Value]:
    if params["length"] > LONGEST_UNROLLED:
        raise Unsupported(f"a kernel cannot write out a scan of {params['length']} steps")
    first, carried = _scan_sizes(params)
    second = first + carried
    constants, carry, rows = values[:first], values[first:second], [_loaded(value) for value in values[second:]]
    order = range(params["length"])
    collected: list[list[Entries]] = []
    for index in reversed(order) if params["reverse"] else order:
        found = _run(params["jaxpr"], [*constants, *carry, *(row_of(row, index) for row in rows)])
        carry = found[:carried]
        collected.append([_loaded(value) for value in found[carried:]])
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
        choose = functools.partial(_choose, chosen)
        found = [map_entries(choose, *pair) for pair in zip(branch, found, strict=True)]
    return list(found)


def _choose(condition: Entry, new: Entry, old: Entry) -> Entry:
    return jnp.where(condition, new, old)


def _run(closed: ClosedJaxpr, arguments: Sequence[Value]) -> list[Value]:
    return evaluate(closed.jaxpr, [entries_of(constant) for constant in closed.consts], arguments)


def _loaded(value: Value) -> Entries:
    return value.load() if isinstance(value, Table) else value


def _from_list(shape: tuple[int, ...], entries: list[jax.Array]) -> Entries:
    result = np.empty(len(entries), object)
    for place, entry in enumerate(entries):
        result[place] = entry
    return result.reshape(shape)


_CONTROL: dict[str, Callable[[Params, list[Value]], list[Value]]] = {"while": _while, "scan": _scan, "cond": _cond}
