"""The games, one file each: a world and a model that share one step function."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from uamcts.domains import breakout, freeway, frozen_lake, gridworld, random_grid, space_invaders
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
    "frozen_lake": frozen_lake.make_frozen_lake,
    "cliff": frozen_lake.make_cliff,
    "bridge": frozen_lake.make_bridge,
}
"""What makes each domain, by name: the paper's and those of docs/results/{baselines,random_worlds}.md."""


def make(name: str, **options: object) -> Domain:
    """Makes a domain by its name.

    Args:
        name: one of `DOMAINS`.
        **options: the options of that domain. Most take `broken` (the places where its model is wrong) or `severity`
            and `seed` (the share of places to break, and the seed that they are drawn from); the default is the
            paper's setting. Random domains take the probabilities `p` of the world and `model_p` of the model.

    Returns:
        A domain with a world and a model.

    Raises:
        ValueError: if there is no such domain, or if an option is out of range.
        TypeError: if the domain has no such option.

    Example:
        ```python
        uamcts.make("breakout")
        uamcts.make("breakout", broken=(2, 4))
        uamcts.make("breakout", severity=0.3, seed=7)
        uamcts.make("frozen_lake", p=0.7, model_p=0.9, map="8x8")
        ```
    """
    check_name("domain", name, DOMAINS)
    known = inspect.signature(DOMAINS[name]).parameters
    unknown = [option for option in options if option not in known]
    if unknown:
        raise TypeError(f"{name} has no option {unknown[0]!r}; it has {', '.join(known)}")
    return DOMAINS[name](**options)
