"""How a backend of a simulator searches, and what it carries from one search to the next."""

from __future__ import annotations

from typing import NamedTuple

from uamcts.agent.backend import Plan
from uamcts.agent.simulator_probe import Recurrence


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
