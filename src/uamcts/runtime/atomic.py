"""Writes files atomically: a file is complete or not there, whatever happens to the process that writes it."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import tempfile
from pathlib import Path
from typing import IO

from uamcts.runtime import locks

PART = ".part"
"""The suffix of a file that is still being written: `.NAME.xxxxxxxx.part`."""


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file under a temporary name, then renames it, so that readers see the old file or the new one.

    Temporary files that killed processes left behind for the same name are removed first.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder; give the name of a file", str(path))
    remove_leftovers(path.parent, path.name)
    try:
        file, name = _temporary(path)
    except OSError as problem:
        there = f"cannot write into {path.parent}" if path.parent.is_dir() else f"there is no folder {path.parent}"
        raise OSError(problem.errno, f"{there} ({problem.strerror})", str(path)) from problem
    try:
        with file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(name, 0o644)
            if locks.fcntl is None:  # Windows does not rename a file that is open
                file.close()
            os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Removes temporary files of killed processes: those for the file `name`, or all in the folder.

    A writer holds a lock on its temporary file until it is renamed, so a file that can be locked is abandoned. On
    Windows a file is renamed after its lock has ended, so nothing is removed there.
    """
    if locks.fcntl is None:
        return
    for leftover in folder.glob(f".{'*' if name is None else glob.escape(name)}.*{PART}"):
        with contextlib.suppress(OSError), open(leftover, "rb") as file:
            if locks.try_lock(file):
                leftover.unlink()


def _temporary(path: Path) -> tuple[IO[bytes], str]:
    """A new, locked file next to `path`, and its name."""
    while True:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PART)
        file = os.fdopen(handle, "wb")
        if locks.fcntl is not None:
            with contextlib.suppress(OSError):
                locks.fcntl.flock(file, locks.fcntl.LOCK_EX)
        if os.path.exists(name):  # another process may have removed it before it was locked
            return file, name
        file.close()
