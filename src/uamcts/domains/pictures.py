"""Boards as pictures and as text. Plain NumPy: this is for people, not for the search.

Cells in which world and model differ are hatched. What lies on top of what is the order of the glyphs, in pictures as
in text: the last one, the player, is never hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from uamcts import colours

MARK = "x"
"""An empty cell that is marked."""
LEAST_SCALE_WITH_GRID = 6
"""Smaller cells have no grid lines."""


class Board(NamedTuple):
    """What is seen of a state."""

    top: np.ndarray
    """The number of the thing in each cell, -1 where there is none. Integers [rows, columns]."""
    names: tuple[str, ...]
    """The names of the things."""
    colours: tuple[str, ...]
    """Their colours, like `#ffd43b`."""
    wrong: np.ndarray
    """The cells in which world and model differ, conditions [rows, columns]."""

    @staticmethod
    def of(channels: np.ndarray, names: Sequence[str], order: Sequence[str], wrong: np.ndarray | None) -> Board:
        """The board of channels [rows, columns, channels]; those in `order` lie on the others, the last on top."""
        names = (*names, *(f"thing {number}" for number in range(len(names), channels.shape[-1])))
        top = np.full(channels.shape[:2], -1)
        for name in sorted(names, key=lambda name: order.index(name) if name in order else -1):
            top[channels[..., names.index(name)]] = names.index(name)
        return Board(top, names, colours.things(names), np.zeros(top.shape, bool) if wrong is None else wrong)

    def legend(self) -> list[tuple[str, str]]:
        """The things on this board, by name and colour; things of one colour once, under their shortest name."""
        seen: dict[str, str] = {}
        for thing in np.unique(self.top[self.top >= 0]):
            names = (self.names[thing], seen.get(self.colours[thing], self.names[thing]))
            seen[self.colours[thing]] = min(names, key=len)
        return [(name.replace("_", " "), colour) for colour, name in seen.items()]


def hatching(scale: int) -> np.ndarray:
    """The diagonal lines of a hatched cell, conditions [scale, scale]."""
    period, width = max(3, scale // 4), max(1, scale // 12)
    return np.add.outer(np.arange(scale), np.arange(scale)) % period < width


def rgb(board: Board, scale: int) -> np.ndarray:
    """A picture of a board, `scale` pixels a cell, bytes [rows * scale, columns * scale, 3].

    Wrong cells are hatched; a thing in such a cell leaves its edge free.
    """
    if scale < 1:
        raise ValueError(f"scale is {scale}; a cell needs at least one pixel")
    top, wrong = board.top[..., None, None], board.wrong[..., None, None]
    palette = (*board.colours, colours.BOARD, colours.HATCH, colours.GRID)
    empty, hatch, grid = len(board.colours) + np.arange(3)
    core = np.zeros((scale, scale), bool)
    core[scale // 6 : scale - scale // 6, scale // 6 : scale - scale // 6] = True
    cells = np.where((top >= 0) & (core | ~wrong), top, np.where(wrong & hatching(scale), hatch, empty))
    if scale >= LEAST_SCALE_WITH_GRID:
        cells[:, :, 0], cells[:, :, :, 0] = grid, grid
    rows, columns = board.top.shape
    table = np.array([colours.rgb(colour) for colour in palette], np.uint8)
    return np.asarray(table[cells.transpose(0, 2, 1, 3).reshape(rows * scale, columns * scale)])


def text(channels: np.ndarray, glyphs: dict[int, str], marked: np.ndarray | None = None) -> str:
    """A framed board, one character a cell: the glyphs of the channels, a later one drawn over an earlier one.

    `marked`: conditions [rows, columns], marked by `MARK` where a cell is empty; or characters, an empty one for none.
    """
    board = np.full(channels.shape[:2], "·")
    if marked is not None:
        signs = np.where(marked, MARK, "") if marked.dtype == bool else marked
        board = np.where(signs == "", board, signs)
    for channel, glyph in glyphs.items():
        board[channels[..., channel]] = glyph
    edge = "─" * channels.shape[1]
    return "\n".join([f"┌{edge}┐", *(f"│{''.join(row)}│" for row in board), f"└{edge}┘"])
