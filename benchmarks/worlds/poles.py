"""Cart poles: in plain Python, of Gymnasium, and of gymnax."""

from __future__ import annotations

import math
import random
from typing import Any

from worlds_apart import GymWorld

from worlds.zoo import Setting, setting, world

BUDGET = {"iterations": 40, "rollouts": 1, "depth": 15, "gamma": 0.99, "episodes": 6, "longest": 200}


class CartPole:
    """Gymnasium's cart pole with the same attributes, derived ones included. A state is (x, speed, angle, turning)."""

    num_actions = 2
    action_names = ("left", "right")

    def __init__(self, gravity: float = 9.8, masscart: float = 1.0, masspole: float = 0.1, length: float = 0.5) -> None:
        self.gravity, self.masscart, self.masspole, self.length = gravity, masscart, masspole, length
        self.total_mass, self.polemass_length = masscart + masspole, masspole * length
        self.force_mag, self.tau = 10.0, 0.02

    def force(self, x: float, action: int) -> float:
        return self.force_mag if action == 1 else -self.force_mag

    def step(self, state: Any, action: int) -> Any:
        x, speed, angle, turning = state
        cosine, sine = math.cos(angle), math.sin(angle)
        push = (self.force(x, action) + self.polemass_length * turning**2 * sine) / self.total_mass
        spin = (self.gravity * sine - cosine * push) / (
            self.length * (4.0 / 3.0 - self.masspole * cosine**2 / self.total_mass)
        )
        pull = push - self.polemass_length * spin * cosine / self.total_mass
        after = x + self.tau * speed, speed + self.tau * pull, angle + self.tau * turning, turning + self.tau * spin
        return after, 1.0, abs(after[0]) > 2.4 or abs(after[2]) > math.radians(12)


class Worn(CartPole):
    """On the right half of the track, a push to the right has a tenth of its force."""

    def force(self, x: float, action: int) -> float:
        return super().force(x, action) * (0.1 if x > 0 and action == 1 else 1.0)


def start(rng: random.Random) -> Any:
    return tuple(rng.uniform(-0.05, 0.05) for _ in range(4))


def blur(state: Any, rng: random.Random) -> Any:
    """The position of the cart with sensor noise."""
    return rng.gauss(state[0], 0.02), *state[1:]


@world("right_pole", "a cart pole; nothing is wrong", **BUDGET)
def right_pole() -> Setting:
    return setting(CartPole(), CartPole(), start)


@world("noise_pole", "the same with sensor noise of 0.02 on the position of the cart", **BUDGET)
def noise_pole() -> Setting:
    return setting(CartPole(), CartPole(), start, blur)


@world("pole_gravity", "a cart pole with gravity x 6", **BUDGET)
def pole_gravity() -> Setting:
    return setting(CartPole(), CartPole(gravity=58.8), start)


@world("pole_mass_gravity", "a pole of ten times the mass, with gravity x 4", **BUDGET)
def pole_mass_gravity() -> Setting:
    return setting(CartPole(), CartPole(gravity=39.2, masspole=1.0), start)


@world("pole_worn", "a motor that is worn on the right half of the track", **BUDGET)
def pole_worn() -> Setting:
    return setting(CartPole(), Worn(), start)


@world("gym_pole_gravity", "Gymnasium's CartPole with gravity x 6", **BUDGET)
def gym_pole_gravity() -> Setting:
    import gymnasium

    import uamcts.gym

    real = gymnasium.make("CartPole-v1")
    real.unwrapped.gravity = 58.8  # type: ignore[attr-defined]
    wrong, true = uamcts.gym.Simulator(gymnasium.make("CartPole-v1")), uamcts.gym.Simulator(real)
    return Setting(wrong, [true], [GymWorld(real, wrong)])


class GymnaxWorld:
    """A real world that follows a JAX simulator, with starts of gymnax."""

    def __init__(self, env: Any, params: Any, simulator: Any) -> None:
        import jax

        self.start = jax.jit(lambda key: env.reset_env(key, params)[1])
        self.move = jax.jit(simulator.step)

    def reset(self, seed: int) -> Any:
        import jax

        self.state = self.start(jax.random.key(seed))
        return self.state

    def step(self, action: int) -> Any:
        self.state, reward, over = self.move(self.state, action)
        return self.state, float(reward), bool(over)


def gymnax_setting(env: Any, change: dict[str, float]) -> Setting:
    from gymnax.environments.classic_control.cartpole import CartPole as Believed

    import uamcts.gym

    params = env.default_params.replace(**change)
    wrong, true = uamcts.gym.from_gymnax(Believed()), uamcts.gym.from_gymnax(env, params)
    return Setting(wrong, [true], [GymnaxWorld(env, params, true)])


@world("gymnax_pole_gravity", "gymnax's CartPole with gravity x 6", **BUDGET)
def gymnax_pole_gravity() -> Setting:
    from gymnax.environments.classic_control.cartpole import CartPole as Real

    return gymnax_setting(Real(), {"gravity": 58.8})


@world("gymnax_pole_worn", "gymnax's CartPole with a worn motor", **{**BUDGET, "rollouts": 4, "depth": 30})
def gymnax_pole_worn() -> Setting:
    from cart_pole import WornMotor

    return gymnax_setting(WornMotor(), {})
