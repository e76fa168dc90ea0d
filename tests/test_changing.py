"""Random worlds that change: it is noticed, and what was learned in the old one is forgotten."""

import numpy as np

import uamcts
from uamcts.agent.changing import find_change

SETTINGS = {"parameters": (), "iterations": 10, "rollouts": 1, "depth": 4, "gamma": 0.9}


class Machines:
    """Two machines; a state is the number of plays left, of ten. Each pays with a probability that is no attribute."""

    num_actions = 2

    def __init__(self, *pays):
        self.outcomes = lambda left, action: [
            (pays[action], (left - 1, 1.0, left == 1)),
            (1 - pays[action], (left - 1, -0.5, left == 1)),
        ]


def play(agent, world, episodes, seed):
    """Plays both machines in turns; returns after how many plays each change was noticed."""
    rng, noticed, before = np.random.default_rng(seed), [], len(agent.backend.corrector.changes)
    for number in range(10 * episodes):
        left, action = 10 - number % 10, int(rng.integers(2))
        found = world.outcomes(left, action)
        after, reward, over = found[rng.choice(2, p=[chance for chance, _ in found])][1]
        agent.observe(left, action, after, reward=reward, terminal=over)
        if len(agent.backend.corrector.changes) > before:
            before += 1
            noticed.append(number + 1)
    return noticed


def test_a_change_by_hand():
    """Excess and variance: 20 as expected, then eight that surprise by 1.5 nats each, 6.6 standard deviations."""
    usual = [(0.5, 0.4), (-0.5, 0.4)] * 10
    assert find_change(usual) == 0
    assert find_change(usual + [(1.5, 0.4)] * 8) == 8
    assert find_change(usual + [(1.5, 0.4)] * 5) == 0, "7.5 nats are too few"
    assert find_change(usual[:10] + [(1.5, 0.4)] * 8) == 0, "too few before"
    assert find_change(usual + [(8.0, 0.4), (-0.3, 0.4)] * 3) == 0, "single surprises count 2.5 nats"
    assert find_change([(1.5, 0.4)] * 40) == 0, "what was always surprising has not changed"


def test_machines_that_change_are_learned_anew():
    agent = uamcts.Agent(Machines(0.5, 0.5), **SETTINGS)
    assert play(agent, Machines(0.9, 0.1), 12, seed=0) == []
    noticed = play(agent, Machines(0.1, 0.9), 12, seed=1)
    assert len(noticed) == 1
    assert noticed[0] <= 40
    assert "the world changed at about step" in str(agent.report(0))
    facts = agent.backend.planner.patched.facts
    assert sum(one.times for fact in facts.values() for one in fact.outcomes.values()) < 130, "of 240"
    assert agent.backend.corrector.rates.rates(2, 0)[0] < 0.6
    assert agent.backend.corrector.rates.rates(2, 1)[0] > 1.4
    assert agent.act(10) == 1


def test_worlds_that_stay_are_not_forgotten():
    for seed, world in enumerate((Machines(0.9, 0.1), Machines(0.5, 0.5), Machines(0.7, 0.3), Machines(0.5, 0.95))):
        agent = uamcts.Agent(Machines(0.5, 0.5), **SETTINGS)
        assert play(agent, world, 25, seed) == []
