"""Small numbers packed into 32-bit words, so that thousands of states fit into the processor's first cache."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike


def word(value: ArrayLike) -> jax.Array:
    """`value` (a number, a condition, an array) as an unsigned 32-bit word."""
    return jnp.asarray(value).astype(jnp.uint32)


def mask(positions: Iterable[int]) -> int:
    """An integer whose set bits are `positions`."""
    return sum(1 << position for position in set(positions))


def bit(bits: jax.Array, position: int | jax.Array) -> jax.Array:
    """Whether the bit at `position` is set, as a condition."""
    return ((bits >> word(position)) & 1) == 1


def ones(bits: jax.Array) -> jax.Array:
    """How many bits are set, as a word. Signed inside: GPU kernels count the bits of signed words only."""
    return word(jax.lax.population_count(bits.astype(jnp.int32)))


def highest(bits: jax.Array) -> jax.Array:
    """The place of the highest set bit, as a word; 31 where none is set."""
    return word(31 - jax.lax.clz(bits.astype(jnp.int32))) & 31


class Layout:
    """How named fields lie in one word, lowest bits first: `Layout(row=4, column=4, strike=1)`."""

    def __init__(self, **widths: int) -> None:
        if sum(widths.values()) > 32:
            raise ValueError(f"the fields of a word take {sum(widths.values())} bits; a word has 32")
        self.widths = widths
        self.shifts = dict(zip(widths, (sum(list(widths.values())[:i]) for i in range(len(widths))), strict=True))

    def unpack(self, packed: Any) -> SimpleNamespace:
        """The fields of `packed`, each an unsigned word of its own."""
        return SimpleNamespace(
            **{name: (packed >> self.shifts[name]) & ((1 << width) - 1) for name, width in self.widths.items()}
        )

    def pack(self, **fields: ArrayLike) -> jax.Array:
        """One word that holds `fields`; every field of the layout must be given and must fit."""
        if fields.keys() != self.widths.keys():
            raise ValueError(f"fields {sorted(fields)} given, the layout has {sorted(self.widths)}")
        packed = word(0)
        for name, value in fields.items():
            packed = packed | (word(value) << self.shifts[name])
        return packed

    def replace(self, packed: jax.Array, **fields: ArrayLike) -> jax.Array:
        """`packed` with some fields changed."""
        return self.pack(**{**vars(self.unpack(packed)), **fields})

    def squared_difference(self, first: jax.Array, second: jax.Array, skip: str, more: jax.Array) -> jax.Array:
        """The sum of squared differences of all fields but `skip`, plus `more`, as a float32."""
        total = more.astype(jnp.int32)
        a, b = vars(self.unpack(first)), vars(self.unpack(second))
        for name in [name for name in self.widths if name != skip]:
            total = total + (a[name].astype(jnp.int32) - b[name].astype(jnp.int32)) ** 2
        return total.astype(jnp.float32)


def rows_to_bits(cells: jax.Array) -> jax.Array:
    """Conditions [..., n], n <= 32, as words [...], the first cell in the lowest bit."""
    places = jnp.arange(cells.shape[-1], dtype=jnp.uint32)
    return jnp.sum(word(cells) << places, axis=-1, dtype=jnp.uint32)


def bits_to_rows(bits: jax.Array, length: int) -> jax.Array:
    """The inverse of `rows_to_bits`: words [...] as integers 0 or 1 [..., length]."""
    return ((bits[..., None] >> jnp.arange(length, dtype=jnp.uint32)) & 1).astype(jnp.int32)
