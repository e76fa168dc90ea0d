"""A loop that can be batched without copies, work that is not batched, and reads that the compiler does not repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap, sequential_vmap
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from uamcts.types import PyTree

Carry = TypeVar("Carry")
"""A pytree of arrays."""
_Arrays: TypeAlias = list[Any]
_Condition: TypeAlias = Callable[[_Arrays, _Arrays], jax.Array]
_Body: TypeAlias = Callable[[_Arrays, _Arrays], _Arrays]


def masked_while(active: Callable[[Carry], jax.Array], step: Callable[[Carry], Carry], carry: Carry) -> Carry:
    """`while active(carry): carry = step(carry)`.

    `step` must leave a carry that is not active as it is. In a batch, `jax.lax.while_loop` copies the whole carry in
    every round to keep what is finished; this loop just goes on while any member of the batch is active.
    """
    leaves, structure = jax.tree.flatten(carry)
    shapes = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]

    def flat_step(*lane: jax.Array) -> list[jax.Array]:
        after = jax.tree.leaves(step(jax.tree.unflatten(structure, lane)))
        return [new.astype(old.dtype) for new, old in zip(after, lane, strict=True)]

    def flat_active(*lane: jax.Array) -> jax.Array:
        return active(jax.tree.unflatten(structure, lane))

    body, condition = jax.make_jaxpr(flat_step)(*shapes), jax.make_jaxpr(flat_active)(*shapes)

    def advance(constants: _Arrays, lane: _Arrays) -> _Arrays:
        return list(jaxpr_as_fun(ClosedJaxpr(body.jaxpr, constants))(*lane))

    def goes_on(constants: _Arrays, lane: _Arrays) -> jax.Array:
        return cast(jax.Array, jaxpr_as_fun(ClosedJaxpr(condition.jaxpr, constants))(*lane)[0])

    constants = [[jnp.asarray(constant) for constant in closed.consts] for closed in (condition, body)]
    after = _loop(goes_on, advance)(constants[0], constants[1], leaves)
    return cast(Carry, jax.tree.unflatten(structure, after))


def _loop(goes_on: _Condition, advance: _Body) -> Callable[[_Arrays, _Arrays, _Arrays], _Arrays]:
    def run(condition: _Arrays, body: _Arrays, lanes: _Arrays) -> _Arrays:
        return jax.lax.while_loop(lambda lane: goes_on(condition, lane), lambda lane: advance(body, lane), lanes)

    batching: Any = custom_vmap(run)

    def batched_run(
        size: int, batched: Any, condition: _Arrays, body: _Arrays, lanes: _Arrays
    ) -> tuple[_Arrays, list[bool]]:
        axes = [[0 if own else None for own in part] for part in batched]
        lanes = [
            leaf if own else jnp.broadcast_to(leaf, (size, *leaf.shape))
            for leaf, own in zip(lanes, batched[2], strict=True)
        ]
        any_goes_on = jax.vmap(goes_on, in_axes=(axes[0], 0))
        after = _loop(
            lambda condition, lane: jnp.any(any_goes_on(condition, lane)),
            jax.vmap(advance, in_axes=(axes[1], 0)),
        )(condition, body, lanes)
        return after, [True] * len(after)

    batching.def_vmap(batched_run)
    return cast(Callable[[_Arrays, _Arrays, _Arrays], _Arrays], batching)


def one_by_one(function: Callable[..., Carry], *arguments: PyTree) -> Carry:
    """`function(*arguments)`, computed for one member of a batch after the other.

    Each member then takes only the steps that it needs, and its results do not depend on the others.
    """
    leaves, structure = jax.tree.flatten(arguments)
    closed, shapes = jax.make_jaxpr(lambda *given: function(*jax.tree.unflatten(structure, given)), return_shape=True)(
        *leaves
    )

    def run(constants: _Arrays, given: _Arrays) -> _Arrays:
        return list(jaxpr_as_fun(ClosedJaxpr(closed.jaxpr, constants))(*given))

    constants = [jnp.asarray(constant) for constant in closed.consts]
    found = sequential_vmap(run)(constants, leaves)
    return cast(Carry, jax.tree.unflatten(jax.tree.structure(shapes), found))


def read_once(read: Callable[[], Carry], ready: jax.Array) -> Carry:
    """Returns `read()`, evaluated exactly once; `ready` is any traced condition that holds.

    Otherwise the compiler reads again wherever a value is used, even after later writes, and copies the arrays in every
    iteration for that. It cannot recompute the result of a loop, so this is a loop of one round.
    """
    start = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), jax.eval_shape(read))
    found = jax.lax.while_loop(lambda carry: ~carry[0], lambda _: (ready, read()), (jnp.bool_(False), start))[1]
    return cast(Carry, found)
