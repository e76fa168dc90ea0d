"""Steps with several outcomes: a draw among them, and how far two distributions are apart."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from uamcts.types import PyTree, Transition

Outcomes = tuple[Transition, jax.Array]
"""Transitions with [K] in front of every leaf, and their probabilities [K]. Slots may be empty (probability 0), and
several slots may hold the same state."""

ROUNDING = 1e-6
"""Probabilities closer than this are equal: float32 sums of the same numbers in another order differ by less."""


def certain(transition: Transition) -> Outcomes:
    """The outcomes of a deterministic step: the only one there is."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], transition), jnp.ones(1, jnp.float32)


def draw_outcome(outcomes: Outcomes, key: jax.Array) -> Transition:
    """One of the outcomes, with its probability. An empty slot is never drawn, whatever the rounding of the sum."""
    transitions, probabilities = outcomes
    reached = jnp.cumsum(probabilities)
    slot = jnp.argmax(reached > jax.random.uniform(key) * reached[-1])
    drawn: Transition = jax.tree.map(lambda leaf: leaf[slot], transitions)
    return drawn


def distance(difference: Callable[[PyTree, PyTree], jax.Array], first: Outcomes, second: Outcomes) -> jax.Array:
    """How far two distributions of outcomes are apart: 0 exactly where they are equal.

    What both have in common stays where it is. The rest, the total variation v, must move from the surplus of the
    first to the surplus of the second: v times the mean `difference` between the two surpluses. Two certain outcomes
    are their `difference` apart.
    """
    states = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), first[0].state, second[0].state)
    signed = jnp.concatenate([first[1], -second[1]])
    apart = jax.vmap(jax.vmap(difference, (None, 0)), (0, None))(states, states)
    same = apart == 0
    counted = jnp.argmax(same, axis=1) == jnp.arange(signed.size)  # a state in several slots counts once
    surplus = jnp.where(counted, same @ signed, 0.0)
    surplus = jnp.where(jnp.abs(surplus) < ROUNDING, 0.0, surplus)
    more, less = jnp.maximum(surplus, 0.0), jnp.maximum(-surplus, 0.0)
    moved = jnp.sum(more)
    return jnp.where(moved > 0, more @ apart @ less / jnp.where(moved > 0, moved, 1.0), 0.0).astype(jnp.float32)
