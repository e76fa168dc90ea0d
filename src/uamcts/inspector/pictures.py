"""States as pictures of the trace: cells of a board, text, or a small image."""

from __future__ import annotations

import base64
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from uamcts import colours
from uamcts.arguments import short_repr
from uamcts.inspector.schema import COLOUR
from uamcts.inspector.trace import Record
from uamcts.types import PyTree

SIZES = (160, 120, 90, 64)
"""Pixels of the longer side of an image: the first at which it takes no more than MOST_BYTES."""
MOST_BYTES = 6000
"""Of an image, so that 300 moves with two new ones each stay below 5 MB."""
LONGEST_TEXT, MOST_SIDE, MOST_THINGS = 20000, 256, 256
REMEDY = (
    "return a text, a 2-D array of whole numbers or names, one a cell, or an image [rows, columns, 3] of bytes or of "
    "numbers from 0 to 1"
)


class Artist:
    """Makes pictures with a user's `render(state)`, and collects what is on their boards."""

    def __init__(self, name: str, render: Callable[[PyTree], object] | None):
        self._name, self._render = name, render
        self._things: dict[str, int] = {}
        self._images: dict[str, str] = {}
        self.shape: tuple[int, int] | None = None

    def frame(self, state: PyTree) -> Record | None:
        """The picture of a state; None if there is nothing that draws one.

        Raises:
            ValueError: `render` raised an error, or returned something that is not a picture.
        """
        if self._render is None or state is None:
            return None
        try:
            picture = self._render(state)
        except Exception as error:
            raise ValueError(f"{self._name}: render raised {type(error).__name__}: {error}; {REMEDY}") from error
        if isinstance(picture, str):
            return {"text": picture[:LONGEST_TEXT]}
        try:
            array = np.asarray(picture)
        except ValueError:
            array = np.zeros(0)
        if array.ndim == 2 and array.size and array.dtype.kind in "iubUSO" and max(array.shape) <= MOST_SIDE:
            return {"cells": self._cells(array)}
        if array.size and array.dtype.kind in "uif" and (array.ndim == 2 or array.shape[2:] in ((3,), (4,))):
            image = base64.b64encode(png(array)).decode()
            return {"image": self._images.setdefault(image, image)}  # equal images share their memory
        raise ValueError(f"{self._name}: render returned {short_repr(picture)}; {REMEDY}")

    def _cells(self, array: np.ndarray) -> list[int]:
        if self.shape not in (None, array.shape):
            raise ValueError(
                f"{self._name}: render returned a board of {array.shape}, and one of {self.shape} before; return "
                "boards of one size"
            )
        self.shape = (array.shape[0], array.shape[1])
        names = [str(one.decode() if isinstance(one, bytes) else one)[:60] for one in array.ravel().tolist()]
        counts = Counter(name for name in names if name not in self._things)
        ground = ["0"] if not self._things and array.dtype.kind in "iub" and "0" in counts else []
        for name in (*ground, *(name for name, _ in counts.most_common())):  # the ground comes first
            self._things.setdefault(name, len(self._things))
        if len(self._things) > MOST_THINGS:
            raise ValueError(f"{self._name}: render has drawn over {MOST_THINGS} different things; return an image")
        return [self._things[name] for name in names]

    def board(self) -> Record | None:
        """The board of all pictures so far; None if they were none."""
        if self.shape is None:
            return None
        return board_record(self.shape, list(self._things), (), [])


def board_record(shape: Sequence[int], things: Sequence[str], tints: Sequence[str], broken: Sequence[int]) -> Record:
    """A board: its size, what its cells may hold, and the cells in which simulator and world differ.

    `tints` are the colours of the things. Without them the first thing is the ground, and one that is named like a
    colour, `#ffd43b`, has that colour.
    """
    rows, columns = (int(size) for size in shape)
    if not tints:
        tints = [colours.BOARD, *colours.things(things[1:])]
        tints = [
            name.lower() if COLOUR.fullmatch(name.lower()) else own for name, own in zip(things, tints, strict=True)
        ]
    named = [{"name": name, "colour": colour} for name, colour in zip(things, tints, strict=True)]
    return {"rows": rows, "columns": columns, "things": named, "broken": list(broken)}


def png(array: np.ndarray) -> bytes:
    """A small PNG of an image: bytes, or numbers from 0 to 1; grey [rows, columns] or colours [rows, columns, 3].

    It is made smaller, and its colours are rounded, until it takes no more than MOST_BYTES.
    """
    if array.dtype.kind == "f":
        array = np.nan_to_num(np.clip(array, 0.0, 1.0)) * 255.0
    array = np.repeat(array[..., None], 3, axis=2) if array.ndim == 2 else array[..., :3]
    array = np.clip(array, 0, 255)
    packed = b""
    for size in SIZES:
        small = _shrink(array, size)
        for step in (1, 16):
            levels = small if step == 1 else np.round(small / 255 * step) / step * 255
            packed = _encode(np.round(levels).astype(np.uint8))
            if len(packed) <= MOST_BYTES:
                return packed
    return packed


def _shrink(array: np.ndarray, size: int) -> np.ndarray:
    """An image with at most `size` pixels a side, each the mean of those it stands for."""
    step = -(-max(array.shape[:2]) // size)
    if step <= 1:
        return array.astype(float)
    starts = [np.arange(0, side, step) for side in array.shape[:2]]
    total = np.add.reduceat(np.add.reduceat(array.astype(float), starts[0], axis=0), starts[1], axis=1)
    counts = [np.diff([*one, side]) for one, side in zip(starts, array.shape[:2], strict=True)]
    return total / np.outer(*counts)[..., None]


def _encode(array: np.ndarray) -> bytes:
    """A PNG of bytes [rows, columns, 3]."""
    rows, columns = array.shape[:2]
    lines = b"".join(b"\0" + row.tobytes() for row in array)

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
