"""The trust rules: formulas by hand, what they come down to without doubt, every way to ask for U, a trap."""

import functools
import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tables import Table, find, table

import uamcts
from uamcts import reference
from uamcts.mcts import backpropagate, lockstep_kernel, select, simulate
from uamcts.mcts import tree as trees
from uamcts.mcts.problem import Problem
from uamcts.mcts.rules.trust import Trust
from uamcts.presets import search_config, switches
from uamcts.randomness import seed_of
from uamcts.uncertainty.prediction_cache import PredictionCache

RULES = Trust()
TRUST = uamcts.SearchConfig(iterations=30, rollouts=4, depth=6, c=1.0, rules="trust")
OFF = dict.fromkeys(("selection", "expansion", "simulation", "backpropagation"), False)
PHASES = tuple(OFF)


# Formulas, against numbers computed by hand.


def test_what_doubtful_edges_keep_and_cost():
    doubt = jnp.array([0.0, 0.1, 0.2])
    config = replace(TRUST, rho=0.75, penalty=3.0, doubt_threshold=0.1)
    everyone = jnp.ones(3, bool)
    assert RULES.edges(doubt, everyone, config).keep.tolist() == [1.0, 1.0, 0.25]
    assert RULES.edges(doubt, everyone, replace(config, backpropagation=False)).keep.tolist() == [1.0, 1.0, 1.0]
    assert RULES.edges(doubt, everyone, config).bias.tolist() == [0.0, 0.0, 3.0]
    assert RULES.edges(doubt, everyone, replace(config, selection=False)).bias.tolist() == [0.0, 0.0, 0.0]


def test_certain_ones_or_all():
    everyone, penalty = jnp.ones(4, bool), jnp.array([2.0, 0.0, 0.0, 2.0])
    assert RULES.first_choice(everyone, penalty).tolist() == [False, True, True, False]
    assert RULES.first_choice(jnp.array([True, False, False, True]), penalty).tolist() == [True, False, False, True]
    assert RULES.first_choice(jnp.zeros(4, bool), penalty).tolist() == [False] * 4


def test_equal_values_leave_only_the_certain_ones():
    exists, penalty = jnp.array([True, True, True, False]), jnp.array([2.0, 0.0, 0.0, 0.0])
    assert RULES.candidates(exists, jnp.array([3.0, 3.0, 3.0, 9.0]), penalty).tolist() == [False, True, True, False]
    assert RULES.candidates(exists, jnp.array([4.0, 3.0, 3.0, 9.0]), penalty).tolist() == [True, True, True, False]
    assert RULES.candidates(exists, jnp.full(4, 3.0), jnp.full(4, 2.0)).tolist() == [True, True, True, False]


def test_returns_of_rollouts():
    """Rewards 1, 2, 4 with gamma 1/2; the second rollout's first step is doubtful, the third's last two are."""
    rewards = jnp.array([[1.0, 2.0, 4.0]] * 3)
    doubt = jnp.array([[0.0, 0.0, 0.5], [0.5, 0.0, 0.0], [0.0, 0.5, 0.5]])
    config, discounts = replace(TRUST, rho=0.75, gamma=0.5), 0.5 ** jnp.arange(4)
    # 1 + 2/2 + 4/4;  1 + (2/2 + 4/4) / 4;  1 + 2/2 + 4/4 / 4
    assert simulate.weigh_returns(rewards, doubt, config, discounts).tolist() == [3.0, 1.5, 2.25]
    assert simulate.weigh_returns(rewards, doubt, replace(config, simulation=False), discounts).tolist() == [
        3.0,
        3.0,
        3.0,
    ]
    # With V_min = -8 the first doubtful step adds 3/4 of it, discounted:
    # -8 * 3/4 / 8 after the third step;  -8 * 3/4 / 2 after the first;  -8 * 3/4 / 4 after the second
    worst = simulate.weigh_returns(rewards, doubt, replace(config, worst=-8.0), discounts)
    assert worst.tolist() == [3.0 - 0.75, 1.5 - 3.0, 2.25 - 1.5]


SIBLINGS = {
    "exists": jnp.array([True, True, False, True]),
    "parent_visits": jnp.float32(10.0),
    "visits": jnp.array([2.0, 4.0, 0.0, 4.0]),
    "bias": jnp.array([0.0, 2.0, 0.0, 0.0]),
}


