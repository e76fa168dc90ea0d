"""Things that move: a road with hills, an arm, a crane, a satellite, a gun, and poles and cars of other libraries."""

from __future__ import annotations

import functools
import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from worlds_apart import GymWorld, World

from worlds.poles import BUDGET as POLE
from worlds.poles import GymnaxWorld
from worlds.processes import SHORT, Noisy
from worlds.zoo import Setting, setting, world

GRAVITY, ENGINE, MASS, AIR = 9.81, 6000.0, 1200.0, 0.6
HILL = {"iterations": 100, "rollouts": 10, "depth": 150, "gamma": 0.99, "longest": 150, "episodes": 5}


class Road:
    """{"at": metres, "speed": metres a second}, to be driven at 25 with four pedal positions. It has no attributes."""

    num_actions = 4

    def slope(self, at: float) -> float:
        return 0.0

    def step(self, state: Any, action: int) -> Any:
        at, speed = state["at"], state["speed"]
        for _ in range(4):
            force = (-ENGINE, 0.0, 0.5 * ENGINE, ENGINE)[action] - AIR * speed * speed
            speed = max(speed + 0.25 * (force / MASS - GRAVITY * self.slope(at)), 0.0)
            at += 0.25 * speed
        return {"at": at, "speed": speed}, -abs(speed - 25.0) / 2, False


class Hilly(Road):
    def slope(self, at: float) -> float:
        return 0.25 * math.sin(at / 80.0)


class Arm:
    """(shoulder, elbow, target x, target y): two links, of which lengths matter for the reward alone."""

    num_actions = 5

    def __init__(self, upper: float = 1.0, lower: float = 1.0) -> None:
        self.upper, self.lower = upper, lower

    def step(self, state: Any, action: int) -> Any:
        shoulder, elbow, x, y = state
        shoulder += 0.15 * ((action == 1) - (action == 2))
        elbow += 0.15 * ((action == 3) - (action == 4))
        tip = (
            self.upper * math.cos(shoulder) + self.lower * math.cos(shoulder + elbow),
            self.upper * math.sin(shoulder) + self.lower * math.sin(shoulder + elbow),
        )
        return (shoulder, elbow, x, y), -math.dist(tip, (x, y)), False


@dataclass(frozen=True)
class Hook:
    at: float
    speed: float
    loaded: bool


class Crane:
    """A trolley takes a load beyond 2 and is paid for it before 1, if it is slow there; loads weigh nothing."""

    num_actions = 3
    action_names = ("back", "roll", "on")

    def mass(self, state: Hook) -> float:
        return 1.0

    def step(self, state: Hook, action: int) -> Any:
        speed = 0.95 * state.speed + 0.3 * (action - 1) / self.mass(state)
        at = state.at + 0.3 * speed
        if not -1.0 <= at <= 4.0:
            return Hook(at, speed, state.loaded), -10.0, True
        if state.loaded and at < 1.0 and abs(speed) < 0.6:
            return Hook(at, speed, False), 10.0, False
        return Hook(at, speed, state.loaded or (at > 2.0 and abs(speed) < 1.0)), -0.1, False


class Loaded(Crane):
    def mass(self, state: Hook) -> float:
        return 2.5 if state.loaded else 1.0


class Gun:
    """[distance, head wind, where the last shot fell]: nine charges, a shot at each target."""

    num_actions = 9

    def fly(self, charge: float, wind: float) -> float:
        return charge * charge / 10.0

    def step(self, state: Any, action: int) -> Any:
        target, wind = float(state[0]), float(state[1])
        fell = self.fly(8.0 + 2.0 * action, wind)
        after = np.array([6.0 + (7.3 * target) % 40.0, -wind, fell])
        return after, -abs(fell - target) / 10, False


class Dense(Gun):
    """Air: a fast shot loses more, and wind carries it."""

    def fly(self, charge: float, wind: float) -> float:
        return charge * charge / (10.0 + 0.012 * charge * charge) - 0.2 * wind * charge / 10


