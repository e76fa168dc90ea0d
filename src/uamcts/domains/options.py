"""Checks of the options of domains: an error names the argument, its value and the remedy."""

from __future__ import annotations

import operator
from collections.abc import Iterable

import numpy as np

from uamcts.arguments import real, whole


def line(argument: str, values: Iterable[int], length: int) -> tuple[int, ...]:
    """`values` as distinct places 0 .. length - 1, or an error that names the argument."""
    try:
        places = tuple(operator.index(value) for value in values)
    except TypeError:
        raise TypeError(
            f"{argument} is {values!r}; give a list of whole numbers, for example {argument}=[2, 4]"
        ) from None
    for place in places:
        if not 0 <= place < length:
            raise ValueError(f"{argument} holds {place}; places run from 0 to {length - 1}")
    return tuple(sorted(set(places)))


def share(argument: str, value: object, of: str) -> float:
    """`value` as a number from 0 to 1, or an error that names the argument."""
    return real(argument, value, f"it is a share of {of}, a number between 0 and 1", lambda number: 0 <= number <= 1)


def generator(seed: int) -> np.random.Generator:
    """NumPy's generator of a `seed` that is a whole number, so that the same call draws the same world."""
    return np.random.default_rng(whole("seed", seed, 0))


def broken_places(
    usual: Iterable[int], places: range, broken: Iterable[int] | None, severity: float | None, seed: int
) -> Iterable[int]:
    """Where a game is broken: at `broken`, at a share `severity` of its `places`, or, given neither, where `usual`.

    The broken places of a severity are the first so many of one order of all, drawn from `seed`: with the same seed
    those of a lower severity are among those of a higher one.
    """
    if severity is None:
        return usual if broken is None else broken
    if broken is not None:
        raise ValueError(f"broken is {broken!r} and severity is {severity}; give one of the two")
    number = round(share("severity", severity, f"{len(places)} places") * len(places))
    order = generator(seed).permutation(np.array(places))
    return [int(place) for place in order[:number]]


def difference_mask(first: int | np.integer, second: int | np.integer, count: int) -> np.ndarray:
    """Which of the lowest `count` bits of two words differ, [count]."""
    differences = np.uint32(first) ^ np.uint32(second)
    return np.asarray(differences >> np.arange(count, dtype=np.uint32) & 1 == 1)
