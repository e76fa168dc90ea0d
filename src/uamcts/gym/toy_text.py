"""Toy text: environments with a transition table, `P[state][action]`, that lists outcomes and their probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from uamcts.types import Environment

Outcome = tuple[int, float, bool]
"""The number of the next state, the reward and whether the episode is over."""
Row = tuple[tuple[tuple[float, Outcome], ...], ...]
"""The outcomes of each action, with their probabilities."""

RATE = "success_rate"
"""The parameter of a random table: the probability of the intended outcome, as FrozenLake calls it."""
ACTION_NAMES = {
    "FrozenLakeEnv": ("left", "down", "right", "up"),
    "BlackjackEnv": ("stick", "hit"),
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
            outcomes = _merge((float(outcome[0]), outcome[1:]) for outcome in listed)
            if determinise == "likeliest":
                after, reward, over = _intended_outcome(listed)
                meant = (int(after), float(reward), bool(over))
                likeliest = max(sorted(outcomes), key=lambda one: (one[0], one[1] == meant))[1]
                outcomes = [(1.0, likeliest)]
            row.append(tuple(outcomes))
        found[int(state)] = tuple(row)
    return found


class Slips(NamedTuple):
    """The probabilities that all random entries of a table share, in the order in which it lists outcomes."""

    chances: tuple[float, ...]
    intended: int
    """The place of the likeliest outcome; of the middle one, if all are equally likely."""

    @property
    def success_rate(self) -> float:
        """The probability of the intended outcome."""
        return self.chances[self.intended]

    def at(self, rate: float) -> tuple[float, ...]:
        """The probabilities if the intended outcome had the probability `rate`; the others share the rest as before."""
        rate = min(max(rate, 0.0), 1.0)
        others = len(self.chances) - 1
        rest = 1.0 - self.success_rate
        return tuple(
            rate if place == self.intended else (1.0 - rate) * (chance / rest if rest > 0 else 1 / others)
            for place, chance in enumerate(self.chances)
        )


def slips(env: Environment) -> Slips | None:
    """What the random entries of a table share, or None if they do not.

    A table may list outcomes without probability: moves that could slip, but are not believed to.
    """
    shared = {
        tuple(round(float(outcome[0]), 12) for outcome in listed)
        for choices in env.P.values()
        for listed in choices.values()
        if len(listed) > 1
    }
    if len(shared) != 1:
        return None
    (chances,) = shared
    equal = math.isclose(min(chances), max(chances), rel_tol=1e-9)
    return Slips(chances, len(chances) // 2 if equal else chances.index(max(chances)))


def parameters(env: Environment) -> dict[str, float]:
    """The parameter of a random table, if it has one."""
    found = slips(env)
    return {} if found is None else {RATE: found.success_rate}


def outcomes_at(env: Environment, actions: Sequence[Any], rate: float, wrap: Callable[[Any], Any]) -> Any:
    """Looks up outcomes in a table whose moves succeed at another rate; `wrap` is applied to an action's outcomes."""
    found = slips(env)
    if found is None:
        raise ValueError(f"{RATE} is {rate}; this table has no success rate: its moves have different probabilities")
    chances = found.at(rate)
    known: dict[tuple[int, int], list[tuple[float, Outcome]]] = {}

    def outcomes(state: int, action: int) -> list[tuple[float, Outcome]]:
        if (state, action) not in known:
            listed = env.P[state][actions[action]]
            weights = chances if len(listed) > 1 else (1.0,)
            known[state, action] = list(wrap(_merge(zip(weights, (one[1:] for one in listed), strict=True))))
        return known[state, action]

    return outcomes


def _merge(weighted: Iterable[tuple[float, tuple]]) -> list[tuple[float, Outcome]]:
    """Outcomes that have a probability; equal ones count as one."""
    chance: dict[tuple, float] = {}
    for weight, outcome in weighted:
        chance[outcome] = chance.get(outcome, 0.0) + weight
    return [(p, (int(after), float(reward), bool(over))) for (after, reward, over), p in chance.items() if p > 0]


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
