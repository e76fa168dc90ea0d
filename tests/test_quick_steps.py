"""Shortcuts of searches with corrections: they say what the long ways say."""

import numpy as np
import pytest

from uamcts import PatchedModel
from uamcts.agent.identity import Identity
from uamcts.corrections.arrivals import Arrivals
from uamcts.corrections.journal import Journal
from uamcts.corrections.python_facts import Glance


class Cart:
    def __init__(self, x, v):
        self.x, self.v = x, v


class Named(Cart):
    def __hash__(self):
        return hash(self.v)

    def __eq__(self, other):
        return self.v == other.v


KINDS = [
    tuple,
    list,
    np.array,
    lambda numbers: np.array(numbers, np.float32),
    lambda numbers: {"y": numbers[1], "x": numbers[0]},
    lambda numbers: Cart(v=numbers[0], x=numbers[1]),
]


@pytest.mark.parametrize("make", KINDS)
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


def test_a_glance_at_one_field():
    glance, key = Glance(True), Identity()
    for state in ({"x": 1, "n": "left", "v": 0.5}, Named(1.0, 0.25)):
        glance.add(key(state))
    assert glance.field == "v"
    assert glance.excludes({"v": 0.75, "x": 1})
    of_its_own = Named(7.0, 0.25)  # it has a hash of its own
    for state in ({"x": 0.75}, {"v": 1, "x": 0.75}, {}, of_its_own):
        assert not glance.excludes(state)
    assert glance.excludes(Cart(0.5, 0.75))
    glance.add(key(Cart(0.5, 0.75)))
    assert not glance.excludes(Cart(0.0, 0.75))
    assert glance.renew([], 0).field == "v"


def test_a_glance_is_renewed_by_a_new_one():
    glance = Glance(True)
    for number in range(10):
        glance.add((float(number),))
    assert glance.renew([(3.0,)], 10) is glance
    other = glance.renew([(3.0,)], 9)
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
