"""The compiled search: formulas, properties, known answers, bad input."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tables import Table, find, table

import uamcts
from uamcts.mcts import backpropagate, batch, expand, select, simulate
from uamcts.mcts import tree as trees
from uamcts.mcts.api import raise_flags
from uamcts.mcts.growth import BAD_REWARD, BAD_UNCERTAINTY, NO_ACTION
from uamcts.mcts.problem import Problem
from uamcts.mcts.rules.softmax import softmax
from uamcts.mcts.search import tree_search

PLAIN = {"selection": False, "expansion": False, "simulation": False, "backpropagation": False}
ADAPTED = dict.fromkeys(PLAIN, True)
SMALL = uamcts.SearchConfig(iterations=30, rollouts=4, depth=6, c=1.0)
search = jax.jit(find)
"""One program for all tables of a size and all settings of a budget and a rule set."""


# Formulas, against numbers computed by hand.


def test_softmax():
    everyone = jnp.ones(3, bool)
    expected = np.exp([0, 2, 1]) / np.sum(np.exp([0, 2, 1]))
    np.testing.assert_allclose(softmax(jnp.array([0.0, 0.2, 0.1]), everyone, 0.1), expected, rtol=1e-6)
    some = jnp.array([True, False, True])
    weights = softmax(jnp.array([0.0, 9.0, 0.1]), some, 0.1)
    np.testing.assert_allclose(weights, [1 / (1 + math.e), 0, math.e / (1 + math.e)], rtol=1e-6)


@pytest.mark.parametrize("tau", [1e-6, 0.1, 10.0, math.inf])
@pytest.mark.parametrize("numbers", [[0, 0, 0], [1e30, 1e30, 1e30], [0, 1e38, 1], [1e-30, 0, 0], [3, 3, 3]])
def test_softmax_is_safe(tau, numbers):
    weights = softmax(jnp.array(numbers, jnp.float32), jnp.ones(3, bool), tau)
    assert np.all(np.isfinite(weights))
    assert float(jnp.sum(weights)) == pytest.approx(1.0, rel=1e-6)


SIBLINGS = {
    "exists": jnp.array([True, True, False, True]),
    "parent_visits": jnp.float32(10.0),
    "visits": jnp.array([2.0, 4.0, 0.0, 4.0]),
    "values": jnp.array([3.0, 5.0, 99.0, 4.0]),
    "bias": jnp.array([0.5, 0.25, 1.0, 1.0]),
}


def test_scores_as_released():
    """Values 3, 5, 4 become 0, 1, 0.5; the whole score is damped."""
    found = select.scores(select.Siblings(**SIBLINGS), uamcts.SearchConfig(c=2.0))
    log = math.log(10)
    expected = [0.5 * (0 + 2 * math.sqrt(log / 2)), 0.25 * (1 + 2 * math.sqrt(log / 4)), 0.5 + 2 * math.sqrt(log / 4)]
    np.testing.assert_allclose(np.asarray(found)[[0, 1, 3]], expected, rtol=1e-6)


def test_scores_as_printed():
    """Raw values; only the exploration is damped."""
    found = select.scores(select.Siblings(**SIBLINGS), uamcts.SearchConfig(c=2.0, rules="pseudocode"))
    log = math.log(10)
    expected = [3 + 0.5 * 2 * math.sqrt(log / 2), 5 + 0.25 * 2 * math.sqrt(log / 4), 4 + 2 * math.sqrt(log / 4)]
    np.testing.assert_allclose(np.asarray(found)[[0, 1, 3]], expected, rtol=1e-6)


def test_equal_values_are_one_half():
    found = select.normalize(jnp.array([7.0, 7.0, -3.0]), jnp.array([True, True, False]))
    assert found.tolist()[:2] == [0.5, 0.5]


def deletions(config, doubt, draws=4000, allowed=(True, True, True)):
    """How often each child is deleted."""
    seeds = jax.random.bits(jax.random.key(0), (draws, 2), dtype=jnp.uint32)
    one = lambda seed: expand.choose_deletion(seed, jnp.int32(1), jnp.array(doubt), jnp.array(allowed), config)  # noqa: E731
    deleted = jax.jit(jax.vmap(one))(seeds)
    assert int(jnp.max(jnp.sum(deleted, axis=1))) <= 1
    return np.mean(deleted, axis=0)


@pytest.mark.parametrize(
    ("options", "doubt", "expected"),
    [
        ({"tau": 0.1}, [0.1, 0.3, 0.0], [0.225, 0.675, 0.0]),  # released: 1 - tau
        ({"tau": 0.1, "rules": "pseudocode"}, [0.1, 0.3, 0.0], [0.2475, 0.7425, 0.0]),  # printed: 1 - tau / 10
        ({"tau": 0.1, "deletion_scale": 10.0, "deletion_threshold": 0.5}, [0.1, 0.3, 0.0], [0, 0, 0]),
        ({"tau": 0.1, "deletion_scale": 10.0, "deletion_threshold": 0.1}, [0.1, 0.3, 0.0], [0.2475, 0.7425, 0.0]),
        ({"tau": 10.0}, [0.1, 0.3, 0.0], [0, 0, 0]),
        ({"tau": 0.1}, [0.0, 0.0, 0.0], [0, 0, 0]),
        ({"tau": 0.1, "expansion": False}, [0.1, 0.3, 0.0], [0, 0, 0]),
    ],
)
def test_how_often_a_child_is_deleted(options, doubt, expected):
    """4,000 draws: five standard deviations are at most 0.04."""
    np.testing.assert_allclose(deletions(uamcts.SearchConfig(**options), doubt), expected, atol=0.04)


def test_the_last_child_is_never_deleted():
    found = deletions(uamcts.SearchConfig(tau=1e-6), [0.5, 0.0, 0.0], allowed=(True, False, False))
    assert np.all(found == 0)


def test_the_value_of_rollouts():
    rollouts = simulate.Rollouts(jnp.array([1.0, 2.0, 3.0, 6.0]), jnp.array([0.0, 0.1, 0.2, 0.3]))
    config = uamcts.SearchConfig(rollouts=4, tau=0.1)
    weights = np.exp([0, -1, -2, -3]) / np.sum(np.exp([0, -1, -2, -3]))
    assert float(simulate.leaf_value(rollouts, config)) == pytest.approx(weights @ [1, 2, 3, 6], rel=1e-6)
    assert float(simulate.leaf_value(rollouts, replace(config, simulation=False))) == pytest.approx(3.0)


def small_tree():
    """Root 0, its children in block 1 (nodes 2, 3), the children of node 3 in block 2 (nodes 4, 5)."""
    tree = trees.empty(jnp.int32(0), blocks=3, num_actions=2)
    return tree._replace(
        children=jnp.array([[1, 0], [0, 2], [0, 0]]),
        exists=jnp.array([[True, False], [True, True], [True, True]]),
        reward=jnp.array([[0.0, 0.0], [1.0, 2.0], [4.0, 8.0]]),
        keep=jnp.array([[1.0, 1.0], [0.75, 0.25], [0.5, 0.5]]),
    )


@pytest.mark.parametrize(
    ("rules", "total", "weight"),
    [
        # value 3 at node 5; (0.5 * 3 + 8) * 0.5 = 4.75 at node 3; (0.5 * 4.75 + 2) * 0.25 = 1.09375 at the root
        ("released", [3.0, 4.75, 1.09375], [0.0, 0.5, 0.25]),
        # `keep` scales what is added: 0.5 * 3; 0.25 * 9.5; 1 * 6.75; what travels is not scaled
        ("pseudocode", [1.5, 2.375, 6.75], [0.0, 0.5, 0.25]),
        # min(3, 3) at node 5; min(9.5, 8.75) at node 3; the lesser of 6.75 and 3.09375 at the root: P twice, V_min 0
        ("trust", [3.0, 8.75, 3.09375], [0.0, 0.5, 0.25]),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_backpropagation_by_hand(rules, total, weight, device, monkeypatch):
    """Level by level, as on a CPU, and by one scatter, as on a GPU."""
    monkeypatch.setattr(jax, "default_backend", lambda: device)
    path = select.Path(jnp.array([0, 3, 5, 6, 6]), jnp.int32(3), jnp.int32(5))
    config = uamcts.SearchConfig(gamma=0.5, rules=rules)
    tree = backpropagate.backpropagate(small_tree(), path, jnp.float32(3.0), jnp.bool_(False), config)
    on_path = ([2, 1, 0], [1, 1, 0])
    np.testing.assert_allclose(np.asarray(tree.total)[on_path], total)
    np.testing.assert_allclose(np.asarray(tree.weight)[on_path], weight)
    assert np.asarray(tree.visits).tolist() == [[1, 0], [0, 1], [0, 1]]


@pytest.mark.parametrize("leaf", range(7))
def test_doubling_climbs_as_steps_do(leaf):
    """The values of the leaf and of all places above it, wherever it is on the path."""
    rng = np.random.default_rng(leaf)
    factor, summand = (jnp.asarray(rng.random(7), jnp.float32) for _ in range(2))
    above = jnp.arange(7) < leaf
    climbed = backpropagate.climb(jnp.float32(3.0), above, factor, summand)
    value = np.float32(3.0)
    for place in reversed(range(leaf + 1)):
        assert float(climbed[place]) == pytest.approx(float(value), rel=1e-6)
        value = factor[place] * value + summand[place]


@pytest.mark.parametrize("small_loops", [False, True])
def test_a_batch_adds_to_one_entry_of_each_search(small_loops, monkeypatch):
    """By a scatter and one after the other; a search that is done gets nothing, wherever its number points to."""
    monkeypatch.setattr(batch, "compiles_small_loops", lambda: small_loops)
    table = jnp.arange(24, dtype=jnp.float32).reshape(3, 2, 2, 2)
    amounts = jnp.array([[1.0, 2.0], [4.0, 8.0], [16.0, 32.0]])
    after = batch.add_rows(table, jnp.array([3, 9, 0]), amounts, jnp.array([True, False, True]))
    added = np.zeros((3, 4, 2), np.float32)
    added[0, 3], added[2, 0] = amounts[0], amounts[2]
    np.testing.assert_array_equal(after, table + added.reshape(table.shape))


@pytest.mark.parametrize("small_loops", [False, True])
def test_a_batch_of_searches_with_settings_of_their_own_is_each_search(small_loops, monkeypatch):
    """Paths of different lengths, two levels of batches, and settings that belong to one of them."""
    monkeypatch.setattr(batch, "compiles_small_loops", lambda: small_loops)
    domain = uamcts.make("two_way")
    keys, scales = jax.random.split(jax.random.key(0), 3), jnp.array([0.2, 4.0])

    def plan(key, c):
        config = uamcts.SearchConfig(iterations=40, rollouts=2, depth=8, c=c, gamma=0.9, tree_depth=5)
        return uamcts.search(key, domain.reset(key), domain.model, uamcts.true_uncertainty(domain), config)

    together = jax.jit(jax.vmap(jax.vmap(plan, (0, None)), (None, 0)))(keys, scales)
    alone = jax.jit(plan)
    for row, c in enumerate(scales):
        for column, key in enumerate(keys):
            one, other = alone(key, c), jax.tree.map(lambda leaf, at=(row, column): leaf[at], together)
            jax.tree.map(np.testing.assert_array_equal, (one.visits, one.ends), (other.visits, other.ends))
            np.testing.assert_allclose(one.tree.stats, other.tree.stats, rtol=1e-5)


# Properties.

STATES, ACTIONS = 6, 3
some_tables = st.builds(
    Table,
    arrays.arrays(np.int32, (STATES, ACTIONS), elements=st.integers(0, STATES - 1)),
    arrays.arrays(np.float32, (STATES, ACTIONS), elements=st.integers(-2, 2).map(float)),
    arrays.arrays(np.float32, (STATES, ACTIONS), elements=st.sampled_from([0.0, 0.0, 0.05, 0.5, 1e6])),
)
some_switches = st.fixed_dictionaries({phase: st.booleans() for phase in PLAIN})


@pytest.fixture(scope="module")
def searches():
    """One compiled program per rule set: keys, tables and settings are lanes."""

    def program(rules):
        def one(key, table, switches, c, tau):
            config = replace(SMALL, rules=rules, c=c, tau=tau, **switches)
            return tree_search(key, jnp.int32(0), Problem(table.model, table.doubt, ACTIONS), config)

        return jax.jit(jax.vmap(one))

    return {rules: program(rules) for rules in ("released", "pseudocode")}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(some_tables, some_switches, st.sampled_from([0.0, 0.5, 2.0]),
                          st.sampled_from([1e-6, 0.1, 10.0, math.inf])), min_size=4, max_size=4),
       st.permutations(range(4)), st.sampled_from(["released", "pseudocode"]), st.integers(0, 2**31))  # fmt: skip
def test_properties(searches, lanes, order, rules, seed):
    keys = jax.random.split(jax.random.key(seed), 4)
    batch = jax.tree.map(lambda *leaves: np.stack(leaves), *lanes)
    result = jax.device_get(searches[rules](keys, *batch))
    assert np.all(result.flags == 0)
    # The first visit of the root under the printed rules is its own rollout.
    expected = SMALL.iterations if rules == "released" else SMALL.iterations - 1
    assert np.all(result.visits.sum(axis=1) == expected)
    tree = result.tree
    assert np.all(tree.visits[~tree.exists] == 0)
    assert np.all(tree.visits[:, 0, 0] == SMALL.iterations)
    for lane in range(4):
        assert result.exists[lane, result.action[lane]]
        assert result.visits[lane].max() == result.visits[lane, result.action[lane]]
        switches = lanes[lane][1]
        if not switches["expansion"]:
            assert result.exists[lane].all()
        if not switches["backpropagation"]:  # at most: a reward on the way to a leaf, then one for each rollout's step
            bound = np.abs(lanes[lane][0].rewards).max() * (SMALL.iterations + 1 + SMALL.depth)
            assert np.nanmax(np.abs(result.values[lane])) <= bound
    # Lanes do not influence each other, and their order does not matter.
    shuffled = jax.device_get(searches[rules](keys[np.array(order)], *jax.tree.map(lambda leaf: leaf[order], batch)))
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[order], b), result, shuffled)


def test_a_lane_is_the_search_alone(searches):
    corridor = table({(s, a): (min(s + a, 5), float(a == 2), 0.1 * (a == 1)) for s in range(5) for a in range(3)}, 6, 3)
    keys = jax.random.split(jax.random.key(3), 4)
    batch = jax.tree.map(lambda leaf: np.stack([leaf] * 4), (corridor, ADAPTED, 1.0, 0.1))
    together = searches["released"](keys, *batch)
    alone = find(keys[2], corridor, SMALL)
    np.testing.assert_array_equal(together.visits[2], alone.visits)
    np.testing.assert_allclose(together.values[2], alone.values, rtol=1e-6)


def test_tau_to_infinity_is_plain_mcts():
    """Selection, expansion and simulation; released backpropagation still scales by 1 / children."""
    domain = uamcts.make("breakout")
    state = domain.from_features(np.concatenate([[7, 3, 3, 3, 0, 4, 6], np.repeat([0, 1, 0], [10, 30, 60])]))
    uncertainty = uamcts.true_uncertainty(domain)
    switches = {**dict.fromkeys(PLAIN, np.True_), "backpropagation": np.False_}  # of NumPy: arguments of one program
    config = uamcts.SearchConfig(iterations=50, rollouts=4, depth=8, tau=math.inf, **switches)
    key = jax.random.key(0)
    adapted = uamcts.search(key, state, domain.model, uncertainty, config)
    plain = uamcts.search(key, state, domain.model, uncertainty, replace(config, **dict.fromkeys(PLAIN, np.False_)))
    sharp = uamcts.search(key, state, domain.model, uncertainty, replace(config, tau=0.01))
    np.testing.assert_array_equal(adapted.visits, plain.visits)
    np.testing.assert_array_equal(adapted.tree.visits, plain.tree.visits)
    np.testing.assert_allclose(adapted.values, plain.values, rtol=1e-6)
    assert sharp.visits.tolist() != plain.visits.tolist(), "the uncertainty made no difference: this compared nothing"


@pytest.mark.parametrize("rules", ["released", "pseudocode"])
def test_completeness(rules):
    """Theorem 2: with the iterations every node's visits grow, for tau 0.1 and all phases but deletion."""
    two_levels = {(0, a): (1 + a, 0.0, [0.0, 0.05, 0.1][a]) for a in range(3)}
    leaves = {(s, a): (s, 0.1 * a, [0.0, 0.1, 0.05][a]) for s in (1, 2, 3) for a in range(3)}
    tree = table({**two_levels, **leaves}, 5, 3)
    fewest = []
    for iterations in (100, 3000):
        config = uamcts.SearchConfig(iterations=iterations, rollouts=1, depth=2, c=9.0, rules=rules, expansion=False)
        found = search(jax.random.key(0), tree, config).tree
        first = int(found.children[0, 0])
        second = [int(found.children[first, action]) for action in range(3)]
        visits = np.asarray(found.visits)
        fewest.append((visits[first].min(), visits[second].min() if all(second) else 0))
    assert fewest[0][0] >= 1
    assert fewest[0][0] < fewest[1][0]
    assert fewest[0][1] < fewest[1][1]


