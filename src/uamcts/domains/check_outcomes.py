"""The rules that the outcomes of a random domain must keep, for `check_domain`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.domains.base import Domain
from uamcts.types import PyTree, Transition

SUM = 1e-4
"""How far probabilities in float32 may be from a sum of 1."""


class DomainError(ValueError):
    """A domain breaks one of the rules that planning relies on; the message says which and where."""


def fail(domain: Domain, sentence: str) -> None:
    raise DomainError(f"{getattr(domain, 'name', type(domain).__name__)}: {sentence}")


def shapes(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: (jnp.shape(leaf), jnp.result_type(leaf)), tree)


def check_slots(domain: Domain, name: str, result: PyTree) -> Any:
    """The shapes of one of the outcomes, of which there must be as many as probabilities."""
    if not isinstance(result, tuple) or isinstance(result, Transition) or len(result) != 2:
        fail(domain, f"{name} returns {type(result).__name__}; return a uamcts.Transition of [K] outcomes and their "
                      "probabilities [K]")  # fmt: skip
    outcomes, probabilities = result
    if getattr(probabilities, "ndim", 0) != 1 or not jnp.issubdtype(probabilities.dtype, jnp.floating):
        fail(domain, f"{name} returns probabilities {probabilities}; they must be a vector of floating-point numbers")
    count = probabilities.shape[0]
    if count == 0:
        fail(domain, f"{name} returns no outcomes; every step has at least one")
    if any(leaf.shape[:1] != (count,) for leaf in jax.tree.leaves(outcomes)):
        fail(domain, f"{name} returns {count} probabilities and outcomes of shapes and dtypes {shapes(outcomes)}; "
                      f"every leaf needs {count} in front")  # fmt: skip
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), outcomes)


def check_draws(domain: Domain, states: PyTree, actions: jax.Array) -> None:
    """Probabilities are probabilities, and a step drawn with a key is one of those that have any."""
    keys = jax.random.split(jax.random.key(1), len(actions))
    for name, draw in (("world", domain.world), ("model", domain.model)):
        step = getattr(domain, f"{name}_outcomes")
        outcomes, given = jax.jit(jax.vmap(step))(states, actions)
        probabilities = np.asarray(given, np.float64)
        if not np.all(probabilities >= 0):  # NaN is not
            wrong = probabilities[~(probabilities >= 0)][0]
            fail(domain, f"{name}_outcomes gives the probability {wrong:g}; it must be a number of at least 0")
        sums = probabilities.sum(axis=1)
        if np.any(np.abs(sums - 1) > SUM):
            fail(domain, f"the probabilities of {name}_outcomes sum to {sums[np.argmax(np.abs(sums - 1))]:g}; "
                          "they must sum to 1")  # fmt: skip
        drawn = jax.jit(jax.vmap(draw))(states, actions, keys)
        found = probabilities > 0
        for one, leaf in zip(jax.tree.leaves(drawn), jax.tree.leaves(outcomes), strict=True):
            same = np.isclose(np.asarray(leaf), np.asarray(one)[:, None], rtol=1e-5, atol=1e-6, equal_nan=True)
            found = found & same.reshape(*found.shape, -1).all(axis=-1)
        if not np.all(found.any(axis=1)):
            fail(domain, f"{name} draws a step that is none of {name}_outcomes; leave drawing to uamcts.Domain")
