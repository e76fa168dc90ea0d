"""Numbers in the code of a simulator, in its settings and in small dictionaries: they are found and corrected."""

import dataclasses
import functools
import math
import random
import sys
import types
from typing import NamedTuple, Protocol

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
import uamcts.gym
from uamcts.agent.compiled_form import Form
from uamcts.corrections.code_numbers import code_of
from uamcts.corrections.parameters import find_code_parameters, find_parameters, with_values

GRAVITY = 10.0
PRICES = {"bus": 3, "train": 5}
WALLS = frozenset({3, 4})
BUDGET = {"iterations": 20, "rollouts": 1, "depth": 10}

planet = types.ModuleType("planet")
"""A module of constants, as it would stand in a file beside the simulator's."""
planet.drag, planet.slow = 0.25, lambda speed: 0.9 * speed
sys.modules["planet"] = planet
planet.slow.__module__ = "planet"


class Limits:
    speed = 40.0


@functools.lru_cache(None)
def stop(speed):
    return 0.5 * speed


def even(count):
    return True if count == 0 else odd(count - 1)


def odd(count):
    return False if count == 0 else even(count - 1)


class Vehicle:
    power = 2.0

    def push(self, action):
        return self.power * (-1.5, 1.5)[action]


class Car(Vehicle):
    """A state is a speed. Numbers stand wherever Python allows."""

    num_actions = 2

    def push(self, action):
        return super().push(action) + 0.125

    @property
    def friction(self):
        return 0.75

    @staticmethod
    def toll(speed, rate=0.01):
        return rate * speed

    def step(self, state, action):
        speed = state[0] + self.push(action) - planet.drag - self.friction + GRAVITY * math.sin(0.0)
        speed = min(planet.slow(speed), Limits.speed) if even(2) else 0.0
        paid = -self.toll(speed) - PRICES["bus"] + stop(speed) ** 2
        return (speed,), paid, action == 7 or speed in WALLS


def test_numbers_are_found_wherever_they_stand():
    found = find_code_parameters(Car())
    expected = {
        "global GRAVITY": 10.0, "global planet.drag": 0.25, "global Limits.speed": 40.0,
        "global PRICES['bus']": 3.0, "global PRICES['train']": 5.0, "0.125 in push()": 0.125,
        "0.75 in friction()": 0.75,
        "rate in toll()": 0.01, "0.5 in stop()": 0.5, "(-1.5, 1.5)[0] in Vehicle.push()": -1.5,
        "(-1.5, 1.5)[1] in Vehicle.push()": 1.5,
    }  # fmt: skip
    assert expected.items() <= found.items()
    literals = [name for name in found if name.endswith(" in step()")]
    assert literals == ["0.0 in step()"], "a place, a power, an action and a set of places are no amounts"
    assert find_parameters(Car()) == {"power": 2.0}


@pytest.mark.parametrize(
    ("name", "value", "speed", "paid"),
    [
        ("power", 4.0, 0.9 * (1.0 + 6.0 + 0.125 - 0.25 - 0.75), None),
        ("global planet.drag", 1.25, 0.9 * (1.0 + 3.0 + 0.125 - 1.25 - 0.75), None),
        ("global Limits.speed", 2.0, 2.0, None),
        ("0.125 in push()", 0.625, 0.9 * (1.0 + 3.0 + 0.625 - 0.25 - 0.75), None),
        ("0.75 in friction()", 0.25, 0.9 * (1.0 + 3.0 + 0.125 - 0.25 - 0.25), None),
        ("(-1.5, 1.5)[1] in Vehicle.push()", 2.5, 0.9 * (1.0 + 5.0 + 0.125 - 0.25 - 0.75), None),
        ("rate in toll()", 1.0, 2.8125, -2.8125 - 3 + 1.40625**2),
        ("global PRICES['bus']", 7, 2.8125, -0.028125 - 7 + 1.40625**2),
        ("0.5 in stop()", 1.0, 2.8125, -0.028125 - 3 + 2.8125**2),
    ],
)
def test_a_copy_has_another_number_and_the_simulator_keeps_its_own(name, value, speed, paid):
    car = Car()
    other = with_values(car, {name: value})
    (found,), reward, _ = other.step((1.0,), 1)
    assert found == pytest.approx(speed)
    assert paid is None or reward == pytest.approx(paid)
    assert isinstance(other, Car)
    before = 0.9 * (1.0 + 3.0 + 0.125 - 0.25 - 0.75)
    assert car.step((1.0,), 1) == ((before,), pytest.approx(-0.01 * before - 3 + (0.5 * before) ** 2), False)
    assert (planet.drag, Limits.speed, PRICES["bus"]) == (0.25, 40.0, 3)


