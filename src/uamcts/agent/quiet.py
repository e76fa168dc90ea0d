"""Trials without traces: what a simulator says or draws with values that nobody believes is of no interest.

With a mass of 0, NumPy warns of a division, and a careful simulator of the mass. And where it draws from a global
generator, the program that it is part of must go on with the numbers that it would have had.
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
    """What keeps trials quiet from `begin` to the end of the block."""

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
        """Is called before trials; blocks without trials cost nothing."""
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
    """Whether no other thread runs: what all threads have in common may then be changed for a while."""
    mine = threading.current_thread()
    return all(one is mine or one.name == THREAD for one in threading.enumerate())


@contextmanager
def _same_generators() -> Iterator[None]:
    """Gives the global generators back as they were."""
    plain, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 (whatever the user draws from)
    try:
        yield
    finally:
        random.setstate(plain)
        np.random.set_state(numpy)  # noqa: NPY002
