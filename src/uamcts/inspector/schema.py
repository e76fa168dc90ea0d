"""The form of a trace, as checks that raise `Mismatch` and name the place. See docs/guides/inspector.md."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from uamcts.arguments import short_repr

Check = Callable[[object, str], None]
"""Checks a value; the second argument says where it is."""
LARGEST = 1e300
IMAGE = re.compile(r"[A-Za-z0-9+/]*={0,2}")
COLOUR = re.compile(r"#[0-9a-f]{6}")


class Mismatch(ValueError):
    """A part of a trace has not the form it should have."""

    def __init__(self, where: str, found: object, wanted: str):
        super().__init__(f"{where} is {short_repr(found)}; it must be {wanted}")


def text(most: int, pattern: re.Pattern[str] | None = None) -> Check:
    """A string of at most so many characters."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, str) or len(value) > most or (pattern and not pattern.fullmatch(value)):
            raise Mismatch(where, value, f"a text of at most {most} characters" if pattern is None else "a legal text")

    return check


def exactly(*allowed: object) -> Check:
    """One of a few values."""

    def check(value: object, where: str) -> None:
        if not any(type(value) is type(one) and value == one for one in allowed):
            raise Mismatch(where, value, " or ".join(map(repr, allowed)))

    return check


def whole(least: int, most: int) -> Check:
    """A whole number."""

    def check(value: object, where: str) -> None:
        if type(value) is not int or not least <= value <= most:
            raise Mismatch(where, value, f"a whole number from {least} to {most}")

    return check


def number(value: object, where: str) -> None:
    """A finite number."""
    if type(value) not in (int, float) or not abs(value) <= LARGEST or not math.isfinite(value):  # type: ignore[arg-type]
        raise Mismatch(where, value, "a finite number")


def truth(value: object, where: str) -> None:
    """True or False."""
    if type(value) is not bool:
        raise Mismatch(where, value, "true or false")


def maybe(inner: Check) -> Check:
    """Such a value, or null."""

    def check(value: object, where: str) -> None:
        if value is not None:
            inner(value, where)

    return check


def many(inner: Check, most: int, least: int = 0) -> Check:
    """A list."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, list) or not least <= len(value) <= most:
            raise Mismatch(where, value, f"a list of {least} to {most} entries")
        for place, entry in enumerate(value):
            inner(entry, f"{where}[{place}]")

    return check


def row(*parts: Check) -> Check:
    """A list whose entries have forms of their own."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, list) or len(value) != len(parts):
            raise Mismatch(where, value, f"a list of {len(parts)} entries")
        for part, entry in zip(parts, value, strict=True):
            part(entry, where)

    return check


def fields(parts: Mapping[str, Check]) -> Check:
    """An object with exactly these fields."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, dict) or value.keys() != parts.keys():
            raise Mismatch(where, value, f"an object with {', '.join(parts)}")
        for name, part in parts.items():
            part(value[name], f"{where}.{name}")

    return check


def settings(value: object, where: str) -> None:
    """An object of short names and values."""
    if not isinstance(value, dict) or len(value) > 40:
        raise Mismatch(where, value, "an object of at most 40 settings")
    for name, one in value.items():
        text(60)(name, where)
        (text(200) if isinstance(one, str) else number)(one, f"{where}.{name}")


def frame(value: object, where: str) -> None:
    """A picture: cells, text or the number of an image."""
    kinds = {"cells": many(whole(0, 255), 65536, 1), "text": text(20000), "image": whole(0, 10**6)}
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in kinds:
        raise Mismatch(where, value, "an object with cells, text or image")
    for kind, inner in value.items():
        kinds[kind](inner, f"{where}.{kind}")


COLUMNS = {
    "parent": whole(-1, 10**6), "action": whole(-1, 10**6), "visits": whole(0, 2**53), "value": maybe(number),
    "doubt": maybe(number), "chance": maybe(number), "flags": whole(0, 15), "more": whole(0, 10**6),
}  # fmt: skip
PLAN = fields(
    {
        "action": whole(0, 10**6),
        "labels": many(text(200), 10**5),
        "visits": many(whole(0, 2**53), 10**5, 1),
        "values": many(maybe(number), 10**5),
        "doubt": many(number, 10**5),
        "keep": many(number, 10**5),
        "exists": many(truth, 10**5),
        "notes": many(text(200), 10**5),
        "words": text(4000),
        "kind": exactly("tree", "graph"),
        "nodes": fields({name: many(check, 10**4, 1) for name, check in COLUMNS.items()}),
        "expansions": many(whole(-1, 10**4), 10**4),
        "ends": many(whole(-1, 10**4), 10**4),
    }
)
MOVE = fields(
    {
        "plans": many(maybe(PLAN), 8, 1),
        "action": text(200),
        "reward": maybe(number),
        "terminal": maybe(truth),
        "now": maybe(frame),
        "believed": maybe(frame),
        "real": maybe(frame),
        "believed_reward": maybe(number),
        "believed_terminal": maybe(truth),
        "chance": maybe(number),
        "numbers": many(row(whole(0, 10**6), maybe(number), maybe(number), maybe(number)), 64),
        "surprise": maybe(number),
        "mistake": truth,
        "heat": many(row(whole(0, 65535), number), 4096),
    }
)
THING = fields({"name": text(60), "colour": text(7, COLOUR)})
BOARD = fields(
    {
        "rows": whole(1, 256),
        "columns": whole(1, 256),
        "things": many(THING, 256, 1),
        "broken": many(whole(0, 65535), 65536),
    }
)
TRACE = fields(
    {
        "format": exactly("uamcts trace"),
        "version": exactly(2),
        "title": text(200),
        "summary": text(2000),
        "surprise": exactly("difference", "bits"),
        "actions": many(text(200), 10**5),
        "features": many(text(200), 10**5),
        "board": maybe(BOARD),
        "images": many(text(400000, IMAGE), 10**5),
        "planners": many(fields({"name": text(200), "settings": settings}), 8, 1),
        "episodes": many(fields({"planner": whole(0, 7), "moves": many(MOVE, 10**4, 1)}), 1000, 1),
    }
)