def test_two_numbers_in_two_places_at_once():
    other = with_values(Car(), {"power": 4.0, "0.125 in push()": 0.625, "global planet.drag": 1.25})
    assert other.step((1.0,), 1)[0] == (pytest.approx(0.9 * (1.0 + 6.0 + 0.625 - 1.25 - 0.75)),)


def make_pump(leak, stages=(1.0, 2.0)):
    def pump(state, action, share=0.5):
        level = state[0] + share * sum([0.25 * stage for stage in stages]) * action - leak
        return (level,), -abs(level), False

    return pump


def test_functions_have_closures_and_defaults():
    pump = make_pump(0.1)
    found = find_code_parameters(pump, "")
    assert found == {
        "leak in pump()": 0.1, "stages[0] in pump()": 1.0, "stages[1] in pump()": 2.0, "share in pump()": 0.5,
        "0.25 in pump()": 0.25,
    }  # fmt: skip
    assert with_values(pump, {"leak in pump()": 0.3}, entry="")((1.0,), 0)[0] == (0.7,)
    assert with_values(pump, {"stages[1] in pump()": 6.0}, entry="")((1.0,), 2)[0] == (1.0 + 0.25 * 7.0 - 0.1,)
    assert with_values(pump, {"0.25 in pump()": 1.0, "share in pump()": 1.0}, entry="")((1.0,), 1)[0] == (3.9,)
    assert pump((1.0,), 0)[0] == (0.9,)


class Lambda:
    num_actions = 2

    def __init__(self, pay):
        self.bonus = 1.0
        self.step = lambda state, action: self.go(state, action, pay)

    def go(self, state, action, pay):
        return state + 2 * action, pay * action + self.bonus, False


def test_functions_that_an_object_holds_call_the_methods_of_its_copy():
    one = Lambda(3.0)
    assert with_values(one, {"pay in <lambda>()": 5.0}).step(0, 1) == (2, 6.0, False)
    assert with_values(one, {"pay in <lambda>()": 5.0, "2 in go()": 4, "bonus": 0.0}).step(0, 1) == (4, 5.0, False)
    assert one.step(0, 1) == (2, 4.0, False)


@dataclasses.dataclass(frozen=True, slots=True)
class Engine:
    power: float = 2.0
    losses: tuple = (0.5, 0.25)


class Wheel(NamedTuple):
    radius: float
    weight: float


class Robot:
    num_actions = 2

    def __init__(self):
        self.engine, self.wheels = Engine(), [Wheel(1.0, 3.0), Wheel(2.0, 4.0)]
        self.options = {"noise": 0.0, "inner": types.SimpleNamespace(limit=9.0, parent=self)}
        self.names, self.shape = {"a": "b"}, types.SimpleNamespace(width=5)

    def step(self, state, action):
        speed = self.engine.power - self.engine.losses[1] + self.wheels[1].weight + self.options["inner"].limit
        return state + action * speed, 0.0, False


def test_settings_in_objects_and_dictionaries():
    robot = Robot()
    found = find_parameters(robot)
    expected = {
        "engine.power": 2.0, "engine.losses[0]": 0.5, "engine.losses[1]": 0.25, "options['noise']": 0.0,
        "options['inner'].limit": 9.0, "shape.width": 5.0,
    }  # fmt: skip
    assert expected.items() <= found.items()
    other = with_values(robot, {"engine.power": 3.0, "options['inner'].limit": 1.0, "engine.losses[1]": 1.0})
    assert other.step(0.0, 1)[0] == 3.0 - 1.0 + 4.0 + 1.0
    assert robot.step(0.0, 1)[0] == 2.0 - 0.25 + 4.0 + 9.0
    assert with_values(robot, {"wheels[1].weight": 0.0}).step(0.0, 1)[0] == 2.0 - 0.25 + 9.0
    assert type(other.engine) is Engine


