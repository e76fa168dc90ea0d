"""What was really seen is a fact: an exact memory (s, a) -> (s', r, terminal) that overrides the model in planning.

`Facts` is the table, `Patched` a learner that plans in the given model with the facts in the places of its guesses, and
`PatchedModel` the same for models of `uamcts.reference`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp

from uamcts.domains.base import Domain
from uamcts.learner import Doubter, Learner
from uamcts.reference import PythonModel
from uamcts.types import BatchedUncertainty, Model, PyTree, Transition, Uncertainty
from uamcts.uncertainty.estimator import Nothing
from uamcts.words import fingerprint, words_of

CAPACITY = 1024
NOWHERE = -1
"""In `slots`: nothing lies here."""


class Facts(eqx.Module):
    """A hash table from (state, action) to a tree of arrays; the last value that was put there is the one that counts.

    States are compared in full, word for word: there are no false matches. (Where states hold floats, a state that was
    computed in another way and differs in the last bit is another state.) Rows lie in the order they came; `slots`, at
    least twice as many, say where, by linear probing from a hash.
    """

    keys: jax.Array
    """The words of state and action. uint32 [capacity + 1, words]; the last row takes what there is no room for."""
    values: PyTree
    """[capacity + 1, ...]."""
    slots: jax.Array
    """The row of a key, or NOWHERE. int32, a power of two of them."""
    count: jax.Array
    """Rows that are taken. int32."""

    @classmethod
    def empty(cls, state: PyTree, value: PyTree, capacity: int = CAPACITY) -> Self:
        """Room for `capacity` different transitions from states like `state`, each with a value like `value`."""
        width = jax.eval_shape(lambda state: _key(state, jnp.int32(0)), state).size

        def rows(leaf: Any) -> jax.Array:
            return jnp.zeros((capacity + 1, *jnp.shape(leaf)), jnp.asarray(leaf).dtype)

        keys = jnp.zeros((capacity + 1, width), jnp.uint32)
        return cls(keys, jax.tree.map(rows, value), _no_slots(capacity), jnp.int32(0))

    @property
    def capacity(self) -> int:
        return self.keys.shape[0] - 1

    def find(self, state: PyTree, action: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The value of a transition, and whether there is one; where there is none the value means nothing."""
        row = self.slots[_probe(self.keys, self.slots, _key(state, action))]
        return jax.tree.map(lambda leaf: leaf[jnp.maximum(row, 0)], self.values), row != NOWHERE

    def put(self, state: PyTree, action: jax.Array, value: PyTree, wanted: Any = True) -> Self:
        """With this value for a transition, if it is `wanted`.

        Where there is no room left for a new transition, nothing is kept: call `with_room` before.
        """
        key = _key(state, action)
        slot = _probe(self.keys, self.slots, key)
        known = self.slots[slot] != NOWHERE
        new = wanted & ~known & (self.count < self.capacity)
        row = jnp.where(wanted & known, self.slots[slot], jnp.where(new, self.count, self.capacity))
        return type(self)(
            self.keys.at[row].set(key),
            jax.tree.map(lambda rows, leaf: rows.at[row].set(jnp.asarray(leaf, rows.dtype)), self.values, value),
            self.slots.at[slot].set(jnp.where(new, row, self.slots[slot])),
            self.count + new,
        )

    def with_room(self, transitions: int) -> Self:
        """The same with room for this many more; at least twice as large if larger.

        Not for use under `jit`. The arrays may have leading axes for runs.
        """
        axis = jnp.ndim(self.count)
        have = self.keys.shape[axis] - 1
        needed = int(jnp.max(self.count)) + transitions
        if needed <= have:
            return self
        capacity = max(needed, 2 * have)

        def longer(rows: jax.Array) -> jax.Array:
            return jnp.pad(rows, [(0, capacity - have if place == axis else 0) for place in range(rows.ndim)])

        place = _placed
        for _ in range(axis):
            place = jax.vmap(place, (0, 0, None))
        keys = longer(self.keys)
        slots = jax.jit(place)(keys, self.count, _no_slots(capacity))
        return type(self)(keys, jax.tree.map(longer, self.values), slots, self.count)


def _no_slots(capacity: int) -> jax.Array:
    """Empty slots, so many that never more than half of them are taken."""
    return jnp.full(2 ** math.ceil(math.log2(2 * capacity + 2)), NOWHERE, jnp.int32)


def _key(state: PyTree, action: jax.Array) -> jax.Array:
    """The words of a state and an action, [words]."""
    return jnp.stack(words_of((state, jnp.asarray(action, jnp.int32))))


def _probe(keys: jax.Array, slots: jax.Array, key: jax.Array) -> jax.Array:
    """The slot of a key: where it is, or where it would go."""
    start = (fingerprint(key)[0] & jnp.uint32(slots.size - 1)).astype(jnp.int32)

    def elsewhere(slot: jax.Array) -> jax.Array:
        row = slots[slot]
        return (row != NOWHERE) & jnp.any(keys[jnp.maximum(row, 0)] != key)

    return jax.lax.while_loop(elsewhere, lambda slot: (slot + 1) & (slots.size - 1), start)


def _placed(keys: jax.Array, count: jax.Array, slots: jax.Array) -> jax.Array:
    """Empty `slots` with the first `count` of `keys` in them."""

    def place(row: jax.Array, slots: jax.Array) -> jax.Array:
        return slots.at[_probe(keys, slots, keys[row])].set(row)

    return jax.lax.fori_loop(0, count, place, slots)


