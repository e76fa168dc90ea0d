"""Actions that do something else than the simulator believes: a slip, a swapped pair, a motor that often fails.

Where a deterministic simulator is wrong, the world may have done what the simulator believes of another action. For
every action, this counts how often each action was the effective one. If these counts predict new transitions better
than the simulator and its facts do, searches plan with chance: an action has the effect of each action with these
probabilities. It may also have no effect: where the state did not change and no action explains that, the action may
be dead, always or by chance (`uamcts.corrections.idle_actions`).

Three levels share what is seen. How often action a acts as b is estimated from a itself; until a was taken often, from
all actions that lie as far from each other as a and b, since simulators often number directions in a circle; and until
then from all actions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from uamcts.arguments import real
from uamcts.corrections.idle_actions import IdleActions
from uamcts.corrections.python_facts import name_action
from uamcts.corrections.slippery_places import SlipperyPlaces, rescale

MOST_ACTIONS = 32
"""Simulators with more actions are left alone: every transition would take as many steps."""
MEMORY = 200.0
"""Transitions that counts and scores remember, about."""
BELIEVED, LIKE, OWN = 2.0, 4.0, 8.0
"""Transitions that each level is worth to the next: the simulator to all actions, these to those that are as far
apart, and these to a single action."""
FACTS = 2.0
"""Transitions that a prediction is worth beside what was seen of the same (state, action)."""
OTHERS = 2.0
"""What happens where the simulator is wrong is one of so many outcomes for every action, if nothing explains it."""
MARGIN, FEWEST, VARIED, PURE = 4.0, 3, 2.0, 0.8
"""Nats by which it must be ahead of the simulator; transitions that other actions must have explained, and that must
have come out in several ways, unless this share of every action's are explained by one and the same."""
DEAD = 5.0
"""After so many tries without effect, and hardly any with one, an action is dead; before, there may be a wall."""
NEGLIGIBLE, NEGLIGIBLE_NEAR = 0.02, 0.002
"""Less probable actions are not planned with; the second where they may be more probable in some places."""
CHANGE = 0.05
"""By how much a probability must change before searches plan with another one."""


