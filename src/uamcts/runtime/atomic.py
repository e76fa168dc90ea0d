"""Files that are whole or not there at all, whatever happens to the process that writes them."""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows: nothing is locked there, and the temporary files of killed processes stay
    fcntl = None  # type: ignore[assignment]

PART = ".part"
"""Ends the name of a file that is still being written: `.NAME.xxxxxxxx.part`."""


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file under a temporary name, then renames it: readers see the old file or the new one, never a part.

    Temporary files of the same name that killed processes left behind are removed first.
    """
    remove_leftovers(path.parent, path.name)
    file, name = _temporary(path)
    try:
        with file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(name, 0o644)
            os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Removes the temporary files of killed processes: those for the file `name`, or all in the folder.

    A writer locks its temporary file, and the lock ends with its process, so a file that can be locked has lost its
    writer. Where files cannot be locked, nothing is removed.
    """
    if fcntl is None:
        return
    for leftover in folder.glob(f".{'*' if name is None else glob.escape(name)}.*{PART}"):
        with contextlib.suppress(OSError), open(leftover, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            leftover.unlink()


def _temporary(path: Path) -> tuple[IO[bytes], str]:
    """A new file beside `path`, locked, and its name."""
    while True:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PART)
        file = os.fdopen(handle, "wb")
        if fcntl is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
        if os.path.exists(name):  # another process may have taken it for a leftover before it was locked
            return file, name
        file.close()
