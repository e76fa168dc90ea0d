"""Values in the lanes of a kernel: arrays of vectors over lanes, and arrays that lie in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

Entries: TypeAlias = np.ndarray
"""An array of objects: each entry is a vector over lanes, or a number that is the same in all lanes."""

Entry: TypeAlias = Any
"""One of them: a vector over lanes, or a number."""
Aval: TypeAlias = Any
"""The shape and dtype of a value in a jaxpr."""
Ref: TypeAlias = Any
"""Memory in a Pallas kernel."""
DType: TypeAlias = Any
"""Whatever NumPy takes for a dtype."""

LARGEST = 512
"""The most entries of an array that is kept in registers."""


class Unsupported(Exception):
    """A function does something that a kernel cannot do; the plain program does it."""


class Table(NamedTuple):
    """An array in memory: one for all lanes, or one for each."""

    ref: Ref
    """The memory, flat."""
    shape: tuple[int, ...]
    dtype: DType
    start: Entry
    """Where the array of each lane begins, a vector over lanes; 0 if all lanes share it."""
    active: jax.Array
    """Which lanes there are; the others fill up the block and write nothing."""
    step: int = 1
    """How far apart the entries of a lane lie."""

    @property
    def lanes(self) -> tuple[int, ...]:
        return tuple(self.active.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def get(self, place: Entry) -> jax.Array:
        """The entry with the number `place` of every lane."""
        from jax.experimental.pallas import triton

        index = jnp.broadcast_to(jnp.asarray(self.start + place * self.step, jnp.int32), self.lanes)
        return triton.load(self.ref.at[index]).astype(self.dtype)

    def put(self, place: Entry, value: Entry, where: Entry = True) -> None:
        """Writes the entry with the number `place` in the lanes in which `where` holds."""
        from jax.experimental.pallas import triton

        index = jnp.broadcast_to(jnp.asarray(self.start + place * self.step, jnp.int32), self.lanes)
        value = jnp.broadcast_to(jnp.asarray(value).astype(self.ref.dtype), self.lanes)
        triton.store(self.ref.at[index], value, mask=self.active & where)

    def load(self) -> Entries:
        """All entries, in registers."""
        if self.size > LARGEST:
            raise Unsupported(f"an array of {self.size} numbers does not fit into a kernel")
        result = np.empty(self.size, object)
        for place in range(self.size):
            result[place] = self.get(place)
        return result.reshape(self.shape)

    def entry(self, place: jax.Array) -> Entries:
        """The entry of a place, from an array over [blocks, places, ...], in registers."""
        shape = self.shape[2:]
        width = int(np.prod(shape, dtype=np.int64))
        result = np.empty(width, object)
        for number in range(width):
            result[number] = self.get(place * width + number)
        return result.reshape(shape)

    def row(self, block: jax.Array) -> Entries:
        """The entries [block, ...], in registers."""
        width = self.size // self.shape[0]
        result = np.empty(width, object)
        for place in range(width):
            result[place] = self.get(block * width + place)
        return result.reshape(self.shape[1:])

    def put_row(self, block: jax.Array, entries: Entries) -> None:
        """Writes the entries [block, ...]."""
        width = self.size // self.shape[0]
        for place, entry in enumerate(entries.ravel()):
            self.put(block * width + place, entry)

    def put_all(self, entries: Entries) -> None:
        """Writes all entries."""
        for place, entry in enumerate(entries.ravel()):
            self.put(place, entry)


def entries_of(value: ArrayLike) -> Entries:
    """A number or a small array that is the same in all lanes."""
    if isinstance(value, jax.core.Tracer):
        if value.ndim:
            raise Unsupported("a kernel cannot take an array apart that is not in memory")
        return fill((), value)
    array = np.asarray(value)
    if array.size > LARGEST:
        raise Unsupported(f"an array of {array.size} numbers does not fit into a kernel")
    result = np.empty(array.shape, object)
    for place in np.ndindex(array.shape):
        result[place] = array[place]  # a NumPy scalar: an array would be a constant, which kernels must not capture
    return result


def fill(shape: tuple[int, ...], entry: Entry) -> Entries:
    """An array with the same entry everywhere."""
    result = np.empty(shape, object)
    for place in np.ndindex(shape):
        result[place] = entry
    return result


def row_of(array: Entries, number: int) -> Entries:
    """array[number], which stays an array even where it is a single entry."""
    return array[number : number + 1].reshape(array.shape[1:])


def broadcast(*entries: Entry) -> list[Entry]:
    """Entries as vectors over the same lanes, or as numbers if all are the same in all lanes."""
    shape = np.broadcast_shapes(*(np.shape(entry) for entry in entries))
    return [entry if np.shape(entry) == shape else jnp.broadcast_to(entry, shape) for entry in entries]


def map_entries(function: Callable[..., Any], *arrays: Entries) -> Entries:
    """`function` of every entry of arrays that are broadcast to one shape."""
    spread = np.broadcast_arrays(*arrays)
    result = np.empty(spread[0].shape, object)
    for place in np.ndindex(result.shape):
        result[place] = function(*(array[place] for array in spread))
    return result
