"""Random models in the plain engine's tree: known answers by hand, policies, values, priors, reuse, bad input."""

import math
import random

import numpy as np
import pytest
from decision_processes import Process, Sampler, lake, random_process

import uamcts
from uamcts import reference

TREE = uamcts.SearchConfig(iterations=200, rollouts=1, depth=4, gamma=0.5, rules="trust")
PLAIN = dict.fromkeys(("selection", "expansion", "simulation", "backpropagation"), False)
BETS = {
    (0, 0): [(0.25, (1, 4.0, False)), (0.75, (2, 0.0, False))],
    (0, 1): [(1.0, (9, 1.5, True))],
    (1, 0): [(1.0, (9, 8.0, True))],
    (1, 1): [(1.0, (9, 8.0, True))],
    (2, 0): [(0.5, (9, -2.0, True)), (0.5, (9, 0.0, True))],
    (2, 1): [(0.5, (9, -2.0, True)), (0.5, (9, 0.0, True))],
}
"""The first bet is worth 1/4 (4 + gamma 8) + 3/4 gamma (-1): 1.625 with gamma 1/2; the second is worth 1.5."""


def bet(gamma):
    return 0.25 * (4 + gamma * 8) - 0.75 * gamma


@pytest.mark.parametrize("rules", ["released", "pseudocode", "trust"])
@pytest.mark.parametrize("gamma", [0.5, 1.0, 0.25])
def test_two_bets(rules, gamma):
    config = uamcts.SearchConfig(iterations=2000, rollouts=1, depth=4, gamma=gamma, rules=rules, c=4.0, **PLAIN)
    result = reference.search(0, 0, Process(BETS, 2), None, config)
    assert result.values == pytest.approx([bet(gamma), 1.5], abs=0.05)
    assert result.action == (0 if bet(gamma) > 1.5 else 1)
    assert sum(result.visits) >= 1999  # the printed rules roll out from the root first


def test_outcomes_are_visited_as_often_as_they_are_likely():
    result = reference.search(0, 0, Process(BETS, 2), None, TREE)
    gamble = result.tree.children[0]
    first, second = gamble.outcomes
    assert first.visits + second.visits == gamble.visits
    assert first.visits == pytest.approx(gamble.visits / 4, abs=1)
    assert gamble.reward == pytest.approx(4 * first.visits / gamble.visits)
    assert (first.state, second.state) == (1, 2)
    assert [child.action for child in first.children] == [0, 1]


def test_a_sampler_draws_its_outcomes_one_by_one():
    config = uamcts.SearchConfig(iterations=3000, rollouts=1, depth=4, gamma=0.5, rules="trust", outcomes=40)
    result = reference.search(1, 0, Sampler(Process(BETS, 2)), None, config)
    gamble = result.tree.children[0]
    assert len(gamble.outcomes) == 40
    assert max(o.visits for o in gamble.outcomes) - min(o.visits for o in gamble.outcomes) <= 1
    lucky = sum(outcome.state == 1 for outcome in gamble.outcomes) / 40
    assert result.values[0] == pytest.approx(lucky * 8 - (1 - lucky) * 0.5, abs=0.15)
    assert reference.search(1, 0, Sampler(Process(BETS, 2)), None, config).values == result.values
    few = reference.search(1, 0, Sampler(Process(BETS, 2)), None, TREE)
    assert len(few.tree.children[0].outcomes) == 8


def test_outcomes_then_sample_then_step():
    class All(Process):
        def sample(self, state, action, rng):
            raise AssertionError

        step = sample

    class Two:
        num_actions = 2

        def __init__(self):
            self.sample = Sampler(Process(BETS, 2)).sample

        def step(self, state, action):
            raise AssertionError

    assert len(reference.search(0, 0, All(BETS, 2), None, TREE).tree.children[0].outcomes) == 2
    assert len(reference.search(0, 0, Two(), None, TREE).tree.children[0].outcomes) == 8


def test_one_certain_outcome_is_a_step():
    """The same draws give the same tree whether a deterministic model says `step` or `outcomes`."""
    process = random_process(2, 12, 3, 1, ends=0.2)

    class Steps:
        num_actions = 3

        def step(self, state, action):
            return process.outcomes(state, action)[0][1]

    class Fixed(reference.Draws):
        def chance(self, iteration, number):
            return lambda: 0.5

    for rules in ("released", "pseudocode", "trust"):
        config = uamcts.SearchConfig(iterations=80, rollouts=2, depth=5, gamma=0.9, rules=rules)
        steps = reference.search(7, 0, Steps(), lambda s, a: 0.3 * (s % 2), config)
        listed = reference.search(Fixed(random.Random(7)), 0, process, lambda s, a: 0.3 * (s % 2), config)
        assert listed.visits == steps.visits
        np.testing.assert_allclose(listed.values, steps.values, rtol=1e-12)


