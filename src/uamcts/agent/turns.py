"""One call at a time: an agent that several threads share is called by one of them, and the others wait."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


class Turns:
    """A lock of an object, which a copy of that object has anew."""

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def __deepcopy__(self, memo: dict[int, Any]) -> Turns:
        return Turns()

    def __reduce__(self) -> tuple[type[Turns], tuple[()]]:
        return Turns, ()


def in_turn(method: Method) -> Method:
    """Has a method of an object with `_turns` wait for calls of its other methods, by other threads, to end."""

    @functools.wraps(method)
    def call(self: Any, *given: Any, **named: Any) -> Any:
        with self._turns.lock:
            return method(self, *given, **named)

    return cast(Method, call)
