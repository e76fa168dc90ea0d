"""Plays episodes of a planner on a grid, all at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.field.planner import Memory, Place, Planner
from uamcts.field.tree import Chances, draw_outcome
from uamcts.field.worlds import Grid

Act = Callable[[jax.Array, Memory, Place], jax.Array]
"""The moves of all episodes, given a key, what each remembers and where each is."""
DRAWS = 32
"""Searches in each cell, of a planner that does not learn: its moves are drawn from what they chose."""


class Score(NamedTuple):
    """How episodes went, [episodes] each."""

    reward: jax.Array | np.ndarray
    """Discounted."""
    steps: jax.Array | np.ndarray
    ended: jax.Array | np.ndarray
    """Whether the episode ended before the time limit."""


@functools.partial(jax.jit, static_argnames=("episodes", "steps", "draws"))
def play(
    key: jax.Array,
    planner: Planner,
    grid: Grid,
    parameter: float | jax.Array,
    believed: float | jax.Array,
    gamma: float | jax.Array,
    episodes: int,
    steps: int,
    draws: int = DRAWS,
) -> Score:
    """Plays episodes from the start.

    A planner without memory does the same in the same cell, up to chance: it searches `draws` times in every cell, and
    each move of an episode is one of these, drawn anew. A planner that learns searches at every move.

    Args:
        key: A random key; the real world's luck depends on it alone, so planners with the same key have the same luck.
        planner: The planner.
        grid: The grid.
        parameter: The real one.
        believed: What the planner is given.
        gamma: The discount of the reward that is reported.
        episodes: How many.
        steps: The time limit.
        draws: Searches in each cell, of a planner without memory.
    """
    luck, planning = jax.random.split(key)
    believed = jnp.asarray(believed)
    act = _policy(planning, planner, grid, believed, steps, draws)
    reach = jnp.cumsum(grid.probabilities(parameter), axis=-1)

    def move(carry: tuple[_Lanes, jax.Array], number: jax.Array) -> tuple[tuple[_Lanes, jax.Array], None]:
        lanes, discount = carry
        place = Place(lanes.cell, jnp.full(episodes, steps) - number)
        action = act(jax.random.fold_in(planning, number), lanes.memory, place)
        draws = jax.random.uniform(jax.random.fold_in(luck, number), (episodes,))
        after = jax.vmap(_step, (None, None, None, 0, 0, 0, None))(planner, grid, reach, lanes, action, draws, discount)
        return (after, discount * gamma), None

    memory = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (episodes, *leaf.shape)), planner.begin(grid, believed))
    nothing = jnp.zeros(episodes)
    first = _Lanes(jnp.full(episodes, grid.start), nothing.astype(bool), nothing, nothing.astype(int), memory)
    lanes, _ = jax.lax.scan(move, (first, jnp.asarray(1.0)), jnp.arange(steps))[0]
    return Score(lanes.reward, lanes.steps, lanes.over)


class _Lanes(NamedTuple):
    """Where the episodes are, [episodes, ...]."""

    cell: jax.Array
    over: jax.Array
    reward: jax.Array
    steps: jax.Array
    memory: Memory


def _step(
    planner: Planner, grid: Grid, reach: Chances, lane: _Lanes, action: jax.Array, draw: jax.Array, discount: jax.Array
) -> _Lanes:
    """One real move of one episode; nothing happens once it is over."""
    outcome = draw_outcome(reach[lane.cell, action], draw)
    following, reward, ends = (part[lane.cell, action, outcome] for part in grid[:3])
    return _Lanes(
        jnp.where(lane.over, lane.cell, following),
        lane.over | ends,
        lane.reward + jnp.where(lane.over, 0.0, discount * reward),
        lane.steps + ~lane.over,
        planner.learn(grid, lane.memory, lane.cell, action, outcome),
    )


def _policy(key: jax.Array, planner: Planner, grid: Grid, believed: jax.Array, steps: int, draws: int) -> Act:
    """The planner's moves in a batch of episodes."""
    if planner.learns:

        def search(key: jax.Array, memory: Memory, place: Place) -> jax.Array:
            keys = jax.random.split(key, place.cell.size)
            return jax.vmap(planner.act, (0, None, None, 0, 0))(keys, grid, believed, memory, place)

        return search
    cells = jnp.arange(len(grid.following))
    keys = jax.random.split(key, (len(cells), draws))
    everywhere = jax.vmap(jax.vmap(planner.act, (0, None, None, None, None)), (0, None, None, None, 0))
    places = Place(cells, jnp.full(len(cells), steps))
    chosen = everywhere(keys, grid, believed, planner.begin(grid, believed), places)

    def draw(key: jax.Array, memory: Memory, place: Place) -> jax.Array:
        del memory
        return chosen[place.cell, jax.random.randint(key, place.cell.shape, 0, draws)]

    return draw
