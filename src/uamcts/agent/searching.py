"""What a backend of a simulator carries between a search and a real transition."""

from __future__ import annotations

from typing import NamedTuple

from uamcts.agent.backend import Plan
from uamcts.agent.chance import RealOutcome
from uamcts.agent.experience import Row
from uamcts.agent.simulator_probe import Recurrence


class Compared(NamedTuple):
    """A real transition beside what the simulator predicts."""

    row: Row
    actual: RealOutcome
    paid: tuple[float, bool]
    """Reward and end, as predicted where they are unknown."""
    whole: bool
    """Whether reward and end are known: given, or predicted together with the very state that followed."""


class Searching(NamedTuple):
    """How an agent decides between a tree and a graph, and whether it goes on from its last search."""

    chooses: bool
    """Whether it searches a graph where states recur; else what `config.graph` says counts."""
    reuses: bool


class Previous(NamedTuple):
    """The last search, to go on from."""

    plan: Plan
    steps_left: int | None

    def leads_to(self, steps_left: int | None) -> bool:
        """Whether its values mean the same in a search with so many steps left."""
        return steps_left == (None if self.steps_left is None else self.steps_left - 1)


def explain_recurrence(found: Recurrence) -> str:
    """Why an agent has searched a graph or a tree."""
    tried = f"{found.known} of {found.steps} different steps that were tried led to states that were known already"
    if found.recurs:
        return f"equal states share a node: {tried} (graph=False searches a tree)"
    return f"every path has its own nodes: {tried} (graph=True lets equal states share a node)"
