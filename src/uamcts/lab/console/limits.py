"""Checks of command-line values that are made before anything is computed or written. Imports nothing heavy."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterable, Mapping
from typing import Any

LARGEST_SEED = 2**32 - 1
"""JAX reads 32 bits of a seed: a larger or a negative one would silently repeat the runs of another seed."""
LIMITS = {
    "iterations": 1_000_000,
    "runs": 1_000_000,
    "steps": 10_000_000,
    "interval": 2**31 - 1,
    "minibatches": 10_000_000,
    "lanes": 10_000_000,
    "delay": 3600.0,
    "seconds": 3600.0,
}
"""The greatest value of each option that decides how much memory or time is taken."""
ONLY_IN = {
    "online": ("learner", "steps", "interval", "minibatches"),
    "offline": ("tau", "iterations"),
}
"""The options of `run` that only one scenario reads."""
PACKAGES = {
    "typer": "typer", "rich": "rich", "matplotlib": "matplotlib", "PIL": "pillow", "scipy": "scipy",
    "pyarrow": "pyarrow",
}  # fmt: skip
"""What the command line needs beside the library: modules, and the packages that hold them."""


def check_seed(seed: int) -> None:
    """Refuses a seed that would repeat another one's runs."""
    if not 0 <= seed <= LARGEST_SEED:
        raise ValueError(f"seed is {brief(seed)}; it must be a whole number between 0 and {LARGEST_SEED}")


def check_size(name: str, value: float | None, least: float = 1) -> None:
    """Refuses a value of an option in `LIMITS` beyond its limit; None is an option that was not given."""
    if value is not None and not least <= value <= LIMITS[name]:
        raise ValueError(f"{name} is {brief(value)}; it must be between {least:g} and {_plain(LIMITS[name])}")


def check_sizes(**values: float | None) -> None:
    """`check_size` of several options."""
    for name, value in values.items():
        check_size(name, value)


def check_search_numbers(exploration: Iterable[float | None], taus: Iterable[float | None]) -> None:
    """Refuses values of c and tau that no search takes."""
    for c in exploration:
        if c is not None and not 0 <= c < math.inf:
            raise ValueError(f"c is {c}; it must be a finite number of at least 0")
    for tau in taus:
        if tau is not None and not tau > 0:
            raise ValueError(f"tau is {tau}; it must be above 0 (infinity turns the adaptation off)")


def check_scenario(scenario: str, given: Mapping[str, Any]) -> None:
    """Refuses an unknown scenario, and options that the chosen one would ignore."""
    if scenario not in ONLY_IN:
        raise ValueError(f"scenario is {scenario!r}; there are online and offline")
    (other,) = (one for one in ONLY_IN if one != scenario)
    for name in ONLY_IN[other]:
        value = given.get(name)
        if value:
            words = ", ".join(map(str, value)) if isinstance(value, list) else value
            raise ValueError(
                f"{name} is {brief(words)}, which --scenario {scenario} does not read; "
                f"leave --{name} out, or add --scenario {other}"
            )


def missing_packages(purpose: str) -> str:
    """A sentence about the packages that are not installed and how to get them."""
    missing = [package for module, package in PACKAGES.items() if importlib.util.find_spec(module) is None]
    return f"{purpose} needs {', '.join(missing)}: pip install {' '.join(missing)}"


def brief(value: Any, longest: int = 60) -> str:
    """A value for a message, cut where it is long."""
    try:
        text = f"{value:g}" if isinstance(value, float) else str(value)
    except ValueError:  # an integer of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _plain(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"
