"""What all searches of a batch do together: one loop for all of them, however many vmaps surround it.

`jax.vmap` of a loop lets every search write wherever it is, as if the others were not there. Searches that walk through
their trees step by step are all at the same level, so that what they write is one column of an array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from uamcts.mcts.kernels.lanes import ALL, Groups, merge_batches, spread
from uamcts.runtime.jax_setup import compiles_small_loops
from uamcts.types import PyTree

Arrays: TypeAlias = list[jax.Array]


class Batch(NamedTuple):
    """What the searches of a batch are given: some arrays for each of them, others for all."""

    size: int
    own: tuple[bool, ...]
    """Which arrays have an axis over searches."""
    arrays: Arrays
    rebuild: Callable[[Arrays], tuple[PyTree, ...]]
    """What one search is given, from its arrays."""

    def each(self, function: Callable[..., PyTree], *lanes: PyTree) -> Any:
        """`function(*given, *lane)` for each search."""
        axes = [0 if has else None for has in self.own]

        def one(arrays: Arrays, *lane: PyTree) -> PyTree:
            return function(*self.rebuild(arrays), *lane)

        return jax.vmap(one, (axes, *(0 for _ in lanes)), axis_size=self.size)(self.arrays, *lanes)


def run_batch(run: Callable[[Batch, Arrays], Arrays], given: tuple[PyTree, ...], lanes: Arrays) -> Arrays:
    """Runs `run(batch, lanes)` once for all searches of the vmaps around it.

    Args:
        run: gets what the searches are given, and arrays with a leading axis over searches; it returns such arrays.
        given: what one search is given. Leaves that are no arrays are the same for all.
        lanes: arrays of one search.

    Returns:
        What `run` returns, for one search.
    """
    leaves, structure = jax.tree.flatten(given)
    arrays = [jnp.asarray(leaf) for leaf in leaves if _is_array(leaf)]

    def rebuild(arrays: Arrays) -> tuple[PyTree, ...]:
        rest = iter(arrays)
        rebuilt: tuple[PyTree, ...] = jax.tree.unflatten(
            structure, [next(rest) if _is_array(leaf) else leaf for leaf in leaves]
        )
        return rebuilt

    def run_lanes(groups: Groups, arrays: Arrays, lanes: Arrays) -> Arrays:
        own = tuple(group != ALL for group in groups)
        return run(Batch(lanes[0].shape[0], own, spread(arrays, groups), rebuild), lanes)

    found = merge_batches(run_lanes, (ALL,) * len(arrays))(arrays, [leaf[None] for leaf in lanes])
    return [leaf[0] for leaf in found]


def _is_array(leaf: object) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray))


def add_rows(
    table: Float[Array, "searches blocks row *entry"],
    number: Int[Array, " searches"],
    amounts: Float[Array, " searches *entry"],
    active: Bool[Array, " searches"],
) -> Float[Array, "searches blocks row *entry"]:
    """Adds to one entry of every search that is active; `number` is its block * row + its place there.

    XLA compiles a loop with a scatter in it as one call per operation. Where it compiles small loops as one function,
    one search after the other is several times as fast.
    """
    searches, _, row = table.shape[:3]
    block, place = number // row, number % row
    if searches > 1 and not compiles_small_loops():
        block = jnp.where(active, block, table.shape[1])
        return table.at[jnp.arange(searches), block, place].add(amounts, mode="drop")

    def add(search: Int[Array, ""], table: jax.Array) -> jax.Array:
        at = (search, jnp.where(active[search], block[search], 0), place[search], *(0 for _ in table.shape[3:]))
        start = [jnp.asarray(number, jnp.int32) for number in at]  # loops count in 64 bits where these are enabled
        amount = jnp.where(active[search], amounts[search], jnp.zeros_like(amounts[search]))
        entry = jax.lax.dynamic_slice(table, start, (1, 1, 1, *table.shape[3:]))
        return jax.lax.dynamic_update_slice(table, entry + amount, start)

    added: jax.Array = jax.lax.fori_loop(0, searches, add, table)
    return added
