"""Answers that functions remember in a dictionary of their module, of a closure, or of a default argument.

A copy with other numbers has dictionaries of its own, with what they held at first. Else nothing that was asked before
would depend on any number, and the user's own functions would give the answers of the copy.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from uamcts.corrections.code_reading import contents_of, defaults_of
from uamcts.corrections.memories import KINDS, LARGEST, first_entries

WRITE = ("setdefault", "update")


class CodeMemory(NamedTuple):
    """A dictionary that functions write to."""

    held: dict[Any, Any]
    first: int
    """How many entries it had at first."""

    def anew(self) -> dict[Any, Any]:
        """What it was at first."""
        return first_entries(self.held, self.first)


def memories_of(function: types.FunctionType) -> Iterator[CodeMemory]:
    """The dictionaries that a function may write to."""
    names = function.__code__.co_names
    writes = any(name in WRITE for name in names) or any(
        one.opname == "STORE_SUBSCR" for one in dis.get_instructions(function.__code__)
    )
    cells = [contents_of(cell) for cell in function.__closure__ or ()]
    values = [*(function.__globals__.get(name) for name in names), *cells, *defaults_of(function).values()]
    for value in values:
        if writes and type(value) in KINDS and len(value) <= LARGEST:
            yield CodeMemory(value, len(value))