class Drive:
    """(angle, turning) of a dish with friction, to be pointed at 0: seven voltages. It has no attributes."""

    num_actions = 7

    def torque(self, voltage: float) -> float:
        return voltage

    def step(self, state: Any, action: int) -> Any:
        turning = 0.8 * state[1] + 0.2 * self.torque((action - 3) / 3)
        angle = state[0] + turning
        return (angle, turning), -angle * angle, False


class DeadZone(Drive):
    """Small voltages do nothing, and the others less."""

    def torque(self, voltage: float) -> float:
        return 0.0 if abs(voltage) < 0.5 else voltage - math.copysign(0.4, voltage)


class Ferry:
    """(x, y) that is to reach (3, 0): the helm has eight directions. A current turns around the middle of the lake."""

    num_actions = 8

    def __init__(self, swirl: float = 0.0) -> None:
        self.swirl, self.speed = swirl, 0.4

    def step(self, state: Any, action: int) -> Any:
        x, y = state
        angle = action * math.pi / 4
        x, y = (
            x + self.speed * math.cos(angle) - self.swirl * y,
            y + self.speed * math.sin(angle) + self.swirl * x,
        )
        there = math.dist((x, y), (3.0, 0.0)) < 0.4
        return (x, y), 5.0 if there else -0.2 * math.dist((x, y), (3.0, 0.0)), there


def on_the_road(rng: random.Random) -> Any:
    return {"at": rng.uniform(0.0, 200.0), "speed": rng.uniform(15.0, 30.0)}


def reaching(rng: random.Random) -> Any:
    far, turn = rng.uniform(0.8, 1.6), rng.uniform(-1.0, 2.0)
    return 0.0, rng.uniform(-1.0, 1.0), far * math.cos(turn), far * math.sin(turn)


def in_the_yard(rng: random.Random) -> Hook:
    return Hook(rng.uniform(0.5, 1.5), 0.0, False)


def first_target(rng: random.Random) -> Any:
    return np.array([rng.uniform(8.0, 40.0), rng.uniform(-2.0, 2.0), 0.0])


def turned_away(rng: random.Random) -> Any:
    return rng.choice([-1, 1]) * rng.uniform(1.0, 2.5), 0.0


def at_the_pier(rng: random.Random) -> Any:
    return rng.uniform(-3.0, -2.0), rng.uniform(-1.0, 1.0)


@world("hills", "hills that the simulator does not know of; it has no attributes", **SHORT)
def hills() -> Setting:
    return setting(Road(), Hilly(), on_the_road)


@world("arm", "an arm with links of other lengths, which only rewards depend on", **SHORT)
def arm() -> Setting:
    return setting(Arm(), Arm(1.3, 0.5), reaching)


@world("crane", "a trolley that is heavier with a load", **{**SHORT, "longest": 60, "depth": 20})
def crane() -> Setting:
    return setting(Crane(), Loaded(), in_the_yard)


@world("gun", "shots that air slows down and wind carries", **{**SHORT, "depth": 2, "longest": 20})
def gun() -> Setting:
    return setting(Gun(), Dense(), first_target)


@world("dead_zone", "a drive that small voltages do not move", **SHORT)
def dead_zone() -> Setting:
    return setting(Drive(), DeadZone(), turned_away)


@world("swirl", "a ferry in a current that turns, with process noise that no simulator knows of", **SHORT)
def swirl() -> Setting:
    return Setting(Ferry(), [Ferry(0.12)], [Noisy(Ferry(0.12), at_the_pier, 0.05)])


@world("swirl_reversed", "a current that is believed to turn the other way", **SHORT)
def swirl_reversed() -> Setting:
    return setting(Ferry(-0.1), Ferry(0.12), at_the_pier)


@world("gym_pole_all", "Gymnasium's CartPole with a longer, heavier pole and less force", **{**POLE, "depth": 40})
def gym_pole_all() -> Setting:
    import gymnasium

    import uamcts.gym

    real = gymnasium.make("CartPole-v1")
    env: Any = real.unwrapped
    env.length, env.masspole, env.force_mag, env.x_threshold = 1.2, 0.4, 6.0, 1.0
    env.total_mass, env.polemass_length = env.masspole + env.masscart, env.masspole * env.length
    wrong, true = uamcts.gym.Simulator(gymnasium.make("CartPole-v1")), uamcts.gym.Simulator(real)
    return Setting(wrong, [true], [GymWorld(real, wrong)])


