"""Environments as people write them: a level in 64 bits that is shown in 32, and a counter for a time limit."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import uamcts
from uamcts.gym import Simulator, check_simulator


class Tank(gymnasium.Env):
    """A tank that leaks. Actions: valve closed, half open, open."""

    def __init__(self, leak=0.1):
        self.observation_space, self.action_space = spaces.Box(0.0, 10.0, (1,), np.float32), spaces.Discrete(3)
        self.leak, self.level = leak, 0.0

    def observe(self):
        return np.array([self.level], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.level = float(self.np_random.uniform(1, 9))
        return self.observe(), {}

    def step(self, action):
        self.level = min(self.level + action / 2 - self.leak * self.level, 10.0)
        return self.observe(), -abs(self.level - 5), False, False, {}


class Grid(gymnasium.Env):
    """Five times five cells, and what counts the steps in one of several ways."""

    def __init__(self, clock="truncates", shown=False):
        self.observation_space, self.action_space = spaces.Discrete(25), spaces.Discrete(4)
        self.clock, self.shown = clock, shown

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps, self.half = [0, 0], 0, 0.0
        return self.observe(), {}

    def observe(self):
        cell = self.place[0] * 5 + self.place[1]
        return np.array([*self.place, self.steps]) if self.shown else cell

    def step(self, action):
        row, column = self.place[0] + (-1, 0, 1, 0)[action], self.place[1] + (0, 1, 0, -1)[action]
        self.place = [min(max(row, 0), 4), min(max(column, 0), 4)]
        self.steps += 1
        self.half = self.steps / 2
        over, reward = self.place == [4, 4], -1.0
        late = self.steps >= 400
        if self.clock == "pays":
            reward -= self.steps / 1000
        elif self.clock == "indexes":
            reward -= ((0.0,) * 500)[self.steps]
        return self.observe(), reward, over or (self.clock == "terminates" and late), late, {}


def test_an_observation_that_shows_every_number_in_32_bits_is_a_state():
    env, simulator = Tank(), Simulator(Tank())
    observation, _ = env.reset(seed=3)
    state = simulator.accept(observation)
    assert state.data["level"] == pytest.approx(env.level, rel=1e-6)
    assert state.data["level"] != env.level
    assert type(state.data["level"]) is float
    after, reward, _ = simulator.step(state, 2)
    shown, paid, *_ = env.step(2)
    assert after.data["level"] == pytest.approx(env.level, rel=1e-6)
    assert reward == pytest.approx(paid, rel=1e-6)
    report = check_simulator(Tank())
    assert (report.observation_is_state, report.exact_observation) == (True, False)
    agent = uamcts.Agent(simulator, iterations=10, rollouts=1, depth=3)
    for _ in range(5):
        action = agent.act(shown)
        before, (shown, paid, *_) = shown, env.step(action)
        agent.observe(before, action, shown, reward=paid, terminal=False)
    assert "wrong in 0 of 5 different transitions" in str(agent.report())  # rounding is no error


def test_arrays_lists_and_whole_numbers_are_filled_from_an_observation():
    simulator = Simulator(Grid(shown=True))
    state = simulator.accept(np.array([3, 2, 17], np.float32))
    assert (state.data["place"], state.data["steps"]) == ([3, 2], 17)
    assert all(type(number) is int for number in (*state.data["place"], state.data["steps"]))


def test_a_counter_that_only_truncates_does_not_tell_states_apart():
    env, simulator = Grid(), Simulator(Grid())
    assert simulator.how == "a deep copy of its attributes, without `half`, `steps`, which only count steps"
    env.reset(seed=0)
    start = simulator.read(env)
    for action in (1, 3):  # right, and back
        env.step(action)
    back = simulator.read(env)
    assert (start.data["steps"], back.data["steps"]) == (0, 2)
    assert simulator.features(back).tolist() == [0, 0]
    assert np.array_equal(simulator.identity(start), simulator.identity(back))
    agent = uamcts.Agent(simulator, iterations=5)
    agent.act(start)
    assert "equal states share a node" in str(agent.explain())


@pytest.mark.parametrize(
    ("env", "options"),
    [
        (Grid("terminates"), {}),  # far later than any step of the trial
        (Grid("pays"), {}),
        (Grid("indexes"), {}),
        (Grid(shown=True), {}),
        (Grid(), {"truncation_ends": True}),
    ],
    ids=["ends", "pays", "indexes", "shown", "truncation ends"],
)
def test_a_counter_with_an_effect_is_part_of_the_state(env, options):
    simulator = Simulator(env, **options)
    assert "`steps`" not in simulator.how
    state = simulator.reset()
    later = simulator.step(simulator.step(state, 1)[0], 3)[0]
    assert 2 in simulator.features(later) - simulator.features(state)


def test_what_does_not_determine_a_state_is_refused_with_what_to_do():
    with pytest.raises(TypeError, match=r"^7 is not a state of Grid, .* state = simulator\.read\(env\)"):
        uamcts.Agent(Grid()).act(7)