def no_transition(state: PyTree) -> Transition:
    """A transition of the form that a table of transitions keeps."""
    return Transition(state, jnp.float32(0), jnp.bool_(False))


class Patched(eqx.Module):
    """Plans in another learner's model with facts in the places of its guesses, and doubts only what was not seen.

    With a `Doubter` that doubts nothing this is MCTS in the patched model.
    """

    facts: Facts
    learner: Any
    """What answers where there is no fact; it learns from everything that is seen, too."""

    @classmethod
    def fresh(cls, state: PyTree, learner: Learner | None = None, capacity: int = CAPACITY) -> Self:
        """Nothing seen yet; `state` is one state, as an example."""
        learner = Doubter(Nothing()) if learner is None else learner
        return cls(Facts.empty(state, no_transition(state), capacity), learner)

    def planner(self, domain: Domain) -> tuple[Model, Uncertainty | BatchedUncertainty]:
        model, doubt = self.learner.planner(domain)
        return patched(model, self.facts), undoubted(doubt, self.facts)

    def seen(self, domain: Domain, state: PyTree, action: jax.Array, real: Transition, copies: Any) -> Self:
        learner = self.learner.seen(domain, state, action, real, copies)
        return type(self)(self.facts.put(state, action, real), learner)

    def learn(self, key: jax.Array) -> tuple[Self, jax.Array]:
        learner, loss = self.learner.learn(key)
        return type(self)(self.facts, learner), loss

    def settled(self) -> Self:
        return type(self)(self.facts, self.learner.settled())

    def with_room(self, samples: int) -> Self:
        facts, learner = self.facts.with_room(samples), self.learner.with_room(samples)
        return self if facts is self.facts and learner is self.learner else type(self)(facts, learner)

    @property
    def surprised(self) -> jax.Array:
        return self.learner.surprised


def patched(model: Model, facts: Facts) -> Model:
    """`model`, and what is known in the place of its guesses."""

    def step(state: PyTree, action: jax.Array) -> Transition:
        fact, known = facts.find(state, action)
        return jax.tree.map(lambda real, guess: jnp.where(known, real, guess), fact, model(state, action))

    return step


def undoubted(doubt: Uncertainty | BatchedUncertainty, facts: Facts) -> Uncertainty | BatchedUncertainty:
    """`doubt`, and 0 about what is known."""
    if isinstance(doubt, BatchedUncertainty):
        return UndoubtedMany(doubt, facts)

    def one(state: PyTree, action: jax.Array) -> jax.Array:
        return jnp.where(facts.find(state, action)[1], 0.0, doubt(state, action))

    return one


@dataclass(frozen=True, eq=False)
class UndoubtedMany:
    """The same for an uncertainty that is asked for many transitions at once; what it remembers stays its own."""

    doubt: Any
    facts: Facts

    def __call__(self, state: PyTree, action: jax.Array) -> jax.Array:
        return jnp.where(self.facts.find(state, action)[1], 0.0, self.doubt(state, action))

    def memory(self) -> PyTree:
        return self.doubt.memory()

    def glance(self, memory: PyTree, state: PyTree, action: jax.Array) -> tuple[jax.Array, jax.Array]:
        fact = self.facts.find(state, action)[1]
        found, known = self.doubt.glance(memory, state, action)
        return jnp.where(fact, 0.0, found), fact | known

    def many(self, memory: PyTree, states: PyTree, actions: jax.Array, wanted: jax.Array) -> tuple[jax.Array, PyTree]:
        fact = jax.vmap(self.facts.find)(states, actions)[1]
        found, memory = self.doubt.many(memory, states, actions, wanted & ~fact)
        return jnp.where(fact, 0.0, found), memory


class PatchedModel:
    """A model for `uamcts.reference.search` in which what was seen overrides what another model says.

    `key` makes something hashable of a state; by default the state itself is it.
    """

    def __init__(self, model: PythonModel, key: Callable[[Any], Hashable] | None = None):
        self.model = model
        self.num_actions = model.num_actions
        self.key = key if key is not None else lambda state: state
        self.facts: dict[tuple[Hashable, int], tuple[Any, float, bool]] = {}
        if hasattr(model, "legal_actions"):
            self.legal_actions = model.legal_actions

    def remember(self, state: Any, action: int, next_state: Any, reward: float, terminal: bool) -> None:
        """Takes in what really happened; the last fact about a transition is the one that counts."""
        self.facts[self._place(state, action)] = (next_state, float(reward), bool(terminal))

    def knows(self, state: Any, action: int) -> bool:
        return self._place(state, action) in self.facts

    def step(self, state: Any, action: int) -> tuple[Any, float, bool]:
        fact = self.facts.get(self._place(state, action))
        return self.model.step(state, action) if fact is None else fact

    def undoubted(self, uncertainty: Callable[[Any, int], float]) -> Callable[[Any, int], float]:
        """`uncertainty`, and 0 about what is known."""
        return lambda state, action: 0.0 if self.knows(state, action) else uncertainty(state, action)

    def _place(self, state: Any, action: int) -> tuple[Hashable, int]:
        place = (self.key(state), int(action))
        try:
            hash(place)
        except TypeError:
            raise TypeError(
                f"state is {state!r}, which cannot be a key of a dictionary; give PatchedModel a `key` that makes "
                "something hashable of a state, for example key=lambda state: state.tobytes()"
            ) from None
        return place
