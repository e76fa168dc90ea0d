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
    assert "wrong in none of 5 different transitions" in str(agent.report())  # rounding is no error


def test_arrays_lists_and_whole_numbers_are_filled_from_an_observation():
    simulator = Simulator(Grid(shown=True))
    state = simulator.accept(np.array([3, 2, 17], np.float32))
    assert (state.data["place"], state.data["steps"]) == ([3, 2], 17)
    assert all(type(number) is int for number in (*state.data["place"], state.data["steps"]))


def test_a_counter_that_only_truncates_does_not_tell_states_apart():
    env, simulator = Grid(), Simulator(Grid())
    assert simulator.how == "a deep copy of its attributes, without `half`, `steps`, which have no effect"
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


class Joint:
    __slots__ = ("angle", "owner", "speed")

    def __init__(self, owner):
        self.owner, self.angle, self.speed = owner, 0.0, 0.0


class Arm(gymnasium.Env):
    """Its state lies in objects, which refer back to the environment; an observation is a dictionary."""

    def __init__(self, gain=0.5):
        angle = spaces.Box(-np.inf, np.inf, (), np.float32)
        self.observation_space, self.action_space = spaces.Dict({"angle": angle}), spaces.Discrete(2)
        self.gain = gain

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.joints = [Joint(self), Joint(self)]
        return {"angle": np.float32(0)}, {}

    def step(self, action):
        joint = self.joints[action]
        joint.speed += self.gain
        joint.angle += joint.speed
        angle = self.joints[0].angle - self.joints[1].angle
        return {"angle": np.float32(angle)}, -abs(angle), angle > 9, False, {}


def test_a_state_inside_of_objects_is_compared():
    simulator, real = Simulator(Arm(), trial_steps=40), Arm(0.75)
    real.reset(seed=0)
    agent = uamcts.Agent(simulator, iterations=5, rollouts=1, depth=3)
    state = simulator.read(real)
    for number in range(6):
        _, reward, over, *_ = real.step(number % 2)
        after = simulator.read(real)
        agent.observe(state, number % 2, after, reward=reward, terminal=over)
        state = after
    assert simulator.features(state).tolist() == [4.5, 2.25, 4.5, 2.25]  # angle and speed of each joint
    assert "gain is about 0.75, not 0.5: corrected" in str(agent.report())


class Hover(Grid):
    """Observations are nested."""

    def observe(self):
        return {"place": np.array(self.place), "more": (self.steps,)}


def test_a_nested_observation_is_a_state():
    simulator = Simulator(Hover("pays"))
    state = simulator.accept({"place": np.array([3, 2]), "more": (17,)})
    assert (state.data["place"], state.data["steps"]) == ([3, 2], 17)


def test_an_environment_that_was_stepped_since_act_is_no_state_from_before():
    env = Grid()
    env.reset(seed=0)
    agent = uamcts.Agent(Grid(), iterations=2)
    agent.act(env)
    env.step(1)
    with pytest.raises(ValueError, match=r"which has changed since act was given it; .* simulator\.read\(env\)"):
        agent.observe(env, 1, env, reward=-1.0, terminal=False)


class Mute(Grid):
    """Its state is a word."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = "hall"
        return 0, {}

    def step(self, action):
        self.place = ("hall", "garden")[action % 2]
        return 0, 0.0, False, False, {}


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"reset": lambda self: 0}, r"reset\(seed=0\) of Own raised TypeError.*; in Gymnasium, reset\(\*, seed=None"),
        ({"reset": lambda self, **_: 0}, r"reset of Own returned 0; .* returns a tuple \(observation, info\)"),
        ({"step": lambda self, _: (0, 0.0, False, {})}, r"step of Own returned .* \(observation, reward, terminated,"),
        (
            {"action_space": property(lambda self: None, lambda self, _: None)},
            r"Own\.action_space is None; give it one",
        ),
        ({"reset": lambda self, **_: (vars(self).update(log=(n for n in ())), {})}, r"its attribute `log`: TypeError"),
    ],
    ids=["no seed", "no info", "four", "no actions", "a generator"],
)
def test_an_environment_that_is_nearly_right(methods, message):
    with pytest.raises(uamcts.SimulatorError, match=message):
        Simulator(type("Own", (Grid,), methods)())


def test_an_environment_whose_state_has_no_numbers_asks_for_features():
    env = Mute()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"hall.* give uamcts\.gym\.Simulator\(env, features=\.\.\.\), a function of"):
        uamcts.Agent(env, iterations=2).act(env)
