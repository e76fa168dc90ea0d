"""The games: each one file, a world and a model made from one set of rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from uamcts.domains import breakout, freeway, gridworld, random_grid, space_invaders
from uamcts.domains.base import Domain
from uamcts.domains.check import check_domain
from uamcts.names import check_name

__all__ = ["DOMAINS", "Domain", "check_domain", "make"]

DOMAINS: dict[str, Callable[..., Domain]] = {
    "space_invaders": space_invaders.make,
    "freeway": freeway.make,
    "breakout": breakout.make,
    "two_way": gridworld.make_two_way,
    "two_way_icy": gridworld.make_two_way_icy,
    "hidden_obstacles": random_grid.make_hidden_obstacles,
    "slippery": random_grid.make_slippery,
    "shortcut": random_grid.make_shortcut,
}
"""What makes each domain, by name: the paper's in its order, then those of docs/baselines.md."""


def make(name: str, **options: Any) -> Domain:
    """The domain called `name`; `options` break other places than the paper's.

    `make("breakout", broken=(2, 4))` names them, `make("breakout", severity=0.3, seed=7)` draws 30 % of them.
    """
    check_name("domain", name, DOMAINS)
    known = inspect.signature(DOMAINS[name]).parameters
    unknown = [option for option in options if option not in known]
    if unknown:
        raise TypeError(f"{name} has no option {unknown[0]!r}; it has {', '.join(known)}")
    return DOMAINS[name](**options)
