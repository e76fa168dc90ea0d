"""The names of algorithms and rule sets: what is typed, what is stored and what is shown. Imports nothing heavy."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

PHASES = ("selection", "expansion", "simulation", "backpropagation")


@dataclass(frozen=True)
class Algorithm:
    """One algorithm under each of its names."""

    key: str
    """In stored data and in Python."""
    name: str
    """On the command line; `key` is accepted there too."""
    title: str
    """In figures, tables and messages."""
    phases: tuple[str, ...] = ()
    """The phases that are uncertainty-adapted."""
    short: str = ""
    """The title on two lines, where there is little room."""


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
)  # fmt: skip
"""In the order in which figures show them."""
ALGORITHM_NAMES = tuple(algorithm.name for algorithm in TABLE)
PLAIN = ("true", "corrupted")
"""The keys of plain MCTS: in the true world, and in the simulator."""
WITHOUT_TAU = (*PLAIN, "trust")
"""The keys of the algorithms that do not read tau."""

RULE_TITLES = {"released": "authors' program", "pseudocode": "as printed", "trust": "trust"}
"""Rule sets as figures and tables show them."""
DOMAIN_NAMES = (
    "space_invaders", "freeway", "breakout", "two_way", "two_way_icy", "hidden_obstacles", "slippery", "shortcut",
    "frozen_lake", "cliff", "bridge",
)  # fmt: skip
"""The keys of `uamcts.DOMAINS`, for completion in a shell, which must not wait for JAX."""

_BY_KEY = {algorithm.key: algorithm for algorithm in TABLE}
_KEYS = {name: algorithm.key for algorithm in TABLE for name in (algorithm.name, algorithm.key)}


def algorithm_key(name: str) -> str:
    """The stored key of an algorithm; upper case and underscores in `name` do not matter."""
    wanted = str(name).strip().lower().replace("_", "-")
    if wanted in _KEYS:
        return _KEYS[wanted]
    nearest = difflib.get_close_matches(wanted, _KEYS, n=1, cutoff=0.4)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    raise ValueError(f"unknown algorithm {name!r}; {hint}there are {', '.join(ALGORITHM_NAMES)}")


def title(key: str) -> str:
    """An algorithm's name for people."""
    return _BY_KEY[key].title if key in _BY_KEY else key


def short_title(key: str) -> str:
    """`title`, on two lines where it is long."""
    return (_BY_KEY[key].short or title(key)) if key in _BY_KEY else key


def rules_title(rules: str) -> str:
    """A rule set's name for people."""
    return RULE_TITLES.get(rules, rules)


def planner_title(key: str, learner: str) -> str:
    """An algorithm with what it learns, as in `UA-MCTS, learned U (network)`."""
    if learner.startswith("transition_"):
        return f"{title(key)}, transition ({learner.removeprefix('transition_').replace('_', ' ')})"
    if learner in ("none", "true"):
        return title(key)
    return f"{title(key)}, {learner}" if key in PLAIN else f"{title(key)}, learned U ({learner})"
