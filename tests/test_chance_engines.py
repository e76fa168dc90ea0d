"""In random models too, both engines build the same tree from the same draws: node for node, outcome for outcome."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engines import HashedDraws
from random_tables import Chances

import uamcts
from uamcts.mcts.problem import make_problem
from uamcts.mcts.search import tree_search

SWITCHES = list(itertools.product((False, True), repeat=4))
PHASES = ("selection", "expansion", "simulation", "backpropagation")
SETTINGS = {"iterations": 60, "rollouts": 4, "depth": 6, "c": 1.0, "tau": 0.1, "gamma": 0.5}
"""Four rollouts, a discount of one half and tables of sixteenths keep sums exact in binary: ties are ties."""
TRUST = {"rho": 0.75, "penalty": 0.5, "worst": -2.0}
DELETING = {"deletion_scale": 1.0, "deletion_threshold": 0.1}


def exact_table(seed, states=20, actions=3):
    """A random process in which every number is a multiple of 1/16. The third outcome of some actions never happens."""
    rng, shape = np.random.default_rng(seed), (states, actions, 3)
    sixteenths = rng.integers(1, 8, (states, actions, 2))
    probabilities = np.concatenate([sixteenths, 16 - sixteenths.sum(axis=2, keepdims=True)], axis=2) / 16
    probabilities[::4, 0] = [0.25, 0.75, 0.0]
    return Chances(
        following=rng.integers(0, states, shape).astype(np.int32),
        rewards=(rng.integers(-16, 17, shape) / 16).astype(np.float32),
        ends=rng.random(shape) < 0.1,
        probabilities=probabilities,
    )


class PlainTable:
    """The same process in plain Python, with the legal actions of `legal`, [states, actions]."""

    def __init__(self, table, legal):
        self.table, self.num_actions, self.legal = table, table.num_actions, legal

    def outcomes(self, state, action):
        rows = zip(*(part[state, action].tolist() for part in self.table), strict=True)
        return [(chance, (following, reward, ends)) for following, reward, ends, chance in rows]

    def legal_actions(self, state):
        return np.flatnonzero(self.legal[state]).tolist()


def doubts(states, actions):
    """U, [states, actions]: 0 for two transitions of three."""
    return np.fromfunction(lambda state, action: ((state + action) % 3 == 0) * 0.375, (states, actions))


def assert_same_tree(tree, node, place=0):
    """Compares the children of a place with those of a plain node, then what is below. Returns how many nodes."""
    block, nodes = int(tree.children.reshape(-1)[place]), 0
    assert (block != 0) == bool(node.children)
    if not block:
        return nodes
    assert np.flatnonzero(tree.exists[block]).tolist() == [child.action for child in node.children]
    rewards = np.asarray(tree.rewards(block))
    for child in node.children:
        assert tree.visits[block, child.action] == child.visits
        np.testing.assert_allclose(tree.total[block, child.action], child.total, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(tree.weight[block, child.action], child.weight, rtol=1e-9)
        np.testing.assert_allclose(rewards[child.action], child.reward, rtol=1e-9, atol=1e-12)
        assert tree.uncertainty[block, child.action] == child.uncertainty
        first = (block * tree.num_actions + child.action) * tree.slots
        for below, outcome in enumerate(child.outcomes, first):
            assert_same_outcome(tree, outcome, below)
            nodes += 1 + assert_same_tree(tree, outcome, below)
        for below in range(first + len(child.outcomes), first + tree.slots):
            assert tree.chance.visits.reshape(-1)[below] == 0  # the plain engine has not drawn it yet
    return nodes


def assert_same_outcome(tree, outcome, place):
    """Compares what a place and a plain node know of one outcome of an action."""
    arrays = (tree.chance.visits, tree.chance.probability, tree.state, tree.terminal)
    visits, probability, state, terminal = (leaf.reshape(-1)[place] for leaf in arrays)
    assert (visits, state, terminal) == (outcome.visits, outcome.state, outcome.terminal)
    if outcome.probability != 1.0:  # which it is for all draws of the plain engine
        assert probability == outcome.probability
    if probability:
        assert tree.reward.reshape(-1)[place] == outcome.reward


@pytest.mark.parametrize("rules", ["released", "pseudocode", "trust"])
def test_the_same_tree_for_every_combination_of_switches(rules):
    table, uncertain = exact_table(5), doubts(20, 3)
    legal = np.random.default_rng(1).random((20, 3)) < 0.8
    legal[0] = True
    config = uamcts.SearchConfig(**SETTINGS, **(TRUST if rules == "trust" else DELETING), rules=rules)
    keys = jax.random.split(jax.random.key(7), len(SWITCHES))
    nodes = deleted = 0
    with jax.enable_x64(True):
        model = Chances(*map(jnp.asarray, table))
        problem = make_problem(
            model, lambda s, a: jnp.asarray(uncertain)[s, a], legal=lambda state: jnp.asarray(legal)[state]
        )
        plan = jax.vmap(lambda key, switches: tree_search(key, jnp.int32(0), problem, replace(config, **switches)))
        lanes = dict(zip(PHASES, np.array(SWITCHES).T, strict=True))
        results = jax.device_get(jax.jit(plan)(keys, lanes))
        assert results.tree.total.dtype == np.float64
        for lane, switches in enumerate(SWITCHES):
            draws = HashedDraws(keys[lane])
            draws.rollouts = config.rollouts
            chosen = replace(config, **dict(zip(PHASES, switches, strict=True)))
            plain = uamcts.reference.search(
                draws, 0, PlainTable(table, legal), lambda s, a: float(uncertain[s, a]), chosen
            )
            result = jax.tree.map(lambda leaf, lane=lane: leaf[lane], results)
            assert int(result.action) == plain.action
            nodes += assert_same_tree(result.tree, plain.tree)
            deleted += plain.tree.deleted is not None
    assert nodes > 16 * 100, "hardly a tree was built"
    assert deleted == 0 if rules == "trust" else deleted > 0


# A model that only draws. The engines draw with generators of different kinds, so the plain one is given the draws that
# the compiled one made; a state is the path to it, so that a draw belongs to one place of the tree.

PATHS, LUCK = 2**40, 2**20


def walk(state, action, shift):
    """A state that hardly another path leads to, its reward, and whether it ends the episode."""
    state = (state * 31 + action * 7 + shift + 1) % PATHS
    return state, (state % 5) / 4, state % 11 == 0


class CompiledSampler:
    """Draws one of very many outcomes."""

    num_actions = 2

    def sample(self, state, action, key):
        following, reward, ends = walk(state, action, jax.random.randint(key, (), 0, LUCK))
        return uamcts.Transition(following, reward, ends)


class Replay:
    """Draws again, in order, what a compiled search drew for each state and action."""

    num_actions = 2

    def __init__(self, tree):
        self.waiting = {}
        for place in np.flatnonzero(tree.children.reshape(-1)):
            block, state = tree.children.reshape(-1)[place], int(tree.state.reshape(-1)[place])
            for action in range(2):
                slots = slice(action * tree.slots, (action + 1) * tree.slots)
                rows = (part[block, slots].tolist() for part in (tree.state, tree.reward, tree.terminal))
                assert (state, action) not in self.waiting, "two places have one state"
                self.waiting[state, action] = list(zip(*rows, strict=True))

    def sample(self, state, action, rng):
        if isinstance(rng, np.random.Generator):  # the check for hidden state, not the search
            return walk(state, action, int(rng.integers(LUCK)))
        return self.waiting[state, action].pop(0)


class Replayed(HashedDraws):
    """The draws of the JAX engine; those of the model are not made here."""

    def generator(self):
        return None


@pytest.mark.parametrize("rules", ["released", "trust"])
def test_the_same_tree_of_sampled_outcomes(rules):
    settings = {"iterations": 150, "rollouts": 1, "gamma": 0.5, "c": 2.0, "outcomes": 3, "expansion": False}
    config = uamcts.SearchConfig(**settings, rules=rules, **(TRUST if rules == "trust" else {}))
    key, start = jax.random.key(3), 5
    with jax.enable_x64(True):
        compiled = uamcts.search(
            key, jnp.int64(start), CompiledSampler(), lambda s, a: (s % 4 == 1) * 0.375, config,
            value=lambda state: (state % 9) / 8,
        )  # fmt: skip
        tree = jax.device_get(compiled.tree)
        model = Replay(tree)
        plain = uamcts.reference.search(
            Replayed(key), start, model, lambda s, a: (s % 4 == 1) * 0.375, config, value=lambda state: (state % 9) / 8
        )
        assert compiled.visits.tolist() == plain.visits
        assert int(compiled.action) == plain.action
        assert assert_same_tree(tree, plain.tree) > 100