@pytest.mark.parametrize("graph", [False, True])
def test_nothing_after_the_horizon_counts(graph):
    """After one step the first bet has paid 1 on average; only later steps pay the rest."""
    config = uamcts.SearchConfig(iterations=3000, rollouts=1, depth=4, gamma=1.0, rules="trust", graph=graph)
    result = reference.search(0, 0, Process(BETS, 2), None, config, horizon=1)
    assert result.values == pytest.approx([1.0, 1.5], abs=0.02)
    assert result.action == 1
    result = reference.search(0, 0, Process(BETS, 2), None, config, horizon=2)
    assert result.values == pytest.approx([bet(1.0), 1.5], abs=0.03)
    assert result.action == 0
    with pytest.raises(ValueError, match="horizon is 0"):
        reference.search(0, 0, Process(BETS, 2), None, config, horizon=0)


def corridor():
    """Twelve cells; the right end pays 1, and every step to the left ends the walk."""
    table = {(cell, 0): [(1.0, (cell + 1, float(cell == 11), cell == 11))] for cell in range(12)}
    return Process(table | {(cell, 1): [(1.0, (0, 0.0, True))] for cell in range(12)}, 2)


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize(
    "policy", [lambda s, rng: 0, lambda s, rng: np.array([2.0, 0.0]), lambda s, rng: rng.choice([0])]
)
def test_rollouts_follow_the_policy(graph, policy):
    config = uamcts.SearchConfig(iterations=3, rollouts=2, depth=20, gamma=0.9, rules="trust", graph=graph)
    result = reference.search(0, 0, corridor(), None, config, policy=policy)
    assert result.values[0] == pytest.approx(0.9**11)
    assert reference.search(0, 0, corridor(), None, config).values[0] < 0.1


def test_a_policy_is_masked():
    class Masked(Process):
        def legal_actions(self, state):
            return [0]

    config = uamcts.SearchConfig(iterations=3, rollouts=2, depth=20, gamma=0.9, rules="trust")
    for policy in (lambda s, rng: 1, lambda s, rng: [0.0, 1.0], lambda s, rng: [0.1, 0.9]):
        result = reference.search(0, 0, Masked(corridor().table, 2), None, config, policy=policy)
        assert result.values[0] == pytest.approx(0.9**11)


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize(("weight", "first"), [(1.0, 2.0), (0.0, 0.5), (0.25, 0.25 * 2 + 0.75 * 0.5)])
def test_values_at_leaves(graph, weight, first):
    """One step without a reward, then one that pays 1; the value function says 4. gamma is 1/2."""
    table = {
        (0, 0): [(1.0, (1, 0.0, False))],
        (1, 0): [(1.0, (2, 1.0, False))],
        (2, 0): [(1.0, (2, 0.0, False))],
    }
    options = {"rollouts": 3, "depth": 4, "gamma": 0.5, "rules": "trust", "value_weight": weight, "graph": graph}
    search = uamcts.SearchConfig(iterations=1, tree_depth=1, **options)
    result = reference.search(0, 0, Process(table, 1), None, search, value=lambda state: 4.0)
    assert result.values == pytest.approx([first])


def test_no_rollouts_with_a_value_of_full_weight():
    class Counted(Process):
        calls = 0

        def outcomes(self, state, action):
            self.calls += 1
            return super().outcomes(state, action)

    model = Counted(lake(0.7).table, 4)
    reference.search(0, 0, model, None, TREE, value=lambda state: 0.0)
    expanded = model.calls
    reference.search(0, 0, model, None, TREE)
    assert expanded < (model.calls - expanded) / 2


def test_a_prior_in_the_tree():
    """score = x + c P sqrt(N) / (1 + n), by hand: c = 1, P = (1/5, 4/5); the first arm pays 1, the second 0.

    N = 0: scores tie at the mean, 0.5: arm 0 (x = 1, alone: 0.5). N = 1: 0.5 + 0.1 against 0.5 + 0.8: arm 1.
    N = 2: 1 + 0.2 sqrt(2) / 2 against 0.8 sqrt(2) / 2: arm 0; and so on, with arm 1 now and then.
    """
    arms = Process({(0, 0): [(1.0, (1, 1.0, True))], (0, 1): [(1.0, (1, 0.0, True))]}, 2)
    visits = []
    for iterations in range(1, 5):
        config = uamcts.SearchConfig(iterations=iterations, rollouts=1, depth=1, c=1.0, rules="trust")
        visits.append(reference.search(0, 0, arms, None, config, prior=lambda state: [0.2, 0.8]).visits)
    assert visits == [[1, 0], [1, 1], [2, 1], [3, 1]]
    never = reference.search(0, 0, arms, None, config, prior=lambda state: (1, 0))
    assert never.visits == [4, 0]
    assert math.isnan(never.values[1])