def test_what_cannot_be_copied_has_no_numbers_in_its_code():
    class Hooked:
        num_actions = 1

        def __init_subclass__(cls):
            raise AssertionError("the user's own hooks are not called")

        def step(self, state, action):
            return state + 0.5, 0.0, False

    assert code_of(Hooked(), "step").values() == {}
    assert find_code_parameters(np.add, "") == {}
    assert find_code_parameters(random.Random(0), "random") == {}


def walk(step, start, actions):
    seen, state = [], start
    for action in actions:
        after, reward, over = step(state, action)
        seen.append((state, action, after, reward, over))
        state = after
    return seen


TAU, FORCE = 0.1, 2.0


def cart(state, action):
    x, v = state
    v = v + TAU * (FORCE * (action - 1) - 0.3 * v)
    return (x + TAU * v, v), -abs(x - 1.0), False


def real_cart(state, action):
    x, v = state
    v = v + TAU * (3.0 * (action - 1) - 0.3 * v)
    return (x + TAU * v, v), -abs(x - 1.0), False


def test_a_constant_of_a_module_is_corrected_and_kept_in_a_file(tmp_path):
    seen = walk(real_cart, (0.0, 0.0), [2, 2, 0, 1, 2, 0, 2, 1, 2, 2, 0, 2])
    agent = uamcts.Agent(cart, num_actions=3, **BUDGET)
    agent.preload(seen)
    assert "global FORCE is about 3, not 2: corrected" in str(agent.report(0))
    agent.save(tmp_path / "agent.npz")
    loaded = uamcts.Agent(cart, num_actions=3, **BUDGET)
    loaded.load(tmp_path / "agent.npz")
    for one in (agent, loaded):
        model = one.backend.corrector.variant()
        assert model.step((0.5, 1.0), 2)[0] == pytest.approx(real_cart((0.5, 1.0), 2)[0])
    assert (FORCE, cart((0.0, 0.0), 2)[0]) == (2.0, (0.1 * 0.2, 0.2))


def test_attributes_are_tried_before_numbers_in_code():
    class Sled:
        num_actions = 2

        def __init__(self, push=0.2):
            self.push = push

        def step(self, state, action):
            v = state[1] + 2.0 * self.push * (action - 0.5)
            return (state[0] + v, v), -abs(state[0]), False

    agent = uamcts.Agent(Sled(), **BUDGET)
    agent.preload(walk(Sled(0.5).step, (0.0, 0.0), [0, 1, 1, 0, 1, 1, 1, 0]))
    assert agent.backend.corrector.fit.values == {"push": 0.5}


def test_four_prices_that_are_all_off():
    """More than a fit of three parameters can explain at once."""

    class Trip:
        num_actions = 4

        def __init__(self, **prices):
            self.prices = {"walk": 1.0, "bus": 2.0, "train": 5.0, "taxi": 9.0} | prices

        def step(self, stop, action):
            return stop + action + 1, -self.prices[("walk", "bus", "train", "taxi")[action]], False

    agent = uamcts.Agent(Trip(), **BUDGET)
    agent.preload(walk(Trip(walk=1.5, bus=4.0, train=3.0, taxi=11.0).step, 0, [0, 1, 2, 3] * 3))
    model = agent.backend.corrector.variant()
    assert [model.step(100, action)[1] for action in range(4)] == [-1.5, -4.0, -3.0, -11.0]


def test_a_simulator_that_is_right_keeps_its_numbers():
    agent = uamcts.Agent(cart, num_actions=3, **BUDGET)
    agent.preload(walk(cart, (0.0, 0.0), [2, 2, 0, 1, 2, 0, 2, 1, 2, 2, 0, 2]))
    assert (agent.backend.corrector.fit, agent.backend.corrector.elements) == (None, {})
    assert agent.backend.corrector.variant() is agent.backend.planner.simulator


def test_parameters_may_be_named_or_left_alone():
    seen = walk(real_cart, (0.0, 0.0), [2, 2, 0, 1, 2, 0, 2, 1, 2, 2, 0, 2])
    named = uamcts.Agent(cart, num_actions=3, parameters={"global FORCE": (1, 5)}, **BUDGET)
    named.preload(seen)
    assert named.backend.corrector.fit.values == {"global FORCE": 3.0}
    none = uamcts.Agent(cart, num_actions=3, parameters=(), **BUDGET)
    none.preload(seen)
    assert none.backend.corrector.fit is None


