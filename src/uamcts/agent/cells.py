"""U over the cells of a board that the user's `render` draws: which numbers of a state say where somebody stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from uamcts.agent.backend import State
from uamcts.types import PyTree

MOST_CELLS = 900
"""Larger boards have no map: it would take long."""
MOST_PLACES = 6
"""Of a state's numbers, only so many are looked at."""
Pair = tuple[int | None, int | None]
"""Which number of a state is the row, and which the column; None where a board has one row or column only."""


class PlayerCells:
    """Finds out, picture by picture, which two numbers of a state are the place of something on its board.

    That is so if the cell at these numbers always holds the same thing, of which a board has only one, and if it was
    seen in at least two cells.
    """

    def __init__(self) -> None:
        self._left: dict[Pair, tuple[int, set[int]]] | None = None
        """What may still be the place: the thing there, and the cells in which it was seen."""
        self.shape: tuple[int, int] = (0, 0)

    def see(self, vector: np.ndarray, cells: list[int], shape: tuple[int, int]) -> None:
        """Takes in the numbers of a state and its board."""
        self.shape = shape
        pairs = self._pairs(vector.size) if self._left is None else list(self._left)
        before, self._left = self._left or {}, {}
        for pair in pairs:
            cell = self._cell(vector, pair)
            if cell is None or cells.count(cells[cell]) != 1:
                continue
            thing, seen = before.get(pair, (cells[cell], set()))
            if thing == cells[cell]:
                self._left[pair] = thing, seen | {cell}

    def _pairs(self, size: int) -> list[Pair]:
        places: list[int | None] = list(range(min(size, MOST_PLACES)))
        rows, columns = ([None] if side == 1 else places for side in self.shape)
        return [(row, column) for row in rows for column in columns if row is None or row != column]

    def _cell(self, vector: np.ndarray, pair: Pair) -> int | None:
        row, column = (0.0 if place is None else float(vector[place]) for place in pair)
        whole = row == int(row) and column == int(column) if np.isfinite(row) and np.isfinite(column) else False
        if not whole or not (0 <= row < self.shape[0] and 0 <= column < self.shape[1]):
            return None
        return int(row) * self.shape[1] + int(column)

    @property
    def pair(self) -> Pair | None:
        """The two numbers; None if nothing has the form of a place, or it has not moved yet."""
        moved = [pair for pair, (_, seen) in (self._left or {}).items() if len(seen) > 1]
        return moved[0] if moved else None

    def cell_of(self, vector: np.ndarray) -> int | None:
        """The cell in which a state is; None if that is not known."""
        return None if self.pair is None else self._cell(vector, self.pair)

    def states(
        self, state: State, numbers: Callable[[State], np.ndarray], others: Iterable[State] = ()
    ) -> dict[int, State]:
        """States like `state` but in every other cell, by cell: built anew, or those among `others`.

        `numbers` gives the vector of a state.
        """
        pair = self.pair
        if pair is None or self.shape[0] * self.shape[1] > MOST_CELLS:
            return {}
        vector = numbers(state)
        found = {cell: one for one in others if (cell := self._like(vector, numbers(one), pair)) is not None}
        if found:
            return found
        for cell in range(self.shape[0] * self.shape[1]):
            moved = np.array(vector, np.float64)
            for place, number in zip(pair, divmod(cell, self.shape[1]), strict=True):
                if place is not None:
                    moved[place] = number
            built = with_numbers(state, moved)
            if built is None or not np.array_equal(numbers(built), moved):  # its numbers are not simply those of state
                return {}
            found[cell] = built
        return found

    def _like(self, vector: np.ndarray, other: np.ndarray, pair: Pair) -> int | None:
        """The cell of another state, if nothing but the place is different."""
        rest = [place for place in range(vector.size) if place not in pair]
        same = vector.shape == other.shape and np.array_equal(vector[rest], other[rest])
        return self._cell(other, pair) if same else None


def with_numbers(state: State, vector: np.ndarray) -> Any:
    """A state of the same form with these numbers, one after another; None if it holds anything else."""
    left = iter(vector.tolist())

    def fill(part: PyTree) -> Any:
        if isinstance(part, (int, float, np.generic)):
            return type(part)(next(left))
        if isinstance(part, np.ndarray):
            return np.array([next(left) for _ in range(part.size)], part.dtype).reshape(part.shape)
        if type(part) in (tuple, list):
            return type(part)(fill(one) for one in part)
        if isinstance(part, tuple) and hasattr(part, "_make"):
            return part._make(fill(one) for one in part)
        raise TypeError

    try:
        return fill(state)
    except (TypeError, ValueError, RuntimeError, StopIteration):
        return None