def test_reuse_of_a_tree():
    process = lake(0.7)
    first = reference.search(0, 14, process, None, TREE)
    outcome = max((o for child in first.tree.children for o in child.outcomes if o.children), key=lambda o: o.visits)
    visits = {child.action: child.visits for child in outcome.children}
    second = reference.search(0, outcome.state, process, None, TREE, tree=first)
    assert all(second.visits[action] >= visits[action] for action in visits)
    assert sum(second.visits) == sum(visits.values()) + 200
    assert reference.search(0, 4, process, None, TREE, tree=first).visits != second.visits  # not found: afresh
    with pytest.raises(ValueError, match="rules='trust', and this one has rules='released'"):
        reference.search(0, 4, process, None, uamcts.SearchConfig(gamma=0.5), tree=first)


def test_nothing_is_reused_below_doubt():
    """The search below a doubtful step was plain; once the step is made, doubt counts again."""
    table = {(cell, action): [(1.0, (cell + 1 + action, 1.0, False))] for cell in range(200) for action in (0, 1)}
    config = uamcts.SearchConfig(iterations=60, rollouts=1, depth=2, gamma=0.5, rules="trust", worst=0.0)
    first = reference.search(0, 0, Process(table, 2), lambda s, a: 0.5 * (a == 0), config)
    assert sum(reference.search(0, 1, Process(table, 2), None, config, tree=first).visits) == 60
    assert sum(reference.search(0, 2, Process(table, 2), None, config, tree=first).visits) > 60


class Bad:
    num_actions = 2

    def __init__(self, outcomes, later=False):
        self.found, self.later = outcomes, later

    def outcomes(self, state, action):
        return [(1.0, (state + 1, 0.0, False))] if self.later and state < 3 else self.found


END = (0, 1.0, True)


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        ([(0.5, END), (0.4, END)], r"sum to 0\.9; they must sum to 1"),
        ([(0.5, END), (0.6, END)], r"sum to 1\.1"),
        ([(1.5, END), (-0.5, END)], r"probability of -0\.5; probabilities must be numbers of at least 0"),
        ([(1.0, END), (-0.5, END), (0.5, END)], r"probability of -0\.5"),
        ([(math.nan, END)], "probability of nan"),
        ([], "empty list; give at least one outcome"),
        ([(1.0, (0, math.nan, True))], "a reward of nan"),
        (3, r"gave 3; it must give a list of \(probability"),
        ([END], "must give a list of"),
    ],
)
def test_bad_outcomes(outcomes, words, graph, later):
    config = uamcts.SearchConfig(iterations=20, rollouts=2, depth=8, graph=graph)
    with pytest.raises((ValueError, TypeError), match=words):
        reference.search(0, 0, Bad(outcomes, later), None, config)


def test_a_sampler_with_hidden_state():
    hidden = random.Random(0)

    class Hidden:
        num_actions = 2

        def sample(self, state, action, rng):
            return (state + hidden.choice([0, 1]), 0.0, False) if action else (state, 0.0, False)

    class Fixed(Hidden):
        def sample(self, state, action, rng):
            return state, 0.0, False

    with pytest.raises(ValueError, match=r"sample\(state, 1, rng\) gave .*same seed; draw from `rng` alone"):
        reference.search(0, 0, Hidden(), None, TREE)
    assert reference.search(0, 0, Fixed(), None, TREE).action in (0, 1)


@pytest.mark.parametrize(
    ("guides", "words"),
    [
        ({"policy": lambda s, rng: 7}, "policy.*action 7; actions are 0 to 1"),
        ({"policy": lambda s, rng: [1.0]}, "policy gave .* for each of the 2 actions"),
        ({"policy": lambda s, rng: [-1.0, 2.0]}, "policy gave"),
        ({"policy": 3}, "policy is 3; give a function"),
        ({"value": lambda s: math.nan}, r"value\(state\) is nan"),
        ({"value": 3}, "value is 3; give a function"),
        ({"prior": lambda s: [0.0, 0.0]}, "gives no legal action a probability above 0"),
        ({"prior": lambda s: [math.nan, 1.0]}, "prior gave"),
        ({"prior": lambda s: 0.5}, "prior gave 0.5"),
    ],
)
@pytest.mark.parametrize("graph", [False, True])
def test_bad_guides(guides, words, graph):
    config = uamcts.SearchConfig(iterations=20, rollouts=2, depth=8, graph=graph)
    with pytest.raises((ValueError, TypeError), match=words):
        reference.search(0, 0, Process(BETS, 2), None, config, **guides)


def test_a_model_of_no_kind():
    class Nothing:
        num_actions = 2

    with pytest.raises(TypeError, match="none of outcomes"):
        reference.search(0, 0, Nothing(), None, TREE)
