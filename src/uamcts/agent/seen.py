"""The experience of an agent as a table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from uamcts.agent.backend import Backend


class SeenTransition(NamedTuple):
    """A real transition that an agent has observed."""

    state: Any
    action: Any
    next_state: Any
    reward: float | None
    """None if it was not told."""
    terminal: bool | None
    times: int
    """How often it was seen; the outcome is the latest."""
    error: float
    """U: how wrong the corrected model is about it, on average."""


def seen_transitions(backend: Backend) -> list[SeenTransition]:
    """The transitions that an agent keeps, the oldest first."""
    rows, measure = getattr(backend, "experience", None), getattr(backend, "measure", None)
    if rows is None or measure is None:
        raise TypeError("the paper's agent keeps no transitions; use uamcts.Agent")
    backend.planner.read_raw(rows)  # type: ignore[attr-defined]
    errors, found = rows.uncertainties(measure), []
    for place in np.argsort(rows.column("last"), kind="stable").tolist():
        if rows.raw[place] is not None:
            (state, action, after), real = rows.raw[place], rows.outcome("real", place)
            times, error = int(rows.rows["times"][place]), float(errors[place])
            found.append(SeenTransition(state, action, after, real.reward, real.terminal, times, error))
    return found
