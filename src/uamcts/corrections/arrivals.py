"""What is wrong about a state wherever one comes from: a hole, a toll, a wall, a trapdoor, an end that is none.

A fact is about one (state, action). But what a simulator gets wrong often belongs to the state that a step leads to:
who falls into a hole from the north would fall into it from the west. Where a real transition differs from what the
simulator believes, all other transitions that are believed to lead to the same state are expected to differ in the same
way, with a probability that is learned: at first 1/2, then by how often such an expectation has come true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, TypeAlias

from uamcts.corrections.journal import Journal
from uamcts.corrections.mixture import Mixture, Outcome, merge
from uamcts.corrections.python_facts import Glance, State

Place: TypeAlias = tuple[Hashable, int]
"""The key of a state, and an action."""
HALF = 1.0
"""What an expectation is worth at first: as if it had come true, and not, so many times."""
LEAST = 0.4
"""An expectation that comes true less often is given up."""
SPARE = 1000
"""How many numbers a glance may hold of states that are as believed by now, before it is made anew."""
LOCAL = 2.0
"""Transitions that the whole world is worth beside what was seen of one state."""
SAME = 1e-6
"""Rewards that differ by less, relative to the larger one, are the same."""


class Difference(NamedTuple):
    """How a transition differs from what is believed of it."""

    target: Hashable
    """Where it leads instead: the key of that state, None to where it should, or "stays"."""
    following: State
    """That state itself, if it is another one."""
    reward: float
    """What it pays more than is believed."""
    over: bool
    """Whether it ends the episode."""

    @property
    def kind(self) -> Hashable:
        """What tells it from others."""
        return self.target, round(self.reward, 6), self.over

    def is_like(self, other: Difference | None) -> bool:
        """Whether another difference has the same target, reward and end."""
        return other is not None and (self.target, self.reward, self.over) == (other.target, other.reward, other.over)

    @property
    def sort(self) -> int:
        """Which expectations come true as often: of rewards and ends, of walls, of places that lead elsewhere."""
        return 0 if self.target is None else 1 if self.target == STAYS else 2


STAYS = "stays"
SORTS = 3


def _kind_of(difference: Difference | None) -> Hashable:
    return None if difference is None else difference.kind


class Arrivals:
    """Differences by the state that a step is believed to lead to.

    Args:
        key: Makes a hashable key of a state.
        tells: Whether whole states are their keys: see `Glance`.
    """

    def __init__(self, key: Callable[[State], Hashable], tells: bool = False):
        self.key, self.glance = key, Glance(tells)
        """Tells without a key that a state is as believed."""
        self.by_state: dict[Hashable, dict[Place, Difference | None]] = {}
        """For the believed next state, all transitions that were seen; None for what was as believed. The inner
        dictionaries are replaced, never changed."""
        self.by_place: dict[Place, Hashable] = {}
        """The believed next state of every transition that was seen."""
        self.different: dict[Hashable, int] = {}
        """How many transitions differ, by the believed next state; nothing where none does."""
        self.tested: tuple[int, ...] = (0,) * (2 * SORTS)
        """How often an expectation of each sort has come true, and how often it has not."""

    def twin(self, key: Callable[[State], Hashable]) -> Arrivals:
        """A copy that goes on by itself, as long as every change of its tables is written to a journal."""
        other = Arrivals(key)
        other.__dict__.update(self.__dict__)
        return other

    def find(
        self, place: Place, believed: Sequence[tuple[float, Outcome]], real: Outcome
    ) -> tuple[Hashable, Difference | None]:
        """The believed next state of a transition that was seen, and how it differs; (None, None) if that is not known.

        Of a random model, only what leads where it may tells anything.
        """
        arrived, possible = self.key(real[0]), [one for chance, one in believed if chance > 0.0]
        same = [one for one in possible if self.key(one[0]) == arrived]
        if same:
            pays = {one[1] for one in same}
            if any(abs(real[1] - one[1]) <= SAME * max(1.0, abs(one[1])) and real[2] == one[2] for one in same):
                return arrived, None
            if len(pays) > 1 or len({bool(one[2]) for one in same}) > 1:
                return None, None
            return arrived, Difference(None, None, real[1] - same[0][1], real[2])
        if len({self.key(one[0]) for one in possible}) > 1:
            return None, None
        said, target = possible[0], STAYS if arrived == place[0] else arrived
        following = None if target is STAYS else real[0]
        return self.key(said[0]), Difference(target, following, real[1] - said[1], real[2])

    def add(
        self, place: Place, believed: Sequence[tuple[float, Outcome]], real: Outcome, journal: Journal, new: bool
    ) -> bool:
        """Adds what was seen of a transition, `new` if for the first time. Returns whether expectations change."""
        state, difference = self.find(place, believed, real)
        if place in self.by_place and self._holds(state, place, difference):
            return False
        elsewhere = self._from_elsewhere(state, place[0]) if new and state in self.different else {}
        if any(one is not None for one in elsewhere.values()):
            expected, _ = self._most_common(elsewhere)
            came_true = difference is not None and difference.kind == expected.kind
            place_of = 2 * expected.sort + (not came_true)
            self.tested = tuple(count + (number == place_of) for number, count in enumerate(self.tested))
        known = self.by_state.get(state, {}) if state is not None else {}
        if place in known and _kind_of(known[place]) == _kind_of(difference):
            return False  # seen before: searches go on from what they know
        before = self.drop(place, journal)
        if state is None:
            return before
        here = {**known, place: difference}
        journal.put(self.by_state, state, here)
        journal.put(self.by_place, place, state)
        self._count(state, here, journal)
        return before or difference is not None or state in self.different

    def _holds(self, state: Hashable, place: Place, difference: Difference | None) -> bool:
        """Whether this difference was already seen of a transition."""
        if self.by_place[place] != state:
            return False
        before = self.by_state[state][place]
        return before is difference or (before is not None and before.is_like(difference))

    def drop(self, place: Place, journal: Journal) -> bool:
        """Forgets a transition. Returns whether expectations change."""
        state = self.by_place.get(place, self)
        if state is self:
            return False
        differed = state in self.different
        here = {one: difference for one, difference in self.by_state[state].items() if one != place}
        journal.drop(self.by_place, place)
        if here:
            journal.put(self.by_state, state, here)
        else:
            journal.drop(self.by_state, state)
        self._count(state, here, journal)
        return differed

    def _count(self, state: Hashable, here: dict[Place, Difference | None], journal: Journal) -> None:
        count = sum(difference is not None for difference in here.values())
        if count:
            self.glance = self.glance.renew(self.different, 2 * len(self.different) + SPARE)
            self.glance.add(state)
            journal.put(self.different, state, count)
        elif state in self.different:
            journal.drop(self.different, state)

    def rate(self, sort: int) -> float:
        """How often an expectation of a sort comes true."""
        true, false = self.tested[2 * sort : 2 * sort + 2]
        return (true + HALF) / (true + false + 2.0 * HALF)

    @property
    def expects(self) -> bool:
        """Whether anything may be expected at all."""
        return bool(self.different) and any(self.rate(sort) >= LEAST for sort in range(SORTS))

    def _most_common(self, here: dict[Place, Difference | None]) -> tuple[Difference, int]:
        """The most common difference, the latest of its kind, and how often it was seen."""
        found = [one for one in here.values() if one is not None]
        kind, times = Counter(one.kind for one in found).most_common(1)[0]
        return next(one for one in reversed(found) if one.kind == kind), times

    def _from_elsewhere(self, state: Hashable, source: Hashable) -> dict[Place, Difference | None]:
        """What was seen of transitions to a state that start anywhere but in one."""
        return {place: one for place, one in self.by_state[state].items() if place[0] != source}

    def expected(self, state: Hashable, source: Hashable) -> tuple[Difference, float] | None:
        """What is expected of a transition from `source` that should lead to a state, with its probability, or None.

        What was seen of other transitions from the same place is left out: an error of theirs belongs to their actions
        rather than to the state that they lead to, and what was seen of this one is for facts to say.
        """
        if state not in self.different:
            return None
        here = self._from_elsewhere(state, source)
        if all(one is None for one in here.values()):
            return None
        best, times = self._most_common(here)
        rate, others = self.rate(best.sort), len(here) - times
        return None if rate < LEAST else (best, (LOCAL * rate + times - 1) / (LOCAL + times - 1 + others))

    def correct(self, state: State, outcome: Outcome) -> list[tuple[float, Outcome]] | None:
        """What is expected instead of an outcome that a model predicts for a state; None if that outcome is."""
        if self.glance.excludes(outcome[0]):
            return None
        leads_to = self.key(outcome[0])
        found = self.expected(leads_to, self.key(state)) if leads_to in self.different else None
        if found is None:
            return None
        (target, following, reward, over), chance = found
        instead = state if target == STAYS else outcome[0] if target is None else following
        return [(1.0 - chance, outcome), (chance, (instead, outcome[1] + reward, over))]

    def correct_step(self, state: State, outcome: Outcome) -> Outcome | Mixture:
        """The same for a deterministic model, as something to plan with."""
        found = self.correct(state, outcome)
        return outcome if found is None else Mixture(1.0, merge([(1.0, found)], self.key), [])

    def correct_all(self, state: State, outcomes: Sequence[tuple[float, Outcome]]) -> Sequence[tuple[float, Outcome]]:
        """The same for all outcomes that a model lists."""
        parts = [(chance, self.correct(state, outcome) or [(1.0, outcome)]) for chance, outcome in outcomes]
        return outcomes if all(len(found) == 1 for _, found in parts) else merge(parts, self.key)

    def describe(self) -> list[str]:
        """What was learned, in plain words."""
        used = [2 * sort for sort in range(SORTS) if self.rate(sort) >= LEAST]
        true, false = (sum(self.tested[place + other] for place in used) for other in (0, 1))
        if not self.different or not true:
            return []
        count = len(self.different)
        states = "one state is" if count == 1 else f"{count} states are"
        entered = "it is entered" if count == 1 else "they are entered"
        return [f"{states} not as believed, from wherever {entered} (true in {true} of {true + false} cases so far)"]
