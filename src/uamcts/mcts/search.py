"""Uncertainty-Adapted Monte Carlo Tree Search: the loop of Algorithm 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uamcts.mcts.backpropagate import backpropagate
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.expand import Children, expand, write
from uamcts.mcts.explain import explain
from uamcts.mcts.problem import Problem
from uamcts.mcts.rules import Rules, find_rules
from uamcts.mcts.select import Path, child_values, select
from uamcts.mcts.simulate import Start, leaf_value, nan_if_invalid, roll_out, simulate
from uamcts.mcts.tree import ROOT, VISITS, Tree, empty
from uamcts.randomness import CHILD, TIE, Seed, draw, pick, seed_of
from uamcts.types import BatchedUncertainty, Number, PyTree

BAD_UNCERTAINTY, BAD_REWARD, NO_ACTION = 1, 2, 4
"""Flags of a result: what only shows while the search runs."""


class SearchResult(NamedTuple):
    """The result of a search. `jax.vmap` adds axes in front of every array.

    Example:
        ```python
        result = uamcts.search(key, state, domain.model, uamcts.true_uncertainty(domain), config)
        print(domain.action_names[result.action], result.visits)
        print(result.explain(domain.action_names))
        ```
    """

    action: Int[Array, ""]
    """The most visited action. Ties are broken at random, under the trust rules by value first."""
    visits: Int[Array, " actions"]
    """How often each action was tried; 0 for deleted and illegal ones."""
    values: Float[Array, " actions"]
    """The value of each action, including the reward of its first step; NaN if it was never tried."""
    uncertainty: Float[Array, " actions"]
    """U of each action's first step."""
    exists: Bool[Array, " actions"]
    """False for actions that are illegal or that UA-Expansion deleted at the root."""
    tree: Any
    """The search tree, or the graph (`SearchConfig.graph`)."""
    flags: Int[Array, ""]
    """0, or a sum of BAD_UNCERTAINTY, BAD_REWARD and NO_ACTION: see `raise_flags`."""
    memory: PyTree = None
    """What a `BatchedUncertainty` remembers; pass it on to the next search."""

    def explain(self, action_names: Sequence[str] = ()) -> str:
        """Explains the choice in words.

        Args:
            action_names: one name per action; by default their numbers.

        Returns:
            A sentence, and a table with visits, value and uncertainty of every action and what was deleted.

        Raises:
            ValueError: if this is the result of a batch of searches.
        """
        return explain(self, action_names)


_Carry: TypeAlias = tuple[Tree, jax.Array, PyTree]
"""What an iteration passes on: the tree, the flags, and what the uncertainty remembers."""


def tree_search(
    key: PRNGKeyArray, state: PyTree, problem: Problem, config: SearchConfig, memory: PyTree = None
) -> SearchResult:
    """One search from `state`: pure and unbatched."""
    rules, seed = find_rules(config.rules), seed_of(key)
    longest = longest_path(config, problem.num_actions, problem.legal is not None)
    if config.worst is None and config.reads("worst"):
        config = replace(config, worst=worst_return(seed, state, problem, config, longest))
    if memory is None and isinstance(problem.uncertainty, BatchedUncertainty):
        memory = problem.uncertainty.memory()

    def iteration(carry: _Carry, index: Int[Array, ""]) -> tuple[_Carry, None]:
        tree, flags, memory = carry
        block = index + first_block(rules)
        path = select(tree, config, longest)
        leaf = _read(tree, path, rules)

        ripe = (leaf.visits > 0) & ~leaf.terminal & (path.length <= longest)
        below = rules.below_doubt(config, leaf.doubted) if rules.follows_doubt else config
        children, memory = expand(seed, block, leaf.state, problem, below, memory=memory, wanted=ripe)
        grows = ripe & jnp.any(children.exists)
        tree = _link(write(tree, block, children), path.leaf, block, grows)
        first = _first(seed, index, children, rules)
        child = jax.tree.map(lambda row: row[first], children.state)
        start = jax.tree.map(
            lambda a, b: jnp.where(grows, a, b), (child, children.terminal[first]), (leaf.state, leaf.terminal)
        )
        if rules.follows_doubt:
            below = rules.below_doubt(below, grows & (children.keep[first] < 1.0))
        rollouts = simulate(Start(seed, index, *start), problem, below, memory)
        path = _extend(path, block * problem.num_actions + first.astype(jnp.int32), grows)
        tree = backpropagate(tree, path, leaf_value(rollouts, config), (leaf.visits > 0) & ~grows, config)
        flags = flags | jnp.where(grows, _flags(children.uncertainty, children.reward), 0)
        return (tree, flags | _flags(rollouts.uncertainty, rollouts.returns), rollouts.memory), None

    start = _plant(seed, state, problem, config, memory)
    (tree, flags, memory), _ = jax.lax.scan(iteration, start, jnp.arange(config.iterations, dtype=jnp.int32))
    return _result(seed, tree, flags, config)._replace(memory=memory)


