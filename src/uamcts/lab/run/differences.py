"""Describes how two sets of settings differ, by the command-line options that set them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

MOST = 3
"""The number of differences that a message names."""
LONGEST = 40
"""The number of characters of a value that a message shows."""
OPTIONS = {
    "algorithms": "--algorithm", "algorithm": "--algorithm", "learners": "--learner", "learner": "--learner",
    "exploration": "--c", "c": "--c", "tau": "--tau", "runs": "--runs", "steps": "--steps",
    "interval": "--interval", "minibatches": "--minibatches", "seed": "--seed", "rules": "--rules",
    "iterations": "--iterations",
}  # fmt: skip
"""The option of `uamcts run` for each setting."""
ABSENT = "the default"
"""Stands for a value that is missing."""
DERIVED = ("title", "name", "family")
"""Settings that follow from others."""
PAIRS = {"budget": "", "options": "option "}
"""Settings that are lists of pairs, and the prefix of the names in them."""


class Difference(NamedTuple):
    """A setting with its value there and here."""

    name: str
    there: Any
    here: Any


def differences(there: Any, here: Any, name: str = "settings") -> list[Difference]:
    """The settings that differ, by the name of the innermost dictionary key; values are JSON."""
    if there == here or name in DERIVED:
        return []
    if name in PAIRS and _are_pairs(there) and _are_pairs(here):
        before, after = ({f"{PAIRS[name]}{key}": value for key, value in part} for part in (there, here))
        both = dict.fromkeys((*before, *after))
        found = [Difference(key, before.get(key), after.get(key)) for key in both]
        return [part for part in found if part.there != part.here]
    if isinstance(there, dict) and isinstance(here, dict):
        shared = [key for key in here if key in there]
        if not shared:
            return [Difference(name, _kind(there), _kind(here))]
        if name == "experiments" and there.keys() != here.keys():
            return [Difference(name, ", ".join(there), ", ".join(here))]
        found = [part for key in shared for part in differences(there[key], here[key], key)]
        found += [Difference(key, there[key], ABSENT) for key in there if key not in here]
        found += [Difference(key, ABSENT, here[key]) for key in here if key not in there]
        return list({part.name: part for part in reversed(found)}.values())[::-1]
    if _are_parts(there, here):
        pairs = zip(there, here, strict=True)
        return list({part.name: part for pair in pairs for part in differences(*pair, name)}.values())
    return [Difference(name, there, here)]


def _kind(settings: dict[str, Any]) -> str:
    """The kind of a folder, for two folders that have no setting in common."""
    kinds = {"unit": "one watched run", "experiments": "experiments"}
    return next((kind for key, kind in kinds.items() if key in settings), ", ".join(settings) or ABSENT)


def in_words(found: list[Difference]) -> str:
    """The first few of some differences as a phrase."""
    shown = [f"{_option(part.name)} {_short(part.there)} there, {_short(part.here)} here"
             for part in found[:MOST]]  # fmt: skip
    rest = len(found) - len(shown)
    return "; ".join(shown) + (f"; and {rest} more" if rest > 0 else "")


def _option(name: str) -> str:
    return f"--{name}" if name.startswith("option ") else OPTIONS.get(name, name)


def _are_pairs(value: object) -> bool:
    """Whether this is a list of pairs of a name and something."""
    return isinstance(value, list) and all(
        isinstance(part, list) and len(part) == 2 and isinstance(part[0], str) for part in value
    )


def _are_parts(there: Any, here: Any) -> bool:
    """Whether these are equally many parts of an experiment, to be compared one by one."""
    lists = isinstance(there, list) and isinstance(here, list) and len(there) == len(here) > 0
    return lists and all(isinstance(part, dict) for part in [*there, *here])


def _short(value: object) -> str:
    """A value as a user would type or read it."""
    text = value if isinstance(value, str) else _plain(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _plain(value: object) -> str:
    if value is None or value == []:
        return "the default"
    if isinstance(value, list):
        return (", " if isinstance(value[0], list) else " ").join(map(_short, value))
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps(value)
