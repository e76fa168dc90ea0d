"""What the inspector reads from a search, whichever engine made it and whether it is a tree or a graph.

A view names the places of a search by handles and gives the branches at each: one for every action, and, where an
action has several outcomes, one for every outcome below it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import jax
import numpy as np

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.graph.graph import END, Graph
from uamcts.mcts.graph.graph import ROOT as GRAPH_ROOT
from uamcts.mcts.rules import find_rules
from uamcts.mcts.search import first_block
from uamcts.mcts.tree import Tree
from uamcts.types import PyTree


@dataclass
class Branch:
    """An action at a place of a search, or one of its outcomes."""

    action: int
    """The number of the action; its place among the siblings, if actions are continuous."""
    visits: float
    value: float = math.nan
    """The reward of the step and what follows it; NaN if it is not known."""
    doubt: float = 0.0
    """U of the step."""
    keep: float = 1.0
    deleted: bool = False
    ends: bool = False
    """Whether the episode is over there."""
    chance: float = math.nan
    """The probability of an outcome; NaN for an action."""
    below: Hashable = None
    """The handle of what lies below it; None if there is nothing."""


@dataclass
class BelievedOutcome:
    """What the search believed to follow a step."""

    chance: float
    state: PyTree
    """None if the search does not keep it."""
    reward: float
    terminal: bool


class View(Protocol):
    """A search as the inspector sees it."""

    kind: str
    """`tree` or `graph`."""
    root: Hashable
    visits: float
    """Those of the root."""
    iterations: int
    """How many there were; on a graph, how many expansions."""
    ends: Sequence[Hashable]
    """The handles of the places at which the iterations ended their paths; empty where nobody knows."""

    def branches(self, handle: Hashable) -> Sequence[Branch]:
        """What can be done at a place; nothing where it is not expanded."""
        ...

    def born(self, handle: Hashable) -> int:
        """The iteration, from 1 on, that gave a place its branches; 0 if it had them before the first."""
        ...

    def state(self) -> PyTree:
        """The state of the root."""
        ...

    def outcomes(self, action: int) -> list[BelievedOutcome]:
        """The outcomes of an action at the root."""
        ...


def with_outcomes(branch: Branch, outcomes: Sequence[Branch], handle: Hashable) -> Branch:
    """An action with its outcomes: a single one is not worth a level of its own."""
    if len(outcomes) == 1:
        branch.below, branch.ends = outcomes[0].below, outcomes[0].ends
    elif outcomes:
        branch.below = handle
    return branch


class CompiledTreeView:
    """The tree of `uamcts.search`. Handles are (block, place); those of an action's outcomes have a third part."""

    kind = "tree"

    def __init__(self, tree: Tree, config: SearchConfig, ends: jax.Array | None = None):
        self._tree, self._config, rules = tree, config, find_rules(config.rules)
        arrays: Tree = jax.device_get(tree._replace(state=None))
        visits, total, weight = (np.asarray(arrays.stats[..., part], np.float64) for part in range(3))
        values = rules.value(np.maximum(visits, 1.0), total, weight)
        chance = arrays.chance
        self._slots = arrays.slots
        rewards = np.asarray(arrays.reward, np.float64)
        if chance is not None:
            counts, each = (part.reshape(*visits.shape, -1) for part in (np.asarray(chance.visits), rewards))
            rewards = (counts * each).sum(-1) / np.maximum(counts.sum(-1), 1.0)
        self._lists = {
            "visits": visits.tolist(), "value": self._values(values, rewards, np.asarray(arrays.keep)).tolist(),
            "exists": arrays.exists.tolist(), "doubt": arrays.uncertainty.tolist(), "keep": arrays.keep.tolist(),
        }  # fmt: skip
        self._children, self._ends = arrays.children.tolist(), arrays.terminal.tolist()
        self._chance = None if chance is None else (chance.probability.tolist(), chance.visits.tolist())
        self.root: Hashable = (0, 0)
        self.visits = visits[0, 0]
        places = [] if ends is None else np.asarray(ends).tolist()
        ended = [divmod(place, arrays.children.shape[1]) for place in places]
        self.ends: Sequence[Hashable] = ended
        self.iterations = len(ended) or config.iterations
        first = first_block(rules)
        reused = visits.shape[0] == first + 2 * self.iterations + 1
        before = first + self.iterations * reused
        """Blocks below this one were there before the first iteration."""
        self._born: dict[int, int] = {}
        for number, (block, _) in enumerate(ended, 1):  # an iteration that expands ends in the new block
            self._born.setdefault(block, number if block >= before else 0)

    def _values(self, values: np.ndarray, rewards: np.ndarray, keep: np.ndarray) -> np.ndarray:
        """r + gamma value, with what a rule set takes off."""
        pieces = find_rules(self._config.rules).pieces(rewards, np.asarray(keep, np.float64), self._config)
        return np.asarray(np.min([slope * values + offset for slope, offset in pieces], axis=0))

    def branches(self, handle: Hashable) -> Sequence[Branch]:
        assert isinstance(handle, tuple)  # noqa: S101 (it is one of this view)
        if len(handle) == 3:
            return self._outcomes(*handle[:2])
        block = self._children[handle[0]][handle[1]]
        return [] if block == 0 else list(self._actions(block))

    def _actions(self, block: int) -> Iterator[Branch]:
        found = {name: rows[block] for name, rows in self._lists.items()}
        for action, visits in enumerate(found["visits"]):
            deleted = not found["exists"][action]
            if deleted and not found["doubt"][action] > 0:
                continue  # not legal
            value = found["value"][action] if visits else math.nan
            branch = Branch(action, visits, value, found["doubt"][action], found["keep"][action], deleted)
            if self._chance is None:
                branch.below, branch.ends = (block, action), self._ends[block][action]
            else:
                with_outcomes(branch, self._outcomes(block, action), (block, action, "outcomes"))
            yield branch

    def _outcomes(self, block: int, action: int) -> list[Branch]:
        assert self._chance is not None  # noqa: S101 (asked for in a random model only)
        found, keep = [], self._lists["keep"][block][action]
        for place in range(action * self._slots, (action + 1) * self._slots):
            chance, visits = (part[block][place] for part in self._chance)
            if chance > 0 and (visits or self._slots == 1):
                ends = self._ends[block][place]
                found.append(Branch(action, visits, keep=keep, ends=ends, chance=chance, below=(block, place)))
        return found

    def born(self, handle: Hashable) -> int:
        assert isinstance(handle, tuple)  # noqa: S101
        block = handle[0] if len(handle) == 3 else self._children[handle[0]][handle[1]]
        return self._born.get(int(block), 0)

    def state(self) -> PyTree:
        return jax.tree.map(lambda leaf: np.asarray(leaf[0, 0]), self._tree.state)

    def outcomes(self, action: int) -> list[BelievedOutcome]:
        block = self._children[0][0]
        if block == 0:
            return []
        places = range(action * self._slots, (action + 1) * self._slots)
        reward = np.asarray(self._tree.reward[block]).tolist()
        chances = [1.0] * len(reward) if self._chance is None else self._chance[0][block]
        return [
            BelievedOutcome(chances[place], self._state(block, place), reward[place], self._ends[block][place])
            for place in places
            if chances[place] > 0
        ]

    def _state(self, block: int, place: int) -> PyTree:
        return jax.tree.map(lambda leaf: np.asarray(leaf[block, place]), self._tree.state)


