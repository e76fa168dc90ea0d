"""A pole on a cart whose real motor is weak on half of the track; the model does not know this.

python examples/cart_pole.py

               /
         _____/_____
    <---|___________|---> a tenth of the force to the right
    ======O=======O======================
      left half   |   right half (x > 0)

Uses gymnax's CartPole with the compiled search. The real world is the same environment with a different `step_env`.
Needs gymnax: pip install '.[gym-all]'.
"""

import jax
import jax.numpy as jnp
from drawing import plane
from gymnax.environments.classic_control.cartpole import CartPole
from worlds_apart import compare, options

import uamcts.gym


class WornMotor(CartPole):
    """On the right half of the track, a push to the right has a tenth of its force."""

    def step_env(self, key, state, action, params):
        left = jnp.where((state.x > 0) & (action == 1), 0.1, 1.0)
        return super().step_env(key, state, action, params.replace(force_mag=left * params.force_mag))


class Track:
    """The real track."""

    def __init__(self):
        env = WornMotor()
        self.start = jax.jit(lambda key: env.reset_env(key, env.default_params)[1])
        self.move = jax.jit(uamcts.gym.from_gymnax(env).step)

    def reset(self, seed):
        self.state = self.start(jax.random.key(seed))
        return self.state

    def step(self, action):
        self.state, reward, over = self.move(self.state, jnp.int32(action))
        return self.state, float(reward), bool(over)


def main(arguments=None):
    chosen = options(__doc__, arguments, runs=5, episodes=6, iterations=50, longest=100)
    wrong, true = uamcts.gym.from_gymnax(CartPole()), uamcts.gym.from_gymnax(WornMotor())
    return compare(
        chosen,
        Track(),
        wrong,
        true,
        cause="a motor that is worn on half of the track",
        plan=plane((0, -1.0, 1.0), (2, -0.2, 0.2)),
        rollouts=4,
        depth=30,
        gamma=0.99,
    )


if __name__ == "__main__":
    main()
