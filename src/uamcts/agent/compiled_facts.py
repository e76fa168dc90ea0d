"""Facts about JAX simulators: kept on the host, as those about Python simulators are, and mirrored in a table.

The compiled search looks facts up in the table. It has a fixed size, so that programs are compiled once; when it is
full, it is built anew from the later half of the facts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from uamcts.corrections.fact_mixing import CHECKED
from uamcts.corrections.fact_table import Facts
from uamcts.corrections.fact_weights import Question
from uamcts.corrections.mixture import Mixture, mix
from uamcts.corrections.patched_model import PatchedModel
from uamcts.corrections.python_facts import DRIFTING, MOST_FACTS, Fact, OutcomeCount
from uamcts.types import PyTree, Transition

ROWS, BYTES = 65_536, 2**26
"""The most facts in the table, and the most bytes that it may take."""
SEEN = 4
"""Outcomes of a transition that is random, the most frequent ones, that are planned with."""
BATCHES = (16, 1024)
"""Rows that are written at once."""

CLEARLY, RENEWED = 2.0, 1000
"""Nats by which weights must change before facts are weighed anew, and how many of the latest facts then are; the same
number of lists of what the simulator believes is kept."""

Place = tuple[Hashable, int]


class PlannedFact(NamedTuple):
    """What a search plans with instead of the model alone."""

    outcomes: Transition
    """What was seen, over [outcomes]."""
    probabilities: Float[Array, "*rows outcomes"]
    share: Float[Array, "*rows"]
    """The weight of the model; the rest is what was seen."""
    active: Bool[Array, "*rows"]


class Believed:
    """A JAX simulator as a model that facts correct: all it says is which outcomes it holds possible."""

    def __init__(self, kind: str, num_actions: int, believed: Callable[[PyTree, int], Any]):
        self.num_actions, self.believed = num_actions, believed
        setattr(self, kind, believed)


class CompiledFacts(PatchedModel):
    """Facts of one planner. What `dirty` holds differs from the table."""

    model: Believed

    def __init__(self, model: Believed, key: Callable[[PyTree], Hashable], most: int = MOST_FACTS):
        super().__init__(model, key, None, most=most)
        self.dirty: set[Place] = set()
        self.planned_weigher = self.weigher
        """The weights in use. They follow `weigher` in larger steps: facts must then be written to the table."""
        self.corrected = False
        """Whether corrections are in use: weights are learned only for the simulator without them."""
        self._believed_at: dict[Place, list[tuple[float, Any]]] = {}

    def _store(self, place: Place, fact: Fact) -> None:
        super()._store(place, fact)
        self.dirty.add(place)

    def _try_again(self, places: Sequence[Place]) -> None:
        super()._try_again(places)
        self.dirty |= set(places)

    def _mixture(self, fact: Fact, action: int) -> Mixture | None:
        """The weight of the model, and what was seen; None if the model is planned with as it is."""
        counts = list(fact.outcomes.values())
        total = sum(count.times for count in counts)
        seen = [(count.times / total, (count.following, count.reward, count.terminal)) for count in counts]
        if self.kind == "step":
            weight = self.prior_weight if self.noisy else 0.0
            return Mixture(weight / (weight + total), [], seen)
        question, more = self._question(fact, action), DRIFTING if self.drifting else 1.0
        if self.corrected:
            found: Mixture | None = mix(question.believed, _named(fact), *question[1:3], self.prior_weight * more)
        else:
            found = self.planned_weigher.mix(question, _named(fact), more)
        return None if found is None else found._replace(seen=seen)

    def _weigh(self, before: Fact | None, after: Fact, action: int) -> None:
        """Judges how much counts should weigh by a transition that is seen again."""
        if before is None or before.stale or self.kind == "step" or self.corrected:
            return
        self.weigher = self.weigher.add(self._question(after, action), _named(before), _named(after))
        pairs = zip(self.weigher.weights, self.planned_weigher.weights, strict=True)
        if max(abs(new - old) for new, old in pairs) >= CLEARLY:
            self.weigh_anew()

    def use_corrections(self, corrected: bool) -> None:
        """Sets whether corrections are in use from now on."""
        if corrected != self.corrected:
            self.corrected = corrected
            self.weigh_anew()

    def weigh_anew(self) -> None:
        """Plans with the present weights from now on."""
        self.planned_weigher = self.weigher
        self._renew()
        self.dirty |= {place for place, _ in self.latest()[-RENEWED:]}

    def _question(self, fact: Fact, action: int) -> Question:
        place = self.key(fact.state), action
        found = self._believed_at.get(place)
        if found is None:
            if len(self._believed_at) >= RENEWED:
                self._believed_at.clear()
            found = self._believed_at[place] = self.model.believed(fact.state, action)
        return Question(found, _itself, self.kind)

    @property
    def varied(self) -> bool:
        """Whether facts about a deterministic model have several outcomes, so that it must be planned in as random."""
        return self.kind == "step" and self.contradictions > 0

    @property
    def needed(self) -> bool:
        """Whether any fact says something else than the model alone."""
        return self.kind != "step" or self.varied or bool(self._contradicting)

    def latest(self) -> list[tuple[Place, Fact]]:
        """The facts that are compared with another model."""
        return list(self.facts.items())[-CHECKED:]

    def judge(self, place: Place, predicted: tuple[Hashable, float, bool]) -> None:
        """Takes note of whether a fact is what another model predicts."""
        fact = self.facts[place]
        key, over = kind = fact.most_frequent_kind
        agrees = (key, fact.outcomes[kind].reward, over) == predicted
        if agrees == fact.agrees:
            return
        fact = replace(fact, agrees=agrees)
        self.journal.put(self.facts, place, fact)
        if agrees or fact.stale:
            self.journal.drop(self._contradicting, place)
        else:
            self.journal.put(self._contradicting, place, fact.due)

    def twin(self) -> CompiledFacts:
        """A copy that goes on by itself, as long as every change of its tables is written to its journal."""
        return cast(CompiledFacts, super().twin())

    def planned(self, place: Place, most: int) -> tuple[float, list[tuple[float, Any]]] | None:
        """The weight of the model and what was seen, at most so many outcomes; None if the model alone counts."""
        planned = self._plan(place)
        if planned is None:
            return None
        if not isinstance(planned, Mixture):
            return 0.0, [(1.0, planned)]
        seen = sorted(planned.seen, key=lambda one: -one[0])[:most]
        total = sum(share for share, _ in seen)
        return planned.model_share, [(share / total, outcome) for share, outcome in seen]


def _named(fact: Fact) -> list[OutcomeCount]:
    """What was seen, with keys in place of next states, as `Believed` names them."""
    places: Any = fact.outcomes
    return [count._replace(following=place[0]) for place, count in zip(places, fact.outcomes.values(), strict=True)]


def _itself(key: Hashable) -> Hashable:
    return key


class FactTable:
    """The table that mirrors facts. Copies of a planner share it: it is brought up to date before a search."""

    def __init__(self, example: PyTree, identity: Callable[[PyTree], PyTree]):
        self._example, self._identity = jax.tree.map(np.asarray, example), identity
        self._facts: Facts | None = None
        self._form: tuple[int, bool] = (0, False)
        self._put = jax.jit(self._put_rows, donate_argnums=0)

    def _empty(self, outcomes: int) -> Facts:
        state = jax.tree.map(lambda leaf: np.zeros((outcomes, *leaf.shape), leaf.dtype), self._example)
        none: Any = np.zeros(outcomes, np.float32)  # of NumPy, like the others: it says of what form rows are
        one = PlannedFact(Transition(state, none, none > 0), none, none[0], none[0] > 0)
        size = sum(leaf.nbytes for leaf in jax.tree.leaves((one, self._example)))
        rows = min(ROWS, max(BATCHES[-1], 2 ** int(math.log2(BYTES / size))))
        return Facts.empty(self._identity(jax.tree.map(jnp.asarray, self._example)), one, rows)

    def _put_rows(self, facts: Facts, rows: tuple[PyTree, jax.Array, PlannedFact, jax.Array]) -> Facts:
        def one(table: Facts, row: Any) -> tuple[Facts, None]:
            state, action, planned, wanted = row
            return table.put(self._identity(state), action, planned, wanted, marked=planned.active), None

        return jax.lax.scan(one, facts, rows)[0]

    def sync(self, facts: CompiledFacts, outcomes: int) -> Facts:
        """The table with all that is dirty written to it."""
        form = (outcomes, facts.noisy)
        places: Iterable[Place] = sorted(facts.dirty, key=lambda place: place[1])
        if self._facts is None or form != self._form:
            self._facts, self._form = self._empty(outcomes), form
            places = self._latest(facts, self._facts.capacity)
        elif facts.dirty and int(self._facts.count) + len(facts.dirty) > self._facts.capacity:
            self._facts, places = self._empty(outcomes), self._latest(facts, self._facts.capacity // 2)
        todo = [place for place in places if place in facts.facts]
        while todo:
            size = BATCHES[len(todo) > BATCHES[0]]
            self._facts = self._put(self._facts, self._rows(facts, todo[:size], size, outcomes))
            todo = todo[size:]
        facts.dirty.clear()
        return self._facts

    def reset(self) -> None:
        """Has the table built anew before the next search."""
        self._facts = None

    @staticmethod
    def _latest(facts: CompiledFacts, most: int) -> list[Place]:
        return list(itertools.islice(facts.facts, max(len(facts.facts) - most, 0), None))

    def _rows(self, facts: CompiledFacts, places: list[Place], size: int, outcomes: int) -> Any:
        """Rows to write, padded."""
        states, following = ([self._example] * count for count in (size, size * outcomes))
        rewards, ends, shares = np.zeros((size, outcomes), np.float32), np.zeros((size, outcomes), bool), np.zeros(size)
        chances, active = np.zeros((size, outcomes), np.float32), np.zeros(size, bool)
        for row, place in enumerate(places):
            states[row] = facts.facts[place].state
            planned = facts.planned(place, outcomes)
            if planned is None:
                continue
            shares[row], active[row] = planned[0], True
            for slot, (chance, (after, reward, over)) in enumerate(planned[1]):
                following[row * outcomes + slot] = after
                chances[row, slot], rewards[row, slot], ends[row, slot] = chance, reward, over
        after = jax.tree.map(lambda leaf: leaf.reshape(size, outcomes, *leaf.shape[1:]), stack(following))
        parts: list[Any] = [rewards, ends, chances, shares.astype(np.float32), active]
        planned_rows = PlannedFact(Transition(after, *parts[:2]), *parts[2:])
        actions = np.array([place[1] for place in places] + [0] * (size - len(places)), np.int32)
        return stack(states), actions, planned_rows, np.arange(size) < len(places)


def stack(states: list[PyTree]) -> PyTree:
    """States as one pytree of NumPy arrays with a leading axis."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)
