"""Facts and raw transitions of Python simulators as JSON in a file of arrays."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np

from uamcts.agent.states import UnknownType, as_json, from_json
from uamcts.arguments import flag, integer, real, short_repr
from uamcts.corrections.patched_model import PatchedModel
from uamcts.corrections.python_facts import Fact, OutcomeCount, Streak


def pack(rows: object) -> dict[str, np.ndarray]:
    """Rows as arrays of a file."""
    return {"json": np.frombuffer(json.dumps(rows).encode(), np.uint8)}


def unpack(arrays: dict[str, np.ndarray], what: str) -> Any:
    """What `pack` was given; a ValueError if the arrays hold no JSON."""
    if arrays.keys() != {"['json']"} or arrays["['json']"].dtype != np.uint8 or arrays["['json']"].ndim != 1:
        raise ValueError(f"{what} are {sorted(arrays)}")
    try:
        return json.loads(arrays["['json']"].tobytes().decode())
    except RecursionError:
        raise ValueError(f"{what} are nested too deeply") from None


def fact_rows(patched: PatchedModel, name: str, waiting: list[Any]) -> list[Any]:
    """All facts, to be written; warns of those that cannot be."""
    rows, lost = list(waiting), None
    for (_, action), fact in patched.facts.items():
        try:
            outcomes = [[as_json(seen.following), *seen[1:]] for seen in fact.outcomes.values()]
            about = [fact.streak.length, fact.streak.chance, fact.agrees, fact.last, fact.confirmed, fact.stale]
            rows.append([as_json(fact.state), action, outcomes, about])
        except TypeError as error:
            lost = error
    held = len(patched.facts) + len(waiting)
    if lost is not None:
        warnings.warn(
            f"{name}: {held - len(rows)} of {held} remembered transitions are not in the file, because their "
            f"states cannot be saved ({lost}); all else is. States of numbers, strings, arrays, tuples, lists, "
            "dicts, dataclasses and objects of these can be saved",
            stacklevel=7,
        )
    return rows


def parse_fact(row: object, types: dict[str, type], num_actions: int) -> tuple[int, list[OutcomeCount], Fact] | None:
    """Action, outcomes and the rest of a saved fact; None while a class in it is unknown."""
    if not isinstance(row, list) or len(row) != 4 or not isinstance(row[2], list) or not row[2]:
        raise ValueError("a fact is not (state, action, outcomes, about)")
    action = integer(row[1])
    if action is None or not 0 <= action < num_actions:
        raise ValueError(f"a fact is about the action {short_repr(row[1])}")
    if not isinstance(row[3], list) or len(row[3]) != 6:
        raise ValueError(f"a fact is followed by {short_repr(row[3])}")
    length, last, confirmed = (integer(row[3][place]) for place in (0, 3, 4))
    if length is None or last is None or confirmed is None or min(length, last + 1, confirmed + 1) < 1:
        raise ValueError(f"a fact is followed by {short_repr(row[3])}")
    chance = real("chance", row[3][1], "it must be in (0, 1]", lambda share: 0 < share <= 1)
    agrees, stale = flag("agrees", row[3][2]), flag("stale", row[3][5])
    try:
        seen = [_parse_outcome(one, types) for one in row[2]]
        state = from_json(row[0], types)
    except UnknownType:
        return None
    return action, seen, Fact(state, {}, Streak(None, length, chance), agrees, last, confirmed, stale)


def _parse_outcome(found: object, types: dict[str, type]) -> OutcomeCount:
    if not isinstance(found, list) or len(found) != 6 or not isinstance(found[5], list):
        raise ValueError("an outcome is not (state, end, times, reward, varied, rewards)")
    following, terminal, times, reward, varied, rewards = found
    number = integer(times)
    if number is None or number < 1:
        raise ValueError(f"an outcome was seen {short_repr(times)} times")
    terminal, varied = flag("terminal", terminal), flag("varied", varied)
    each = tuple((real("reward", one), integer(often) or 0) for one, often in rewards)
    if any(often < 1 for _, often in each):
        raise ValueError(f"its rewards are {short_repr(rewards)}")
    return OutcomeCount(from_json(following, types), terminal, number, real("reward", reward), varied, each)


def raw_rows(raw: list[Any]) -> list[Any]:
    """Raw transitions, to be written; None for those that cannot be."""
    rows: list[Any] = []
    for one in raw:
        try:
            rows.append(None if one is None else [as_json(part) for part in one])
        except TypeError:
            rows.append(None)
    return rows


def parse_raw(row: object, types: dict[str, type]) -> tuple[Any, Any, Any] | None:
    """A raw transition; None while a class in it is unknown, or if it was not saved."""
    if row is None:
        return None
    if not isinstance(row, list) or len(row) != 3:
        raise ValueError("a raw transition is not (state, action, next state)")
    try:
        state, action, following = (from_json(part, types) for part in row)
    except UnknownType:
        return None
    return state, action, following
