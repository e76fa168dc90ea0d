"""Uncertainty-Adapted Monte Carlo Tree Search: the loop of Algorithm 1."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.mcts.backpropagate import backpropagate
from uamcts.mcts.expand import expand, write
from uamcts.mcts.select import Path, select, values
from uamcts.mcts.simulate import checked, simulate, value
from uamcts.mcts.tree import ROOT, VISITS, Tree, empty
from uamcts.randomness import CHILD, TIE, draw, pick, seed_of
from uamcts.types import Legal, Model, PyTree, SearchConfig, Uncertainty

STATIC_FIELDS = ("iterations", "rollouts", "depth", "rules", "tree_depth")

BAD_UNCERTAINTY, BAD_REWARD, NO_ACTION = 1, 2, 4
"""Flags of a result: what only shows while the search runs."""


class SearchResult(NamedTuple):
    """What a search found. Arrays over [actions] where nothing else is said."""

    action: jax.Array
    """The most visited action; ties are broken at random. int32, no axis."""
    visits: jax.Array
    """How often each action was tried; 0 for deleted and illegal ones. int32."""
    values: jax.Array
    """The value of each action, the reward of its first step included; NaN where it was never tried."""
    uncertainty: jax.Array
    """U of each action's first step."""
    exists: jax.Array
    """False for actions that are illegal or that UA-Expansion deleted at the root."""
    tree: Tree
    flags: jax.Array
    """0, or a sum of STATIC_FIELDS = ("iterations", "rollouts", "depth", "rules", "tree_depth")

BAD_UNCERTAINTY, BAD_REWARD and NO_ACTION. int32, no axis."""


def search(
    key: jax.Array,
    state: PyTree,
    model: Model,
    uncertainty: Uncertainty | None,
    config: SearchConfig,
    *,
    num_actions: int | None = None,
    legal: Legal | None = None,
) -> SearchResult:
    """Plans one move from `state` in `model`, leaning away from transitions with a high `uncertainty`.

    A pure function: `jit` it, `vmap` it. Called plainly it compiles itself once and keeps the program. The number of
    actions, and which of them are legal, are the model's own (`domain.model` knows them) or given here.

    What only shows while the search runs (an uncertainty that is negative or not finite, a NaN reward, no legal action)
    is an error when called plainly and a flag on the result otherwise: see `raise_flags`.
    """
    owner = getattr(model, "__self__", model)
    num_actions = num_actions or getattr(owner, "num_actions", None)
    if num_actions is None:
        raise ValueError("num_actions is not given and the model does not have it; pass num_actions=...")
    legal = legal or getattr(owner, "legal", None)
    uncertainty = uncertainty or no_uncertainty
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((key, state, config))):
        return tree_search(key, state, model, uncertainty, config, num_actions, legal)
    fixed, free = _partitioned(config)
    parts: Any = (model, uncertainty, num_actions, legal, fixed)
    result = _compiled(*parts)(key, state, free)
    raise_flags(result)
    return result


def no_uncertainty(state: PyTree, action: jax.Array) -> jax.Array:
    """U = 0 everywhere: the model is believed."""
    return jnp.zeros((), float)


def raise_flags(result: SearchResult) -> None:
    """Raises an error if a search, or any of a batch of them, met something that it cannot plan with."""
    flags = np.bitwise_or.reduce(np.ravel(np.asarray(result.flags)))
    if flags & NO_ACTION:
        raise ValueError("there is no legal action at the root, or the search was too short to try one")
    if flags & BAD_UNCERTAINTY:
        raise ValueError("the uncertainty function returned a number that is negative or not finite")
    if flags & BAD_REWARD:
        raise ValueError("the model returned a reward that is NaN")


def _partitioned(config: SearchConfig) -> tuple[tuple, dict[str, Any]]:
    """Settings that decide how the program is built, and those that are its arguments.

    Plain booleans and a discount of 1 are built in: the program then leaves out what they switch off.
    """
    fixed: dict[str, Any] = {}
    free: dict[str, Any] = {}
    for name in SearchConfig.__dataclass_fields__:
        value = getattr(config, name)
        static = isinstance(value, (bool, str)) or value is None or name in STATIC_FIELDS
        (fixed if static or (name == "gamma" and np.ndim(value) == 0 and value == 1) else free)[name] = value
    return tuple(fixed.items()), free


@functools.lru_cache(maxsize=64)
def _compiled(model: Any, uncertainty: Any, num_actions: int, legal: Any, fixed: tuple) -> Callable[..., SearchResult]:
    """The compiled program of one model, uncertainty function and set of built-in settings."""

    def program(key: jax.Array, state: PyTree, free: dict[str, Any]) -> SearchResult:
        config = SearchConfig(**dict(fixed), **free)
        return tree_search(key, state, model, uncertainty, config, num_actions, legal)

    return jax.jit(program)


