"""Rule sets by name. A new one is a file with a subclass of `Rules` and a line here."""

from __future__ import annotations

from uamcts.mcts.rules.base import Edges, PlainEdges, Rules
from uamcts.mcts.rules.pseudocode import Pseudocode
from uamcts.mcts.rules.released import Released
from uamcts.mcts.rules.trust import Trust

__all__ = ["RULES", "Edges", "PlainEdges", "Rules", "find_rules"]

RULES: dict[str, Rules] = {rules.name: rules for rules in (Released(), Pseudocode(), Trust())}


def find_rules(name: str) -> Rules:
    """The rule set with this name."""
    return RULES[name]