class CompiledGraphView:
    """The graph of `uamcts.search`. The handle of a place is its node; an action's outcomes are (row, action)."""

    kind = "graph"

    def __init__(self, graph: Graph, config: SearchConfig):
        self._graph = graph
        kept = graph._replace(state=None, table=None)  # type: ignore[arg-type]  # the largest parts are not read
        arrays: Graph = jax.device_get(kept)
        self._row = arrays.row.tolist()
        names = ("exists", "uncertainty", "keep", "quality", "visits", "child", "probability", "reward")
        self._rows = {name: getattr(arrays, name)[: max(1, int(arrays.rows))].tolist() for name in names}
        self.root: Hashable = GRAPH_ROOT
        self.visits = float(np.sum(arrays.visits[0]))
        iterations = arrays.owner.size // 2 if arrays.owner.size == 2 * config.iterations else arrays.owner.size
        self._before = max(0, int(arrays.rows) - iterations)
        self.iterations = int(arrays.rows) - self._before
        self.ends: Sequence[Hashable] = ()

    def branches(self, handle: Hashable) -> Sequence[Branch]:
        if isinstance(handle, tuple):
            return self._outcomes(*handle)
        assert isinstance(handle, int)  # noqa: S101 (it is one of this view)
        row = self._row[handle]
        if row < 0:
            return []
        found = []
        for action, exists in enumerate(self._rows["exists"][row]):
            if exists:
                value, doubt, keep = (self._rows[name][row][action] for name in ("quality", "uncertainty", "keep"))
                branch = Branch(action, sum(self._rows["visits"][row][action]), value, doubt, keep)
                found.append(with_outcomes(branch, self._outcomes(row, action), (row, action)))
        return found

    def _outcomes(self, row: int, action: int) -> list[Branch]:
        names = ("child", "visits", "probability")
        found: dict[int, Branch] = {}
        keep = self._rows["keep"][row][action]
        for child, visits, chance in zip(*(self._rows[name][row][action] for name in names), strict=True):
            if chance > 0:
                one = found.setdefault(
                    child, Branch(action, 0.0, keep=keep, ends=child == END, chance=0.0, below=child)
                )
                one.visits, one.chance = one.visits + visits, one.chance + chance
        return list(found.values())

    def born(self, handle: Hashable) -> int:
        row = handle[0] if isinstance(handle, tuple) else self._row[handle]  # type: ignore[call-overload]
        return max(0, int(row) + 1 - self._before)

    def state(self) -> PyTree:
        return self._state(GRAPH_ROOT)

    def outcomes(self, action: int) -> list[BelievedOutcome]:
        if self._row[GRAPH_ROOT] != 0:
            return []
        parts = (self._rows[name][0][action] for name in ("child", "probability", "reward"))
        return [
            BelievedOutcome(chance, None if child == END else self._state(child), reward, child == END)
            for child, chance, reward in zip(*parts, strict=True)
            if chance > 0
        ]

    def _state(self, node: int) -> PyTree:
        return jax.tree.map(lambda leaf: np.asarray(leaf[node]), self._graph.state)
