"""Tree search on a grid's table, shared by the planners of the field: they differ in what a tree samples and backs up.

A tree of paths: a node for each sequence of moves and outcomes, UCB1 at nodes, one random rollout from each new node.
Unbatched; use `jax.vmap` for many searches. Loops carry no tree: a batched loop would copy it at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uamcts.field.worlds import Grid
from uamcts.randomness import draw as random_word
from uamcts.randomness import randint, seed_of, stream_word, uniform

Chances = Float[Array, "cells actions outcomes"]
Draw = Callable[[jax.Array], Chances]
"""The probabilities that one iteration samples from, given its key: the same ones, or a draw from a posterior."""
Expectation = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
"""What outcomes are worth together, given their values, their probabilities and their cells, [outcomes] each."""
DESCENT, ROLLOUT = range(2)
"""The purposes of random words."""
PATH = 48
"""Moves inside the tree, at most. A rollout follows."""


class Tree(NamedTuple):
    """Node 0 is the root; iteration i may add node i + 1."""

    cell: Int[Array, " nodes"]
    child: Int[Array, "nodes actions outcomes"]
    """-1 where there is none."""
    visits: Float[Array, "nodes actions"]
    total: Float[Array, "nodes actions"]
    """The sum of an action's returns; with an `Expectation`, its value times its visits."""
    worth: Float[Array, " nodes"]
    """With an `Expectation`: what a node is worth, at first its rollout, later its best action."""

    @property
    def values(self) -> Float[Array, "nodes actions"]:
        """What each action is worth; 0 if it was never tried."""
        return self.total / jnp.maximum(self.visits, 1.0)


class Path(NamedTuple):
    """The moves of one iteration inside the tree. Only the first `length` count."""

    node: Int[Array, " path"]
    action: Int[Array, " path"]
    reward: Float[Array, " path"]
    length: Int[Array, ""]
    outcome: Int[Array, ""]
    """Of the last move."""
    leaf: Int[Array, ""]
    """The cell that it led to."""
    new: Bool[Array, ""]
    """Whether that is a new node."""
    over: Bool[Array, ""]
    """Whether it ended the episode."""


class Settings(eqx.Module):
    """What all tree searches of the field are told."""

    iterations: int = eqx.field(default=100, static=True)
    depth: int = eqx.field(default=100, static=True)
    """Moves of a rollout, at most."""
    gamma: float | jax.Array = 1.0
    c: float | jax.Array = 2.0**0.5


def search(
    key: jax.Array, grid: Grid, cell: jax.Array, draw: Draw, settings: Settings, expect: Expectation | None = None
) -> Tree:
    """Searches from `cell`.

    Args:
        key: A random key.
        grid: The outcomes.
        cell: Where the search begins.
        draw: The probabilities of the outcomes in one iteration.
        settings: The budget.
        expect: How an action's value follows from the values of its outcomes. None: values are mean returns.
    """
    actions, outcomes = grid.following.shape[1:]
    seed = seed_of(key)
    size = settings.iterations + 1
    tree = Tree(
        jnp.zeros(size, jnp.int32).at[0].set(cell),
        jnp.full((size, actions, outcomes), -1, jnp.int32),
        jnp.zeros((size, actions)),
        jnp.zeros((size, actions)),
        jnp.zeros(size),
    )

    def iterate(tree: Tree, number: jax.Array) -> tuple[Tree, None]:
        chances = draw(jax.random.fold_in(key, number))
        down, out = (random_word(seed, purpose, number) for purpose in (DESCENT, ROLLOUT))
        reach = jnp.cumsum(chances, axis=-1)
        path = _descend(down, tree, grid, reach, settings)
        rest = jnp.where(path.over, 0.0, _rollout(out, grid, reach, path.leaf, settings))
        tree = _add_node(tree, path, number + 1, rest)
        if expect is None:
            return _back_up_returns(tree, path, rest, settings), None
        return _back_up_expectations(tree, path, grid, chances, settings, expect), None

    return jax.lax.scan(iterate, tree, jnp.arange(settings.iterations))[0]


def choose_action(key: jax.Array, grid: Grid, cell: jax.Array, draw: Draw, settings: Settings) -> jax.Array:
    """Searches from `cell` and returns the action that was tried most often; among equals, any."""
    searching, choosing = jax.random.split(key)
    visits = search(searching, grid, cell, draw, settings).visits[0]
    return any_best(visits, jax.random.uniform(choosing, visits.shape))


def any_best(scores: jax.Array, luck: jax.Array) -> jax.Array:
    """The place of the best score; `luck` decides among equals."""
    return jnp.argmax(jnp.where(scores >= scores.max(), 1.0 + luck, 0.0))


def draw_outcome(reach: jax.Array, luck: jax.Array) -> jax.Array:
    """The number of an outcome, given cumulated probabilities; never one without probability."""
    return jnp.argmax(reach > luck * reach[-1])


