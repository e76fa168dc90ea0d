"""Parameters that drift are followed, and said to; those that do not are left alone."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from uamcts.corrections.drift import Drift, fit_drift, follow_drift
from uamcts.corrections.links import find_links, resolve
from uamcts.corrections.parameters import Choice, find_parameters

SETTINGS = {"iterations": 8, "rollouts": 1, "depth": 4}


class Pole:
    """A swinging pole that keeps what it has computed from its masses. A state is (angle, speed)."""

    num_actions = 2

    def __init__(self, pole=0.3, cart=1.1, torque=2.0, gravity=9.8):
        self.pole, self.cart, self.total = pole, cart, pole + cart
        self.torque, self.gravity, self.wind = torque, gravity, 0.0

    def step(self, state, action):
        push = (self.torque * (2 * action - 1) + self.wind) / self.total
        speed = state[1] + 0.1 * (push + self.gravity * self.pole / self.total * math.sin(state[0]))
        return (state[0] + 0.1 * speed, speed), -abs(state[0]), False


def heavier(simulator, step):
    simulator.pole = 0.3 + 0.05 * step
    simulator.total = simulator.pole + simulator.cart


def weaker(simulator, step):
    simulator.torque = 2.0 - 0.01 * step


def windier(simulator, step):
    simulator.wind = 0.02 * step


def live(agent, change, steps, noise=0.0, world=None, first=0):
    """Transitions of a world that changes at every step, observed with actions that are random but the same for all."""
    world, generator = Pole() if world is None else world, np.random.default_rng(5)
    state = (0.3, 0.0)
    for step in range(first, first + steps):
        change(world, step)
        action = int(generator.integers(2))
        after, reward, _ = world.step(state, action)
        seen = tuple((np.array(after) + noise * generator.normal(size=2)).tolist())
        agent.preload([(state, action, seen, reward, False)])
        state = (generator.uniform(-1, 1), generator.uniform(-1, 1))
    return agent


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (heavier, "pole with total is drifting: about 2.3 now, not 0.3, and +0.05 a step: corrected"),
        (weaker, "torque is drifting: about 1.6 now, not 2, and -0.01 a step: corrected"),
        (windier, "wind is drifting: about 0.8 now, not 0, and +0.02 a step: corrected"),
    ],
)
def test_a_drift_is_found_exactly_and_said(change, sentence):
    report = live(uamcts.Agent(Pole(), **SETTINGS), change, 40).report(0)
    assert sentence in str(report)
    assert report.remaining == 0


def test_the_next_step_is_predicted_with_the_value_that_the_parameter_will_have_by_then():
    agent = live(uamcts.Agent(Pole(), **SETTINGS), weaker, 40)
    assert agent.backend.corrector.variant().call.__self__.torque == pytest.approx(2.0 - 0.01 * 40)
    assert agent.backend.planner._variant.call.__self__.torque == pytest.approx(2.0 - 0.01 * 40)


def test_the_compiled_agent_follows_too():
    def step(state, action, params):
        push = params["torque"] * (2.0 * action - 1.0)
        speed = state[1] + 0.1 * (push - params["drag"] * state[1])
        after = jnp.stack([state[0] + 0.1 * speed, speed])
        return uamcts.Transition(after, -jnp.abs(state[0]), jnp.bool_(False))

    believed = {"torque": 2.0, "drag": 0.5}
    simulator = uamcts.JaxSimulator(step, 2, jnp.zeros(2), params=believed)
    agent, generator = uamcts.Agent(simulator, **SETTINGS), np.random.default_rng(1)
    for number in range(30):
        real = {"torque": 2.0 + 0.03 * number, "drag": 0.5}
        state, action = generator.uniform(-1, 1, 2).astype(np.float32), int(generator.integers(2))
        after, reward, _ = step(jnp.asarray(state), action, real)
        agent.preload([(state, action, np.asarray(after), float(reward), False)])
    assert "torque is drifting: about 2.9 now, not 2, and +0.03 a step: corrected" in str(agent.report(0))


def test_a_drift_that_stops_is_noticed():
    report = live(uamcts.Agent(Pole(), **SETTINGS), lambda world, step: weaker(world, min(step, 30)), 70).report(0)
    assert "torque is about 1.7, not 2: corrected" in str(report)
    assert report.remaining == 0


def test_a_drift_is_followed_through_noise():
    agent = live(uamcts.Agent(Pole(), **SETTINGS), lambda world, step: weaker(world, 2 * step), 120, noise=0.002)
    corrector = agent.backend.corrector
    assert corrector.in_use == "drift"
    assert corrector.drift.at_step(120)["torque"] == pytest.approx(2.0 - 0.02 * 120, abs=0.1)


def test_a_steady_world_has_no_drift():
    def steady(world, step):
        world.torque = 1.3

    for noise in (0.0, 0.002):
        agent = live(uamcts.Agent(Pole(), **SETTINGS), steady, 120, noise)
        assert agent.backend.corrector.in_use == "parameters"
        assert agent.backend.corrector.fit.values["torque"] == pytest.approx(1.3, abs=0.02)


def test_a_right_simulator_has_no_drift():
    agent = live(uamcts.Agent(Pole(), **SETTINGS), lambda world, step: None, 40)
    assert agent.backend.corrector.drift is None


def test_a_drift_survives_a_file(tmp_path):
    agent = live(uamcts.Agent(Pole(), **SETTINGS), weaker, 40)
    agent.save(tmp_path / "agent.npz")
    twin = uamcts.Agent(Pole(), **SETTINGS)
    twin.load(tmp_path / "agent.npz")
    assert str(twin.report(0)) == str(agent.report(0))
    for one in (agent, twin):
        live(one, weaker, 20, first=40)
    assert twin.backend.corrector.drift == agent.backend.corrector.drift
    assert "about 1.4 now" in str(twin.report(0))


def test_values_at_a_step():
    assert Drift({"mass": 2.0}, {"mass": 0.5}, at=10).at_step(14) == {"mass": 4.0}


class Line:
    """Trials whose difference is a line in the step: parameter a is 3 + 0.25 * step."""

    random, floor, small_step = False, 1e-8, 1e-5

    def __init__(self, steps):
        self.seen, self.steps = list(steps), np.asarray(steps, float)

    def paths(self, names, values, rows):
        found = dict(zip(names, np.asarray(values).T, strict=True))
        a = found.get("a", np.full(len(rows), 1.0))
        b = found.get("b", np.full(len(rows), 1.0))
        return np.stack([a - 3.0 - 0.25 * self.steps[rows], 0.1 * (b - 1.0)], axis=1)


def test_value_and_rate_of_a_line():
    steps = np.arange(11, 31)
    choice = Choice(None, {"a": 1.0, "b": 1.0}, "line")
    drift = fit_drift(Line(steps), choice, steps, 31, {})
    assert drift.values == pytest.approx({"a": 3.0 + 0.25 * 31}, abs=1e-6)
    assert drift.rates == pytest.approx({"a": 0.25}, abs=1e-6)
    again = follow_drift(Line(steps), choice, steps, 31, drift._replace(values={"a": 5.0}, rates={"a": 0.0}))
    assert again.values == pytest.approx(drift.values, abs=1e-5)


def test_bounds_of_the_user_hold_for_a_drift_too():
    steps = np.arange(11, 31)
    drift = fit_drift(Line(steps), Choice({"a": (0.5, 6.0)}, {"a": 1.0, "b": 1.0}, "line"), steps, 31, {})
    assert drift is None or max(drift.values["a"], 0.5) <= 6.0


def test_what_was_computed_from_a_parameter_changes_with_it():
    found = find_parameters(Pole())
    assert set(find_links(found)) == {"pole with total", "cart with total"}
    assert resolve({"pole with total": 1.3}, found) == pytest.approx({"pole": 1.3, "total": 2.4})
    product = {"mass": 0.4, "length": 0.6, "inertia": 0.24}
    assert resolve({"mass with inertia": 0.8}, product) == pytest.approx({"mass": 0.8, "inertia": 0.48})


@pytest.mark.parametrize(
    "numbers",
    [
        {"a": 1.0, "b": 1.0, "c": 2.0},  # whole numbers
        {"c": 0.7, "a": 0.3, "b": 0.4},  # the sum comes first
        {"a": 0.31, "b": 0.42, "d": 0.2, "e": 0.53, "c": 0.73},  # in two ways
        {"a": 1.0, "b": 0.4, "c": 0.4},  # times 1
    ],
)
def test_what_may_be_chance_is_no_link(numbers):
    assert find_links(numbers) == {}


def test_a_mass_that_others_were_computed_from_is_one_parameter():
    def heavy(world, step):
        heavier(world, 12)

    report = str(live(uamcts.Agent(Pole(), **SETTINGS), heavy, 30).report(0))
    assert "pole with total is about 0.9, not 0.3: corrected" in report


class Coin:
    """A step to the right succeeds with probability p; else nothing happens. A state is a place."""

    num_actions = 2

    def __init__(self, p=0.9):
        self.p = p

    def outcomes(self, state, action):
        return [(self.p, ((state + action) % 5, float(action), False)), (1 - self.p, (state, 0.0, False))]


@pytest.mark.parametrize("named", [None, ["p"]])
def test_a_probability_that_drifts_is_followed(named):
    agent, generator, state = uamcts.Agent(Coin(), parameters=named, **SETTINGS), np.random.default_rng(2), 0
    for step in range(400):
        p = 0.9 - 0.002 * step
        after = (state + 1) % 5 if generator.random() < p else state
        agent.preload([(state, 1, after, float(after != state), False)])
        state = after
    assert agent.backend.corrector.in_use == "drift"
    assert agent.backend.corrector.drift.values["p"] == pytest.approx(0.1, abs=0.12)
    chances = {outcome[0]: chance for chance, outcome in agent.backend.planner.patched.outcomes(state, 1)}
    assert chances[(state + 1) % 5] == pytest.approx(0.1, abs=0.12), "facts of another time do not count"


def test_a_probability_that_does_not_drift_is_estimated_from_all_that_was_seen():
    agent, generator, state = uamcts.Agent(Coin(), **SETTINGS), np.random.default_rng(3), 0
    for _ in range(400):
        after = (state + 1) % 5 if generator.random() < 0.4 else state
        agent.preload([(state, 1, after, float(after != state), False)])
        state = after
    assert agent.backend.corrector.in_use == "parameters"
    assert agent.backend.corrector.fit.values["p"] == pytest.approx(0.4, abs=0.06)


def test_a_simulator_without_parameters_has_nothing_that_drifts():
    def step(state, action):
        return (state[0] + action,), 0.0, False

    agent = uamcts.Agent(step, num_actions=2, **SETTINGS)
    for number in range(30):
        agent.preload([((float(number),), 1, (number + 1.5 + 0.1 * number,), 0.0, False)])
    assert agent.backend.corrector.drift is None


def test_numbers_of_known_environments_have_their_names():
    import gymnasium

    simulator = uamcts.Agent(gymnasium.make("CartPole-v1"), **SETTINGS).backend.planner
    assert simulator.feature_names((0.0, 0.1, 0.2, 0.3)) == ["x", "x_dot", "theta", "theta_dot"]


def test_features_of_a_jax_state_are_called_by_the_numbers_that_they_are():
    def step(state, action):
        return uamcts.Transition({**state, "x": state["x"] + 1.0}, jnp.float32(0.0), jnp.bool_(False))

    example = {"clock": jnp.int32(0), "x": jnp.float32(0.0), "y": jnp.float32(0.0)}
    simulator = uamcts.JaxSimulator(step, 2, example, features=lambda state: jnp.stack([state["y"], state["x"]]))
    planner = uamcts.Agent(simulator, **SETTINGS).backend.planner
    assert planner.feature_names(example) == ["state['y']", "state['x']"]
