"""What a planner of the field is: pure functions of a grid, what it believes, and what it has seen."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from uamcts.field.tree import Settings
from uamcts.field.worlds import Grid

Memory = Any
"""What a planner remembers, as a pytree."""


class Place(NamedTuple):
    """Where a planner is."""

    cell: jax.Array
    left: jax.Array
    """Steps that are left in the episode. The published planners do not look at it."""


class Planner(eqx.Module):
    """A planner without memory; those that learn override `begin` and `learn`.

    A pytree: what a study varies are leaves, so that one compiled program serves all values. Everything is unbatched.
    `believed` is the parameter that the planner was given.
    """

    settings: Settings = eqx.field(default_factory=Settings)

    @property
    def learns(self) -> bool:
        """Whether what it does depends on what it has seen."""
        return type(self).learn is not Planner.learn

    def begin(self, grid: Grid, believed: jax.Array) -> Memory:
        """What it remembers before the first move."""
        del grid, believed
        return ()

    def act(self, key: jax.Array, grid: Grid, believed: jax.Array, memory: Memory, place: Place) -> jax.Array:
        """The action it takes at `place`."""
        raise NotImplementedError

    def learn(self, grid: Grid, memory: Memory, cell: jax.Array, action: jax.Array, outcome: jax.Array) -> Memory:
        """What it remembers after a real move had the `outcome`, a number."""
        del grid, cell, action, outcome
        return memory


PARAMETERS = 101
"""Values of the parameter that a posterior is about: 0, 0.01, ..., 1."""


def parameter_values() -> jax.Array:
    """Every value of the parameter that a posterior is about."""
    return jnp.linspace(0.0, 1.0, PARAMETERS)


class PosteriorPlanner(Planner):
    """A planner that knows the grid except for its parameter, of which it holds the exact posterior.

    The prior is uniform: the planner is told that the world has changed, not how.
    """

    def begin(self, grid: Grid, believed: jax.Array) -> jax.Array:
        """The logarithm of the prior, up to a constant."""
        del grid, believed
        return jnp.zeros(PARAMETERS)

    def learn(self, grid: Grid, memory: jax.Array, cell: jax.Array, action: jax.Array, outcome: jax.Array) -> jax.Array:
        """Bayes' rule. Outcomes that lead to the same cell cannot be told apart, and count together."""
        same = grid.following[cell, action] == grid.following[cell, action, outcome]
        same &= grid.ends[cell, action] == grid.ends[cell, action, outcome]
        base, slope = (jnp.sum(jnp.where(same, part[cell, action], 0.0)) for part in (grid.base, grid.slope))
        return memory + jnp.log(jnp.maximum(base + parameter_values() * slope, 1e-9))


def posterior(memory: jax.Array) -> jax.Array:
    """The probability of each of `parameter_values`."""
    return jax.nn.softmax(memory)
