"""The folder in which JAX caches compiled programs: private, bounded, and without damaged entries.

The entries are machine code that will be run, so nobody else may write to the folder. JAX itself neither notices a
modified entry nor replaces one that it cannot read. This module does not import JAX.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import zlib
from pathlib import Path

from uamcts.runtime.atomic import remove_leftovers, write_whole

LIMIT = 512 * 2**20
"""The size in bytes above which the oldest entries are removed when a program starts."""
ENTRIES = "*-cache"
"""How JAX names its entries."""
DIGESTS = "uamcts-digests.json"
"""The sha256 of each entry when it was first found intact, with its size and time of change, by name."""
ZSTANDARD = b"\x28\xb5\x2f\xfd"


def cache_folder() -> Path | None:
    """The user's folder of compiled programs, ready for use.

    None without the package platformdirs (extra `lab`), which knows where such folders belong; also None, with a note,
    if the folder is not safe to use.
    """
    try:
        from platformdirs import user_cache_path
    except ModuleNotFoundError:
        return None
    folder = user_cache_path("uamcts", appauthor=False) / "compiled"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fault = _fault(folder)
        if not fault:
            tidy(folder)
    except OSError as error:
        fault = f"cannot be used ({error.strerror})"
    if fault:
        print(f"uamcts: {folder} {fault}; compiled programs are not cached this time", file=sys.stderr)
        return None
    return folder


def _fault(folder: Path) -> str:
    """Why the folder is not private, with the remedy; an empty string if it is."""
    if not hasattr(os, "geteuid"):  # on Windows a user's folder is private
        return ""
    found = folder.stat()
    if found.st_uid != os.geteuid():
        return "belongs to another user: remove it, or set XDG_CACHE_HOME to a folder of your own"
    if found.st_mode & 0o022:
        return f"can be written to by others: chmod 700 {folder}, after removing what is in it"
    return ""


def tidy(folder: Path, limit: int = LIMIT) -> None:
    """Removes damaged entries, then the oldest ones until the rest fits into `limit` bytes.

    Other processes may use the folder meanwhile; they recompile a program whose entry is gone.
    """
    remove_leftovers(folder)
    known = _digests(folder)
    found: dict[str, list] = {}
    for path in folder.glob(ENTRIES):
        with contextlib.suppress(FileNotFoundError):
            if entry := _check(path, known.get(path.name)):
                found[path.name] = entry
            else:
                path.unlink()
    total = sum(size for size, _, _ in found.values())
    for name, (size, _, _) in sorted(found.items(), key=lambda item: item[1][1]):
        if total <= limit:
            break
        (folder / name).unlink(missing_ok=True)
        del found[name]
        total -= size
    if found != known:
        write_whole(folder / DIGESTS, json.dumps(found).encode())


def _check(path: Path, known: list | None) -> list | None:
    """Size, time of change and sha256 of an entry; None if it is damaged.

    An entry whose size and time are as they were is not read: a full folder would take a third of a second at every
    start.
    """
    status = path.stat()
    if known is not None and known[:2] == [status.st_size, status.st_mtime_ns]:
        return known
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    intact = _is_whole(content) if known is None else digest == known[2]
    return [status.st_size, status.st_mtime_ns, digest] if intact else None


def _digests(folder: Path) -> dict[str, list]:
    try:
        found = json.loads((folder / DIGESTS).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or not all(isinstance(entry, list) and len(entry) == 3 for entry in found.values()):
        return {}
    return found


def _is_whole(content: bytes) -> bool:
    """Whether a new entry can be decompressed: a killed process may have written half of it.

    Not every Python can decompress Zstandard, so such an entry counts as intact until it changes.
    """
    if content.startswith(ZSTANDARD):
        return True
    try:
        unpacker = zlib.decompressobj()
        unpacker.decompress(content)
        return unpacker.eof
    except zlib.error:
        return False
