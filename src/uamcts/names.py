"""Names of algorithms, rule sets and domains: what is typed, what is stored and what is shown.

The command line completes names in a shell, so this module imports nothing heavy.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

PHASES = ("selection", "expansion", "simulation", "backpropagation")


@dataclass(frozen=True)
class Algorithm:
    """The names of one algorithm."""

    key: str
    """The name in stored data and in Python."""
    name: str
    """The name on the command line, which also accepts `key`."""
    title: str
    """The name in figures, tables and messages."""
    phases: tuple[str, ...] = ()
    """The uncertainty-adapted phases."""
    short: str = ""
    """The title on two lines, for narrow places."""


TABLE = (
    Algorithm("true", "mcts-true", "MCTS in the true world", short="MCTS,\ntrue world"),
    Algorithm("corrupted", "mcts", "MCTS"),
    Algorithm("backpropagation", "ua-backpropagation", "UA-Backpropagation", ("backpropagation",),
              "UA-Back-\npropagation"),
    Algorithm("selection", "ua-selection", "UA-Selection", ("selection",), "UA-\nSelection"),
    Algorithm("expansion", "ua-expansion", "UA-Expansion", ("expansion",), "UA-\nExpansion"),
    Algorithm("simulation", "ua-simulation", "UA-Simulation", ("simulation",), "UA-\nSimulation"),
    Algorithm("combined", "ua-mcts", "UA-MCTS", PHASES),
    Algorithm("trust", "trust", "Trust search", PHASES, "Trust\nsearch"),
    Algorithm("agent", "agent", "Agent", PHASES),
)  # fmt: skip
"""All algorithms, in the order in which figures show them."""
ALGORITHM_NAMES = tuple(algorithm.name for algorithm in TABLE)
PLAIN = ("true", "corrupted")
"""The keys of plain MCTS: in the true world, and in the simulator."""
OURS = ("trust", "agent")
"""The keys of the algorithms that are not the paper's. `agent` is `uamcts.Agent`, online only."""
CORRECTIONS = "corrections"
"""The learner of `agent`, which has no other."""
WITHOUT_TAU = (*PLAIN, *OURS)
"""The keys of the algorithms that ignore tau."""

RULE_TITLES = {"released": "authors' program", "pseudocode": "as printed", "trust": "trust"}
"""Rule sets in figures, tables and messages."""
DOMAIN_NAMES = (
    "space_invaders", "freeway", "breakout", "two_way", "two_way_icy", "hidden_obstacles", "slippery", "shortcut",
    "frozen_lake", "cliff", "bridge",
)  # fmt: skip
"""The keys of `uamcts.DOMAINS`, so that a shell can complete them without importing JAX."""

_BY_KEY = {algorithm.key: algorithm for algorithm in TABLE}
_KEYS = {name: algorithm.key for algorithm in TABLE for name in (algorithm.name, algorithm.key)}


def suggestion(name: object, known: Iterable[str]) -> str:
    """The words "did you mean 'breakout'? " if one of `known` is close to `name`, else an empty string."""
    nearest = difflib.get_close_matches(str(name).lower(), known, n=1, cutoff=0.55)
    return f"did you mean {nearest[0]!r}? " if nearest else ""


def check_name(kind: str, name: object, known: Iterable[str]) -> None:
    """Raises a ValueError that suggests the closest name if `name` is not one of `known`.

    Args:
        kind: What is named, for the message: `"domain"`.
        name: The name that was given.
        known: The names that exist.
    """
    known = tuple(known)
    if name not in known:
        raise ValueError(f"unknown {kind} {name!r}; {suggestion(name, known)}there are {', '.join(known)}")


def algorithm_key(name: str) -> str:
    """The stored key of an algorithm, from any of its names; case, `-` and `_` do not matter."""
    wanted = str(name).strip().lower().replace("_", "-")
    if wanted in _KEYS:
        return _KEYS[wanted]
    raise ValueError(f"unknown algorithm {name!r}; {suggestion(wanted, _KEYS)}there are {', '.join(ALGORITHM_NAMES)}")


def command_name(key: str) -> str:
    """The name of an algorithm on the command line."""
    return _BY_KEY[key].name if key in _BY_KEY else key


def title(key: str) -> str:
    """The title of an algorithm."""
    return _BY_KEY[key].title if key in _BY_KEY else key


def short_title(key: str) -> str:
    """The title of an algorithm, on two lines if it is long."""
    return (_BY_KEY[key].short or title(key)) if key in _BY_KEY else key


def rules_title(rules: str) -> str:
    """The title of a rule set."""
    return RULE_TITLES.get(rules, rules)


def planner_title(key: str, learner: str) -> str:
    """The title of an algorithm with its learner, like `UA-MCTS, learned U (network)`."""
    if learner.startswith("transition_"):
        return f"{title(key)}, transition ({learner.removeprefix('transition_').replace('_', ' ')})"
    if learner in ("none", "true", CORRECTIONS):
        return title(key)
    return f"{title(key)}, {learner}" if key in PLAIN else f"{title(key)}, learned U ({learner})"