@world("gymnax_hill", "gymnax's MountainCar with a weaker engine and less gravity", **HILL)
def gymnax_hill() -> Setting:
    from gymnax.environments.classic_control.mountain_car import MountainCar

    import uamcts.gym

    env = MountainCar()
    params = env.default_params.replace(force=0.0014, gravity=0.0035)
    wrong, true = uamcts.gym.from_gymnax(env), uamcts.gym.from_gymnax(env, params)
    return Setting(wrong, [true], [GymnaxWorld(env, params, true)])


class Observed(GymWorld):
    """An environment of which observations show everything."""

    def reset(self, seed: int) -> Any:
        return self.env.reset(seed=seed)[0]

    def step(self, action: int) -> Any:
        observation, reward, terminated, _, _ = self.env.step(self.simulator.actions[action])
        return observation, float(reward), bool(terminated)


@functools.cache
def satellite_class() -> Any:
    """An environment of one's own: a satellite that is to be turned to 0 with two thrusters; one may be stuck open."""
    import gymnasium

    class Satellite(gymnasium.Env):
        action_space = gymnasium.spaces.Discrete(3)
        observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))

        def __init__(self, inertia: float, open_valve: bool) -> None:
            self.inertia, self.open_valve, self.state = inertia, open_valve, np.zeros(2)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self.state = self.np_random.uniform([-2.0, -0.5], [2.0, 0.5])
            return self.state.copy(), {}

        def step(self, action: Any) -> Any:
            angle, rate = self.state
            rate += 0.2 * (int(action) - 1 + (0.5 if self.open_valve else 0.0)) / self.inertia
            self.state = np.array([angle + 0.2 * rate, rate])
            lost = bool(abs(self.state[0]) > 4.0)
            return self.state.copy(), -20.0 if lost else -abs(self.state[0]), lost, False, {}

    return Satellite


@world("satellite", "a satellite of another inertia, with a thruster that is stuck open", **SHORT)
def stuck_thruster() -> Setting:
    import uamcts.gym

    real = satellite_class()(1.6, True)
    wrong, true = uamcts.gym.Simulator(satellite_class()(1.0, False)), uamcts.gym.Simulator(real)
    return Setting(wrong, [true], [Observed(real, wrong)])


@world("tyres", "a car in JAX whose tyres slide where they should hold, with another steering ratio", **SHORT)
def tyres() -> Setting:
    import jax.numpy as jnp

    import uamcts

    def simulator(grip: float, ratio: float) -> Any:
        """(y, heading, sideways speed, turning) in a lane, at constant speed; a grip is no parameter."""

        def force(slip: Any) -> Any:
            return 8.0 * slip if grip <= 0.0 else grip * jnp.tanh(8.0 * slip / grip)

        def step(state: Any, action: Any, params: Any) -> Any:
            y, heading, side, turning = state
            for _ in range(2):
                front = force(params["ratio"] * (action - 2) - side - 0.5 * turning)
                rear = force(0.5 * turning - side)
                side, turning = side + 0.1 * (front + rear - turning), turning + 0.1 * (front - rear)
                heading = heading + 0.1 * turning
                y = y + 0.1 * (3.0 * jnp.sin(heading) + side * jnp.cos(heading))
            off = jnp.abs(y) > 3.0
            reward = jnp.where(off, -20.0, -jnp.abs(y) - 0.3 * jnp.abs(heading))
            return uamcts.Transition(jnp.stack([y, heading, side, turning]), reward, off)

        return uamcts.JaxSimulator(step, 5, jnp.zeros(4, jnp.float32), params={"ratio": ratio})

    true = simulator(0.6, 0.2)

    class Lane(World):
        def step(self, action: int) -> Any:
            state, reward, over = true.step(self.state, action, true.params)
            self.state = np.asarray(state)
            return self.state, float(reward), bool(over)

    def start(rng: random.Random) -> Any:
        return np.array([rng.choice([-1, 1]) * rng.uniform(1.0, 2.0), rng.uniform(-0.4, 0.4), 0.0, 0.0], np.float32)

    return Setting(simulator(0.0, 0.1), [true], [Lane(true, start)])