# Known answers.


def test_a_two_step_trap():
    """Action 0 pays 1 at once. Action 1 leads to where, says the model, 5 is to be had; in truth there is nothing.

    Plain search walks into it; with the true uncertainty of that second step the search takes what is certain.
    """
    trap = table({(0, 0): (2, 1.0, 0.0), (0, 1): (1, 0.0, 0.0), (1, 0): (2, 5.0, 0.5), (1, 1): (2, 0.0, 0.0)}, 3, 2)
    config = uamcts.SearchConfig(iterations=100, rollouts=4, depth=4, c=2.0, tau=0.1)
    plain, adapted = (
        [int(search(jax.random.key(k), trap, choice).action) for k in range(20)]
        for choice in (replace(config, **PLAIN), config)
    )
    assert plain == [1] * 20
    assert adapted.count(0) >= 16  # in one of ten trees the deletion does not strike


@pytest.mark.parametrize("rules", ["released", "pseudocode"])
def test_the_shortest_way_through_a_planted_maze(rules):
    """A path of three right turns among dead ends."""
    way = {(0, 2): (1, 0.0, 0.0), (1, 0): (2, 0.0, 0.0), (2, 1): (3, 0.0, 0.0), (3, 2): (4, 10.0, 0.0)}
    maze = table(way, 5, 3)
    config = uamcts.SearchConfig(iterations=300, rollouts=5, depth=6, c=1.0, rules=rules, **PLAIN)
    result = find(jax.random.key(0), maze, config)
    assert int(result.action) == 2
    assert float(result.values[2]) > 0