def test_a_doubtful_childs_score_is_lowered():
    """Values 3, 5, 4 become 0, 1, 0.5, equal ones 0.5; the second child is doubtful."""
    config, log = replace(TRUST, c=2.0), math.log(10)
    exploration = [2 * math.sqrt(log / 2), 2 * math.sqrt(log / 4), 2 * math.sqrt(log / 4)]
    differing = select.scores(select.Siblings(values=jnp.array([3.0, 5.0, 99.0, 4.0]), **SIBLINGS), config)
    np.testing.assert_allclose(np.asarray(differing)[[0, 1, 3]], np.add([0.0, -1.0, 0.5], exploration), atol=1e-6)
    same = select.scores(select.Siblings(values=jnp.array([3.0, 3.0, 99.0, 3.0]), **SIBLINGS), config)
    np.testing.assert_allclose(np.asarray(same)[[0, 1, 3]], np.add([0.5, -1.5, 0.5], exploration), atol=1e-6)


def test_the_worth_of_a_child():
    """Q = 6 in 3 visits, of which a quarter is kept, and a reward of 5."""
    stats, reward, share = jnp.array([[3.0, 6.0, 0.0]]), jnp.array([5.0]), jnp.array([0.25])
    assert select.child_values(stats, reward, share, TRUST).tolist() == [5.5]
    assert select.child_values(stats, reward, share, replace(TRUST, worst=-4.0)).tolist() == [2.5]


def test_backpropagation_by_hand():
    """Value 3 at node 5; 3/2 + 8 = 9.5 at node 3; the step into it is doubtful: 9.5/2/4 + 2 at the root."""
    tree = trees.empty(jnp.int32(0), blocks=3, num_actions=2)._replace(
        children=jnp.array([[1, 0], [0, 2], [0, 0]]),
        exists=jnp.array([[True, False], [True, True], [True, True]]),
        reward=jnp.array([[0.0, 0.0], [1.0, 2.0], [4.0, 8.0]]),
        keep=jnp.array([[1.0, 1.0], [0.75, 0.25], [1.0, 1.0]]),
    )
    path = select.Path(jnp.array([0, 3, 5, 6, 6]), jnp.int32(3), jnp.int32(5))
    config = replace(TRUST, gamma=0.5)
    found = backpropagate.backpropagate(tree, path, jnp.float32(3.0), jnp.bool_(False), config)
    np.testing.assert_allclose(np.asarray(found.total)[([2, 1, 0], [1, 1, 0])], [3.0, 9.5, 3.1875])
    assert np.asarray(found.visits).tolist() == [[1, 0], [0, 1], [0, 1]]


CHAIN = table({(0, 0): (1, 1.0, 0.5), (1, 0): (2, 2.0, 0.0), (2, 0): (3, 4.0, 0.5), (3, 0): (4, 8.0, 0.0)}, 5, 1)
"""One action, four steps that pay 1, 2, 4, 8; the first and the third are doubtful."""
LATE = table({(0, 0): (1, 1.0, 0.0), (1, 0): (2, 2.0, 0.5), (2, 0): (3, 4.0, 0.5), (3, 0): (4, 8.0, 0.0)}, 5, 1)
"""The same with the second and the third in doubt."""


@pytest.mark.parametrize(
    ("chain", "switched", "value"),
    [  # one iteration: the first step is in the tree, the others in rollouts
        (CHAIN, PHASES, 1 + (2 + 4 + 8) / 4),
        (CHAIN, (), 15.0),
        (CHAIN, ("backpropagation",), 1 + (2 + 4 + 8) / 4),
        (CHAIN, ("simulation",), 1 + 2 + 4 + 8 / 4),
        (CHAIN, ("selection", "expansion"), 15.0),
        (LATE, PHASES, 1 + 2 + (4 + 8) / 4),
        (LATE, ("backpropagation",), 15.0),
        (LATE, ("simulation",), 1 + 2 + (4 + 8) / 4),
    ],
)
def test_a_chain_in_both_engines(chain, switched, value):
    config = replace(TRUST, iterations=1, rho=0.75, **{phase: phase in switched for phase in PHASES})
    assert float(find(jax.random.key(0), chain, config).values[0]) == pytest.approx(value)
    assert reference.search(0, 0, Simulator(chain), chain.plain_doubt, config).values == [pytest.approx(value)]
    assert reference.search(0, 0, Simulator(chain), Doubts(chain), config).values == [pytest.approx(value)]


