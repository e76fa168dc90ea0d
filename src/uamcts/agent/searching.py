"""What a backend of a simulator carries between a search and a real transition."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

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


TREE_C = 8.0
"""c of trees. Values on a graph are exact where a tree has means of a few random rollouts, whose noise selection would
take for differences between actions: a tree must explore more evenly."""


class Searching(NamedTuple):
    """How an agent decides between a tree and a graph, and whether it goes on from its last search."""

    chooses: bool
    """Whether it searches a graph where states recur; else what `config.graph` says counts."""
    reuses: bool
    tree_c: float | None = None
    """c of trees, if it is not that of graphs."""
    draws_first: bool = False
    """Whether it draws for every search of a tree which action is tried first."""

    def settings(self, graph: bool, seed: int, number: int, num_actions: int) -> dict[str, Any]:
        """What changes for a search, which has a number."""
        changed: dict[str, Any] = {"graph": graph}
        if not graph and self.tree_c is not None:
            changed["c"] = self.tree_c
        if not graph and self.draws_first:
            changed["first"] = int(np.random.default_rng([seed, number]).integers(num_actions))
        return changed


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
