"""Keeps trials quiet: no warnings, no log messages, and no draws from the global random generators.

With a mass of 0, NumPy warns of a division by zero, and a careful simulator warns of the mass. If trials draw from a
global generator, your program must still get the random numbers that it would have got without them.
"""

from __future__ import annotations

import logging
import random
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from uamcts.runtime.watch import THREAD


class Quiet:
    """A context manager that keeps trials quiet from `begin` to the end of the block."""

    def __init__(self) -> None:
        self._stack: ExitStack | None = None

    def __enter__(self) -> Quiet:
        self._stack = ExitStack()
        self._begun = False
        return self

    def __exit__(self, *error: object) -> None:
        if self._stack is not None:
            self._stack.close()
        self._stack = None

    def begin(self) -> None:
        """Must be called before trials. Blocks without trials cost nothing."""
        if self._stack is None or self._begun:
            return
        self._begun = True
        self._stack.enter_context(_same_generators())
        kept = {kind: "ignore" if what in ("warn", "print") else what for kind, what in np.geterr().items()}
        self._stack.enter_context(np.errstate(**kept))  # type: ignore[arg-type]
        if _alone():
            self._stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            self._stack.callback(logging.disable, logging.root.manager.disable)
            logging.disable(logging.CRITICAL)


def _alone() -> bool:
    """Whether no other thread runs, so that settings that all threads share may be changed for a while."""
    mine = threading.current_thread()
    return all(one is mine or one.name == THREAD for one in threading.enumerate())


@contextmanager
def _same_generators() -> Iterator[None]:
    """Restores the global random generators afterwards."""
    plain, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 (whatever the user draws from)
    try:
        yield
    finally:
        random.setstate(plain)
        np.random.set_state(numpy)  # noqa: NPY002
