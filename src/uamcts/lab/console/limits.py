"""Checks of command-line values, made before anything is computed or written.

The command line completes words in a shell, so this module imports the validators only when it validates.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

LARGEST_SEED = 2**32 - 1
"""JAX reads 32 bits of a seed: a larger or negative one would silently repeat the runs of another seed."""
LIMITS = {
    "iterations": 1_000_000,
    "runs": 1_000_000,
    "steps": 10_000_000,
    "interval": 2**31 - 1,
    "minibatches": 10_000_000,
    "batch": 10_000_000,
}
"""The largest values of the options that decide how much memory or time is needed."""
LONGEST_WAIT = 3600.0
"""The largest value of the options that are seconds."""
ONLY_IN = {
    "online": ("learner", "steps", "interval", "minibatches"),
    "offline": ("tau", "iterations", "graph", "steps-left"),
}
"""The options of `uamcts run` that only one scenario reads."""
PACKAGES = {
    "typer": "typer", "rich": "rich", "matplotlib": "matplotlib", "PIL": "pillow", "scipy": "scipy",
    "pyarrow": "pyarrow", "jinja2": "jinja2",
}  # fmt: skip
"""The modules that the command line needs in addition to the library, and the packages that contain them."""


def check_seed(seed: int) -> None:
    """Raises a ValueError for a seed that would repeat the runs of another one."""
    from uamcts.arguments import whole

    whole("seed", seed, 0, LARGEST_SEED)


def check_sizes(**values: int | None) -> None:
    """Raises a ValueError if an option is below 1 or above its limit. None means that it was not given."""
    from uamcts.arguments import whole

    for name, value in values.items():
        if value is not None:
            whole(name, value, 1, LIMITS[name])


def check_seconds(name: str, value: float, least: float = 0.0) -> None:
    """Raises a ValueError if a time in seconds is below `least` or above an hour."""
    from uamcts.arguments import real

    remedy = f"it must be between {least:g} and {LONGEST_WAIT:g} seconds"
    real(name, value, remedy, lambda seconds: least <= seconds <= LONGEST_WAIT)


def check_search_numbers(exploration: Iterable[float | None], taus: Iterable[float | None]) -> None:
    """Raises a ValueError if a value of c or tau is one that no search accepts."""
    for c in exploration:
        if c is not None and not 0 <= c < math.inf:
            raise ValueError(f"c is {c}; it must be a finite number of at least 0")
    for tau in taus:
        if tau is not None and not tau > 0:
            raise ValueError(f"tau is {tau}; it must be above 0 (infinity turns the adaptation off)")


def check_scenario(scenario: str, given: Mapping[str, Any]) -> None:
    """Raises a ValueError for an unknown scenario, and for options that the scenario would ignore."""
    if scenario not in ONLY_IN:
        raise ValueError(f"scenario is {scenario!r}; give {' or '.join(ONLY_IN)}")
    (other,) = (one for one in ONLY_IN if one != scenario)
    unread = {name: given.get(name) for name in ONLY_IN[other]}
    refuse_unread(f"scenario {scenario}", unread, f", or add --scenario {other}")


def refuse_unread(reader: str, given: Mapping[str, Any], remedy: str = "") -> None:
    """Raises a ValueError for the first option that was given although `reader`, an option, does not read it."""
    from uamcts.arguments import shorten

    for name, value in given.items():
        if value:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            raise ValueError(
                f"{name} is {shorten(text, 60)}, which --{reader} does not read; leave --{name} out{remedy}"
            )


def stop(stored: str = "") -> NoReturn:
    """Ends the process after Ctrl-C, with one line and the usual status.

    It does not wait for what another thread computes or compiles. Python would wait for the one and may crash while the
    other goes on.
    """
    print(f"uamcts: stopped{stored}", file=sys.stderr, flush=True)
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(130)


def missing_packages(purpose: str) -> str:
    """A sentence that names the packages that are not installed and how to install them."""
    missing = [package for module, package in PACKAGES.items() if importlib.util.find_spec(module) is None]
    command = f"pip install {' '.join(missing)}"
    return f"{purpose} needs {', '.join(missing)}: {command}, or in a checkout pip install '.[lab]'"
