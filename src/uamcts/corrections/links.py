"""Parameters that others were computed from: `total_mass` beside `mass` must change with it.

An object that keeps `total_mass = cart + pole` has computed it once. Whoever learns another mass of the pole must set
both. A link is a parameter together with all that was computed from it; it is a candidate besides the parameter alone.
Links are found by their numbers: what comes later and is the sum or the product of two earlier ones, in a single way.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import NamedTuple

from uamcts.corrections.elements import is_in_code

WITH = " with "
"""Between the parameter and what changes with it, in the name of a link."""


class Link(NamedTuple):
    """A parameter and what was computed from it."""

    base: str
    added: tuple[str, ...]
    """What changes by as much as the parameter."""
    scaled: tuple[str, ...]
    """What changes in proportion to it."""


def find_links(found: Mapping[str, float]) -> dict[str, Link]:
    """The links between parameters, which are in the order in which the simulator holds them."""
    return _find_links(tuple(found.items()))


@functools.lru_cache(64)
def _find_links(found: tuple[tuple[str, float], ...]) -> dict[str, Link]:
    plain = [(name, value) for name, value in found if "[" not in name and not is_in_code(name)]
    sums: dict[str, list[str]] = {name: [] for name, _ in plain}
    products: dict[str, list[str]] = {name: [] for name, _ in plain}
    for place, (name, value) in enumerate(plain):
        if value.is_integer():  # that 1 + 1 is 2 may well be chance
            continue
        ways = [
            (kind, first, second)
            for (first, a), (second, b) in itertools.combinations(plain[:place], 2)
            for kind, result in ((sums, a + b), (products, a * b))
            if 0.0 not in (a, b) and abs(result - value) <= 1e-6 * abs(value) and (kind is sums or 1.0 not in (a, b))
        ]
        if len(ways) == 1:
            for one in ways[0][1:]:
                ways[0][0][one].append(name)
    named = {}
    for name, _ in plain:
        others = [other for other, _ in plain if other in sums[name] + products[name]]
        if others:
            listed = " and ".join(filter(None, [", ".join(others[:-1]), others[-1]]))
            named[name + WITH + listed] = Link(name, tuple(sums[name]), tuple(products[name]))
    return named


def resolve(values: Mapping[str, float], believed: Mapping[str, float]) -> Mapping[str, float]:
    """Values of plain parameters in place of those of links."""
    if not any(WITH in name for name in values):
        return values
    links = find_links(believed)
    found = {name: value for name, value in values.items() if name not in links}
    for name, value in values.items():
        if name not in links:
            continue
        base, added, scaled = links[name]
        before = believed[base]
        for other in (base, *added):
            found[other] = found.get(other, believed[other]) + value - before
        for other in scaled:
            found[other] = found.get(other, believed[other]) * value / before
    return found
