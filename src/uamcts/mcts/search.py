"""Uncertainty-Adapted Monte Carlo Tree Search: the loop of Algorithm 1."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uamcts.mcts import best_sequence
from uamcts.mcts.backpropagate import backpropagate
from uamcts.mcts.best_sequence import BestSequence
from uamcts.mcts.config import SearchConfig, longest_path, most_growths
from uamcts.mcts.expand import after_read, expand, link, write
from uamcts.mcts.explain import explain
from uamcts.mcts.growth import NO_ACTION, Growth, Leaf, children_flags, flag_word, grow
from uamcts.mcts.kernels import tree_kernel
from uamcts.mcts.leaf import Estimate, estimate
from uamcts.mcts.loops import read_once
from uamcts.mcts.problem import Problem
from uamcts.mcts.reuse import move_root, set_root_visits
from uamcts.mcts.rollout import Start
from uamcts.mcts.rules import Rules, find_rules
from uamcts.mcts.select import Path, child_values, extend, select
from uamcts.mcts.tree import ROOT, VISITS, Tree, empty
from uamcts.mcts.worst_case import fill_in
from uamcts.randomness import TIE, Seed, draw, pick, seed_of
from uamcts.types import Number, PyTree


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
    """The most visited action. Ties are broken at random, under the trust rules by value first. With `config.follow`,
    the first action of `sequence`."""
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
    """0, or a sum of BAD_UNCERTAINTY, BAD_REWARD, NO_ACTION and BAD_PROBABILITY: see `raise_flags`."""
    cache: PyTree = None
    """The prediction cache of a `BatchedUncertainty`; pass it on to the next search."""
    ends: Int[Array, " iterations"] | None = None
    """The place of the tree at which each iteration ended its path (see `Tree`); None for a graph."""
    worst: Number | None = None
    """V_min of the trust rules on a tree, found out if the settings leave it out."""
    sequence: Int[Array, " steps"] | None = None
    """With `config.follow`: the best sequence of actions that was found; -1 stands for no action."""

    @property
    def memory(self) -> PyTree:
        """Deprecated: use `cache`."""
        warnings.warn("SearchResult.memory is deprecated: use SearchResult.cache", DeprecationWarning, stacklevel=2)
        return self.cache

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


_Carry: TypeAlias = tuple[Tree, jax.Array, PyTree, jax.Array, BestSequence | None]
"""What an iteration passes on: the tree, the flags, the prediction cache, the block that is written to next, and the
best sequence so far, if rollouts follow it."""


def tree_search(
    key: PRNGKeyArray,
    state: PyTree,
    problem: Problem,
    config: SearchConfig,
    cache: PyTree = None,
    horizon: Number = None,
    previous: Tree | Int[Array, " steps"] | None = None,
) -> SearchResult:
    """One search from `state`: pure and unbatched.

    `horizon` is the number of steps left, at which tree and rollouts end. `previous` is the tree of an earlier search:
    what lies below the outcome that became `state` is kept (`reuse.py`). With `config.follow`, it is the sequence of
    that search, whose rest is tried first (`best_sequence.py`).
    """
    best = best_sequence.begin(config, problem, None if isinstance(previous, Tree) else previous)
    previous = previous if isinstance(previous, Tree) and best is None else None
    horizon = best_sequence.end_early(best, config, horizon)
    rules, seed = find_rules(config.rules), seed_of(key)
    grown = config.iterations * (1 if previous is None else 2)
    longest = longest_path(replace(config, iterations=grown), problem.num_actions, _is_masked(problem))
    config, cache = fill_in(seed, state, problem, config, longest, cache)
    depth = None if best is None else config.depth
    if best is not None:
        config = replace(config, depth=best.actions.size)
    if config.first is not None:
        config = replace(config, first=config.first % problem.num_actions)
    limit = longest if horizon is None else jnp.minimum(longest, horizon)
    first = first_block(rules) + grown - config.iterations
    steps = _Iterations(seed, problem, config, horizon, longest, limit, depth, first)
    start: _Carry = (*_plant(seed, state, problem, config, cache, previous), jnp.int32(first), best)
    kernels = None
    if cache is None:
        kernels = tree_kernel.find(start[0], config, steps.grow_by_kernels, longest, steps.limit_of, problem)
    numbers = jnp.arange(config.iterations, dtype=jnp.int32)
    if kernels is None:
        (tree, flags, cache, _, best), ends = jax.lax.scan(steps.take, start, numbers)
    else:
        begin = (tree_kernel.store(start[0]), *start[1:])
        (tree, flags, cache, _, best), ends = jax.lax.scan(
            functools.partial(steps.take_by_kernels, kernels), begin, numbers
        )
        tree = tree_kernel.restore(tree, start[0])
    found = _result(seed, tree, flags, config)
    return found._replace(
        action=best_sequence.choose(best, config, found.exists, found.action), cache=cache, ends=ends,
        worst=config.worst, sequence=None if best is None else best.actions - 1,
    )  # fmt: skip


class _Iterations(NamedTuple):
    """The iterations of a search, one at a time."""

    seed: Seed
    problem: Problem
    config: SearchConfig
    horizon: Number
    longest: int
    """The most transitions of a path."""
    limit: Number
    """As many, or as many as there are steps left."""
    depth: int | None
    """In a search for the best sequence of actions: the most steps of a rollout where `follow` turns out to be 0."""
    first: int
    """The block that the first iteration writes to, and the number of its expansion."""

    def take(self, carry: _Carry, index: Int[Array, ""]) -> tuple[_Carry, Int[Array, ""]]:
        """One iteration: selection, expansion, simulation and backpropagation. It also returns where its path ended."""
        tree, flags, cache, block, best = carry
        limit = self.limit_of(index)
        path = select(tree, self.config, self.longest, limit)
        leaf = _read(tree, path, find_rules(self.config.rules))
        growth, cache = self.grow(index, leaf, (path.length <= limit) & tree.has_room(block), cache)
        children = after_read(leaf.visits >= 0, growth.children)
        tree = link(write(tree, block, children), path.leaf, block, growth.grows)
        path = extend(path, block * tree.children.shape[1] + growth.place, growth.grows)
        found = self._estimate(index, path, growth, cache, best)
        tree = backpropagate(tree, path, found.value, (leaf.visits > 0) & ~growth.grows, self.config)
        best = best_sequence.update(best, path, found.actions, found.best, tree, self.config)
        return (tree, flags | growth.flags | _found_flags(found), found.cache, block + growth.grows, best), path.leaf

    def take_by_kernels(
        self, kernels: tree_kernel.TreeKernels, carry: PyTree, index: Int[Array, ""]
    ) -> tuple[PyTree, Int[Array, ""]]:
        """The same, with everything but the simulation and predictions of U in two or three kernels."""
        tree, flags, cache, block, best = carry
        tree, grown = kernels.grow_tree(tree, index, block)
        found = self._estimate(index, grown.path, grown, cache, best)
        tree = kernels.backpropagate(tree, grown.path, found.value, grown.revisited)
        grows = grown.path.leaf // tree.children.shape[1] == block
        best = best_sequence.update(best, grown.path, found.actions, found.best, tree, self.config)
        return (tree, flags | grown.flags | _found_flags(found), cache, block + grows, best), grown.path.leaf

    def limit_of(self, index: Int[Array, ""]) -> Number:
        """The most transitions of the path of an iteration."""
        return self.limit if self.depth is None else best_sequence.stay_at_root(index, self.config, self.limit)

    def grow(
        self, index: Int[Array, ""], leaf: Leaf, room: Bool[Array, ""], cache: PyTree = None
    ) -> tuple[Growth, PyTree]:
        return grow(self.seed, index, index + self.first, leaf, room, self.problem, self.config, cache)

    def grow_by_kernels(
        self, index: Int[Array, ""], leaf: Leaf, room: Bool[Array, ""], doubt: Float[Array, " actions"] | None
    ) -> Growth:
        """The same without a prediction cache."""
        number = index + self.first
        return grow(self.seed, index, number, leaf, room, self.problem, self.config, doubt=doubt)[0]

    def _estimate(
        self,
        index: Int[Array, ""],
        path: Path,
        growth: Growth | tree_kernel.Grown,
        cache: PyTree,
        best: BestSequence | None,
    ) -> Estimate:
        left: Number = None if self.horizon is None else self.horizon - (path.length - 1)
        if self.depth is not None and left is not None:
            left = jnp.where(self.config.follow > 0, left, jnp.minimum(left, self.depth))
        onward = best_sequence.suggest(best, index, path, self.config)
        ahead = None if best is None else path.length - 1
        start = Start(self.seed, index, growth.state, growth.over, left, onward, ahead)
        return estimate(start, self.problem, self.config, growth.below, cache)


def _found_flags(found: Estimate) -> Int[Array, ""]:
    return flag_word(found.bad_uncertainty, found.bad_reward)


def _is_masked(problem: Problem) -> bool:
    """Whether some children of a node may never be visited."""
    return problem.legal is not None or problem.prior is not None


def first_block(rules: Rules) -> int:
    """The block that the first iteration writes to. Block 1 holds the root's children if the root is expanded first."""
    return 2 if rules.expands_root else 1