class EffectiveActions(NamedTuple):
    """Discounted counts of which action each action acted as. Replaced, never changed."""

    counts: np.ndarray
    """[taken, effective]; what several actions explain is shared between them."""
    unexplained: float = 0.0
    """Transitions that no action explains."""
    wrong: float = 0.0
    """Transitions that the simulator has predicted wrongly."""
    explained: float = 0.0
    """Those of them that led to another state, as another action would. If nothing happens, this may be a wall."""
    varied: float = 0.0
    """Those of which an earlier one from the same state, with the same action, had another outcome."""
    ahead: float = 0.0
    """By how many nats these counts have predicted better than the simulator."""
    places: SlipperyPlaces = SlipperyPlaces()
    """Where actions slip more often than elsewhere."""
    idle: IdleActions = IdleActions()
    """How often each action had no effect."""
    planned: np.ndarray | None = None
    """The probabilities that searches plan with, [taken, effective]; None while the simulator is believed. A further
    column at the end, where there is one, says how often nothing happens."""

    @classmethod
    def for_actions(cls, count: int) -> Self:
        """Those of a simulator of which nothing was seen."""
        return cls(np.zeros((count, count)))

    def add(
        self, action: int, matches: Sequence[int], seen: tuple[int, int], moved: bool = True,
        point: np.ndarray | None = None, reward: float = 0.0,
    ) -> Self:  # fmt: skip
        """The counts after a transition.

        Args:
            action: The action taken.
            matches: The actions that do what happened, according to the simulator; the number of actions if nothing
                happened and none of them does nothing.
            seen: How often this transition was seen before, and how often with this outcome.
            moved: Whether it led to another state, or stayed in its state by what is known to be chance.
            point: The features of the state, if slips may depend on them.
            reward: What it paid.
        """
        keep, count = 1.0 - 1.0 / MEMORY, len(self.counts)
        idle, right = list(matches) == [count], action in matches
        if idle and not moved and seen[0] == seen[1] > 0:  # a wall that is met again says nothing about other places
            return self
        row = self.effects(idle)[action]
        share = row[list(matches)] if matches else np.zeros(0)
        weight = keep * self.counts
        if matches and not idle:
            weight[action, list(matches)] += share / share.sum()
        slips, missed = (self.wrong + 0.5) / (self._total + 1.0), self.missed
        others = OTHERS * count
        simulator = 1.0 - slips if right else slips / others
        ours = (1.0 - missed) * float(share.sum()) if matches else missed / others
        places, slipped = self.places, min(max(1.0 - float(row[action] / share.sum()) if right else 1.0, 0.0), 1.0)
        if matches and point is not None:
            near = (1.0 - missed) * self._chance_near(row, action, matches, point)
            gained = math.log(_with_facts(near, *seen) / _with_facts(ours, *seen))
            places, ours = places.add(point, slipped, gained, keep), near if places.used else ours
        nats = math.log(_with_facts(ours, *seen) / _with_facts(simulator, *seen))
        varied, counts_as_slip = keep * self.varied + (seen[1] < seen[0]), moved or (idle and self._is_dead(action))
        found = self._replace(
            counts=weight, varied=varied, unexplained=keep * self.unexplained + (not matches),
            wrong=keep * self.wrong + (not right),
            explained=keep * self.explained + (counts_as_slip and not right and bool(matches)),
            ahead=keep * self.ahead + nats, places=places, idle=self.idle.add(action, count, idle, reward, keep),
        )  # fmt: skip
        return found._decide(places.used and slipped > 0.5)

    def _chance_near(self, row: np.ndarray, action: int, matches: Sequence[int], point: np.ndarray) -> float:
        """How probable it is near a state that an action acts as one of some."""
        table = self.places.table() if self.places.slipped else None
        if table is None:
            return float(row[list(matches)].sum())
        near = rescale([(float(chance), other) for other, chance in enumerate(row)], action, table.odds(point))
        return sum(chance for chance, other in near if other in matches)

    @property
    def _total(self) -> float:
        return float(self.counts.sum()) + sum(self.idle.times) + self.unexplained

    def _is_dead(self, action: int) -> bool:
        """Whether an action nearly always had no effect, and often enough to rule out a wall."""
        times = self.idle.times[action] if self.idle.times else 0.0
        return times >= DEAD and times >= PURE * (times + float(self.counts[action].sum()))

    @property
    def missed(self) -> float:
        """The share of transitions that no action explains."""
        return (self.unexplained + 0.5) / (self._total + 1.0)

    def _decide(self, anew: bool) -> Self:
        """Plans with the counts where they are credibly ahead, and with the simulator where they are behind again.

        `anew`: whether something happened that places plan with.
        """
        behind = self.ahead <= 0.0 or (self.planned is None and (self.ahead < MARGIN or self.explained < FEWEST))
        if behind or not (self.varied >= VARIED or self._is_pure):
            return self._replace(planned=None)
        new = self.effects()
        new[new < (NEGLIGIBLE_NEAR if self.places.used else NEGLIGIBLE)] = 0.0
        new /= new.sum(axis=1, keepdims=True)
        if np.array_equal(new, np.eye(*new.shape)):
            return self._replace(planned=None)
        before = self.planned if self.planned is not None and self.planned.shape == new.shape else None
        same = not anew and before is not None and np.abs(new - before).max() < CHANGE
        return self if same else self._replace(planned=new)

    @property
    def _is_pure(self) -> bool:
        """Whether every action has acted as one and the same, nearly always: then there need not be chance.

        A wall that the simulator does not know of makes an action fail beside it, and nowhere else.
        """
        idle = np.array(self.idle.times or 0.0)
        totals = self.counts.sum(axis=1) + idle
        return bool(np.all(np.maximum(self.counts.max(axis=1), idle) >= PURE * totals))

    def effects(self, idle: bool = False) -> np.ndarray:
        """How probably each action acts as each; a last column is for no effect, if that was seen or `idle`."""
        acts = self.probabilities()
        if not self.idle.times and not idle:
            return acts
        nothing = self.idle.shares(self.counts.sum(axis=1))[:, None]
        return np.hstack([acts * (1.0 - nothing), nothing])

    def probabilities(self) -> np.ndarray:
        """How probably each action acts as each, [taken, effective]."""
        count = len(self.counts)
        stays = float(np.trace(self.counts)) + BELIEVED
        slips = float(self.counts.sum()) - stays + BELIEVED + 0.5
        base = np.full((count, count), slips / max(count - 1, 1))
        np.fill_diagonal(base, stays)
        base /= base.sum(axis=1, keepdims=True)
        apart = (np.arange(count) - np.arange(count)[:, None]) % count
        alike = np.bincount(apart.ravel(), self.counts.ravel(), count)[apart]
        like = (alike + LIKE * base) / (alike.sum(axis=1, keepdims=True) + LIKE)
        return np.asarray((self.counts + OWN * like) / (self.counts.sum(axis=1, keepdims=True) + OWN))

    def describe(self, names: Sequence[str]) -> list[str]:
        """What is planned with, in plain words."""
        if self.planned is None:
            return []
        taken = np.flatnonzero(self.counts.sum(axis=1) > 0.5)
        said = []
        for action in taken.tolist()[:4]:
            row = self.planned[action]
            order = [other for other in np.argsort(-row, kind="stable").tolist() if row[other] > 0.0]
            said_of = [name_action(one, names) if one < len(self.counts) else "nothing at all" for one in order[:4]]
            parts = ", ".join(f"{name} ({row[one]:.0%})" for name, one in zip(said_of, order, strict=False))
            said.append(f"{name_action(action, names)} acts as {parts}")
        if said and self.places.used:
            said.append("in some places more often than in others")
        return [f"effects of actions are corrected: {'; '.join(said)}"] if said else []

    def as_json(self) -> list[Any]:
        """All of it, to be saved."""
        planned = None if self.planned is None else self.planned.tolist()
        return [self.counts.tolist(), *self[1:-3], self.places.as_json(), [list(one) for one in self.idle], planned]

    @classmethod
    def from_json(cls, found: object, count: int) -> Self:
        """What `as_json` returned, for so many actions; raises a ValueError if it does not fit."""
        if not isinstance(found, list) or len(found) != len(cls._fields):
            raise ValueError("the effective actions are missing or do not fit")
        counts, *numbers, places, idle, planned = found
        tables = [None if one is None else np.array(one, float) for one in (counts, planned)]
        if tables[0] is None or any(
            one is not None
            and (one.shape not in ((count, count), (count, width)) or not np.isfinite(one).all() or (one < 0).any())
            for one, width in zip(tables, (count, count + 1), strict=True)
        ):
            raise ValueError("the effective actions are of another simulator")
        unexplained, wrong, explained, varied, ahead = (real("effective actions", one) for one in numbers)
        known = SlipperyPlaces.from_json(places)
        dead = IdleActions.from_json(idle, count)
        return cls(tables[0], unexplained, wrong, explained, varied, ahead, known, dead, tables[1])


def _with_facts(chance: float, times: int, same: int) -> float:
    """The probability of an outcome that was seen `same` of so many times."""
    return (FACTS * chance + same) / (FACTS + times)