def tree_search(
    key: jax.Array,
    state: PyTree,
    model: Model,
    uncertainty: Uncertainty,
    config: SearchConfig,
    num_actions: int,
    legal: Legal | None = None,
) -> SearchResult:
    """One search from `state`: pure and unbatched."""
    released = config.rules == "released"
    seed = seed_of(key)
    longest = longest_path(config, num_actions, legal is not None)
    parts = (model, uncertainty, legal, num_actions, config)

    def iteration(carry: tuple, index: jax.Array) -> tuple:
        tree, flags = carry
        block = index + (2 if released else 1)
        path = select(tree, config, longest)
        leaf_state, over, stats = _read(tree, path.leaf)

        children = expand(seed, block, leaf_state, *parts)
        grows = (stats[VISITS] > 0) & ~over & jnp.any(children.exists) & (path.length <= longest)
        tree = _link(write(tree, block, children), path.leaf, block, grows)
        first = jnp.argmax(children.exists) if released else pick(draw(seed, CHILD, index), children.exists)
        child = jax.tree.map(lambda leaf: leaf[first], (children.state, children.terminal))
        start, over = jax.tree.map(lambda a, b: jnp.where(grows, a, b), child, (leaf_state, over))

        rollouts = simulate(seed, index, start, over, *parts)
        end = block * num_actions + first.astype(jnp.int32)
        path = _extended(path, end, grows)
        tree = backpropagate(tree, path, value(rollouts, config), config)
        flags = flags | jnp.where(grows, _flags(children.uncertainty, children.reward), 0)
        return (tree, flags | _flags(rollouts.uncertainty, rollouts.returns)), None

    tree, flags = _planted(seed, state, parts, released)
    (tree, flags), _ = jax.lax.scan(iteration, (tree, flags), jnp.arange(config.iterations, dtype=jnp.int32))
    return _result(seed, tree, flags, config)


def longest_path(config: SearchConfig, num_actions: int, masked: bool) -> int:
    """How many levels the tree may have: no more than `iterations` can reach, and no more than `tree_depth`.

    All children of a node are visited before one of them gets children of its own, so that every level takes as many
    iterations as a node has children: all actions but one that was deleted, if no action is illegal.
    """
    fewest = 1 if masked else max(1, num_actions - 1)
    return min(config.iterations // fewest + 2, config.tree_depth)


def _planted(seed: jax.Array, state: PyTree, parts: tuple, released: bool) -> tuple[Tree, jax.Array]:
    """The tree before the first iteration: a root, which the released rules expand at once."""
    _, _, _, num_actions, config = parts
    tree = empty(state, config.iterations + (2 if released else 1), num_actions)
    tree = tree._replace(exists=tree.exists.at[0, 0].set(True))
    if not released:
        return tree, jnp.int32(0)
    children = expand(seed, jnp.int32(1), state, *parts)
    tree = _link(write(tree, jnp.int32(1), children), jnp.int32(ROOT), jnp.int32(1), jnp.bool_(True))
    tree = tree._replace(stats=tree.stats.at[0, 0, VISITS].set(config.root_visits))
    return tree, _flags(children.uncertainty, children.reward)


def _read(tree: Tree, node: jax.Array) -> tuple:
    """State, end and statistics of a node, read once and before the tree is written to.

    Left to itself the compiler reads them anew wherever they are used, also after the write, and for that copies the
    whole tree in every iteration. What a loop of one round gives cannot be computed anew.
    """

    def look(carry: tuple) -> tuple:
        return node >= 0, jax.tree.map(lambda leaf: tree.node(leaf, node), (tree.state, tree.terminal, tree.stats))

    unread = jax.tree.map(lambda leaf: leaf[0, 0], (tree.state, tree.terminal, tree.stats))
    return jax.lax.while_loop(lambda carry: ~carry[0], look, (jnp.bool_(False), unread))[1]


def _link(tree: Tree, parent: jax.Array, block: jax.Array, grows: jax.Array) -> Tree:
    """The tree in which `block` holds the children of `parent`, if it grows."""
    place = jnp.where(grows, parent, tree.children.size)
    children = tree.children.reshape(-1).at[place].set(block, mode="drop")
    return tree._replace(children=children.reshape(tree.children.shape))


def _extended(path: Path, child: jax.Array, grows: jax.Array) -> Path:
    """The path with one more node at its end, if the tree grew there."""
    nodes = jnp.where(grows & (jnp.arange(path.nodes.size) == path.length), child, path.nodes)
    return Path(nodes, path.length + grows, jnp.where(grows, child, path.leaf))


def _flags(doubt: jax.Array, reward: jax.Array) -> jax.Array:
    doubtful = jnp.any(jnp.isnan(checked(doubt)))
    return BAD_UNCERTAINTY * doubtful.astype(jnp.int32) + BAD_REWARD * jnp.any(jnp.isnan(reward)).astype(jnp.int32)


def _result(seed: jax.Array, tree: Tree, flags: jax.Array, config: SearchConfig) -> SearchResult:
    block = tree.children[0, 0]
    expanded = block != 0
    exists = tree.exists[block] & expanded
    visits = jnp.where(exists, tree.stats[block, :, VISITS], 0.0)
    found = values(tree.stats[block], config) + tree.reward[block]
    best = exists & (visits == jnp.max(jnp.where(exists, visits, -1.0)))
    return SearchResult(
        action=pick(draw(seed, TIE, jnp.int32(0)), best),
        visits=visits.astype(jnp.int32),
        values=jnp.where(visits > 0, found, jnp.nan),
        uncertainty=jnp.where(expanded, tree.uncertainty[block], 0.0),
        exists=exists,
        tree=tree,
        flags=flags | jnp.where(jnp.any(exists), 0, NO_ACTION),
    )
