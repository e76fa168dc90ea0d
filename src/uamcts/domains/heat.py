"""U over the cells of a board: how wrong the model is about each action, if the player stood there."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.domains.base import Domain
from uamcts.types import PyTree

MOST_CELLS = 2500
"""Larger boards have no map: nobody could see it, and it takes long."""


def as_digits(uncertainty: np.ndarray) -> np.ndarray:
    """U of the worst action in each cell as a character: 1 to 9, where 9 is the largest; empty where it is 0.

    Args:
        uncertainty: U [rows, columns, actions] or [rows, columns], NaN where it is not known.
    """
    known = np.nan_to_num(uncertainty).reshape(*uncertainty.shape[:2], -1).max(axis=-1)
    digits = np.ceil(9 * known / max(float(known.max()), np.finfo(np.float32).tiny)).astype(int)
    return np.where(known > 0, np.clip(digits, 1, 9).astype(str), "")


class UncertaintyMap:
    """U of every action in every cell that the player can be moved to, all else staying as it is.

    Args:
        domain: A domain that says which features hold its player's place (`Domain.player`).
        uncertainty: `(state, action) -> U`; by default the true one.
        many: The same for many states at once, given by their features: [states, features] -> [states, actions].

    Example:
        ```python
        domain = uamcts.make("two_way")
        u = UncertaintyMap(domain)(domain.reset(key))      # [rows, columns, actions], NaN where the player cannot be
        ```
    """

    def __init__(
        self,
        domain: Domain,
        uncertainty: Callable[..., jax.Array] | None = None,
        many: Callable[[np.ndarray], np.ndarray | jax.Array] | None = None,
    ):
        self.domain = domain
        known = domain.uncertainty if uncertainty is None else uncertainty

        def of_vector(vector: jax.Array) -> jax.Array:
            return jax.vmap(known, (None, 0))(domain.from_features(vector), jnp.arange(domain.num_actions))

        self._of_vectors = jax.jit(jax.vmap(of_vector)) if many is None else many

    def __call__(self, state: PyTree) -> np.ndarray | None:
        """U [rows, columns, actions], NaN where the player cannot be; None if the domain has no such map."""
        domain = self.domain
        row, column = domain.player
        if row is None and column is None:
            return None
        board = domain.channels(state)
        if board[..., 0].size > MOST_CELLS:
            return None
        vector = domain.feature_vector(state)
        low, high = domain.feature_bounds()
        here = np.argwhere(board[..., domain.channel_names.index(list(domain.glyphs)[-1])])[0]
        rows, columns = (
            np.array([place]) if feature is None else np.arange(low[feature], high[feature] + 1)
            for feature, place in zip((row, column), here, strict=True)
        )
        places = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1).reshape(-1, 2)
        vectors = np.tile(vector, (len(places), 1))
        for feature, place in zip((row, column), places.T, strict=True):
            if feature is not None:
                vectors[:, feature] = place
        found = np.full((*board.shape[:2], domain.num_actions), np.nan, np.float32)
        found[places[:, 0], places[:, 1]] = self._of_vectors(vectors)
        return found
