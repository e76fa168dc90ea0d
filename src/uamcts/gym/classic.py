"""Classic control in plain Python: the same numbers as Gymnasium's environments, without their arrays.

A state is a tuple of floats. `plain_step` returns a step function or None. The simulator compares it with the
environment bit for bit before relying on it, and steps the environment itself if they differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.envs.classic_control.acrobot import AcrobotEnv
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.envs.classic_control.continuous_mountain_car import Continuous_MountainCarEnv
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv
from gymnasium.envs.classic_control.pendulum import PendulumEnv

from uamcts.gym.state_access import StateAccess

PlainStep = Callable[[tuple, int], tuple[tuple, float, bool]]

CLASSIC = (CartPoleEnv, AcrobotEnv, MountainCarEnv, Continuous_MountainCarEnv, PendulumEnv)
ACTION_NAMES = {
    CartPoleEnv: ("left", "right"),
    AcrobotEnv: ("torque -1", "torque 0", "torque +1"),
    MountainCarEnv: ("left", "none", "right"),
}
STATE_NAMES = {
    CartPoleEnv: ("x", "x_dot", "theta", "theta_dot"),
    AcrobotEnv: ("theta1", "theta2", "theta1_dot", "theta2_dot"),
    MountainCarEnv: ("position", "velocity"),
    Continuous_MountainCarEnv: ("position", "velocity"),
    PendulumEnv: ("theta", "theta_dot"),
}


def state_names(env: object) -> tuple[str, ...]:
    """What the numbers of a state are called, as Gymnasium's own code calls them; nothing if `env` is another one."""
    return next((names for kind, names in STATE_NAMES.items() if isinstance(env, kind)), ())


def name_numbers(env: object, access: StateAccess) -> tuple[str, ...]:
    """What the numbers of a state are called, by Gymnasium's own code or by their attributes, as far as known."""
    return state_names(env) or access.number_names


def plain_step(env: object, actions: Sequence[Any]) -> PlainStep | None:
    """A step of `env` in plain Python, or None if there is none; `actions` are the environment's own actions."""
    makers: dict[Any, Any] = {
        CartPoleEnv: cart_pole,
        AcrobotEnv: acrobot,
        MountainCarEnv: mountain_car,
        PendulumEnv: pendulum,
    }
    own: Any = type(env)
    for kind, maker in makers.items():
        if isinstance(env, kind) and own.step is kind.step:
            return maker(env, actions)
    return None


def cart_pole(env: CartPoleEnv, actions: Sequence[Any]) -> PlainStep:
    forces = [env.force_mag if action == 1 else -env.force_mag for action in actions]
    mass, pole, pole_length = env.total_mass, env.masspole, env.polemass_length
    length, gravity, tau = env.length, env.gravity, env.tau
    far, tilted, euler = env.x_threshold, env.theta_threshold_radians, env.kinematics_integrator == "euler"
    paid, paid_at_the_end = (0.0, -1.0) if env._sutton_barto_reward else (1.0, 1.0)
    cos, sin = math.cos, math.sin

    def step(state: tuple, action: int) -> tuple[tuple, float, bool]:
        x, x_speed, angle, angle_speed = state
        cosine, sine = cos(angle), sin(angle)
        push = (forces[action] + pole_length * (angle_speed * angle_speed) * sine) / mass
        turn = (gravity * sine - cosine * push) / (length * (4.0 / 3.0 - pole * (cosine * cosine) / mass))
        pull = push - pole_length * turn * cosine / mass
        if euler:
            x, angle = x + tau * x_speed, angle + tau * angle_speed
            x_speed, angle_speed = x_speed + tau * pull, angle_speed + tau * turn
        else:
            x_speed, angle_speed = x_speed + tau * pull, angle_speed + tau * turn
            x, angle = x + tau * x_speed, angle + tau * angle_speed
        if -far <= x <= far and -tilted <= angle <= tilted:
            return (x, x_speed, angle, angle_speed), paid, False
        return (x, x_speed, angle, angle_speed), paid_at_the_end, True

    return step


def mountain_car(env: MountainCarEnv, actions: Sequence[Any]) -> PlainStep:
    pushes = [(int(action) - 1) * env.force for action in actions]
    slope, fastest, left, right = -env.gravity, env.max_speed, env.min_position, env.max_position
    goal, goal_speed, cos = env.goal_position, env.goal_velocity, math.cos

    def step(state: tuple, action: int) -> tuple[tuple, float, bool]:
        place, speed = state
        speed += pushes[action] + cos(3 * place) * slope
        speed = min(max(speed, -fastest), fastest)
        place = min(max(place + speed, left), right)
        if place == left and speed < 0:
            speed = 0.0
        return (place, speed), -1.0, place >= goal and speed >= goal_speed

    return step