class Lift(gymnasium.Env):
    """An environment of one's own, whose numbers stand in its code."""

    observation_space = gymnasium.spaces.Box(-100.0, 100.0, (2,))
    action_space = gymnasium.spaces.Discrete(3)
    weight = 0.5

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.height, self.speed = float(self.np_random.uniform(-1, 1)), 0.0
        return np.array([self.height, self.speed]), {}

    def lift(self, action):
        return 0.25 * action

    def step(self, action):
        self.speed += self.lift(action) - 0.2 * self.weight
        self.height += self.speed
        return np.array([self.height, self.speed]), -abs(self.height), abs(self.height) > 50.0, False, {}


class StrongLift(Lift):
    def lift(self, action):
        return 0.375 * action


def test_an_environment_of_ones_own():
    simulator = uamcts.gym.Simulator(Lift())
    real, agent = StrongLift(), uamcts.Agent(simulator, **BUDGET)
    real.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        state, action = simulator.read(real), int(rng.integers(3))
        _, reward, over, _, _ = real.step(action)
        agent.observe(state, action, simulator.read(real), reward=reward, terminal=over)
    assert "0.25 in lift() is about 0.375, not 0.25: corrected" in str(agent.report(0))
    assert type(simulator._base) is Lift


def test_the_price_in_the_code_of_a_random_simulator():
    class Stall:
        num_actions = 2

        def __init__(self, price):
            self.sell = (lambda: 4.0) if price is None else (lambda: price)

        def outcomes(self, stock, action):
            left = max(stock - 1, 0)
            return [
                (0.5, (left + action, self.sell() - 1.5 * action, False)),
                (0.5, (stock + action, -1.5 * action, False)),
            ]

    agent, real, rng, stock = uamcts.Agent(Stall(None), **BUDGET), Stall(6.0), random.Random(0), 5
    for _ in range(40):
        action = rng.randrange(2)
        ((_, (after, reward, over)),) = rng.choices(real.outcomes(stock, action), [0.5, 0.5])
        agent.preload([(stock, action, after, reward, over)])
        stock = after % 20
    assert "4.0 in <lambda>() is about 6, not 4: corrected" in str(agent.report(0))


def make_roll(slope, parts=2):
    def roll(state, action, damping=0.5):
        x, v = state
        for _ in range(parts):  # a number that is needed while the function is traced
            v = v + TAU * (FORCE * (action - 1) + slope - damping * v) / parts
        return uamcts.Transition(jnp.stack([x + v, v]), -jnp.abs(x), jnp.abs(x) > 50.0)

    return roll


def test_numbers_in_the_code_of_a_jax_simulator_are_params():
    roll = make_roll(0.0)
    simulator = uamcts.JaxSimulator(roll, 3, jnp.zeros(2))
    assert simulator.params == {
        "global FORCE": 2.0, "global TAU": 0.1, "slope in roll()": 0.0, "damping in roll()": 0.5
    }  # fmt: skip
    state = jnp.array([1.0, 2.0])
    assert jnp.allclose(simulator.step(state, 2).state, roll(state, 2).state)
    other = simulator.step(state, 2, {**simulator.params, "slope in roll()": 0.75})
    assert jnp.allclose(other.state, make_roll(0.75)(state, 2).state)
    replaced = dataclasses.replace(simulator, step=make_roll(0.5))
    assert replaced.params["slope in roll()"] == 0.5
    assert jnp.allclose(replaced.step(state, 2).state, make_roll(0.5)(state, 2).state)
    faster = dataclasses.replace(simulator, params={**simulator.params, "global FORCE": 4.0})
    assert faster.step(state, 2).state[1] > simulator.step(state, 2).state[1]
    assert Form(faster) == Form(simulator) == Form(uamcts.JaxSimulator(roll, 3, jnp.zeros(2))) != Form(replaced)
    assert uamcts.JaxSimulator(lambda state, action, p: roll(state, action * p), 3, jnp.zeros(2), params=2).params == 2


