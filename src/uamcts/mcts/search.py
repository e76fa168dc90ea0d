"""Uncertainty-Adapted Monte Carlo Tree Search: the loop of Algorithm 1."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uamcts.mcts.backpropagate import backpropagate
from uamcts.mcts.charge import Charged
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.expand import Children, expand, write
from uamcts.mcts.explain import explain
from uamcts.mcts.leaf import estimate
from uamcts.mcts.loops import read_once
from uamcts.mcts.problem import Problem
from uamcts.mcts.reuse import move_root, set_root_visits
from uamcts.mcts.rules import Rules, find_rules
from uamcts.mcts.select import Path, child_values, select
from uamcts.mcts.simulate import Start, nan_if_invalid, worst_return
from uamcts.mcts.tree import ROOT, VISITS, Tree, empty
from uamcts.randomness import CHILD, TIE, Seed, draw, pick, seed_of
from uamcts.types import BatchedUncertainty, Number, PyTree

BAD_UNCERTAINTY, BAD_REWARD, NO_ACTION, BAD_PROBABILITY = 1, 2, 4, 8
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
    """0, or a sum of BAD_UNCERTAINTY, BAD_REWARD, NO_ACTION and BAD_PROBABILITY: see `raise_flags`."""
    cache: PyTree = None
    """The prediction cache of a `BatchedUncertainty`; pass it on to the next search."""

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


_Carry: TypeAlias = tuple[Tree, jax.Array, PyTree]
"""What an iteration passes on: the tree, the flags and the prediction cache."""


def tree_search(
    key: PRNGKeyArray,
    state: PyTree,
    problem: Problem,
    config: SearchConfig,
    cache: PyTree = None,
    horizon: Number = None,
    previous: PyTree = None,
) -> SearchResult:
    """One search from `state`: pure and unbatched.

    `horizon` is the number of steps left, at which tree and rollouts end. `previous` is the tree of an earlier search:
    what lies below the outcome that became `state` is kept (`reuse.py`).
    """
    rules, seed = find_rules(config.rules), seed_of(key)
    grown = config.iterations * (1 if previous is None else 2)
    masked = problem.legal is not None or problem.prior is not None
    longest = longest_path(replace(config, iterations=grown), problem.num_actions, masked)
    config, cache = fill_in(seed, state, problem, config, longest, cache)
    limit = longest if horizon is None else jnp.minimum(longest, horizon)

    def iteration(carry: _Carry, index: Int[Array, ""]) -> tuple[_Carry, None]:
        tree, flags, cache = carry
        block = index + (first_block(rules) + grown - config.iterations)
        path = select(tree, config, longest, horizon)
        leaf = _read(tree, path, rules)

        ripe = (leaf.place_visits > 0) & ~leaf.terminal & (path.length <= limit)
        below = rules.below_doubt(config, leaf.doubted) if rules.follows_doubt else config
        children, cache = expand(seed, block, leaf.state, problem, below, cache=cache, wanted=ripe)
        grows = ripe & jnp.any(children.exists)
        tree = _link(write(tree, block, children), path.leaf, block, grows)
        first = _first(seed, index, children, rules)
        place = _first_place(children, first)
        begin, over = _rollout_start(children, place, leaf, grows)
        if rules.follows_doubt:
            below = rules.below_doubt(below, grows & (children.keep[first] < 1.0))
        path = _extend(path, block * children.terminal.size + place.astype(jnp.int32), grows)
        left = None if horizon is None else horizon - (path.length - 1)
        found = estimate(Start(seed, index, begin, over, left), problem, config, below, cache)
        tree = backpropagate(tree, path, found.value, (leaf.visits > 0) & ~grows, config)
        flags = flags | jnp.where(grows, _flags(children), 0)
        flags = flags | _flag_word(found.bad_uncertainty, found.bad_reward)
        return (tree, flags, found.cache), None

    start = _plant(seed, state, problem, config, cache, previous)
    (tree, flags, cache), _ = jax.lax.scan(iteration, start, jnp.arange(config.iterations, dtype=jnp.int32))
    return _result(seed, tree, flags, config)._replace(cache=cache)


def fill_in(
    seed: Seed, state: PyTree, problem: Problem, config: SearchConfig, longest: int, cache: PyTree
) -> tuple[SearchConfig, PyTree]:
    """The settings with `worst`, if the rule set reads it, and an empty prediction cache, if there is none yet."""
    uncertainty = problem.uncertainty
    if config.worst is None and config.reads("worst"):
        priced = uncertainty.price(problem, uncertainty.uncertainty) if isinstance(uncertainty, Charged) else problem
        config = replace(config, worst=worst_return(seed, state, priced, config, longest))
    if cache is None and isinstance(uncertainty, BatchedUncertainty):
        cache = uncertainty.empty_cache()
    return config, cache


def first_block(rules: Rules) -> int:
    """The block that the first iteration writes to. Block 1 holds the root's children if the root is expanded first."""
    return 2 if rules.expands_root else 1


def _first(seed: Seed, index: Int[Array, ""], children: Children, rules: Rules) -> Int[Array, ""]:
    """Which of the new children is rolled out."""
    if rules.picks_at_random:
        return pick(draw(seed, CHILD, index), children.exists)
    return jnp.argmax(rules.first_choice(children.exists, children.bias))


