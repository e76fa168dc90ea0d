"""Exact plans: answers by hand, by linear algebra and by brute force, and the published worlds."""

import itertools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uamcts
from uamcts.baselines.problem import Problem
from uamcts.domains.exact import Table, best_plan, evaluate, tabulate, tabulate_simulator

# The frozen lake and the cliff of ADA-MCTS's table: a goal pays 1, a hole or the cliff -1, both end the episode; 100
# steps; the planner's p is 0.7. Discounted from the first step on with 0.998 on the lake and 0.996 along the cliff.
# World p: the optimum that knows the time limit, the best stationary plan in the time limit, and what a plan earns
# that knows the time limit and believes in 0.7.
PUBLISHED = {
    ("frozen_lake", 0.998): {
        0.4: (0.578, 0.577, 0.149),
        0.5: (0.626, 0.609, 0.383),
        0.6: (0.635, 0.601, 0.549),
        0.7: (0.639, 0.530, 0.639),
        0.8: (0.708, 0.452, 0.656),
        0.9: (0.835, 0.821, 0.555),
        1.0: (0.990, 0.990, 0.000),
    },
    ("cliff", 0.996): {
        0.4: (0.789, 0.787, 0.774),
        0.5: (0.847, 0.847, 0.847),
        0.6: (0.875, 0.875, 0.875),
        0.8: (0.892, 0.892, 0.892),
        0.9: (0.869, 0.861, 0.869),
        1.0: (0.953, 0.953, 0.700),
    },
}


@pytest.mark.parametrize(("name", "gamma"), PUBLISHED)
def test_the_published_worlds(name, gamma):
    for p, expected in PUBLISHED[name, gamma].items():
        domain = uamcts.make(name, p=p, model_p=0.7)
        world, model, _ = tabulate(domain)
        limit = domain.time_limit
        stationary, stale = best_plan(world, gamma), best_plan(model, gamma, limit)
        found = (
            best_plan(world, gamma, limit).values[0],
            evaluate(world, stationary.actions, gamma, limit)[0],
            evaluate(world, stale.actions, gamma, limit)[0],
        )
        assert found == pytest.approx(expected, abs=0.00051), p


@pytest.mark.parametrize(("p", "optimum", "stale"), [(0.3, 0.872, 0.749), (0.4, 0.973, 0.960), (0.5, 0.998, 0.998)])
def test_a_cliff_that_leads_back_to_the_start(p, optimum, stale):
    """How often the goal is reached in 100 steps, as published: the best plan, and the best one for p = 0.7."""
    world, model, _ = tabulate(uamcts.make("cliff", p=p, model_p=0.7, hole_reward=0, teleport=True))
    assert best_plan(world, 1.0, 100).values[0] == pytest.approx(optimum, abs=0.00051)
    assert evaluate(world, best_plan(model, 1.0, 100).actions, 1.0, 100)[0] == pytest.approx(stale, abs=0.00051)


def test_ways_without_slips_by_hand():
    """The shortest ways: 6 moves over the lake, 13 along the cliff, 3 over the bridge, 14 over the large lake."""
    for name, options, moves in (("frozen_lake", {}, 6), ("cliff", {}, 13), ("bridge", {}, 3),
                                 ("frozen_lake", {"map": "8x8"}, 14)):  # fmt: skip
        world = tabulate(uamcts.make(name, p=1.0, model_p=1.0, **options)).world
        assert best_plan(world, 0.9).values[0] == pytest.approx(0.9 ** (moves - 1))
        assert best_plan(world, 1.0, moves).values[0] == 1
        assert best_plan(world, 1.0, moves - 1).values[0] == 0


def test_a_corridor_with_slips_by_hand():
    """One cell between the start and the goal, holes all along: V(middle) = p - (1 - p), one step from the start."""
    p, gamma = 0.8, 0.9
    table = tabulate(uamcts.make("frozen_lake", p=p, model_p=p, map=["HHH", "SFG", "HHH"])).world
    assert len(table.legal) == 2
    middle = p - (1 - p)
    assert best_plan(table, gamma).values == pytest.approx([p * gamma * middle - (1 - p), middle])
    assert evaluate(table, np.array([2, 2]), gamma)[0] == pytest.approx(p * gamma * middle - (1 - p))


@pytest.mark.parametrize("name", ["two_way", "two_way_icy", "hidden_obstacles", "slippery", "shortcut"])
def test_deterministic_grids_against_breadth_first_search(name):
    domain = uamcts.make(name)
    problem, tables = Problem.of(domain), tabulate(domain)
    believed = problem.cost_to_go(problem.model)[problem.start]
    for table, moves in ((tables.world, problem.optimum()), (tables.model, believed)):
        assert table.probability.shape[-1] == 1
        assert best_plan(table, 0.9).values[0] == pytest.approx(10 * 0.9 ** (moves - 1))


def random_table(seed, states, actions=2, slots=3):
    rng = np.random.default_rng(seed)
    probability = rng.dirichlet(np.ones(slots), (states, actions))
    shape = probability.shape
    legal = rng.random((states, actions)) < 0.8
    legal[:, 0] |= ~legal.any(axis=1)
    return Table(rng.integers(states, size=shape), probability, rng.normal(size=shape), rng.random(shape) < 0.1, legal)


