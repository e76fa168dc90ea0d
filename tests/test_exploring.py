"""Actions that are believed to be bad are tried where the simulator was wrong about others, and only there."""

import random

import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from uamcts.agent.curiosity import ENOUGH, FEW, SHARE, Curiosity, Residual, expected_gain

SMALL = {"iterations": 20, "rollouts": 1, "depth": 3}
BELIEVED, REAL, BEST = (1.0, 0.9, 0.8, 0.7, 0.6), (0.3, 0.9, 0.5, 0.2, 1.5), 4
"""The second arm pays what is believed: nothing contradicts that it is the best of all."""


class Arms:
    """One choice: each arm always pays the same."""

    def __init__(self, pays):
        self.num_actions, self.pays = len(pays), list(pays)
        self.step = lambda state, action: (state, pays[action], True)


class Chances:
    """One choice: an arm pays 1 with its probability, or else -1. There is no attribute for that."""

    def __init__(self, chances):
        self.num_actions = len(chances)
        self.outcomes = lambda state, arm: [(chances[arm], (1, 1.0, True)), (1 - chances[arm], (2, -1.0, True))]


def jax_arms(pays):
    table = jnp.asarray(pays)
    return uamcts.JaxSimulator(
        lambda state, action: uamcts.Transition(state, table[action], True), len(pays), jnp.int32(0), name="arms"
    )


def live(agent, world, episodes, seed=0):
    """One step in each episode; returns the actions."""
    rng, actions = random.Random(seed), []
    for _ in range(episodes):
        action = agent.act(0)
        if hasattr(world, "outcomes"):
            found = world.outcomes(0, action)
            ((_, (after, reward, over)),) = rng.choices(found, [chance for chance, _ in found])
        else:
            after, reward, over = world.step(0, action)
        agent.observe(0, action, after, reward=reward, terminal=over)
        actions.append(action)
    return actions


@pytest.mark.parametrize("make", [Arms, jax_arms])
def test_the_best_arm_is_found_although_it_is_believed_to_be_the_worst(make):
    actions = live(uamcts.Agent(make(BELIEVED), **SMALL), Arms(REAL), 40)
    assert set(actions[20:]) == {BEST}
    assert actions[0] == 0  # at first the simulator is believed


def test_without_corrections_no_arm_is_tried():
    agent = uamcts.Agent(Arms(BELIEVED), "none", corrections=(), **SMALL)
    assert set(live(agent, Arms(REAL), 20)) == {0}


def test_the_best_arm_is_found_where_arms_pay_by_chance():
    believed, real = (0.8, 0.6, 0.55, 0.5, 0.4), (0.3, 0.6, 0.4, 0.5, 0.95)
    found = []
    for seed in range(4):
        agent = uamcts.Agent(Chances(believed), seed=seed, **SMALL)
        found.append(live(agent, Chances(real), 120, seed)[-30:].count(BEST))
    assert sum(times >= 25 for times in found) >= 3


@pytest.mark.parametrize("right", [Arms(BELIEVED), Chances((0.8, 0.6, 0.55, 0.5, 0.4))])
def test_a_simulator_that_is_right_is_planned_in_as_by_plain_search(right):
    agents = uamcts.Agent(right, seed=3, **SMALL), uamcts.Agent(right, "none", seed=3, corrections=(), **SMALL)
    ours, plain = (live(agent, right, 30, 1) for agent in agents)
    assert ours == plain
    assert agents[0].backend.curiosity.spent == 0


def test_what_is_tried_in_vain_is_bounded():
    """Only the first arm is off: all others are as bad as believed."""
    real = (0.95, *BELIEVED[1:])
    agent = uamcts.Agent(Arms((2.0, *BELIEVED[1:])), **SMALL)
    actions = live(agent, Arms(real), 60)
    assert set(actions[40:]) == {0}
    spent = agent.backend.curiosity.spent
    assert 0 < spent <= 1 + SHARE * len(actions)
    assert spent <= len(BELIEVED) - 1  # each of them once: it always pays the same
    assert sum(max(real) - real[action] for action in actions) <= sum(max(real) - pay for pay in real) + 1e-9


def test_explain_says_that_an_action_is_tried():
    agent, world = uamcts.Agent(Arms(BELIEVED), **SMALL), Arms(REAL)
    for _ in range(20):
        spent = agent.backend.curiosity.spent
        live(agent, world, 1)
        tried = "may pay more than is believed; it was taken 0 times so far" in agent.explain()
        assert tried or agent.backend.curiosity.spent == spent
    assert agent.backend.curiosity.spent > 0