def _plant(
    seed: Seed, state: PyTree, problem: Problem, config: SearchConfig, cache: PyTree, previous: PyTree
) -> tuple[Tree, jax.Array, PyTree]:
    """The tree before the first iteration: a root, which most rule sets expand at once, or a part of an earlier one."""
    rules = find_rules(config.rules)
    slots = problem.slots(state) if problem.is_random else None
    growths = most_growths(config, problem.num_actions, _is_masked(problem), slots or 1)
    if previous is not None:  # what is kept of it may be ready to grow everywhere
        growths = 2 * config.iterations
    blocks = first_block(rules) + growths + 1
    tree = empty(state, blocks, problem.num_actions, slots, problem.prior is not None)
    tree = tree._replace(exists=tree.exists.at[0, 0].set(True))
    flags = jnp.int32(0)
    if rules.expands_root:
        children, cache = expand(seed, jnp.int32(1), state, problem, config, cache=cache)
        tree = link(write(tree, jnp.int32(1), children), jnp.int32(ROOT), jnp.int32(1), jnp.bool_(True))
        tree = set_root_visits(tree, config.root_visits)
        flags = children_flags(children)
    if previous is not None:
        tree = move_root(previous, tree, state, config.iterations, rules.follows_doubt)
    return tree, flags, cache


def _read(tree: Tree, path: Path, rules: Rules) -> Leaf:
    """The leaf of a path, read before the tree is written to."""

    def look() -> Leaf:
        places = (tree.state, tree.terminal, None if tree.chance is None else tree.chance.visits)
        state, terminal, visits = jax.tree.map(lambda leaf: tree.entry(leaf, path.leaf), places)
        stats = tree.entry(tree.stats, tree.node_of(path.leaf))
        doubted = jnp.bool_(False)
        if rules.follows_doubt:
            keep = tree.keep.reshape(-1).at[tree.node_of(path.places)].get(mode="fill", fill_value=1.0)
            doubted = jnp.any(keep < 1.0)
        return Leaf(state, terminal, stats[VISITS], visits, doubted)

    return read_once(look, path.leaf >= 0)


def _result(seed: Seed, tree: Tree, flags: Int[Array, ""], config: SearchConfig) -> SearchResult:
    block = tree.children[0, 0]
    expanded = block != 0
    exists = tree.exists[block] & expanded
    visits = jnp.where(exists, tree.stats[block, :, VISITS], 0.0)
    found = child_values(tree.stats[block], tree.rewards(block), tree.keep[block], config)
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
