"""The form of the files in a results folder, and checks that a file has it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from uamcts.arguments import short_repr

Entry = dict[str, Any]
"""A row, a claim, a curve or another entry of `summary.json` or `bandit.json`."""
Kind = tuple[type, ...] | Callable[[Any], bool]
"""The types that a value may have, or a predicate."""
NUMBER = (int, float, type(None))


def is_interval(value: object) -> bool:
    """Whether this is a pair of numbers, or None."""
    return value is None or (isinstance(value, list) and len(value) == 2 and all(isinstance(x, NUMBER) for x in value))


def is_numbers(value: object) -> bool:
    """Whether this is a list of numbers, of which some may be None."""
    return isinstance(value, list) and all(isinstance(part, NUMBER) for part in value)


ROW: dict[str, Kind] = {
    **dict.fromkeys(("experiment", "domain", "scenario", "algorithm", "learner", "rules", "purpose"), (str,)),
    **dict.fromkeys(("c", "tau", "runs", "episodes", "mean", "std", "iqm", "steps", "goal_share"), NUMBER),
    **dict.fromkeys(("ci95", "iqm_ci95"), is_interval),
    "best": (bool, type(None)),
}
CLAIM: dict[str, Kind] = {
    **dict.fromkeys(("id", "experiment", "rules", "text", "verdict", "paper"), (str,)),
    "numbers": (dict,),
    "interval": is_interval,
    "runs": NUMBER,
}
DIFFERENCE: dict[str, Kind] = {
    **dict.fromkeys(("experiment", "first_algorithm", "first_rules", "second_algorithm", "second_rules"), (str,)),
    **dict.fromkeys(("first_tau", "second_tau", "mean", "p", "p_holm"), (int, float)),
    "ci95": is_interval,
}
CURVE: dict[str, Kind] = {
    **dict.fromkeys(("experiment", "algorithm", "learner", "rules", "quantity"), (str,)),
    **dict.fromkeys(("episode", "mean", "std"), is_numbers),
    "c": NUMBER,
}
CASE: dict[str, Kind] = {
    **dict.fromkeys(("id", "title", "text"), (str,)),
    **dict.fromkeys(("observed", "real", "delta", "steps", "ucb_bound", "ua_ucb_bound"), is_numbers),
    **dict.fromkeys(("ucb", "ua_ucb"), (dict,)),
    "estimated": (dict, type(None)),
    **dict.fromkeys(("c", "runs"), NUMBER),
}
AGAINST: dict[str, Kind] = {
    "family": (str,),
    "delta": is_numbers,
    **dict.fromkeys(("ucb", "ua_ucb"), (dict,)),
    **dict.fromkeys(("c", "threshold", "runs", "steps"), NUMBER),
}


def read_json(path: Path, needed: bool) -> Any:
    """The content of a JSON file; None if it is missing and not `needed`.

    Raises:
        ValueError: If the file is damaged, or missing although it is needed.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if not needed:
            return None
        raise ValueError(
            f"there is no {path}; name a folder that `uamcts reproduce` or `uamcts run` wrote, or run one of them first"
        ) from None
    except (ValueError, OSError, RecursionError) as error:
        raise _damage_error(path, str(error)) from None


def check_entries(path: Path, name: str, entries: list[Entry], form: dict[str, Kind]) -> None:
    """Raises a ValueError if one of `entries` lacks a field of `form`, or has it with another type."""
    for number, entry in enumerate(entries):
        for field, kind in form.items():
            check_field(path, entry, field, kind, f"{name}[{number}]")


def check_lengths(path: Path, entry: Entry, fields: tuple[str, ...], place: str) -> None:
    """Raises a ValueError if the lists in `fields` differ in length."""
    if len({len(entry[field]) for field in fields}) > 1:
        raise _damage_error(path, f"{', '.join(fields)} of {place} are not equally long")


def check_field(path: Path, entry: object, field: str, kind: Kind, place: str) -> None:
    """Raises a ValueError if `entry` has no such field, or has it with another type."""
    if not isinstance(entry, dict) or field not in entry:
        raise _damage_error(path, f"{place} has no {field!r}")
    value = entry[field]
    if not (isinstance(value, kind) if isinstance(kind, tuple) else kind(value)):
        raise _damage_error(path, f"{field!r} of {place} is {short_repr(value)}")


def _damage_error(path: Path, what: str) -> ValueError:
    return ValueError(
        f"{path} is damaged or was not written by uamcts: {what}; run the command that made the folder again"
    )