def first_block(rules: Rules) -> int:
    """The block that the first iteration writes to. Block 1 holds the root's children if the root is expanded first."""
    return 2 if rules.expands_root else 1


def _first(seed: Seed, index: Int[Array, ""], children: Children, rules: Rules) -> Int[Array, ""]:
    """Which of the new children is rolled out."""
    if rules.picks_at_random:
        return pick(draw(seed, CHILD, index), children.exists)
    return jnp.argmax(rules.first_choice(children.exists, children.bias))


def longest_path(config: SearchConfig, num_actions: int, masked: bool) -> int:
    """How many levels the tree may have: no more than `iterations` can reach, and no more than `tree_depth`.

    All children of a node are visited before one of them gets children of its own, so that every level takes as many
    iterations as a node has children: all actions but one that was deleted, if no action is illegal.
    """
    fewest = 1 if masked else max(1, num_actions - 1)
    return min(config.iterations // fewest + 2, config.tree_depth)


def worst_return(seed: Seed, state: PyTree, problem: Problem, config: SearchConfig, longest: int) -> Float[Array, ""]:
    """V_min where `worst` is not given: the worst return of one simulation from the root, at most 0.

    A rollout that is cut at `depth` is assumed to continue like that for as many steps as the search can look ahead.
    """
    index = jnp.int32(config.iterations)  # the simulations of the iterations have the numbers before
    end = roll_out(Start(seed, index, state, jnp.bool_(False)), problem, config)
    rest = jnp.where(end.over, 1.0, horizon_ratio(config.gamma, config.depth, config.depth + longest))
    return jnp.minimum(0.0, jnp.min(end.returned * rest))


def horizon_ratio(gamma: Number, depth: int, span: int) -> Float[Array, ""]:
    """How many times more a reward of 1 at each of `span` steps is than at each of `depth` steps, discounted."""
    counts = jnp.power(gamma, jnp.arange(span))
    return jnp.sum(counts) / jnp.sum(counts[:depth])


def _plant(seed: Seed, state: PyTree, problem: Problem, config: SearchConfig, memory: PyTree) -> _Carry:
    """The tree before the first iteration: a root, which most rule sets expand at once."""
    rules = find_rules(config.rules)
    tree = empty(state, config.iterations + first_block(rules), problem.num_actions)
    tree = tree._replace(exists=tree.exists.at[0, 0].set(True))
    if not rules.expands_root:
        return tree, jnp.int32(0), memory
    children, memory = expand(seed, jnp.int32(1), state, problem, config, memory=memory)
    tree = _link(write(tree, jnp.int32(1), children), jnp.int32(ROOT), jnp.int32(1), jnp.bool_(True))
    tree = tree._replace(stats=tree.stats.at[0, 0, VISITS].set(config.root_visits))
    return tree, _flags(children.uncertainty, children.reward), memory


class _Leaf(NamedTuple):
    """What an iteration needs to know of the leaf that it selected."""

    state: PyTree
    terminal: Bool[Array, ""]
    visits: Float[Array, ""]
    doubted: Bool[Array, ""]
    """Whether a transition on the way to it keeps less than all of a value. Only if a rule set follows doubt."""


def _read(tree: Tree, path: Path, rules: Rules) -> _Leaf:
    """The leaf of a path.

    Everything is read once, before the tree is written to. Otherwise the compiler reads again wherever a value is used,
    even after the write, and copies the whole tree in every iteration for that. It cannot recompute the result of a
    loop, so this is a loop of one round.
    """

    def look(carry: tuple[Bool[Array, ""], _Leaf]) -> tuple[Bool[Array, ""], _Leaf]:
        state, terminal, stats = jax.tree.map(
            lambda leaf: tree.node(leaf, path.leaf), (tree.state, tree.terminal, tree.stats)
        )
        doubted = jnp.bool_(False)
        if rules.follows_doubt:
            keep = tree.keep.reshape(-1).at[path.nodes].get(mode="fill", fill_value=1.0)
            doubted = jnp.any(keep < 1.0)
        return path.leaf >= 0, _Leaf(state, terminal, stats[VISITS], doubted)

    state, terminal, stats = jax.tree.map(lambda leaf: leaf[0, 0], (tree.state, tree.terminal, tree.stats))
    start = (jnp.bool_(False), _Leaf(state, terminal, stats[VISITS], jnp.bool_(False)))
    return jax.lax.while_loop(lambda carry: ~carry[0], look, start)[1]


def _link(tree: Tree, parent: Int[Array, ""], block: Int[Array, ""], grows: Bool[Array, ""]) -> Tree:
    """The tree in which `block` holds the children of `parent`, if it grows."""
    place = jnp.where(grows, parent, tree.children.size)
    children = tree.children.reshape(-1).at[place].set(block, mode="drop")
    return tree._replace(children=children.reshape(tree.children.shape))


def _extend(path: Path, child: Int[Array, ""], grows: Bool[Array, ""]) -> Path:
    """The path with one more node at its end, if the tree grew there."""
    nodes = jnp.where(grows & (jnp.arange(path.nodes.size) == path.length), child, path.nodes)
    return Path(nodes, path.length + grows, jnp.where(grows, child, path.leaf))


def _flags(doubt: Float[Array, " n"], reward: Float[Array, " n"]) -> Int[Array, ""]:
    doubtful = jnp.any(jnp.isnan(nan_if_invalid(doubt)))
    return BAD_UNCERTAINTY * doubtful.astype(jnp.int32) + BAD_REWARD * jnp.any(~jnp.isfinite(reward)).astype(jnp.int32)


def _result(seed: Seed, tree: Tree, flags: Int[Array, ""], config: SearchConfig) -> SearchResult:
    block = tree.children[0, 0]
    expanded = block != 0
    exists = tree.exists[block] & expanded
    visits = jnp.where(exists, tree.stats[block, :, VISITS], 0.0)
    found = child_values(tree.stats[block], tree.reward[block], tree.keep[block], config)
    best = exists & (visits == jnp.max(jnp.where(exists, visits, -1.0)))
    if find_rules(config.rules).breaks_ties_by_value:
        best = best & ~(found < jnp.max(jnp.where(best, found, -jnp.inf)))
    return SearchResult(
        action=pick(draw(seed, TIE, jnp.int32(0)), best),
        visits=visits.astype(jnp.int32),
        values=jnp.where(visits > 0, found, jnp.nan),
        uncertainty=jnp.where(expanded, tree.uncertainty[block], 0.0),
        exists=exists,
        tree=tree,
        flags=flags | jnp.where(jnp.any(exists), 0, NO_ACTION),
    )
