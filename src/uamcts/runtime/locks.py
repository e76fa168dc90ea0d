"""Locks files, with what the operating system offers: `fcntl` on Linux and macOS, `msvcrt` on Windows."""

from __future__ import annotations

import errno
import importlib
from types import ModuleType
from typing import IO, Any


def _import(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


fcntl, msvcrt = _import("fcntl"), _import("msvcrt")
TAKEN = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
"""Error numbers of a lock that another process holds; Windows says EACCES."""


def try_lock(file: IO[Any]) -> bool:
    """Locks an open file until it is closed or its process ends.

    Returns:
        Whether this process holds the lock now; False if another one does.

    Raises:
        OSError: If files cannot be locked, on this file system or in this Python.
    """
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        elif msvcrt is not None:
            file.seek(0)  # the lock is on one byte at the present position
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            raise OSError(errno.ENOLCK, "this Python has neither fcntl nor msvcrt")
    except OSError as error:
        if error.errno in TAKEN:
            return False
        raise
    return True
