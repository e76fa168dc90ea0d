"""Shortcuts of searches with corrections: they say what the long ways say."""

import copy
import pickle

import numpy as np
import pytest

from uamcts import PatchedModel
from uamcts.agent.identity import Identity
from uamcts.corrections.arrivals import Arrivals
from uamcts.corrections.journal import Journal
from uamcts.corrections.python_facts import Glance
from uamcts.corrections.residual import Residual


def bent(rewards=False):
    """A residual with splits, slopes and bounds; action 2 is right."""
    rng = np.random.default_rng(0)
    features, actions = rng.uniform(-1, 1, (600, 3)), rng.integers(0, 3, 600)
    differences = np.zeros((600, 3 + rewards))
    differences[:, 1] = np.where(features[:, 0] > 0.2, 0.5 * features[:, 2], -0.3) * (actions < 2)
    differences[:, -1] += np.where(actions == 1, 0.1, 0.0)
    return Residual.fit(features, actions, differences, 3)


@pytest.mark.parametrize("rewards", [False, True])
def test_what_moves_a_state_is_what_is_added_to_it(rewards):
    residual, places = bent(rewards), np.random.default_rng(1).uniform(-6, 6, (1000, 3)).tolist()
    places[:500] = [[0.2 * number for number in place] for place in places[:500]]
    for action in range(3):
        found = [residual.moves[action](place, [1.0, -0.0, 3.0]) for place in places]
        for place, one in zip(places, found, strict=True):
            moved, paid = one or ((1.0, -0.0, 3.0), 0.0)
            added = residual.difference(np.array(place), action)
            assert [*moved] == [1.0 + added[0], -0.0 + added[1], 3.0 + added[2]]
            assert paid == (added[3] if rewards else 0.0)
        assert any(found) == (action < 2)
    with pytest.raises(ValueError, match="longer"):
        residual.moves[0]([0.0, 0.0], [0.0, 0.0])


def test_what_moves_states_is_copied_and_pickled():
    residual = bent()
    before = residual.moves[0]([0.5, 0.5, 0.5], [0.0] * 3)
    for twin in (copy.deepcopy(residual), pickle.loads(pickle.dumps(residual))):
        assert twin.moves[0]([0.5, 0.5, 0.5], [0.0] * 3) == before


@pytest.mark.parametrize("make", [tuple, list, np.array, lambda numbers: np.array(numbers, np.float32)])
def test_a_glance_excludes_states_whose_first_number_was_never_seen(make):
    glance, key = Glance(True), Identity()
    glance.add(key(make([0.5, 2.0])))
    assert not glance.excludes(make([0.5, 3.0]))
    assert glance.excludes(make([0.25, 2.0]))
    assert not glance.excludes(make([float("nan"), 2.0]))
    glance.add(key(make([-0.0, 1.0])))
    assert not glance.excludes(make([0.0, 1.0]))
    assert not Glance(False).excludes(make([0.25, 2.0]))


def test_what_a_glance_does_not_tell():
    glance = Glance(True)
    for state in ((), [], np.zeros(0), np.array(0.5), np.array([1, 2]), np.array([True]), {"x": 0.5}, 0.5, (1, 0.5)):
        assert not glance.excludes(state)


def test_a_glance_is_renewed_by_a_new_one():
    glance = Glance(True)
    for number in range(10):
        glance.add((float(number),))
    assert glance.renewed([(3.0,)], 10) is glance
    other = glance.renewed([(3.0,)], 9)
    assert other.excludes((4.0,))
    assert not other.excludes((3.0,))
    assert not glance.excludes((4.0,))  # as before, for whoever goes on with it


def test_what_was_seen_of_a_state_before_is_no_news():
    """A graph can be gone on from."""
    arrivals, journal = Arrivals(lambda state: state), Journal()
    trap = [(1.0, (1, 0.0, False))], (1, -5.0, True)
    assert arrivals.add((0, 0), *trap, journal, True)
    assert not arrivals.add((0, 0), *trap, journal, False)
    assert not arrivals.add((0, 1), [(1.0, (2, 0.0, False))], (2, 0.0, False), journal, True)
    assert arrivals.add((0, 0), [(1.0, (1, 0.0, False))], (1, -4.0, True), journal, False)
    assert arrivals.expected(1, 7)[0].reward == -4.0
    assert arrivals.add((0, 0), [(1.0, (1, 0.0, False))], (1, 0.0, False), journal, False)
    assert arrivals.expected(1, 7) is None


class Bags:
    """(place, the last two places)."""

    num_actions = 2

    def __init__(self):
        self.asked = 0

    def step(self, state, action):
        self.asked += 1
        place, bag = state
        return ((place + action) % 4, (*bag, place)[-2:]), 0.0, False


def test_what_a_search_was_told_of_nested_states_is_kept():
    model = Bags()
    patched = PatchedModel(model)
    for _ in range(3):
        for after in (((1, (0,)), 1.0, False), ((0, (0,)), 0.0, False)):  # comes out in two ways
            patched.remember((0, ()), 1, *after)
    planned = patched.planned_model()
    assert len(planned.outcomes((0, ()), 1)) == 2
    before = model.asked
    assert planned.outcome_at((1, (0,)), 1, 0.5) == ((2, (0, 1)), 0.0, False)
    assert planned.outcome_at((1, (0,)), 1, 0.5) == ((2, (0, 1)), 0.0, False)
    assert model.asked == before + 1
