"""A loop that batches without copies, and a read that stays before the writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from uamcts.types import PyTree


def masked_while(active: Callable[[PyTree], jax.Array], step: Callable[[PyTree], PyTree], carry: PyTree) -> PyTree:
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

    def advance(constants: list, lane: list) -> list:
        return jaxpr_as_fun(ClosedJaxpr(body.jaxpr, constants))(*lane)

    def goes_on(constants: list, lane: list) -> jax.Array:
        return jaxpr_as_fun(ClosedJaxpr(condition.jaxpr, constants))(*lane)[0]

    constants = [[jnp.asarray(constant) for constant in closed.consts] for closed in (condition, body)]
    return jax.tree.unflatten(structure, _loop(goes_on, advance)(constants[0], constants[1], leaves))


def _loop(goes_on: Callable, advance: Callable) -> Callable[[list, list, list], list]:
    @custom_vmap
    def run(condition: list[jax.Array], body: list[jax.Array], lanes: list[jax.Array]) -> list[jax.Array]:
        return jax.lax.while_loop(lambda lane: goes_on(condition, lane), lambda lane: advance(body, lane), lanes)

    @run.def_vmap
    def _batched(size: int, batched: Any, condition: list, body: list, lanes: list) -> tuple[list, list]:
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

    return run


def read_once(read: Callable[[], PyTree], ready: jax.Array) -> PyTree:
    """What `read` finds, computed here and nowhere else; `ready` is any condition that holds.

    The compiler would otherwise read anew wherever something is used, also after later writes to the arrays, and for
    that copy them in every iteration. What a loop of one round gives cannot be computed anew.
    """
    start = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), jax.eval_shape(read))
    return jax.lax.while_loop(lambda carry: ~carry[0], lambda _: (ready, read()), (jnp.bool_(False), start))[1]
