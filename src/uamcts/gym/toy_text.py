"""Toy text: environments with a transition table, `P[state][action]`, that lists outcomes and their probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from uamcts.types import Environment

Outcome = tuple[int, float, bool]
"""The number of the next state, the reward and whether the episode is over."""
Row = tuple[tuple[tuple[float, Outcome], ...], ...]
"""The outcomes of each action, with their probabilities."""

ACTION_NAMES = {
    "FrozenLakeEnv": ("left", "down", "right", "up"),
    "CliffWalkingEnv": ("up", "right", "down", "left"),
    "TaxiEnv": ("south", "north", "east", "west", "pick up", "drop off"),
}


def has_table(env: object) -> bool:
    """Whether an environment seems to step through a transition table, judging by its attributes."""
    table = getattr(env, "P", None)
    return isinstance(table, dict) and len(table) > 0 and hasattr(env, "s") and not draws_outside_its_table(env)


def draws_outside_its_table(env: object) -> bool:
    """Whether it is a Taxi whose passenger may change the destination, which is not in the table."""
    return bool(getattr(env, "fickle_passenger", False))


def rows(env: Environment, actions: Sequence[Any], determinise: str | None) -> dict[int, Row]:
    """The outcomes of every action in every state; `actions` are the environment's own actions.

    Equal outcomes count as one. If `determinise` is "likeliest", each action has one outcome.
    """
    found = {}
    for state, choices in env.P.items():
        row = []
        for action in actions:
            listed = [outcome for outcome in choices[action] if outcome[0] > 0]
            chance: dict[tuple, float] = {}
            for outcome in listed:
                chance[outcome[1:]] = chance.get(outcome[1:], 0.0) + float(outcome[0])
            if determinise == "likeliest":
                meant = _intended_outcome(listed)
                chance = {max(sorted(chance), key=lambda one: (chance[one], one == meant)): 1.0}
            outcomes = [(p, (int(after), float(reward), bool(over))) for (after, reward, over), p in chance.items()]
            row.append(tuple(outcomes))
        found[int(state)] = tuple(row)
    return found


def _intended_outcome(outcomes: list) -> tuple:
    """The middle one of equally likely outcomes, where toy text lists the intended move."""
    return outcomes[len(outcomes) // 2][1:]


def is_deterministic(table: dict[int, Row]) -> bool:
    """Whether every action has one outcome."""
    return all(len(outcomes) == 1 for row in table.values() for outcomes in row)


def _lines(table: dict[int, Any]) -> Any:
    """The rows of a table by state number: a list if no number is missing."""
    size = len(table)
    return [table[state] for state in range(size)] if set(table) == set(range(size)) else table


def step_through(table: dict[int, Row]) -> Callable[[int, int], Outcome]:
    """A step through a table whose actions have one outcome each."""
    lines = _lines({state: tuple(outcomes[0][1] for outcomes in row) for state, row in table.items()})

    def step(state: int, action: int) -> Outcome:
        return lines[state][action]

    return step


def outcomes_in(table: dict[int, Row]) -> Callable[[int, int], list[tuple[float, Outcome]]]:
    """Looks up the outcomes of an action in a table."""
    lines = _lines({state: tuple(list(outcomes) for outcomes in row) for state, row in table.items()})

    def outcomes(state: int, action: int) -> list[tuple[float, Outcome]]:
        return lines[state][action]

    return outcomes


def decoder(env: Environment) -> tuple[Callable[[int], Sequence[int]], Sequence[int]]:
    """A function that decodes a state's number, and the size of each part: row and column, or Taxi's four parts."""
    if hasattr(env, "decode") and hasattr(env, "locs"):
        places = len(env.locs)
        return env.decode, (env.max_row + 1, env.max_col + 1, places + 1, places)
    if hasattr(env, "nrow") and hasattr(env, "ncol"):
        return lambda state: divmod(state, env.ncol), (env.nrow, env.ncol)
    if len(getattr(env, "shape", ())) == 2:
        return lambda state: divmod(state, env.shape[1]), tuple(env.shape)
    return lambda state: (state,), (len(env.P),)


def vectors(env: Environment) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
    """The features and one-hot inputs of every state: one-hot for each of Taxi's parts, else for its number."""
    decode, sizes = decoder(env)
    whole = len(sizes) <= 2
    plain, hot = {}, {}
    for place, state in enumerate(sorted(int(state) for state in env.P)):
        parts = [int(part) for part in decode(state)]
        plain[state] = np.array(parts, float)
        if whole:
            hot[state] = np.eye(1, len(env.P), place)[0]
        else:
            hot[state] = np.concatenate([np.eye(1, size, part)[0] for size, part in zip(sizes, parts, strict=True)])
        plain[state].flags.writeable = hot[state].flags.writeable = False
    return plain, hot
