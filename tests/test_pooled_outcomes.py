"""Outcomes that a simulator does not list are expected wherever it lists the same."""

from dataclasses import dataclass

import pytest

import uamcts


@dataclass(frozen=True)
class Cabin:
    floor: int
    call: int


class Calls:
    """Calls come from floor 1 or 2, it is believed; to wait ends the episode."""

    num_actions = 2

    def outcomes(self, state, action):
        if action == 1:
            return [(1.0, (state, 0.0, True))]
        return [(0.5, (Cabin(state.floor, call), -1.0, False)) for call in (1, 2)]


def calls(model, floor):
    found = model.outcomes(Cabin(floor, 0), 0)
    assert all(after.floor == floor and reward == -1.0 and not over for _, (after, reward, over) in found)
    return {after.call: chance for chance, (after, _, _) in found}


def test_an_unlisted_value_that_was_seen_in_two_places_is_expected_in_a_third():
    model = uamcts.PatchedModel(Calls(), prior_weight=None)
    model.remember(Cabin(3, 0), 0, Cabin(3, 7), -1.0, False)
    assert calls(model, 5) == {1: 0.5, 2: 0.5}, "one place says nothing about others"
    model.remember(Cabin(4, 0), 0, Cabin(4, 7), -1.0, False)
    assert calls(model, 5) == pytest.approx({1: 0.25, 2: 0.25, 7: 0.5})
    model.remember(Cabin(4, 0), 0, Cabin(4, 1), -1.0, False)
    assert calls(model, 5) == pytest.approx({1: 0.4, 2: 0.2, 7: 0.4})
    assert model.outcomes(Cabin(5, 0), 1) == [(1.0, (Cabin(5, 0), 0.0, True))]


def test_nothing_is_expected_where_all_that_was_seen_is_listed():
    model = uamcts.PatchedModel(Calls(), prior_weight=None)
    for floor in range(5):
        model.remember(Cabin(floor, 0), 0, Cabin(floor, 1), -1.0, False)
    assert calls(model, 5) == {1: 0.5, 2: 0.5}


def test_a_failed_call_changes_nothing():
    model = uamcts.PatchedModel(Calls(), prior_weight=None)
    model.remember(Cabin(3, 0), 0, Cabin(3, 7), -1.0, False)
    twin = model.twin()
    twin.remember(Cabin(4, 0), 0, Cabin(4, 7), -1.0, False)
    assert 7 in calls(twin, 5)
    twin.journal.undo()
    assert calls(model, 5) == {1: 0.5, 2: 0.5}


def test_a_saved_agent_expects_the_same(tmp_path):
    agent = uamcts.Agent(Calls(), corrections=("facts",), iterations=10, rollouts=1, depth=3, gamma=0.9)
    agent.act(Cabin(0, 0))
    agent.preload([(Cabin(floor, 0), 0, Cabin(floor, 7), -1.0, False) for floor in (3, 4)])
    agent.save(tmp_path / "agent.npz")
    loaded = uamcts.Agent(Calls(), corrections=("facts",), iterations=10, rollouts=1, depth=3, gamma=0.9)
    loaded.act(Cabin(0, 0))
    loaded.load(tmp_path / "agent.npz")
    for one in (agent, loaded):
        assert calls(one.backend.planner.patched, 5) == pytest.approx({1: 0.25, 2: 0.25, 7: 0.5})
