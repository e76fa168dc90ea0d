"""What a backend of a simulator carries between a search and a real transition."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from uamcts.agent.backend import Guides, Plan
from uamcts.agent.chance import RealOutcome
from uamcts.agent.experience import Row
from uamcts.agent.simulator_probe import Tried


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
FOLLOW = 0.9
"""follow of trees. In a deterministic simulator the best return that was found can be had, and random actions are far
from it: their mean shies away from whatever most sequences of actions spoil.

It is left at 0 where all that pays is to go on, as with a pole on a cart: the best return is that of falling beyond the
horizon, from any state in which that is possible at all, and the mean says how easy it is.
"""
MEANS = {"follow": 0.0}


class Searching(NamedTuple):
    """How an agent decides between a tree and a graph, and whether it goes on from its last search."""

    chooses: bool
    """Whether it searches a graph where states recur; else what `config.graph` says counts."""
    reuses: bool
    trees: Mapping[str, float] = MappingProxyType({})
    """Settings of trees that graphs do not share."""
    draws_first: bool = False
    """Whether it draws for every search of a tree which action is tried first."""

    def settings(self, graph: bool, survival: bool, seed: int, number: int, num_actions: int) -> dict[str, Any]:
        """What changes for a search, which has a number; `survival` says whether all that pays is to go on."""
        trees = {name: value for name, value in self.trees.items() if not survival or name not in MEANS}
        changed: dict[str, Any] = {"graph": graph, **(MEANS if graph else trees)}
        if not graph and self.draws_first:
            changed["first"] = int(np.random.default_rng([seed, number]).integers(num_actions))
        return changed


def settings_of_trees(given: Collection[str], guides: Guides) -> dict[str, float]:
    """What an agent sets for trees, unless it was `given`."""
    settings = {}
    if guides.prior is None:
        settings["c"] = TREE_C
    if guides.policy is None and guides.value is None and guides.prior is None:
        settings["follow"] = FOLLOW
    return {name: value for name, value in settings.items() if name not in given}


class Previous(NamedTuple):
    """The last search, to go on from."""

    plan: Plan
    steps_left: int | None

    @property
    def carries_actions(self) -> bool:
        """Whether all that the next search takes over is a sequence of actions to try, whatever the model says now."""
        sequence = getattr(self.plan, "sequence", None)
        return sequence is not None and len(sequence) > 0

    def leads_to(self, steps_left: int | None) -> bool:
        """Whether its values mean the same in a search with so many steps left."""
        return self.carries_actions or steps_left == (None if self.steps_left is None else self.steps_left - 1)


def explain_recurrence(found: Tried) -> str:
    """Why an agent has searched a graph or a tree."""
    tried = f"{found.known} of {found.steps} different steps that were tried led to states that were known already"
    if found.recurs:
        return f"equal states share a node: {tried} (graph=False searches a tree)"
    return f"every path has its own nodes: {tried} (graph=True lets equal states share a node)"