@pytest.mark.parametrize("iterations", [1, 2, 3, 4])
def test_a_second_doubt_takes_nothing_away_in_the_tree_either(iterations):
    """However deep the tree is, the mean of equal values is the value: 1 and a quarter of the rest."""
    config = replace(TRUST, iterations=iterations, rho=0.75)
    found = find(jax.random.key(0), CHAIN, config)
    assert float(found.values[0]) == pytest.approx(1 + (2 + 4 + 8) / 4)
    assert np.asarray(found.tree.keep)[1 : iterations + 1, 0].tolist() == [0.25, 1.0, 1.0, 1.0][:iterations]
    assert np.asarray(found.tree.bias)[1 : iterations + 1, 0].tolist() == [0.75, 0.0, 0.0, 0.0][:iterations]
    plain = reference.search(0, 0, Simulator(CHAIN), CHAIN.plain_doubt, config)
    assert plain.values == [pytest.approx(1 + (2 + 4 + 8) / 4)]


@pytest.mark.parametrize(("chain", "value"), [(CHAIN, 1 + 14 / 4 - 12), (LATE, 3 + 12 / 4 - 12)])
def test_the_worst_in_both_engines(chain, value):
    """V_min = -16, three quarters of which come once."""
    config = replace(TRUST, iterations=1, rho=0.75, worst=-16.0)
    assert float(find(jax.random.key(0), chain, config).values[0]) == pytest.approx(value)
    for doubt in (chain.plain_doubt, Doubts(chain)):
        assert reference.search(0, 0, Simulator(chain), doubt, config).values == [pytest.approx(value)]


class Simulator:
    """A table for the plain engine, one by one or in lockstep."""

    def __init__(self, table: Table):
        self.step, self.num_actions = table.step, table.num_actions

    def step_batch(self, states, actions):
        return zip(*(self.step(state, action) for state, action in zip(states, actions, strict=True)), strict=True)


class Doubts:
    def __init__(self, table: Table):
        self.one = table.plain_doubt

    def __call__(self, state, action):
        return self.one(state, action)

    def batch(self, states, actions):
        return [self.one(state, action) for state, action in zip(states, actions, strict=True)]


# Properties.


@functools.cache
def breakout():
    domain = uamcts.make("breakout")
    state = domain.from_features(np.concatenate([[7, 3, 3, 3, 0, 4, 6], np.repeat([0, 1, 0], [10, 30, 60])]))
    return domain, state, uamcts.true_uncertainty(domain)


@pytest.fixture(scope="module")
def searches():
    """Trees of one program: its settings, and how much of U there is, are lanes."""
    domain, state, doubt = breakout()
    settings = [
        {**OFF, "rho": 0.99, "penalty": 2.0, "doubt_threshold": 0.0, "scale": 1.0},
        {"rho": 0.0, "penalty": 0.0, "doubt_threshold": 0.0, "scale": 1.0},
        {"rho": 0.99, "penalty": 2.0, "doubt_threshold": 0.0, "scale": 0.0},
        {"rho": 0.99, "penalty": 2.0, "doubt_threshold": math.inf, "scale": 1.0},
        {"rho": 0.99, "penalty": 2.0, "doubt_threshold": 0.0, "scale": 1.0},
    ]
    lanes = {name: np.array([lane.get(name, True) for lane in settings]) for name in settings[0]}
    config = uamcts.SearchConfig(iterations=50, rollouts=4, depth=8, rules="trust")

    def one(lane):
        scale = lane.pop("scale")
        return uamcts.search(
            jax.random.key(0), state, domain.model, lambda s, a: scale * doubt(s, a), replace(config, **lane)
        )

    return config, jax.device_get(jax.jit(jax.vmap(one))(lanes)).tree


@pytest.mark.parametrize("lane", [1, 2, 3], ids=["rho and penalty 0", "U = 0", "nothing above the threshold"])
def test_without_doubt_it_is_plain_mcts(searches, lane):
    _, tree = searches
    np.testing.assert_array_equal(tree.visits[lane], tree.visits[0])
    np.testing.assert_array_equal(tree.total[lane], tree.total[0])
    assert not np.array_equal(tree.visits[4], tree.visits[0]), "doubt made no difference: this compared nothing"


def test_plain_mcts_is_the_released_one(searches):
    config, tree = searches
    domain, state, doubt = breakout()
    plain = uamcts.search(jax.random.key(0), state, domain.model, doubt, replace(config, rules="released", **OFF)).tree
    np.testing.assert_array_equal(tree.visits[0], plain.visits)
    np.testing.assert_allclose(tree.total[0], plain.total, rtol=1e-6)