def pendulum(env: PendulumEnv, actions: Sequence[Any]) -> PlainStep:
    # In the environment's own kind of number: an action of 32 bits is rounded as one.
    torques = [np.clip(action, -env.max_torque, env.max_torque)[0] for action in actions]
    pushes = [float(3.0 / (env.m * env.l**2) * torque) for torque in torques]
    prices = [float(0.001 * (torque**2)) for torque in torques]
    pull, dt, fastest, sin = 3 * env.g / (2 * env.l), env.dt, float(env.max_speed), math.sin
    half, whole = math.pi, 2 * math.pi

    def step(state: tuple, action: int) -> tuple[tuple, float, bool]:
        angle, speed = state
        cost = (((angle + half) % whole) - half) ** 2 + 0.1 * speed**2 + prices[action]
        speed = min(max(speed + (pull * sin(angle) + pushes[action]) * dt, -fastest), fastest)
        return (angle + speed * dt, speed), -cost, False

    return step


def acrobot(env: AcrobotEnv, actions: Sequence[Any]) -> PlainStep | None:
    own = type(env)._dsdt is AcrobotEnv._dsdt and type(env)._terminal is AcrobotEnv._terminal
    if not own or env.torque_noise_max > 0 or env.book_or_nips != "book":
        return None
    torques = [env.AVAIL_TORQUE[action] for action in actions]
    slope = _acrobot_slope(env)
    dt = env.dt - 0
    half, sixth = dt / 2.0, dt / 6.0
    turn, fast1, fast2, cos = math.pi, env.MAX_VEL_1, env.MAX_VEL_2, math.cos

    def wrap(angle: float) -> float:
        while angle > turn:
            angle -= turn - -turn
        while angle < -turn:
            angle += turn - -turn
        return angle

    def step(state: tuple, action: int) -> tuple[tuple, float, bool]:
        torque = torques[action]
        p, q, v, w = state
        p1, q1, v1, w1 = slope(p, q, v, w, torque)
        p2, q2, v2, w2 = slope(p + half * p1, q + half * q1, v + half * v1, w + half * w1, torque)
        p3, q3, v3, w3 = slope(p + half * p2, q + half * q2, v + half * v2, w + half * w2, torque)
        p4, q4, v4, w4 = slope(p + dt * p3, q + dt * q3, v + dt * v3, w + dt * w3, torque)
        p = wrap(p + sixth * (p1 + 2 * p2 + 2 * p3 + p4))
        q = wrap(q + sixth * (q1 + 2 * q2 + 2 * q3 + q4))
        v = min(max(v + sixth * (v1 + 2 * v2 + 2 * v3 + v4), -fast1), fast1)
        w = min(max(w + sixth * (w1 + 2 * w2 + 2 * w3 + w4), -fast2), fast2)
        up = -cos(p) - cos(q + p) > 1.0
        return (p, q, v, w), 0.0 if up else -1.0, up

    return step


def _acrobot_slope(env: AcrobotEnv) -> Callable[..., tuple[float, float, float, float]]:
    """Speeds and accelerations of the two links, by the equations of Sutton and Barto's book."""
    m1, m2, l1, c1, c2 = env.LINK_MASS_1, env.LINK_MASS_2, env.LINK_LENGTH_1, env.LINK_COM_POS_1, env.LINK_COM_POS_2
    inertia, g, right_angle, cos, sin = env.LINK_MOI, 9.8, math.pi / 2.0, math.cos, math.sin
    first, arms, twice, second, once = m1 * c1**2, l1**2 + c2**2, 2 * l1 * c2, c2**2, l1 * c2
    weight2, weight1, joint = m2 * c2 * g, (m1 * c1 + m2 * l1) * g, m2 * l1 * c2
    twist, rest = 2 * m2 * l1 * c2, m2 * c2**2 + inertia

    def slope(p: float, q: float, v: float, w: float, torque: float) -> tuple[float, float, float, float]:
        cosine, sine = cos(q), sin(q)
        d1 = first + m2 * (arms + twice * cosine) + inertia + inertia
        d2 = m2 * (second + once * cosine) + inertia
        phi2 = weight2 * cos(p + q - right_angle)
        phi1 = -joint * w**2 * sine - twist * w * v * sine + weight1 * cos(p - right_angle) + phi2
        b = (torque + d2 / d1 * phi1 - joint * v**2 * sine - phi2) / (rest - d2**2 / d1)
        return v, w, -(d2 * b + phi1) / d1, b

    return slope