def test_a_constant_of_a_jax_simulator_is_corrected():
    agent = uamcts.Agent(uamcts.JaxSimulator(make_roll(0.0), 3, jnp.zeros(2)), **BUDGET)
    real, state, rng = jax.jit(make_roll(0.75)), jnp.zeros(2), random.Random(0)
    for _ in range(12):
        action = rng.randrange(3)
        after, reward, over = real(state, action)
        agent.preload([(state, action, after, float(reward), bool(over))])
        state = after
    assert "slope in roll() is about 0.75, not 0: corrected" in str(agent.report(0))


@dataclasses.dataclass(frozen=True)
class Sledge:
    """A state, and a class that holds constants."""

    kinds = []
    x: float
    v: float

    def __init_subclass__(cls):
        cls.kinds.append(cls)

    @classmethod
    def at(cls, x, v):
        return cls(x, v)


Sledge.most, Sledge.push = 2.0, 0.25


def slide(state, action):
    assert isinstance(state, Sledge)
    match state:
        case Sledge(x, v):
            v = min(v + Sledge.push * (action - 1), Sledge.most)
    return Sledge(x + v, v) if action else Sledge.at(x + v, v), -abs(x + v), False


def test_constants_of_a_class_whose_objects_are_states():
    other = with_values(slide, {"global Sledge.push": 0.5, "global Sledge.most": 3.0}, entry="")
    for action, speed in enumerate((2.25, 2.75, 3.0)):
        after = other(Sledge(1.0, 2.75), action)[0]
        assert after == Sledge(1.0 + speed, speed)
        assert type(after) is Sledge
    assert slide(Sledge(1.0, 1.75), 2)[0] == Sledge(3.0, 2.0)
    assert (Sledge.kinds, Sledge.__subclasses__(), Sledge.most) == ([], [], 2.0)


class Tram(NamedTuple):
    power: float = 2.0
    limits: tuple = (3.0, 9.0)
    num_actions: int = 2

    def step(self, state, action):
        return min(state + self.power * action, self.limits[1]), 0.0, False


class Steps(Protocol):
    num_actions: int

    def step(self, state, action): ...


class Ferry(Steps):
    num_actions = 2

    def step(self, state, action):
        return state + 1.5 * action, 0.0, False


def test_a_named_tuple_and_a_protocol_as_simulators():
    other = with_values(Tram(), {"power": 5.0, "limits[1]": 6.0})
    assert (other.step(0.0, 1)[0], other.step(4.0, 1)[0]) == (5.0, 6.0)
    assert (other, type(other)) == (Tram(5.0, (3.0, 6.0)), Tram)
    ferry = with_values(Ferry(), {"1.5 in step()": 2.5})
    assert ferry.step(0.0, 1)[0] == 2.5
    assert isinstance(ferry, Ferry)
    assert Ferry().step(0.0, 1)[0] == 1.5


ANSWERS = {}
REACH = 2.0


def remember(function):
    answers = {}

    @functools.wraps(function)
    def ask(*given):
        if given not in answers:
            answers[given] = function(*given)
        return answers[given]

    ask.answers = answers
    return ask


@remember
def hop(state, action):
    return state + REACH * action, 0.0, False


def leap(state, action):
    if (state, action) not in ANSWERS:
        ANSWERS[state, action] = state + REACH * action, 0.0, False
    return ANSWERS[state, action]


def jump(state, action, known={}):  # noqa: B006 (it remembers on purpose)
    return known.setdefault((state, action), (state + REACH * action, 0.0, False))


@pytest.mark.parametrize(("step", "answers"), [(hop, hop.answers), (leap, ANSWERS), (jump, jump.__defaults__[0])])
def test_a_copy_of_a_function_remembers_its_own_answers(step, answers):
    find_code_parameters(step, "")  # before any step
    assert step(1.0, 1)[0] == 3.0
    other = with_values(step, {"global REACH": 5.0}, entry="")
    assert (other(1.0, 1)[0], other(2.0, 1)[0]) == (6.0, 7.0)
    assert (step(1.0, 1)[0], step(3.0, 1)[0]) == (3.0, 5.0)
    assert answers == {(1.0, 1): (3.0, 0.0, False), (3.0, 1): (5.0, 0.0, False)}
