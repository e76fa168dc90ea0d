"""With the same random draws the compiled engine and the plain one build the same tree, node for node."""

import functools
import itertools
from dataclasses import replace

import jax
import numpy as np
import pytest
from conftest import PAPERS
from engines import HashedDraws, PlainDomain, plain_state

import uamcts
from uamcts.mcts.problem import Problem
from uamcts.mcts.search import tree_search

SWITCHES = list(itertools.product((False, True), repeat=4))
SETTINGS = {"iterations": 40, "rollouts": 4, "depth": 12, "c": 1.0, "tau": 0.1, "gamma": 0.5}
"""Four rollouts and a discount of one half keep plain returns exact in binary: ties are ties in both engines."""
GRIDWORLD = {"deletion_scale": 10.0, "deletion_threshold": 0.1, "root_visits": 1}


def settings(domain, rules):
    special = GRIDWORLD if domain.name.startswith("two_way") and rules == "released" else {}
    special = {"rho": 0.75, "penalty": 0.5, "worst": -2.0} if rules == "trust" else special
    return uamcts.SearchConfig(**SETTINGS, **special, rules=rules)


def start(domain):
    """A state some steps into the game, where the model is wrong about some action."""
    state, world = domain.reset(jax.random.key(1)), jax.jit(domain.world)
    prelude = {"freeway": [1] * 4, "breakout": [1, 2, 2, 0], "two_way": [3], "two_way_icy": [1, 0]}
    for action in prelude.get(domain.name, []):
        state = world(state, action).state
    return state


def assert_same_tree(tree, node, model, number=0):
    """Compares a node, then its children. Returns how many nodes there are and how many were deleted."""
    row, column = divmod(number, tree.num_actions)
    assert tree.visits[row, column] == node.visits
    np.testing.assert_allclose(tree.total[row, column], node.total, rtol=1e-9, atol=1e-12)
    assert tree.uncertainty[row, column] == pytest.approx(node.uncertainty, abs=1e-12)
    assert tree.reward[row, column] == node.reward
    assert bool(tree.terminal[row, column]) == node.terminal
    assert plain_state(jax.tree.map(lambda leaf: leaf[row, column], tree.state)) == node.state
    block = int(tree.children[row, column])
    assert (block != 0) == bool(node.children)
    nodes, deleted = 1, 0
    if block:
        assert np.flatnonzero(tree.exists[block]).tolist() == [child.action for child in node.children]
        deleted += node.deleted is not None
        for child in node.children:
            below = assert_same_tree(tree, child, model, block * tree.num_actions + child.action)
            nodes, deleted = nodes + below[0], deleted + below[1]
    return nodes, deleted


def doubted(node):
    """How many nodes of a plain tree come from a doubtful transition."""
    return (node.uncertainty > 0) + sum(doubted(child) for child in node.children)


def cases():
    """One domain under all rules, another under one of them; the rest takes minutes."""
    for rules in ("released", "pseudocode", "trust"):
        for name in PAPERS:
            long = name != "breakout" and (name, rules) != ("two_way", "trust")
            yield pytest.param(name, rules, marks=[pytest.mark.long] if long else [])


plain_domain = functools.cache(lambda name: PlainDomain(uamcts.make(name)))
"""The rule sets meet much the same states: what one has looked up, the next need not."""


@pytest.mark.parametrize(("name", "rules"), list(cases()))
def test_the_same_tree_for_every_combination_of_switches(name, rules):
    domain = uamcts.make(name)
    config, state, model = settings(domain, rules), start(domain), plain_domain(name)
    names = ("selection", "expansion", "simulation", "backpropagation")
    keys = jax.random.split(jax.random.key(7), len(SWITCHES))
    lanes = dict(zip(names, np.array(SWITCHES).T, strict=True))
    nodes = deleted = doubts = 0
    with jax.enable_x64(True):

        @jax.jit
        @jax.vmap
        def program(key, switches):
            uncertainty = uamcts.true_uncertainty(domain)
            problem = Problem(domain.model, uncertainty, domain.num_actions)
            return tree_search(key, state, problem, replace(config, **switches))

        results = jax.device_get(program(keys, lanes))
        assert results.tree.total.dtype == np.float64
        for lane, switches in enumerate(SWITCHES):
            draws = HashedDraws(keys[lane])
            draws.rollouts = config.rollouts
            chosen = replace(config, **dict(zip(names, switches, strict=True)))
            plain = uamcts.reference.search(draws, plain_state(state), model, model.uncertainty, chosen)
            result = jax.tree.map(lambda leaf, lane=lane: leaf[lane], results)
            assert int(result.action) == plain.action
            assert result.visits.tolist() == plain.visits
            np.testing.assert_allclose(result.values, plain.values, rtol=1e-9)
            counted = assert_same_tree(result.tree, plain.tree, model)
            nodes, deleted, doubts = nodes + counted[0], deleted + counted[1], doubts + doubted(plain.tree)
    assert doubts >= 16, "hardly a transition was doubtful"
    assert nodes > 16 * 20, "hardly a tree was built"
    assert deleted == 0 if rules == "trust" else deleted >= 10, "hardly a child was deleted, or one too many"