def test_a_saved_agent_goes_on_trying(tmp_path):
    believed, world = (0.8, 0.6, 0.55, 0.5, 0.4), Chances((0.3, 0.6, 0.4, 0.5, 0.95))
    agent, other = (uamcts.Agent(Chances(believed), reuse=False, **SMALL) for _ in range(2))
    live(agent, world, 25)
    agent.save(tmp_path / "agent.zip")
    other.load(tmp_path / "agent.zip")
    assert other.backend.curiosity == agent.backend.curiosity
    assert live(other, world, 40, 5) == live(agent, world, 40, 5)


def test_expected_gain():
    assert expected_gain(0.0, 1.0) == pytest.approx(0.3989423)
    assert expected_gain(-1.0, 1.0) == pytest.approx(0.0833155)
    assert expected_gain(-1.0, 2.0) == pytest.approx(2 * 0.1977966)
    assert expected_gain(3.0, 0.0) == 3.0
    assert expected_gain(-3.0, 0.0) == 0.0


def test_the_spread_of_errors_is_that_of_the_actions_tried():
    found = Curiosity()
    for action, error in ((0, -2.0), (0, -2.0), (1, 0.0), (2, 1.0)):
        found = found.add(action, error, 0.0)
    assert found.variance == pytest.approx((4.0 + 0.0 + 1.0) / 3)
    assert Curiosity().add(0, 0.0, 0.0).variance == 0.0


def test_an_action_that_is_off_in_few_places_says_nothing_about_others():
    found = Curiosity()
    for number in range(ENOUGH):
        found = found.add(0, -10.0 * (number % 7 == 0), 0.0)
    assert found.variance == 0.0


def test_chance_alone_says_nothing_about_others():
    rng, spread = random.Random(0), []
    for _ in range(200):
        found = Curiosity()
        for _ in range(ENOUGH):
            found = found.add(0, rng.choice((-1.0, 1.0)), 1.0)
        spread.append(found.variance)
    assert sum(spread) / len(spread) < 0.05  # of a variance of 1


def test_errors_before_a_correction_are_remembered():
    found = Curiosity()
    for error in (-2.0, -2.0, -2.0):
        found = found.add(0, error, 0.0)
    found = found.close()
    assert found.is_closed(0)
    for _ in range(10):
        found = found.repeat(0)
    assert found.variance == 4.0
    assert found.tries[0].times == 13


def test_a_choice_by_hand():
    """A spread of 1 and a gap of 1: 0.0833 for every step lived, against a cost of 1."""
    found = Curiosity().add(0, 1.0, 0.0)
    paid, values = {0: Residual(certain=True), 1: Residual()}, {0: 2.0, 1: 1.0}
    assert found.choose(values, paid, 0, 11) == (0, False)
    assert found.choose(values, paid, 0, 13) == (1, True)
    assert found._replace(spent=3).choose(values, paid, 0, 13) == (0, False)
    assert found.choose(values, {**paid, 1: Residual(1, 1.5)}, 0, 1) == (1, False)


def test_the_choice_of_a_plan_stands_where_nothing_is_known_to_be_off():
    """A search may prefer an action for its visits, although another one has the larger value."""
    found, certain = Curiosity().add(0, 1.0, 0.0), Residual(certain=True)
    assert found.choose({0: 2.0, 1: 2.5}, {0: certain, 1: certain}, 0, 50) == (0, False)


class Numbers:
    """Pays numbers of numpy, as tables of rewards do."""

    num_actions = 3

    def __init__(self, pays):
        self.pays = np.array(pays, np.float32)

    def step(self, state, action):
        return state + 1, self.pays[action], np.bool_(False)


def test_what_was_tried_is_saved_where_rewards_are_numbers_of_numpy(tmp_path):
    agent = uamcts.Agent(Numbers((1, 2, 3)), iterations=5, rollouts=1, depth=3)
    for step, action in enumerate((0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 2, 2, 2, 2, 2)):
        agent.observe(step, action, step + 1, (1.0, 7.0, -5.0)[action], False)
    tries = agent.backend.curiosity.tries
    assert any(one.closed and one.early < FEW for one in tries.values()), "corrections have changed"
    agent.save(tmp_path / "agent")
    other = uamcts.Agent(Numbers((1, 2, 3)), iterations=5, rollouts=1, depth=3)
    other.load(tmp_path / "agent")
    assert other.backend.curiosity == agent.backend.curiosity
