"""Searches against exact answers: worked out by hand, and by value iteration on random decision processes.

Two engines that share a formula share its mistakes, so each engine is compared with the answer, not with the other.
"""

from dataclasses import replace

import jax
import numpy as np
import pytest
from tables import Table, find, table

import uamcts
from uamcts import reference
from uamcts.mcts.rules import RULES

OFF = dict.fromkeys(("selection", "expansion", "simulation", "backpropagation"), False)
ENGINES = ("jax", "python")


def plan(engine: str, problem: Table, config: uamcts.SearchConfig, seed: int = 0):
    """A search from state 0: the action and the values, as plain numbers."""
    if engine == "jax":
        found = _search(jax.random.key(seed), problem, config)
    else:
        found = reference.search(seed, 0, problem, problem.plain_doubt, config)
    return int(found.action), np.asarray(found.values, float)


@jax.jit
def _search(key, problem, config):
    """One program for all tables of a shape and all settings with the same budgets and rules."""
    return find(key, problem, config)


NOW_OR_LATER = table({(0, 0): (2, 1.0, 0.0), (0, 1): (1, 0.0, 0.0), (1, 0): (2, 1.5, 0.0), (1, 1): (2, 1.5, 0.0)}, 3, 2)
"""Action 0 pays 1 and ends; action 1 pays nothing, and then 1.5."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("adapted", [False, True])
@pytest.mark.parametrize("rules", RULES)
def test_one_now_or_more_later(rules, adapted, engine):
    """At gamma 1/2 the later 1.5 is worth 0.75, at 3/4 it is worth 1.125. Nothing is doubtful.

    UA-Backpropagation as released is left out: it scales values even where every U is 0.
    """
    switches = {} if adapted else OFF
    if adapted and rules != "trust":
        switches = {"backpropagation": False}
    for gamma, action, later in ((0.5, 0, 0.75), (0.75, 1, 1.125)):
        config = uamcts.SearchConfig(iterations=60, rollouts=2, depth=4, c=0.5, gamma=gamma, rules=rules, **switches)
        chosen, values = plan(engine, NOW_OR_LATER, config)
        np.testing.assert_allclose(values, [1.0, later], atol=1e-6)
        assert chosen == action


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rules", RULES)
def test_a_chain_of_rewards(rules, engine):
    """With one action every path is the same: the value is the discounted sum, however much of it is in the tree."""
    rewards = [1.0, -2.0, 4.0, 8.0, -16.0, 32.0]
    chain = table({(step, 0): (step + 1, paid, 0.0) for step, paid in enumerate(rewards)}, 7, 1)
    for gamma in (0.0, 0.25, 0.9, 1.0):
        for iterations in (2, 8) if engine == "python" else (8,):
            config = uamcts.SearchConfig(iterations=iterations, rollouts=1, depth=6, gamma=gamma, rules=rules)
            exact = sum(gamma**step * paid for step, paid in enumerate(rewards))
            np.testing.assert_allclose(plan(engine, chain, config)[1], [exact], rtol=1e-5)


def random_process(seed: int, layers: int = 3, width: int = 3, actions: int = 3) -> Table:
    """A random deterministic process in layers: every path ends after at most `layers` steps. Rewards in [-1, 1]."""
    rng = np.random.default_rng(seed)
    transitions = {}
    for state in range(1 + width * (layers - 1)):
        layer = 0 if state == 0 else 1 + (state - 1) // width
        for action in range(actions):
            ends = layer == layers - 1 or rng.random() < 0.15
            after = 1 + width * (layers - 1) if ends else 1 + width * layer + int(rng.integers(width))
            transitions[state, action] = (after, float(rng.uniform(-1, 1)), 0.0)
    return table(transitions, 2 + width * (layers - 1), actions)


def exact_values(problem: Table, gamma: float, summary=np.max) -> np.ndarray:
    """Q(0, a) by value iteration, [actions]: of the best policy, or with `np.mean` of the uniformly random one."""
    values = np.zeros(problem.following.shape[0])
    for _ in range(50):
        found = problem.rewards + gamma * values[problem.following]
        found[-1] = 0.0
        values = summary(found, axis=1)
    return found[0]


def agrees(problem: Table, gamma: float, action: int, values: np.ndarray) -> bool:
    """Whether a search's answer is right. True if the question was clear: the second best action is 0.1 worse.

    A mean over returns lies below the optimum, and that of the chosen action nearer to it than what random play gets.
    """
    exact, random = exact_values(problem, gamma), exact_values(problem, gamma, np.mean)
    assert np.all(values <= exact + 1e-4)
    assert exact[action] >= exact.max() - 0.1
    assert values[action] >= (exact[action] + random[action]) / 2 - 1e-4
    return bool(exact.max() - np.sort(exact)[-2] > 0.1)


@pytest.mark.parametrize(
    ("engine", "seeds"),
    [
        ("jax", range(24)),
        ("python", range(100, 103)),  # one process for each gamma
        pytest.param("python", range(103, 112), marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("rules", RULES)
def test_value_iteration_agrees_with_the_search(rules, engine, seeds):
    clear = 0
    for seed in seeds:
        gamma, problem = (0.3, 0.6, 0.9)[seed % 3], random_process(seed)
        config = uamcts.SearchConfig(iterations=1500, rollouts=1, depth=5, c=1.0, gamma=gamma, rules=rules, **OFF)
        clear += agrees(problem, gamma, *plan(engine, problem, config, seed))
    assert clear >= len(seeds) / 2


STATES, BUDGET = 12, {"iterations": 40, "rollouts": 16, "depth": 12, "c": 4.0, "rules": "trust"}
"""One size and one budget for what follows: one compiled program."""


def roads(length: int, reward: float, doubtful: int, last: float = 0.0) -> Table:
    """Two equal roads of `length` steps that pay `reward` each, then `last`; the first step of one is doubtful."""
    transitions = {}
    for road in (0, 1):
        for step in range(length):
            here = 0 if step == 0 else 1 + road * (length - 1) + step - 1
            after = STATES - 1 if step == length - 1 else 1 + road * (length - 1) + step
            paid = reward + (last if step == length - 1 else 0.0)
            for action in (road,) if step == 0 else (0, 1):
                transitions[here, action] = (after, paid, 1.0 if step == 0 and road == doubtful else 0.0)
    return table(transitions, STATES, 2)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("doubtful", [0, 1])
@pytest.mark.parametrize(("reward", "last"), [(-1.0, 0.0), (-1.0, 3.0), (-0.25, -5.0), (1.0, 0.0)])
@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_of_two_equal_roads_the_certain_one_is_taken(gamma, reward, last, doubtful, engine):
    """Whatever the sign of the returns: a road never gains by being doubtful, and here it always loses."""
    problem = roads(6, reward, doubtful, last)
    config = uamcts.SearchConfig(**BUDGET, gamma=gamma)
    chosen, values = plan(engine, problem, config)
    certain = sum(gamma**step * reward for step in range(6)) + gamma**5 * last
    np.testing.assert_allclose(values[1 - doubtful], certain, rtol=1e-5)
    assert values[doubtful] <= certain + 1e-5
    assert chosen == 1 - doubtful


@pytest.mark.parametrize("engine", ENGINES)
def test_doubt_inside_of_rollouts_never_helps(engine):
    """Two roads at -1 a step; the first has a doubtful step that only rollouts reach at first."""
    late = roads(6, -1.0, doubtful=2)
    late.uncertainty[4, :] = 1.0  # the fifth state of road 0
    for iterations in (3, 40):
        config = uamcts.SearchConfig(**{**BUDGET, "iterations": iterations})
        chosen, values = plan(engine, late, config)
        assert values[0] <= values[1] + 1e-5
        assert chosen == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_the_worst_return_is_found_by_the_search(engine):
    """A doubtful step to a goal of +10 is expected to be as bad as what the model knows to be bad: the swamp.

    Action 0: doubtful, then +10. Action 1: the swamp, -1 a step for 8 steps. The swamp is the worst return, so that the
    doubtful road is worth 0.01 * 10 - 0.99 * 8 = -7.82 at most, and still better than the swamp for sure.
    """
    transitions = {(0, 0): (9, 0.0, 1.0), (9, 0): (11, 10.0, 0.0), (9, 1): (11, 10.0, 0.0)}
    for step in range(8):
        for action in (1,) if step == 0 else (0, 1):
            transitions[step, action] = (step + 1 if step < 7 else 11, -1.0, 0.0)
    problem = table(transitions, STATES, 2)
    config = uamcts.SearchConfig(**BUDGET)
    chosen, values = plan(engine, problem, config)
    np.testing.assert_allclose(values, [0.1 - 0.99 * 8, -8.0], rtol=1e-5)
    assert chosen == 0
    told, given = plan(engine, problem, replace(config, worst=-100.0))
    np.testing.assert_allclose(given, [0.1 - 99.0, -8.0], rtol=1e-5)
    assert told == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_road_that_never_ends_is_worse_than_one_rollout_of_it(engine):
    """Standing still costs 1 a step for ever: V_min extends the rollouts to as far as the search looks.

    With two actions 40 iterations reach 42 levels, and rollouts go 12 steps further: V_min is -(12 + 42).
    """
    config = uamcts.SearchConfig(**BUDGET, rho=1.0)
    steps = {(0, 0): (1, -1.0, 1.0), (0, 1): (1, -1.0, 0.0), (1, 0): (1, -1.0, 0.0), (1, 1): (1, -1.0, 0.0)}
    stay = table(steps, STATES, 2)
    _, values = plan(engine, stay, config)
    np.testing.assert_allclose(values[0], -1.0 - (12 + 42), rtol=1e-5)