# Legal actions.


class Masked(Table):
    """Only action 1 is legal in state 0, and only 0 and 2 elsewhere; what is illegal pays -1000."""

    def legal(self, state):
        return jnp.where(state == 0, jnp.array([False, True, False]), jnp.array([True, False, True]))


def test_illegal_actions_are_never_tried():
    rewards = np.full((4, 3), -1000.0, np.float32)
    rewards[0, 1] = 1.0
    rewards[1:, 0], rewards[1:, 2] = 0.0, 2.0
    following = np.array([[3, 1, 3], [2, 3, 2], [3, 3, 3], [3, 3, 3]], np.int32)
    masked = Masked(following, rewards, np.full((4, 3), 0.3, np.float32))
    for rules in ("released", "pseudocode"):
        config = uamcts.SearchConfig(iterations=60, rollouts=3, depth=5, rules=rules)
        result = uamcts.search(jax.random.key(0), jnp.int32(0), masked.model, masked.doubt, config, num_actions=3)
        assert result.exists.tolist() == [False, True, False]
        assert int(result.action) == 1
        assert float(np.nanmin(result.values)) >= 0
        assert np.all(result.tree.visits[~np.asarray(result.tree.exists)] == 0)


# Bad input.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"iterations": 0}, "iterations is 0"),
        ({"iterations": 2.5}, r"iterations is 2\.5"),
        ({"rollouts": -1}, "rollouts is -1"),
        ({"depth": 0}, "depth is 0"),
        ({"c": -1.0}, r"c is -1\.0"),
        ({"c": math.nan}, "c is nan"),
        ({"c": math.inf}, "c is inf"),
        ({"tau": "0.1"}, r"tau is '0\.1'"),
        ({"tau": None}, "tau is None"),
        ({"selection": "off"}, "selection is 'off'; it must be True or False"),
        ({"tau": 0.0}, r"tau is 0\.0; it must be above 0"),
        ({"tau": np.array([0.1, -1.0])}, r"tau is -1\.0"),
        ({"gamma": 1.5}, r"gamma is 1\.5; it must lie in \[0, 1\]"),
        ({"gamma": -0.1}, r"gamma is -0\.1"),
        ({"rules": "printed"}, "rules is 'printed'; there are 'released', 'pseudocode'"),
    ],
)
def test_wrong_settings_are_refused_before_anything_runs(options, words):
    with pytest.raises(ValueError, match=words):
        uamcts.SearchConfig(**options)


