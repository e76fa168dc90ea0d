"""A journal of changes to tables, so that a step that fails half-way can be undone without copying them."""

from __future__ import annotations

from typing import Any

import numpy as np

_MISSING = object()


class Journal:
    """Changes dictionaries and arrays in place and remembers what was there before."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, Any, Any]] = []

    def put(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Sets an entry of a dictionary."""
        self._before.append((table, key, table.get(key, _MISSING)))
        table[key] = value

    def drop(self, table: dict[Any, Any], key: Any) -> None:
        """Removes an entry of a dictionary, if it is there."""
        self._before.append((table, key, table.get(key, _MISSING)))
        table.pop(key, None)

    def keep_row(self, array: np.ndarray | list[Any], row: int) -> None:
        """Remembers a row of an array or a list that is about to change."""
        self._before.append((array, row, array[row].copy() if isinstance(array, np.ndarray) else array[row]))

    def undo(self) -> None:
        """Puts back what was there before, the latest change first."""
        while self._before:
            table, key, value = self._before[-1]
            if value is _MISSING:
                table.pop(key, None)
            else:
                table[key] = value
            self._before.pop()
