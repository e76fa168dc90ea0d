"""Actions after which nothing happens, always or by chance."""

import json

import numpy as np
import pytest

import uamcts
from uamcts.agent.chance import RealOutcome
from uamcts.corrections.effective_actions import EffectiveActions
from uamcts.corrections.effective_model import EffectiveModel
from uamcts.corrections.idle_actions import IdleActions

SETTINGS = {"iterations": 10, "rollouts": 1, "depth": 4, "gamma": 0.9}


class Stairs:
    """A walk from 0 to 12: a step up, or a jump by two. Both cost; a jump costs more."""

    num_actions, action_names = 2, ("step", "jump")

    def step(self, place, action):
        after = min(place + 1 + action, 12)
        return after, 8.0 * (after == 12) - (0.3, 0.4)[action], after == 12


def climb(fails, steps=120, agent=None):
    """An agent that has seen random steps where jumps do nothing with a probability."""
    agent, rng, place = agent or uamcts.Agent(Stairs(), **SETTINGS), np.random.default_rng(0), 0
    agent.act(0)
    for _ in range(steps):
        action = int(rng.integers(2))
        after, reward, over = Stairs().step(place, action)
        if action and rng.random() < fails:
            after, reward, over = place, -0.4, False
        agent.observe(place, action, after, reward=reward, terminal=over)
        place = 0 if over else after
    return agent


def test_shares_and_rewards_by_hand():
    idle = IdleActions().add(0, 2, False, 5.0, 0.9)
    assert idle == IdleActions()  # something always happened
    idle = idle.add(1, 2, True, -0.4, 0.9)
    assert idle == IdleActions((0.0, 1.0), (0.0, -0.4))
    usual = 1.1 / (1.1 + 3 + 2)  # one and a tenth of all that happened, with what the simulator is worth
    np.testing.assert_allclose(idle.shares(np.array([3.0, 0.0])), [2 * usual / 5, (1 + 2 * usual) / 3])
    assert idle.rewards() == pytest.approx([-0.4, -0.4])


def test_outcomes_where_nothing_may_happen():
    model = EffectiveModel(Stairs(), np.array([[1.0, 0.0, 0.0], [0.0, 0.25, 0.75]]), int, idle=[-0.3, -0.4])
    assert model.outcomes(10, 1) == [(0.75, (10, -0.4, False)), (0.25, (12, 7.6, True))]
    assert model.outcomes(10, 0) == [(1.0, (11, -0.3, False))]
    assert [model.outcome_at(10, 1, place)[0] for place in (0.7, 0.8)] == [10, 12]
    stuck = np.array([[0.5, 0.0, 0.5], [0.0, 0.0, 1.0]])
    alone = EffectiveModel(Stairs(), stuck, int, lambda _: [0], idle=[-0.3, -0.4])  # nothing is always legal
    assert alone.outcomes(3, 0) == [(0.5, (4, -0.3, False)), (0.5, (3, -0.3, False))]


@pytest.mark.parametrize(("fails", "least", "most"), [(0.6, 0.4, 0.75), (1.0, 0.8, 1.0)], ids=["by chance", "always"])
def test_a_jump_that_does_nothing_is_expected_to_do_so_elsewhere(fails, least, most):
    agent = climb(fails)
    facts = agent.backend.planner.patched
    jump, step = facts.effective.planned[1], facts.effective.planned[0]
    assert least < jump[-1] <= most
    assert step[0] > 0.9
    nothing = next(outcome for _, outcome in facts.believe(100, 1) if outcome[0] == 100)  # a place never seen
    assert nothing[1:] == (pytest.approx(-0.4), False)
    assert "nothing at all (" in str(agent.report())
    found = EffectiveActions.from_json(json.loads(json.dumps(facts.effective.as_json())), 2)
    np.testing.assert_array_equal(found.planned, facts.effective.planned)
    assert found.idle == facts.effective.idle


def test_a_wall_that_is_met_fifty_times_closes_one_place_only():
    """The same again at the same place is what a fact predicts: it must not make the action look dead everywhere."""
    agent = climb(0.0, steps=20)
    for _ in range(50):
        agent.observe(6, 1, 6, reward=-0.4, terminal=False)
    facts = agent.backend.planner.patched
    assert facts.effective.planned is None
    assert facts.effective.idle.times[1] <= 1.0
    assert facts.believe(3, 1) == [(1.0, Stairs().step(3, 1))]


def test_another_table_of_idle_actions_is_refused():
    for found in (None, [[0.0], [0.0]], [[-1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], []]):
        with pytest.raises(ValueError, match="nothing happens"):
            IdleActions.from_json(found, 2)


class Calls:
    """A state is a floor, or -1 while nobody calls: half of the time nobody does, else floor 1 or 2."""

    num_actions = 1

    def outcomes(self, state, action):
        return [(0.5, (-1, 0.0, False)), (0.25, (1, 0.0, False)), (0.25, (2, 0.0, False))]


def test_what_is_not_listed_counts_as_the_nearest_kind():
    """Else what is listed would seem to happen more often than it does."""
    agent = uamcts.Agent(Calls(), **SETTINGS)
    for number in range(80):
        agent.observe(-1, 0, 7 if number % 2 else -1, reward=0.0, terminal=False)
    listed = agent.backend.planner.listed(-1, 0, RealOutcome(7, 0.0, False))
    assert listed == ([0.5, 0.25, 0.25], [False, False, True])
    assert agent.backend.corrector.rates.tilt([0.5, 0.25, 0.25], 0)[0] == pytest.approx(0.5, abs=0.05)
