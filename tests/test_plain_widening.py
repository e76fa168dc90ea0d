"""Continuous actions in the plain engine: proposals, how many of them, what they find, bad input."""

import math

import numpy as np
import pytest

import uamcts
from uamcts import reference

CONFIG = uamcts.SearchConfig(iterations=400, rollouts=1, depth=3, gamma=0.5, rules="trust")


class Target:
    """One action decides: the nearer to 0.3 the better. The state is how many were made; two end the episode."""

    num_actions = None
    action_space = (-1.0, 1.0)

    def step(self, state, action):
        return state + 1, -abs(action - 0.3), state == 1


class NoisyTarget:
    num_actions = None
    action_space = (np.array([-1.0, 0.0]), np.array([1.0, 2.0]))

    def sample(self, state, action, rng):
        assert action.shape == (2,)
        return state + 1, -float(np.abs(action - [0.3, 1.5]).sum()) + rng.normal() / 10, state == 1


def test_finds_a_good_action():
    result = reference.search(0, 0, Target(), None, CONFIG)
    assert result.action == pytest.approx(0.3, abs=0.15)
    assert result.action in result.actions
    assert all(-1.0 <= action <= 1.0 for action in result.actions)
    assert len(result.actions) == len(result.visits) == len(result.values) == len(result.exists)
    assert sum(result.visits) == 400
    assert result.visits[result.actions.index(result.action)] == max(result.visits)


def test_an_action_of_several_numbers_in_a_random_model():
    result = reference.search(0, 0, NoisyTarget(), None, CONFIG)
    np.testing.assert_allclose(result.action, [0.3, 1.5], atol=0.5)


@pytest.mark.parametrize(("k", "alpha", "count"), [(2.0, 0.5, 40), (1.0, 0.5, 20), (3.0, 0.0, 3), (0.5, 1.0, 200)])
def test_how_many_actions(k, alpha, count):
    """The last action is added before the 400th visit, at which ceil(k 399^alpha) are due."""
    result = reference.search(0, 0, Target(), None, CONFIG, widening=(k, alpha))
    assert len(result.actions) == math.ceil(k * 399**alpha) == count


def test_the_ends_of_the_range_are_proposed():
    class Extreme(Target):
        def step(self, state, action):
            return state + 1, action, state == 1

    assert reference.search(0, 0, Extreme(), None, CONFIG).action == 1.0


def test_proposals_of_the_model_and_of_the_policy():
    class Proposing(Target):
        def actions(self, state, rng):
            return rng.choice([0.1, 0.2])

    result = reference.search(0, 0, Proposing(), None, CONFIG)
    assert set(result.actions) == {0.1, 0.2}
    result = reference.search(0, 0, Proposing(), None, CONFIG, policy=lambda state, rng: 7.0)
    assert set(result.actions) == {1.0}  # cut off at the bounds

    class Unbounded(Target):
        action_space = None

    assert set(reference.search(0, 0, Unbounded(), None, CONFIG, policy=lambda s, rng: 7.0).actions) == {7.0}


def test_doubtful_actions_are_avoided():
    """Beyond a step with a positive action there is doubt, and nothing of what lies there counts."""

    class Later(Target):
        def step(self, state, action):
            return (state + 1, 0.0, False) if state == 0 else (state + 1, 1.0, True)

    config = uamcts.SearchConfig(iterations=400, rollouts=1, depth=3, rules="trust", rho=1.0, worst=0.0)
    result = reference.search(0, 0, Later(), lambda state, action: float(state == 0 and action > 0), config)
    assert result.action <= 0
    assert {value for value, doubt in zip(result.values, result.uncertainty, strict=True) if doubt} == {0.0}
    assert {value for value, doubt in zip(result.values, result.uncertainty, strict=True) if not doubt} == {1.0}


def test_a_seed_decides_and_the_tree_is_kept():
    first, again = (reference.search(3, 0, Target(), None, CONFIG) for _ in range(2))
    assert first.actions == again.actions
    second = reference.search(3, 1, Target(), None, CONFIG, tree=first)
    assert sum(second.visits) > 400
    assert "of 400 visits" in first.explain()


@pytest.mark.parametrize(
    ("changes", "options", "words"),
    [
        ({"action_space": None}, {}, "nothing says what its actions are"),
        ({"action_space": (-np.inf, 1.0)}, {}, "finite bounds"),
        ({"action_space": (1.0, -1.0)}, {}, r"action_space is \(1\.0, -1\.0\); give \(low, high\)"),
        ({"action_space": 3}, {}, "action_space is 3"),
        ({"legal_actions": list}, {}, "legal_actions, which needs a finite number"),
        ({}, {"prior": lambda state: [1.0]}, "prior is given"),
        ({}, {"policy": lambda state, rng: math.nan}, "the action nan was proposed"),
        ({}, {"widening": (0.0, 0.5)}, r"widening is \(0\.0, 0\.5\); give \(k, alpha\)"),
        ({}, {"widening": 2}, "widening is 2"),
    ],
)
def test_bad_input(changes, options, words):
    model = type("Changed", (Target,), changes)()
    with pytest.raises(ValueError, match=words):
        reference.search(0, 0, model, None, CONFIG, **options)


@pytest.mark.parametrize("options", [{"graph": True}, {"rules": "released"}])
def test_what_needs_a_finite_number_of_actions(options):
    with pytest.raises(ValueError, match=r"model\.num_actions is None"):
        reference.search(0, 0, Target(), None, uamcts.SearchConfig(iterations=10, **options))
