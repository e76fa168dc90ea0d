"""The changed cart pole, and our planners in it, for `drifting_cart_pole.py`.

Imports are inside of functions: ns-gym's Python reads this file too, and has none of what they need.
"""

import random
import time

from peer import rate

NORMAL = {"masspole": 0.1, "gravity": 9.8}
CHANGES = {
    "mass10": {"masspole": 1.0},
    "gravity6": {"gravity": 58.8},
    "mass10_gravity4": {"masspole": 1.0, "gravity": 39.2},
}
OFF = dict.fromkeys(("selection", "expansion", "simulation", "backpropagation"), False)


def cart_pole(masspole=NORMAL["masspole"], gravity=NORMAL["gravity"]):
    """A step of Gymnasium's CartPole-v1 in JAX: states are [4], position, speed, angle and turn of the pole."""
    import jax.numpy as jnp

    import uamcts

    length, force, seconds, mass = 0.5, 10.0, 0.02, 1.0 + masspole
    far, tilted = 2.4, 12 * 2 * jnp.pi / 360

    def over(state):
        return (jnp.abs(state[0]) > far) | (jnp.abs(state[2]) > tilted)

    def step(state, action):
        _, speed, angle, turn = state
        cosine, sine = jnp.cos(angle), jnp.sin(angle)
        push = (jnp.where(action == 1, force, -force) + masspole * length * turn**2 * sine) / mass
        swing = (gravity * sine - cosine * push) / (length * (4 / 3 - masspole * cosine**2 / mass))
        pull = push - masspole * length * swing * cosine / mass
        ended = over(state)
        after = jnp.where(ended, state, state + seconds * jnp.stack([speed, pull, turn, swing]))
        return uamcts.Transition(after, jnp.where(ended, 0.0, 1.0), over(after))

    return step


def gymnasium_cart_pole(masspole=NORMAL["masspole"], gravity=NORMAL["gravity"]):
    """Gymnasium's own environment with another pole and another gravity."""
    import gymnasium

    env = gymnasium.make("CartPole-v1").unwrapped
    env.masspole, env.gravity = masspole, gravity
    env.total_mass, env.polemass_length = masspole + env.masscart, masspole * env.length
    return env


def starts(chosen, episodes):
    """The states in which episodes begin, [episodes, 4]: those of ns-gym with the same seeds."""
    import numpy as np

    env = gymnasium_cart_pole()
    found = []
    for seed in range(chosen.seed, chosen.seed + episodes):
        env.reset(seed=seed)
        found.append(env.state)
    return np.array(found, np.float32)


def settings(chosen, rules, simulations, **switches):
    import uamcts

    shape = {"iterations": simulations, "rollouts": 1, "depth": chosen.depth, "tree_depth": 64, "rules": rules}
    return uamcts.SearchConfig(**shape, graph=False, c=chosen.c, gamma=chosen.gamma, **switches)


def compiled(chosen, model, world, config, episodes):
    """Steps upright of the compiled search, all episodes side by side; world and model are in JAX."""
    import jax
    import jax.numpy as jnp

    import uamcts

    def episode(start, key):
        def going(carry):
            return ~carry[1] & (carry[2] < chosen.longest)

        def move(carry):
            state, _, steps = carry
            luck = jax.random.fold_in(key, steps)
            action = uamcts.search(luck, state, model, None, config, num_actions=2).action
            state, _, over = world(state, action)
            return state, over, steps + 1

        return jax.lax.while_loop(going, move, (start, jnp.bool_(False), jnp.int32(0)))[2]

    keys = jax.random.split(jax.random.key(chosen.seed), episodes)
    return jax.jit(jax.vmap(episode))(starts(chosen, episodes), keys)


def plain(chosen, model, world, config, episodes):
    """Steps upright of the plain engine; world and model are Gymnasium's."""
    import uamcts.gym

    model, world = uamcts.gym.Simulator(model), uamcts.gym.Simulator(world)
    rewards = []
    for seed in range(chosen.seed, chosen.seed + episodes):
        state, over, steps, luck = world.reset(seed=seed), False, 0, random.Random(seed)  # noqa: S311
        while not over and steps < chosen.longest:
            action = uamcts.reference.search(luck, state, model, None, config).action
            state, _, over = world.step(state, action)
            steps += 1
        rewards.append(steps)
    return rewards


def trusting(chosen, simulator, world, config):
    """Steps upright of agents that learn where the model is wrong: first and second episode, and seconds a move.

    An agent begins with nothing learned and lives through two episodes. Moves in which something is compiled do not
    count: the seconds are the median.
    """
    import jax
    import numpy as np

    import uamcts

    move = jax.jit(world)
    rewards, seconds = [], []
    begin = starts(chosen, 2 * chosen.episodes)
    for number in range(chosen.episodes):
        agent, lived = uamcts.Agent(simulator, config=config, seed=chosen.seed + number, corrections=()), []
        for start in (begin[number], begin[chosen.episodes + number]):
            state, over, steps = start, False, 0
            while not over and steps < chosen.longest:
                clock = time.process_time()
                action = agent.act(state)
                thought = time.process_time() - clock
                after, reward, over = move(state, action)
                after, reward, over = np.asarray(after), float(reward), bool(over)
                clock = time.process_time()
                agent.observe(state, action, after, reward=reward, terminal=over)
                seconds.append(thought + time.process_time() - clock)
                state, steps = after, steps + 1
            lived.append(steps)
        rewards.append(lived)
    return np.array(rewards), float(np.median(seconds))


def fitting(chosen, budget):
    """How many simulations the plain engine and one compiled search can do in `budget` seconds, by name.

    The more there are, the deeper the tree and the longer each takes: so the number is looked for, not computed.
    """
    import jax
    import jax.numpy as jnp

    import uamcts.gym

    simulator = uamcts.gym.Simulator(gymnasium_cart_pole())
    start = simulator.reset(seed=chosen.seed)
    state = jnp.array(start, jnp.float32)

    def plainly(config):
        return lambda number: uamcts.reference.search(number, start, simulator, None, config)

    def in_one(config):
        one = jax.jit(lambda key: uamcts.search(key, state, cart_pole(), None, config, num_actions=2).visits)
        return lambda number: jax.block_until_ready(one(jax.random.key(number)))

    found = {}
    for name, search, first in (("plain engine", plainly, 500), ("compiled", in_one, 3000)):
        simulations = first
        for _ in range(4):
            config = settings(chosen, "pseudocode", simulations, **OFF)
            could = rate(search(config), simulations, chosen.seconds / 3) * budget
            simulations = max(1, int((simulations * could) ** 0.5))
        found[name] = simulations
    return found