@pytest.mark.long
def test_every_way_to_ask_for_u_gives_the_same_search():
    """U asked step by step, all at once after the rollouts, and looked up in a memory."""
    domain, state, doubt = breakout()
    config = uamcts.SearchConfig(iterations=15, rollouts=4, depth=10, rules="trust", rho=0.75, gamma=0.5)
    key = jax.random.key(2)
    found = [
        jax.jit(functools.partial(uamcts.search, model=domain.model, uncertainty=u, config=config))(key, state)
        for u in (doubt, PredictionCache(doubt, False), PredictionCache(doubt, True))
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other.visits, found[0].visits)
        np.testing.assert_allclose(other.tree.total, found[0].tree.total, rtol=1e-5)
    plain = uamcts.search(key, state, domain.model, doubt, replace(config, simulation=False))
    assert not np.allclose(plain.tree.total, found[0].tree.total), "no rollout met anything doubtful"


def test_the_kernel_gives_the_same_rollouts(monkeypatch):
    """Settings that differ from lane to lane, and a number of lanes that fills no block."""
    domain, state, doubt = breakout()
    calls, original = [], lockstep_kernel.run

    def rolled(key, rho, threshold, simulation):
        config = uamcts.SearchConfig(
            rollouts=31, depth=20, rules="trust", rho=rho, doubt_threshold=threshold, simulation=simulation
        )
        problem = Problem(domain.model, doubt, domain.num_actions)
        start = simulate.Start(seed_of(key), jnp.int32(0), state, jnp.bool_(False))
        return simulate.simulate(start, problem, config)

    lanes = (jax.random.split(jax.random.key(0), 3), jnp.array([0.9, 0.5, 1.0]), jnp.array([0.0, 0.05, 0.0]),
             jnp.array([True, True, False]))  # fmt: skip
    by_loop = jax.jit(jax.vmap(rolled))(*lanes)
    monkeypatch.setattr(lockstep_kernel, "usable", lambda *arguments: True)
    interpreted = lambda *arguments: calls.append(1) or original(*arguments, interpret=True)  # noqa: E731
    monkeypatch.setattr(lockstep_kernel, "run", interpreted)
    by_kernel = jax.jit(jax.vmap(rolled))(*lanes)
    assert calls, "the kernel was not used"
    np.testing.assert_allclose(by_kernel.returns, by_loop.returns, rtol=1e-6)
    believing = jax.jit(jax.vmap(rolled))(lanes[0], jnp.zeros(3), *lanes[2:])
    assert not np.allclose(believing.returns[:2], by_loop.returns[:2]), "no rollout met anything doubtful"
    np.testing.assert_allclose(believing.returns[2], by_loop.returns[2], rtol=1e-6)


# Known answers.


def test_a_trap_is_left_and_a_doubtful_way_is_taken_where_there_is_no_other():
    """What action 1 leads to is doubtful and, says the model, pays 5 beyond; action 0 pays 1, or nothing."""
    way = {(0, 1): (1, 0.0, 0.5), (1, 0): (2, 5.0, 0.0), (1, 1): (2, 5.0, 0.0)}
    config = replace(TRUST, iterations=100, c=2.0)
    trap, only = table({**way, (0, 0): (2, 1.0, 0.0)}, 3, 2), table({**way, (0, 0): (2, 0.0, 0.0)}, 3, 2)
    for seed in range(5):
        assert int(find(jax.random.key(seed), trap, replace(config, **OFF)).action) == 1
        assert int(find(jax.random.key(seed), trap, config).action) == 0
        assert int(find(jax.random.key(seed), only, config).action) == 1


def test_where_no_reward_is_in_sight_the_certain_action_is_taken():
    """Nothing pays anywhere: all values are equal, and doubt decides."""
    nothing = table({(0, 0): (1, 0.0, 0.5), (0, 1): (1, 0.0, 0.0), (1, 0): (1, 0.0, 0.0), (1, 1): (1, 0.0, 0.0)}, 3, 2)
    for seed in range(5):
        found = find(jax.random.key(seed), nothing, TRUST)
        assert found.visits.tolist() == [1, TRUST.iterations - 1]


def test_one_doubt_on_the_way_is_as_bad_as_three():
    """Both ways lead to a reward of 8, action 0's over one doubtful transition and action 1's over three.

    Of both a quarter counts, less what exploring costs. Were every doubt counted, action 1 would have at most 1/2.
    """
    one = {(0, 0): (1, 0.0, 0.5), (1, 0): (2, 0.0, 0.0), (2, 0): (5, 8.0, 0.0)}
    three = {(0, 1): (3, 0.0, 0.5), (3, 0): (4, 0.0, 0.5), (4, 0): (5, 8.0, 0.5)}
    ways = table({**one, **three, **{(state, 1): (5, 0.0, 0.0) for state in (1, 2, 3, 4)}}, 6, 2)
    config = replace(TRUST, iterations=200, rho=0.75, c=4.0)
    for found in (find(jax.random.key(0), ways, config), reference.search(0, 0, ways, ways.plain_doubt, config)):
        assert all(0.5 < float(value) <= 2.0 for value in found.values)