@pytest.mark.parametrize(
    ("doubt", "reward", "flag", "words"),
    [
        (-0.1, 0.0, BAD_UNCERTAINTY, "negative or not finite"),
        (math.nan, 0.0, BAD_UNCERTAINTY, "negative or not finite"),
        (math.inf, 0.0, BAD_UNCERTAINTY, "negative or not finite"),
        (0.0, math.nan, BAD_REWARD, "reward that is not a finite"),
        (0.0, -math.inf, BAD_REWARD, "reward that is not a finite"),
    ],
)
@pytest.mark.parametrize("where", [0, 2])
def test_what_shows_while_it_runs_is_flagged(doubt, reward, flag, words, where):
    """At the root, and deep in the rollouts."""
    chain = {(s, a): (s + 1, reward if s == where else 0.0, doubt if s == where else 0.0)
             for s in range(3) for a in range(2)}  # fmt: skip
    bad = table(chain, 4, 2)
    found = search(jax.random.key(0), bad, SMALL)
    assert int(found.flags) & flag
    with pytest.raises(ValueError, match=words):
        raise_flags(found)
    if (where, flag) == (2, BAD_REWARD):  # a search that is not under `jit` raises by itself
        with pytest.raises(ValueError, match=words):
            find(jax.random.key(0), bad, SMALL)


