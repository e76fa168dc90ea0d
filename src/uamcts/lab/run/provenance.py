"""Where numbers come from: the commit, the device and the versions of one unit, or of many together."""

from __future__ import annotations

import datetime
import functools
import importlib.metadata
import os
import platform
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jax

import uamcts

DISTINCT = ("version", "commit", "device", "cores", "python", "jax", "numpy")
"""Fields in which units may differ, and which `collect` counts."""
GIT_SECONDS = 10
"""How long to wait for Git to say whether files are modified."""


def provenance(seconds: float) -> dict[str, Any]:
    """The provenance of a unit that just finished after this many seconds."""
    device = jax.devices()[0]
    started = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds)
    return {
        "version": uamcts.__version__,
        "commit": commit(Path(uamcts.__file__).resolve().parent),
        "command": " ".join(["uamcts", *sys.argv[1:]]),
        "device": f"{len(jax.devices())} x {device.platform} ({device.device_kind})",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "jax": importlib.metadata.version("jax"),
        "numpy": importlib.metadata.version("numpy"),
        "seconds": seconds,
        "started": started.isoformat("T", "seconds"),
    }


def collect(pieces: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The provenance of many units together; each piece is the `about` of a unit, with `unit` and `provenance`.

    A value that all units share appears as it is. Different values are listed, most frequent first, with the number of
    units of each. `seconds` is the sum over all units; `versions` are those of the rules, learners and domains used.
    """
    pieces = list(pieces)
    each = [piece["provenance"] for piece in pieces]
    found: dict[str, Any] = {}
    for name in DISTINCT:
        counts = Counter(_text(one.get(name)) for one in each)
        if len(counts) > 1:
            found[name] = "; ".join(f"{value} ({_pieces(count)})" for value, count in counts.most_common())
        elif each:
            found[name] = each[0].get(name)
    found["seconds"] = sum(float(one["seconds"]) for one in each)
    if each:
        found["started"] = min(str(one["started"]) for one in each)
    used = {(name, version) for piece in pieces for name, version in piece["unit"]["versions"].items()}
    found["versions"] = dict(sorted(used))
    found["units"] = len(pieces)
    return found


def _text(value: object) -> str:
    return "unknown" if value is None else str(value)


def _pieces(count: int) -> str:
    return "1 unit" if count == 1 else f"{count} units"


@functools.cache
def commit(package: Path) -> str | None:
    """The commit that a package folder belongs to, with "(modified)" if its files differ from the commit.

    None unless the folder is `src/uamcts` in a checkout of uamcts: an installed package says nothing about the project
    around it. The result is cached, because the running code was loaded before.
    """
    root = package.parent.parent
    if package.parent.name != "src" or not _is_ours(root / "pyproject.toml"):
        return None
    folder = _git_folder(root)
    found = None if folder is None else _head(folder)
    return None if found is None else found + _modification_note(root)


def _is_ours(pyproject: Path) -> bool:
    try:
        return tomllib.loads(pyproject.read_text("utf-8")).get("project", {}).get("name") == "uamcts"
    except (OSError, ValueError, AttributeError):
        return False


def _git_folder(root: Path) -> Path | None:
    """The folder `.git`, or where the `.git` file of a worktree points to."""
    git = root / ".git"
    if git.is_dir():
        return git
    try:
        pointer = git.read_text("utf-8").strip()
    except (OSError, ValueError):
        return None
    return root / pointer.removeprefix("gitdir: ") if pointer.startswith("gitdir: ") else None


def _head(folder: Path) -> str | None:
    """The commit that HEAD points to, directly or through a branch; None before the first commit."""
    try:
        head = (folder / "HEAD").read_text("utf-8").strip()
        if not head.startswith("ref: "):
            return head or None
        name = head.removeprefix("ref: ")
        shared = folder / "commondir"  # the branches of a worktree are in the main repository
        common = folder / shared.read_text("utf-8").strip() if shared.is_file() else folder
        for place in (folder, common):
            if (place / name).is_file():
                return (place / name).read_text("utf-8").strip()
        for line in (common / "packed-refs").read_text("utf-8").splitlines():
            if line.endswith(f" {name}"):
                return line.split()[0]
    except (OSError, ValueError):
        pass
    return None


def _modification_note(root: Path) -> str:
    """A note to append to the commit if the package's files differ from it."""
    try:
        done = subprocess.run(  # noqa: S603 (fixed words and our own folder)
            ["git", "-C", str(root), "status", "--porcelain", "--", "src/uamcts", "pyproject.toml"],  # noqa: S607
            capture_output=True,
            check=True,
            timeout=GIT_SECONDS,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return " (unknown whether modified)"
    return " (modified)" if done.stdout.strip() else ""