def test_of_equally_visited_actions_the_better_one_is_taken():
    better = table({(0, 0): (1, 1.0, 0.0), (0, 1): (1, 2.0, 0.0)}, 2, 2)
    config = replace(TRUST, iterations=2)
    assert {int(find(jax.random.key(seed), better, config).action) for seed in range(8)} == {1}
    assert {reference.search(seed, 0, better, better.plain_doubt, config).action for seed in range(8)} == {1}
    released = replace(config, rules="released", **OFF)
    assert {int(find(jax.random.key(seed), better, released).action) for seed in range(8)} == {0, 1}


# Settings.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rho": 1.5}, r"rho is 1\.5; it must lie in \[0, 1\]"),
        ({"rho": math.nan}, "rho is nan"),
        ({"rho": np.array([0.5, -0.1])}, r"rho is -0\.1"),
        ({"rho": None}, "rho is None"),
        ({"penalty": -1.0}, r"penalty is -1\.0; it must be a finite number of at least 0"),
        ({"penalty": math.inf}, "penalty is inf"),
        ({"doubt_threshold": -0.1}, r"doubt_threshold is -0\.1; it must be at least 0"),
        ({"doubt_threshold": "0"}, "doubt_threshold is '0'"),
    ],
)
def test_wrong_settings_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        uamcts.SearchConfig(rules="trust", **options)


def test_a_bad_uncertainty_is_flagged():
    bad = table({(0, 0): (1, 0.0, 0.0), (1, 0): (2, 0.0, math.nan)}, 3, 1)
    with pytest.raises(ValueError, match="negative or not finite"):
        find(jax.random.key(0), bad, TRUST)


def test_the_algorithm_has_one_setting_for_every_domain():
    configs = [search_config(uamcts.make(name), "trust", rules="released") for name in uamcts.DOMAINS]
    assert {config.rules for config in configs} == {"trust"}
    leaves = ("c", "rho", "penalty", "doubt_threshold", "root_visits")
    assert len({tuple(getattr(config, name) for name in leaves) for config in configs}) == 1
    gammas = {name: config.gamma for name, config in zip(uamcts.DOMAINS, configs, strict=True) if config.gamma != 1}
    assert gammas == {"frozen_lake": 0.998, "cliff": 0.996, "bridge": 0.9}  # the discount is part of the domain
    assert switches("trust") == dict.fromkeys(PHASES, True)
    assert search_config(uamcts.make("two_way"), "trust", c=0.5).c == 0.5


def test_online_it_learns_by_its_own_settings_and_the_paper_by_the_papers():
    pytest.importorskip("pyarrow")
    from uamcts.lab.run.grid import online_grid
    from uamcts.lab.run.units import OnlineUnit

    def learns(**given):
        full = OnlineUnit.with_defaults("breakout", **given).complete()
        return full.learner, full.interval, full.minibatches

    assert learns(algorithm="trust") == ("two_part+memory", 500, 1000)
    assert learns(algorithm="combined") == ("network", 5000, 5000)
    assert learns(algorithm="trust", learner="bayes", interval=250) == ("bayes", 250, 1000)
    grid = online_grid(["two_way"], ["combined", "trust"], [], [], None, None, None, None)
    assert grid[0].online[0].learners == (("combined", "linear"), ("trust", "two_part+memory"))


@pytest.mark.long
def test_algorithms_with_rules_of_their_own_share_a_unit():
    """Rows stay in the order of the jobs, and are those of the algorithm alone."""
    pytest.importorskip("pyarrow")
    from uamcts.lab.run.compute import compute_unit
    from uamcts.lab.run.units import OfflineUnit

    def played(*algorithms):
        pairs = tuple((algorithm, 2.0) for algorithm in algorithms)
        unit = OfflineUnit("x", "two_way", "released", 0.1, "sweep", pairs, 0, 2, 0, (("iterations", 4),))
        return compute_unit(unit, lambda share, words: None, None)

    mixed, alone = played("corrupted", "trust"), played("trust")
    assert mixed["algorithm"].tolist() == ["corrupted", "trust"] * 2
    np.testing.assert_array_equal(mixed["steps"][1::2], alone["steps"])
    np.testing.assert_array_equal(mixed["reward"][1::2], alone["reward"])
