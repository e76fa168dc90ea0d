"""Real transitions of a domain beside what its model predicts."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from uamcts.domains.base import Domain
from uamcts.types import PyTree


class Comparison(NamedTuple):
    """A real transition beside the model's prediction."""

    here: jax.Array
    """The features of the state."""
    real: jax.Array
    """Those of the real next state."""
    believed: jax.Array
    """Those of the predicted next state."""
    reward: jax.Array
    """The predicted reward."""
    terminal: jax.Array
    """Whether the model predicted the end of the episode."""


def compare(domain: Domain, state: PyTree, action: Int[Array, ""], following: PyTree) -> Comparison:
    """Compares a real transition with the model's prediction."""
    features, believed = domain.features, domain.model(state, action)
    return Comparison(
        features(state), features(following), features(believed.state), believed.reward, believed.terminal
    )


def infer_terminal(domain: Domain, state: PyTree, action: Int[Array, ""], following: PyTree) -> Bool[Array, ""]:
    """Whether a step ended its episode, where the user did not say.

    It did if the model says so and predicted the very state that followed, or if the domain says so of that state: by
    `arrival`, or because no action leads out of it, which is how a domain marks the end.
    """
    believed = domain.model(state, action)
    predicted = believed.terminal & _equal(believed.state, following)
    try:
        return predicted | domain.arrival(following)[1]
    except NotImplementedError:
        onward = jax.vmap(domain.model, (None, 0))(following, jnp.arange(domain.num_actions))
        stays = jax.vmap(_equal, (0, None))(onward.state, following)
        return predicted | jnp.all(onward.terminal & stays)


def _equal(one: PyTree, other: PyTree) -> jax.Array:
    """Whether two states of one form are the same."""
    return jnp.all(jnp.stack([jnp.all(a == b) for a, b in zip(*map(jax.tree.leaves, (one, other)), strict=True)]))


def state_bytes(state: PyTree) -> np.ndarray:
    """The bytes of a state."""
    return np.frombuffer(b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(state)), np.uint8)