def _first_place(children: Children, first: Int[Array, ""]) -> Int[Array, ""]:
    """Which of its outcomes: the most likely one."""
    if children.probability is None:
        return first
    slots = children.probability.size // children.exists.size
    return first * slots + jnp.argmax(children.probability.reshape(-1, slots)[first])


def _rollout_start(
    children: Children, place: Int[Array, ""], leaf: _Leaf, grows: Bool[Array, ""]
) -> tuple[PyTree, Bool[Array, ""]]:
    """The state that is rolled out, and whether the episode is over there: the new child's, or the leaf's own."""
    child = jax.tree.map(lambda row: row[place], children.state)
    pairs = (child, children.terminal[place]), (leaf.state, leaf.terminal)
    begin, over = jax.tree.map(lambda new, old: jnp.where(grows, new, old), *pairs)
    return begin, over


def longest_path(config: SearchConfig, num_actions: int, masked: bool) -> int:
    """How many levels the tree may have: no more than `iterations` can reach, and no more than `tree_depth`.

    All children of a node are visited before one of them gets children of its own, so that every level takes as many
    iterations as a node has children: all actions but one that was deleted, if no action is illegal.
    """
    fewest = 1 if masked else max(1, num_actions - 1)
    return min(config.iterations // fewest + 2, config.tree_depth)


def _plant(
    seed: Seed, state: PyTree, problem: Problem, config: SearchConfig, cache: PyTree, previous: PyTree
) -> _Carry:
    """The tree before the first iteration: a root, which most rule sets expand at once, or a part of an earlier one."""
    rules = find_rules(config.rules)
    blocks = config.iterations * (1 if previous is None else 2) + first_block(rules)
    slots = problem.slots(state) if problem.is_random else None
    tree = empty(state, blocks, problem.num_actions, slots, problem.prior is not None)
    tree = tree._replace(exists=tree.exists.at[0, 0].set(True))
    flags = jnp.int32(0)
    if rules.expands_root:
        children, cache = expand(seed, jnp.int32(1), state, problem, config, cache=cache)
        tree = _link(write(tree, jnp.int32(1), children), jnp.int32(ROOT), jnp.int32(1), jnp.bool_(True))
        tree = set_root_visits(tree, config.root_visits)
        flags = _flags(children)
    if previous is not None:
        tree = move_root(previous, tree, state, config.iterations, rules.follows_doubt)
    return tree, flags, cache


class _Leaf(NamedTuple):
    """What an iteration needs to know of the leaf that it selected."""

    state: PyTree
    terminal: Bool[Array, ""]
    visits: Float[Array, ""]
    """N of its node."""
    outcome_visits: Float[Array, ""] | None
    """N of its place, if the model is random."""
    doubted: Bool[Array, ""]
    """Whether a transition on the way to it keeps less than all of a value. Only if a rule set follows doubt."""

    @property
    def place_visits(self) -> Float[Array, ""]:
        return self.visits if self.outcome_visits is None else self.outcome_visits


def _read(tree: Tree, path: Path, rules: Rules) -> _Leaf:
    """The leaf of a path, read before the tree is written to."""

    def look() -> _Leaf:
        places = (tree.state, tree.terminal, None if tree.chance is None else tree.chance.visits)
        state, terminal, visits = jax.tree.map(lambda leaf: tree.entry(leaf, path.leaf), places)
        stats = tree.entry(tree.stats, tree.node_of(path.leaf))
        doubted = jnp.bool_(False)
        if rules.follows_doubt:
            keep = tree.keep.reshape(-1).at[tree.node_of(path.places)].get(mode="fill", fill_value=1.0)
            doubted = jnp.any(keep < 1.0)
        return _Leaf(state, terminal, stats[VISITS], visits, doubted)

    return read_once(look, path.leaf >= 0)


def _link(tree: Tree, parent: Int[Array, ""], block: Int[Array, ""], grows: Bool[Array, ""]) -> Tree:
    """The tree in which `block` holds the children of `parent`, if it grows."""
    place = jnp.where(grows, parent, tree.children.size)
    children = tree.children.reshape(-1).at[place].set(block, mode="drop")
    return tree._replace(children=children.reshape(tree.children.shape))


def _extend(path: Path, child: Int[Array, ""], grows: Bool[Array, ""]) -> Path:
    """The path with one more place at its end, if the tree grew there."""
    places = jnp.where(grows & (jnp.arange(path.places.size) == path.length), child, path.places)
    return Path(places, path.length + grows, jnp.where(grows, child, path.leaf))


def _flags(children: Children) -> Int[Array, ""]:
    """What is wrong with new children."""
    doubtful = jnp.any(jnp.isnan(nan_if_invalid(children.uncertainty)))
    flags = _flag_word(doubtful, jnp.any(~jnp.isfinite(children.reward)))
    for numbers in (children.probability, children.prior):
        if numbers is not None:
            flags = flags | BAD_PROBABILITY * jnp.any(jnp.isnan(numbers)).astype(jnp.int32)
    return flags


def _flag_word(uncertainty: Bool[Array, ""], reward: Bool[Array, ""]) -> Int[Array, ""]:
    return BAD_UNCERTAINTY * uncertainty.astype(jnp.int32) + BAD_REWARD * reward.astype(jnp.int32)


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
