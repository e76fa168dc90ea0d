"""Boards as pictures in MinAtar's look, and as text. Plain NumPy: this is for people, not for the search."""

from __future__ import annotations

import numpy as np


def cubehelix(colours: int) -> np.ndarray:
    """`colours` colours along Green's cubehelix (2011), black and white left out, as bytes [colours, 3].

    With lightness x, angle p = 2 pi (start / 3 + rotations x) and amplitude a = x (1 - x) / 2 a colour is
    x + a M (cos p, sin p); start 0.5 and rotations -1.5 are the scheme's usual ones and MinAtar's.
    """
    lightness = np.linspace(0.0, 1.0, colours + 2)[1:-1, None]
    angle = 2.0 * np.pi * (0.5 / 3.0 - 1.5 * lightness)
    amplitude = lightness * (1.0 - lightness) / 2.0
    cosine = np.array([-0.14861, -0.29227, 1.97294])
    sine = np.array([1.78277, -0.90649, 0.0])
    colour = lightness + amplitude * (cosine * np.cos(angle) + sine * np.sin(angle))
    return np.asarray(np.rint(255.0 * np.clip(colour, 0.0, 1.0)), np.uint8)


def topmost(channels: np.ndarray) -> np.ndarray:
    """The highest channel that is set in each cell, counted from 1; 0 where none is. Integers [rows, columns]."""
    return np.asarray(np.max(channels * np.arange(1, channels.shape[-1] + 1), axis=-1))


def rgb(channels: np.ndarray, scale: int) -> np.ndarray:
    """A picture of conditions [rows, columns, channels], `scale` pixels a cell."""
    if scale < 1:
        raise ValueError(f"scale is {scale}; a cell needs at least one pixel")
    palette = np.vstack([np.zeros((1, 3), np.uint8), cubehelix(channels.shape[-1])])
    picture: np.ndarray = palette[topmost(channels)]
    return picture.repeat(scale, axis=0).repeat(scale, axis=1)


MARK = "x"
"""An empty cell that is marked."""


def text(channels: np.ndarray, glyphs: dict[int, str], marked: np.ndarray | None = None) -> str:
    """A framed board, one character a cell: the glyphs of the channels, a later one drawn over an earlier one."""
    board = np.full(channels.shape[:2], "·")
    if marked is not None:
        board[marked] = MARK
    for channel, glyph in glyphs.items():
        board[channels[..., channel]] = glyph
    edge = "─" * channels.shape[1]
    return "\n".join([f"┌{edge}┐", *(f"│{''.join(row)}│" for row in board), f"└{edge}┘"])
