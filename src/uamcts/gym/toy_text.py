"""Toy text: environments that carry a table of their transitions, `P[state][action]`: outcomes with probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from uamcts.gym.probe import Unfit

Row = tuple[tuple[int, float, bool], ...]

REMEDIES = {
    "FrozenLakeEnv": "make it with is_slippery=False",
    "CliffWalkingEnv": "make it with is_slippery=False",
    "TaxiEnv": "make it with is_rainy=False and fickle_passenger=False",
}
LIKELIEST = "or give determinise='likeliest' to plan as if the likeliest outcome always came"
ACTION_NAMES = {
    "FrozenLakeEnv": ("left", "down", "right", "up"),
    "CliffWalkingEnv": ("up", "right", "down", "left"),
    "TaxiEnv": ("south", "north", "east", "west", "pick up", "drop off"),
}


def has_table(env: Any) -> bool:
    table = getattr(env, "P", None)
    return isinstance(table, dict) and len(table) > 0 and hasattr(env, "s")


def rows(env: Any, actions: Sequence[Any], determinise: str | None) -> dict[int, Row]:
    """The one outcome of every action in every state, `actions` being what the environment calls its actions."""
    name = type(env).__name__
    remedy = REMEDIES.get(name, "make it without chance")
    if getattr(env, "fickle_passenger", False):
        raise Unfit("stochastic", f"{name}'s passenger is fickle: a step has several outcomes; {remedy}")
    found = {}
    for state, choices in env.P.items():
        row = []
        for action in actions:
            outcomes = [outcome for outcome in choices[action] if outcome[0] > 0]
            distinct = {outcome[1:] for outcome in outcomes}
            if len(distinct) > 1 and determinise != "likeliest":
                raise Unfit(
                    "stochastic",
                    f"a step of {name} has several outcomes, and this planner needs one: {remedy}, {LIKELIEST}",
                )
            chance = {one: sum(o[0] for o in outcomes if o[1:] == one) for one in sorted(distinct)}
            following, reward, terminal = max(chance, key=lambda one: (chance[one], one == _meant(outcomes)))
            row.append((int(following), float(reward), bool(terminal)))
        found[int(state)] = tuple(row)
    return found


def _meant(outcomes: list) -> tuple:
    """Among equally likely outcomes the one in the middle: there the toy texts list what the action means."""
    return outcomes[len(outcomes) // 2][1:]


def step_through(table: dict[int, Row]) -> Callable[[int, int], tuple[int, float, bool]]:
    size = len(table)
    lines: Any = [table[state] for state in range(size)] if set(table) == set(range(size)) else table

    def step(state: int, action: int) -> tuple[int, float, bool]:
        return lines[state][action]

    return step


def decoder(env: Any) -> tuple[Callable[[int], Sequence[int]], Sequence[int]]:
    """What takes a state's number apart, and how many values each part has: rows and columns, Taxi's four parts."""
    if hasattr(env, "decode") and hasattr(env, "locs"):
        places = len(env.locs)
        return env.decode, (env.max_row + 1, env.max_col + 1, places + 1, places)
    if hasattr(env, "nrow") and hasattr(env, "ncol"):
        return lambda state: divmod(state, env.ncol), (env.nrow, env.ncol)
    if len(getattr(env, "shape", ())) == 2:
        return lambda state: divmod(state, env.shape[1]), tuple(env.shape)
    return lambda state: (state,), (len(env.P),)


def vectors(env: Any) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
    """For every state its parts as numbers, and one-hot: Taxi's parts each, else the state's number."""
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
