"""The trace: one file with everything that the inspector shows of an episode. Format: docs/guides/inspector.md.

A trace is a JSON document, compressed by gzip. Reading one checks every part of it, builds nothing but lists, numbers
and strings, and refuses whatever is damaged, too large or of another version.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from uamcts.arguments import short_repr
from uamcts.inspector.schema import TRACE, Mismatch
from uamcts.runtime.atomic import write_whole

FORMAT, VERSION = "uamcts trace", 2
LARGEST_FILE, LARGEST_TEXT = 32 * 2**20, 256 * 2**20
"""Bytes of a trace, and of what it unpacks to."""
Record: TypeAlias = dict[str, Any]
"""A part of a trace: JSON."""


def pack(trace: Record) -> bytes:
    """A trace as the bytes of its file. The same trace gives the same bytes.

    Raises:
        ValueError: The trace is not one, or is too large.
    """
    problem = find_problem(trace)
    if problem:
        raise ValueError(f"trace is not one that the inspector can show: {problem}")
    text = json.dumps(trace, separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode()
    packed = gzip.compress(text, 9, mtime=0)
    if len(packed) > LARGEST_FILE or len(text) > LARGEST_TEXT:
        raise ValueError(f"trace takes {len(packed):,} bytes; record fewer moves (at most {LARGEST_FILE:,} bytes)")
    return packed


def write_trace(path: str | os.PathLike[str], trace: Record) -> None:
    """Writes a trace to a file, which is replaced as a whole.

    Raises:
        ValueError: The trace is not one, or is too large.
        OSError: The file cannot be written.
    """
    write_whole(Path(path), pack(trace))


def read_trace(path: str | os.PathLike[str]) -> Record:
    """Reads a trace.

    Args:
        path: A file that `write_trace` wrote.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is no trace, is damaged, or is of another version.
    """
    path = Path(path)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        remedy = "give a trace file, which `agent.record(path)` or `uamcts play DOMAIN --trace FILE` writes"
        raise FileNotFoundError(f"{path} {what}; {remedy}")
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        _refuse(path, f"is larger than {LARGEST_FILE:,} bytes", "record fewer moves")
    if not content.startswith(b"\x1f\x8b"):
        _refuse(path, "is not a trace", "give a file that `agent.record(path)` or `uamcts play --trace` wrote")
    trace = _parse(path, _unpack(path, content))
    if not isinstance(trace, dict) or trace.get("format") != FORMAT:
        _refuse(path, "is not a trace", "give a file that `agent.record(path)` or `uamcts play --trace` wrote")
    version = trace.get("version")
    if type(version) is not int or version != VERSION:
        remedy = "open it with the version of uamcts that wrote it"
        _refuse(path, f"is a trace of version {short_repr(version)}, not {VERSION}", remedy)
    problem = find_problem(trace)
    if problem:
        _refuse(path, f"is damaged: {problem}", "record it again")
    return trace


def find_problem(trace: object) -> str:
    """What is wrong with a trace, in words; nothing if it is right."""
    try:
        TRACE(trace, "trace")
        for number, episode in enumerate(trace["episodes"]):  # type: ignore[index]
            _check_episode(trace, episode, f"episodes[{number}]")  # type: ignore[arg-type]
    except Mismatch as mismatch:
        return str(mismatch)
    return ""


def _check_episode(trace: Record, episode: Record, where: str) -> None:
    """What no single part can say of itself: that numbers lie within what they refer to."""
    planners = len(trace["planners"])
    if not episode["planner"] < planners:
        raise Mismatch(f"{where}.planner", episode["planner"], f"below {planners}")
    for number, move in enumerate(episode["moves"]):
        place = f"{where}.moves[{number}]"
        if len(move["plans"]) != planners:
            raise Mismatch(f"{place}.plans", len(move["plans"]), f"{planners} plans")
        for name in ("now", "believed", "real"):
            _check_frame(trace, move[name] or {}, f"{place}.{name}")
        for feature, *_ in move["numbers"]:
            if feature >= len(trace["features"]):
                raise Mismatch(f"{place}.numbers", feature, "the number of a feature")
        for plan in filter(None, move["plans"]):
            _check_plan(plan, place)


def _check_frame(trace: Record, frame: Record, where: str) -> None:
    board, cells = trace["board"], frame.get("cells")
    if frame.get("image", -1) >= len(trace["images"]):
        raise Mismatch(f"{where}.image", frame["image"], f"below {len(trace['images'])}")
    if cells is None:
        return
    if board is None or len(cells) != board["rows"] * board["columns"]:
        raise Mismatch(f"{where}.cells", len(cells), "a cell for each of the board's")
    if max(cells) >= len(board["things"]):
        raise Mismatch(f"{where}.cells", max(cells), "the number of a thing")


def _check_plan(plan: Record, where: str) -> None:
    names = ("visits", "values", "doubt", "keep", "exists", "notes")
    count, nodes = len(plan["visits"]), plan["nodes"]
    if any(len(plan[name]) != count for name in names) or (plan["labels"] and len(plan["labels"]) != count):
        raise Mismatch(f"{where}.plans", count, "one entry for each action in every list")
    if plan["action"] >= count:
        raise Mismatch(f"{where}.plans.action", plan["action"], f"below {count}")
    if len({len(column) for column in nodes.values()}) != 1:
        raise Mismatch(f"{where}.plans.nodes", "columns of several lengths", "columns of one length")
    for number, parent in enumerate(nodes["parent"]):
        if not (-1 <= parent < number and (parent == -1) == (number == 0)):
            raise Mismatch(f"{where}.plans.nodes.parent", parent, "the number of an earlier node")
    for name in ("expansions", "ends"):
        if any(not -1 <= node < len(nodes["parent"]) for node in plan[name]):
            raise Mismatch(f"{where}.plans.{name}", "a number", "numbers of nodes")
    if len(plan["ends"]) != len(plan["expansions"]):
        raise Mismatch(f"{where}.plans.ends", len(plan["ends"]), "as many entries as expansions")


def _unpack(path: Path, content: bytes) -> bytes:
    unpacking = zlib.decompressobj(wbits=31)
    try:
        text = unpacking.decompress(content, LARGEST_TEXT)
    except zlib.error:
        _refuse(path, "is damaged", "copy it again, or record it again")
    if unpacking.unconsumed_tail:
        _refuse(path, f"unpacks to more than {LARGEST_TEXT:,} bytes", "record fewer moves")
    if not unpacking.eof or unpacking.unused_data:
        _refuse(path, "is cut short or has something behind its end", "copy it again, or record it again")
    return text


def _parse(path: Path, text: bytes) -> object:
    def no_number(word: str) -> NoReturn:
        raise ValueError(f"{word} is not a number")

    try:
        found: object = json.loads(text.decode(), parse_constant=no_number)
    except (ValueError, RecursionError):
        _refuse(path, "is damaged: it does not hold JSON", "copy it again, or record it again")
    return found


def _refuse(path: Path, problem: str, remedy: str) -> NoReturn:
    raise ValueError(f"{path} {problem}; {remedy}")
