"""One call at a time: an agent that several threads share is called by one of them, and the others wait."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

Given = ParamSpec("Given")
Found = TypeVar("Found")


class Turns:
    """A lock of an object, which a copy of that object has anew."""

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def __deepcopy__(self, memo: dict[int, Any]) -> Turns:
        return Turns()

    def __reduce__(self) -> tuple[type[Turns], tuple[()]]:
        return Turns, ()


class HasTurns(Protocol):
    _turns: Turns


Holder = TypeVar("Holder", bound=HasTurns)


def in_turn(
    method: Callable[Concatenate[Holder, Given], Found],
) -> Callable[Concatenate[Holder, Given], Found]:
    """Has calls of a method wait for calls of other methods of the same object, by other threads, to end."""

    @functools.wraps(method)
    def call(self: Holder, *given: Given.args, **named: Given.kwargs) -> Found:
        with self._turns.lock:
            return method(self, *given, **named)

    return call