def test_no_legal_action_at_the_root():
    class Stuck(Table):
        def legal(self, state):
            return jnp.zeros(2, bool)

    stuck = Stuck(*table({}, 3, 2))
    with pytest.raises(ValueError, match="no legal action at the root"):
        find(jax.random.key(0), stuck, SMALL)
    assert int(jax.jit(lambda key: find(key, stuck, SMALL).flags)(jax.random.key(0))) & NO_ACTION


def test_a_node_that_cannot_grow_keeps_its_mean_value():
    """With paths of one step the children of the root are rolled out again and again: their value is Q / N."""
    pays = table({(0, 0): (1, 0.0, 0.0), (0, 1): (1, 1.0, 0.0), (1, 0): (1, 1.0, 0.0), (1, 1): (1, 1.0, 0.0)}, 3, 2)
    config = uamcts.SearchConfig(iterations=40, rollouts=2, depth=3, tree_depth=1, **PLAIN)
    for values in (find(jax.random.key(0), pays, config).values,
                   uamcts.reference.search(0, 0, TableModel(pays), None, config).values):  # fmt: skip
        np.testing.assert_allclose(values, [3.0, 4.0])


class TableModel:
    def __init__(self, table):
        self.step, self.num_actions = table.step, table.num_actions


@pytest.mark.long
def test_the_model_alone_or_the_uncertainty_alone_may_be_traced():
    domain = uamcts.make("two_way")
    key, state = jax.random.key(0), domain.reset(jax.random.key(0))
    domains = jax.tree.map(lambda *leaves: np.stack(leaves), domain, domain.with_true_model())
    visits = jax.vmap(lambda domain: uamcts.search(key, state, domain.model, None, SMALL).visits)(domains)
    assert np.all(np.sum(visits, axis=1) == SMALL.iterations)
    scales = jnp.array([0.0, 5.0])
    doubts = jax.vmap(lambda w: uamcts.search(key, state, domain.model, lambda s, a: w * a, SMALL).uncertainty)(scales)
    assert doubts.tolist() == [[0, 0, 0, 0], [0, 5, 10, 15]]
    assert jax.jit(lambda: uamcts.search(key, state, domain.model, None, SMALL).visits)().sum() == SMALL.iterations


