"""What steps of a simulator remember does not reach copies with other values, nor theirs the simulator."""

import functools

import numpy as np
import pytest

import uamcts


class Remembers:
    """A walk, of which every answer is looked up if it was given before."""

    num_actions = 5

    def __init__(self, scale=1.0):
        self.scale, self.answers = scale, {}

    def step(self, state, action):
        if (state, action) not in self.answers:
            self.answers[state, action] = self.answer(state, action)
        return self.answers[state, action]

    def answer(self, state, action):
        place, time = state
        return (place + action - 2, time + 1), self.scale * (3 * action % 7) - 0.4 * abs(place), False


class Computes(Remembers):
    """It computes a table when it is first read."""

    def step(self, state, action):
        place, time = state
        return (place + action - 2, time + 1), self.table[action] - 0.4 * abs(place), False

    @functools.cached_property
    def table(self):
        return [self.scale * (3 * action % 7) for action in range(5)]


class Numbers:
    """States are numbers under which it has filed places: a copy that has lost them cannot step."""

    num_actions = 5

    def __init__(self, scale=1.0):
        self.scale, self.places, self.numbers = scale, {0: 0}, {0: 0}

    def step(self, state, action):
        place = (self.places[state] + action - 2) % 12
        number = self.numbers.setdefault(place, len(self.numbers))
        self.places[number] = place
        return number, self.scale * (3 * action % 7), False


def walked(kind, start, steps=25):
    """An agent of a simulator that is wrong about the scale, and the simulator."""
    simulator, world, rng = kind(), kind(-0.5), np.random.default_rng(0)
    agent, state = uamcts.Agent(simulator, iterations=5, rollouts=1, depth=3), start
    for _ in range(steps):
        action = int(rng.integers(5))
        agent.act(state)
        after, reward, over = world.step(state, action)
        if kind is Numbers:  # as it numbers places itself
            after = simulator.step(state, action)[0]
            world.places, world.numbers = dict(simulator.places), dict(simulator.numbers)
        agent.observe(state, action, after, reward, over)
        state = after
    return agent, simulator


@pytest.mark.parametrize(("kind", "start"), [(Remembers, (0, 0)), (Computes, (0, 0)), (Numbers, 0)])
def test_a_number_is_fitted_whatever_steps_remember(kind, start):
    agent, _ = walked(kind, start)
    assert agent.backend.corrector.fit.values == {"scale": pytest.approx(-0.5)}
    assert agent.backend.corrector.in_use == "parameters"


def test_the_simulator_remembers_no_answers_of_other_values(tmp_path):
    agent, simulator = walked(Remembers, (0, 0))
    agent.save(tmp_path / "agent")
    loaded = Remembers()
    other = uamcts.Agent(loaded, iterations=5, rollouts=1, depth=3)
    other.load(tmp_path / "agent")
    assert other.backend.planner.foresee((3, 70), 2) == (pytest.approx(-0.5 * 6 - 1.2), False)
    agent.act((4, 80))
    other.act((4, 80))
    for one in (simulator, loaded):
        assert one.answers
        assert all(answer == Remembers().answer(*asked) for asked, answer in one.answers.items())