def _descend(word: jax.Array, tree: Tree, grid: Grid, reach: Chances, settings: Settings) -> Path:
    """Follows UCB1 from the root until an outcome has no node yet, or ends the episode."""
    actions = grid.following.shape[1]
    empty = jnp.zeros(PATH, jnp.int32)
    nothing, no = jnp.asarray(0), jnp.asarray(False)
    start = (nothing, no, Path(empty, empty, jnp.zeros(PATH), nothing, nothing, tree.cell[0], no, no))

    def step(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        node, _, path = carry
        draws = uniform(stream_word(word + jnp.arange(actions + 1, dtype=jnp.uint32), path.length))
        action = any_best(_scores(tree, node, settings.c), draws[:actions])
        cell = tree.cell[node]
        outcome = draw_outcome(reach[cell, action], draws[actions])
        ends, child = grid.ends[cell, action, outcome], tree.child[node, action, outcome]
        path = Path(
            path.node.at[path.length].set(node),
            path.action.at[path.length].set(action),
            path.reward.at[path.length].set(grid.reward[cell, action, outcome]),
            path.length + 1,
            outcome,
            grid.following[cell, action, outcome],
            (child < 0) & ~ends,
            ends,
        )
        return jnp.maximum(child, 0), path.new | ends | (path.length >= PATH), path

    return jax.lax.while_loop(lambda carry: ~carry[1], step, start)[2]


def _scores(tree: Tree, node: jax.Array, c: float | jax.Array) -> jax.Array:
    """UCB1; actions that were never tried come first."""
    visits = tree.visits[node]
    least = jnp.maximum(visits, 1.0)
    bonus = c * jnp.sqrt(jnp.log(jnp.maximum(visits.sum(), 1.0)) / least)
    return jnp.where(visits > 0, tree.total[node] / least + bonus, jnp.inf)


def _rollout(word: jax.Array, grid: Grid, reach: Chances, cell: jax.Array, settings: Settings) -> jax.Array:
    """The discounted return of random moves from `cell`."""
    actions = grid.following.shape[1]

    def step(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        count, cell, total, discount, _ = carry
        action = randint(stream_word(word, 2 * count), actions)
        outcome = draw_outcome(reach[cell, action], uniform(stream_word(word, 2 * count + 1)))
        total += discount * grid.reward[cell, action, outcome]
        following, ends = grid.following[cell, action, outcome], grid.ends[cell, action, outcome]
        return count + 1, following, total, discount * settings.gamma, ends

    start = (jnp.asarray(0), cell, jnp.asarray(0.0), jnp.asarray(1.0), jnp.asarray(False))
    return jax.lax.while_loop(lambda carry: (carry[0] < settings.depth) & ~carry[4], step, start)[2]


def _add_node(tree: Tree, path: Path, number: jax.Array, rest: jax.Array) -> Tree:
    """Adds the new node of a path, if it has one."""
    last = path.length - 1
    place = jnp.where(path.new, path.node[last], len(tree.cell))  # beyond the end: nothing is written
    return tree._replace(
        cell=tree.cell.at[number].set(path.leaf),
        child=tree.child.at[place, path.action[last], path.outcome].set(number, mode="drop"),
        worth=tree.worth.at[number].set(rest),
    )


def _back_up_returns(tree: Tree, path: Path, rest: jax.Array, settings: Settings) -> Tree:
    """Adds the return from each node on to the action that was taken there."""
    used = jnp.arange(PATH) < path.length

    def back(later: jax.Array, move: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        reward, counts = move
        now = jnp.where(counts, reward + settings.gamma * later, later)
        return now, now

    returns = jax.lax.scan(back, rest, (path.reward, used), reverse=True)[1]
    place = (jnp.where(used, path.node, len(tree.cell)), path.action)
    return tree._replace(
        visits=tree.visits.at[place].add(1.0, mode="drop"), total=tree.total.at[place].add(returns, mode="drop")
    )


def _back_up_expectations(
    tree: Tree, path: Path, grid: Grid, chances: Chances, settings: Settings, expect: Expectation
) -> Tree:
    """Sets each action on the path to the expectation over its outcomes; a node is worth its best action.

    Outcomes that no iteration has met yet are left out, and the probabilities of the others scaled up.
    """

    def back(place: jax.Array, tree: Tree) -> Tree:
        place = PATH - 1 - place
        node, action = path.node[place], path.action[place]
        cell = tree.cell[node]
        child, ends = tree.child[node, action], grid.ends[cell, action]
        weight = jnp.where(ends | (child >= 0), chances[cell, action], 0.0)
        values = grid.reward[cell, action] + settings.gamma * jnp.where(ends, 0.0, tree.worth[child])
        values = jnp.where(weight > 0, values, jnp.max(jnp.where(weight > 0, values, -jnp.inf)))
        value = expect(values, weight / jnp.maximum(weight.sum(), 1e-9), grid.following[cell, action])
        visits = tree.visits[node].at[action].add(1.0)
        every = (tree.values[node]).at[action].set(value)
        where = jnp.where(place < path.length, node, len(tree.cell))
        return tree._replace(
            visits=tree.visits.at[where].set(visits, mode="drop"),
            total=tree.total.at[where].set(every * visits, mode="drop"),
            worth=tree.worth.at[where].set(jnp.max(jnp.where(visits > 0, every, -jnp.inf)), mode="drop"),
        )

    return jax.lax.fori_loop(0, PATH, back, tree)