def test_a_state_without_legal_actions_is_a_dead_end():
    """Beyond state 1 nothing may be done: no reward is collected there, in the tree or in rollouts."""

    class DeadEnd(Table):
        def legal(self, state):
            return jnp.full(2, state == 0)

    ending = DeadEnd(*table({(0, 0): (1, 1.0, 0.0), (0, 1): (1, 2.0, 0.0), (1, 0): (1, 100.0, 0.0)}, 3, 2))
    model = TableModel(ending)
    model.legal_actions = lambda state: (0, 1) if state == 0 else ()
    assert find(jax.random.key(0), ending, SMALL).values.tolist() == [1.0, 2.0]
    assert uamcts.reference.search(0, 0, model, None, SMALL).values == [1.0, 2.0]


def test_what_an_illegal_action_would_give_does_not_matter():
    class OneLegal(Table):
        def legal(self, state):
            return jnp.array([True, False])

    bad = OneLegal(*table({(0, 0): (1, 1.0, 0.0), (0, 1): (1, math.nan, math.nan)}, 3, 2))
    assert int(find(jax.random.key(0), bad, SMALL).action) == 0


def test_settings_may_become_axes():
    axes = jax.tree.map(lambda _: 0, SMALL)
    assert axes.tau == 0
    assert axes.iterations == SMALL.iterations


def test_functions_that_cannot_be_kept_are_compiled_anew():
    class Unhashable:
        __hash__ = None

        def __call__(self, state, action):
            return jnp.float32(0.1)

    corridor = table({(0, 0): (1, 1.0, 0.0)}, 3, 2)
    result = uamcts.search(jax.random.key(0), jnp.int32(0), corridor.model, Unhashable(), SMALL, num_actions=2)
    assert int(jnp.sum(result.visits)) == SMALL.iterations


def test_a_model_without_a_number_of_actions():
    with pytest.raises(ValueError, match="num_actions is not given"):
        uamcts.search(jax.random.key(0), jnp.int32(0), lambda s, a: None, None, SMALL)
