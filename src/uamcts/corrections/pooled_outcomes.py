"""Outcomes that a random simulator does not list, expected wherever it lists the same.

A fact about one transition says that something happens there which the simulator holds impossible. If that is all that
is believed, every other transition looks better, until it was tried as well. But where chance decides about one part of
a state alone, such as the floor from which a lift is called, transitions are alike if the same values of that part are
listed for them. What was seen of these is pooled, and mixed with what is listed as if that were worth `WORTH`
transitions,

    P(value) = (WORTH * listed + times) / (WORTH + all times),

once a value that is not listed was seen in two places.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from uamcts.corrections.journal import Journal
from uamcts.corrections.mixture import Outcome
from uamcts.corrections.python_facts import Fact

WORTH = 2.0
"""Transitions that the listed probabilities are worth."""
PLACES = 2
"""In how many places an unlisted value must have been seen."""
MOST_PLACES = 200
"""Places that are pooled, the latest ones."""

Place = tuple[Hashable, int]


class Kind(NamedTuple):
    """What is listed: the part of the state that chance decides about, and its values."""

    part: Hashable
    values: frozenset[Any]


def parts_of(state: Any) -> dict[Any, Any]:
    """The parts of a state that can be exchanged one by one: of a tuple or a dataclass; nothing for other states."""
    if isinstance(state, tuple):
        return dict(enumerate(state))
    if dataclasses.is_dataclass(state) and not isinstance(state, type):
        return {field.name: getattr(state, field.name) for field in dataclasses.fields(state) if field.init}
    return {}


def exchange(state: Any, part: Any, value: Any) -> Any:
    """The state with another value of one part."""
    if not isinstance(state, tuple):
        return dataclasses.replace(state, **{part: value})
    if (fields := getattr(state, "_fields", None)) is not None:
        return type(state)(**{**dict(zip(fields, state, strict=True)), fields[part]: value})
    return (*state[:part], value, *state[part + 1 :])


def kind_of(outcomes: Sequence[tuple[float, Outcome]]) -> Kind | None:
    """What is listed; None unless the outcomes differ in one part of the state alone, and pay and end alike."""
    if len(outcomes) < 2 or len({(reward, bool(over)) for _, (_, reward, over) in outcomes}) > 1:
        return None
    found = [parts_of(state) for _, (state, _, _) in outcomes]
    if len({tuple(parts) for parts in found}) > 1:
        return None
    varied = [part for part in found[0] if any(parts[part] != found[0][part] for parts in found)]
    if len(varied) != 1:
        return None
    try:
        return Kind(varied[0], frozenset(parts[varied[0]] for parts in found))
    except TypeError:  # a part that cannot be hashed
        return None


class PooledOutcomes:
    """What was seen of transitions, by what is listed for them."""

    def __init__(self) -> None:
        self.seen: dict[Kind, dict[Place, Counter[Any]]] = {}
        self.used: dict[Kind, Counter[Any]] = {}
        """How often each value was seen where the same is listed, if unlisted ones were."""

    def add(self, place: Place, listed: Sequence[tuple[float, Outcome]], fact: Fact, journal: Journal) -> bool:
        """Takes in what was seen of a transition. Returns whether expectations change."""
        kind = kind_of(listed)
        if kind is None:
            return False
        usual, times = parts_of(listed[0][1][0]), Counter[Any]()
        for one in fact.outcomes.values():
            parts = parts_of(one.following)
            if parts.keys() == usual.keys() and all(parts[name] == usual[name] for name in parts if name != kind.part):
                times[parts[kind.part]] += one.times
        here = {other: count for other, count in self.seen.get(kind, {}).items() if other != place}
        here = dict([*here.items(), (place, times)][-MOST_PLACES:])
        journal.put(self.seen, kind, here)
        before, found = self.used.get(kind), self._count(kind, here)
        if found is not None:
            journal.put(self.used, kind, found)
        elif before is not None:
            journal.drop(self.used, kind)
        return found != before

    @staticmethod
    def _count(kind: Kind, here: Mapping[Place, Counter[Any]]) -> Counter[Any] | None:
        places = Counter(value for times in here.values() for value in times if value not in kind.values)
        if max(places.values(), default=0) < PLACES:
            return None
        return sum(here.values(), Counter())

    def correct(self, outcomes: Sequence[tuple[float, Outcome]]) -> Sequence[tuple[float, Outcome]]:
        """What is expected instead of what is listed."""
        kind = kind_of(outcomes) if self.used else None
        if kind is None or kind not in self.used:
            return outcomes
        (state, reward, over), times = outcomes[0][1], self.used[kind]
        worth = dict.fromkeys(times, 0.0)
        for chance, (after, _, _) in outcomes:
            value = parts_of(after)[kind.part]
            worth[value] = worth.get(value, 0.0) + WORTH * chance
        total = WORTH + times.total()
        return [
            ((listed + times[value]) / total, (exchange(state, kind.part, value), reward, over))
            for value, listed in worth.items()
        ]