@given(st.integers(0, 2**31), st.integers(1, 30))
@settings(max_examples=30)
def test_evaluation_against_linear_algebra(seed, states):
    """(I - gamma P) V = R for a random policy of random tables."""
    table, gamma = random_table(seed, states), 0.95
    taken = np.where(table.legal, np.random.default_rng(seed).random((states, 2)), 0.0)
    taken /= taken.sum(axis=1, keepdims=True)
    matrix, paid = np.zeros((states, states)), np.zeros(states)
    for state, action, slot in np.ndindex(table.probability.shape):
        share = taken[state, action] * table.probability[state, action, slot]
        paid[state] += share * table.reward[state, action, slot]
        if not table.ends[state, action, slot]:
            matrix[state, table.following[state, action, slot]] += share
    np.testing.assert_allclose(evaluate(table, taken, gamma), np.linalg.solve(np.eye(states) - gamma * matrix, paid))


@given(st.integers(0, 2**31))
@settings(max_examples=20)
def test_best_plans_against_all_plans(seed):
    """Of the stationary plans of four states the best one; of all plans for three steps in two states the best one."""
    table, gamma = random_table(seed, 4), 0.9
    plans = [p for p in itertools.product(range(2), repeat=4) if table.legal[range(4), p].all()]
    best = np.max([evaluate(table, np.array(plan), gamma) for plan in plans], axis=0)
    found = best_plan(table, gamma)
    near = {"rtol": 1e-9, "atol": 1e-11}  # sweeps end by how much values change, also where a value is close to 0
    np.testing.assert_allclose(found.values, best, **near)
    np.testing.assert_allclose(evaluate(table, found.actions, gamma), best, **near)

    table = random_table(seed, 2)
    plans = [np.array(p).reshape(3, 2) for p in itertools.product(range(2), repeat=6)]
    worth = [evaluate(table, p, gamma, 3) for p in plans if table.legal[np.arange(2), p].all()]
    found = best_plan(table, gamma, 3)
    np.testing.assert_allclose(found.values, np.max(worth, axis=0))
    np.testing.assert_allclose(evaluate(table, found.actions, gamma, 3), found.values)


class Coin:
    """Toss until heads, which pays 1; tails costs 0.25. Or stop, in every state but the first."""

    num_actions = 2

    def outcomes(self, state, action):
        if action == 1:
            return [(1.0, (state, 0.0, True))]
        return [(0.5, ("over", 1.0, True)), (0.5, ("again", -0.25, False)), (0.0, ("never", 9.0, False))]

    def legal_actions(self, state):
        return [0] if state == "first" else [0, 1]


class Line:
    """Walk from 0 to 3, which pays 5."""

    num_actions = 2

    def step(self, state, action):
        after = max(state + 2 * action - 1, 0)
        return after, 5.0 * (after == 3), after == 3


def test_plain_simulators_by_hand():
    table, states = tabulate_simulator(Coin(), "first")
    assert states == ["first", "again"]
    assert best_plan(table).values == pytest.approx([0.75, 0.75])  # v = 0.5 + 0.5 (v - 0.25)
    assert best_plan(table).actions.tolist() == [0, 0]
    assert evaluate(table, np.array([0, 1]))[0] == pytest.approx(0.375)
    with pytest.raises(ValueError, match="illegal action on the way from state 0"):
        evaluate(table, np.array([1, 1]))
    table, states = tabulate_simulator(Line(), 0)
    assert states == [0, 1, 2]
    assert best_plan(table, 0.9).values == pytest.approx([4.05, 4.5, 5])


def test_tables_have_the_states_of_the_domain():
    domain = uamcts.make("frozen_lake", map="8x8")
    tables = tabulate(domain)
    assert (
        sorted(tables.states.cell.tolist())
        == np.flatnonzero(~(domain.world_rules.holes | domain.world_rules.goals)).tolist()
    )
    assert tables.states.cell[0] == domain.reset(jax.random.key(0)).cell


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: tabulate(uamcts.make("freeway"), limit=50), "more than 50 states can be reached"),
        (lambda: tabulate_simulator(Line(), 0, limit=2), "more than 2 states can be reached"),
        (lambda: best_plan(tabulate(uamcts.make("two_way")).world, horizon=0), "horizon is 0"),
        (lambda: evaluate(tabulate(uamcts.make("two_way")).world, np.zeros(3, int)), r"policy has shape \(3,\)"),
    ],
)
def test_errors_help(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_rewards_for_ever_need_a_discount(monkeypatch):
    monkeypatch.setattr("uamcts.domains.exact.SWEEPS", 1000)
    stay = np.zeros((1, 1, 1))
    table = Table(stay.astype(int), stay + 1, stay + 1, stay > 0, np.ones((1, 1), bool))
    assert best_plan(table, 0.5).values == pytest.approx([2.0])
    with pytest.raises(ValueError, match=r"gamma is 1.0 and the values still grow"):
        best_plan(table)
