"""What rule sets, learners, domains and loops do with fixed seeds, in a few numbers each.

Not how they are written: a change of code that leaves these numbers alone is no change of behaviour.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from behaviour_field import numbers_of_planner

import uamcts
from uamcts import versions
from uamcts.bandits import bernoulli, ua_ucb, ucb
from uamcts.episodes.offline import play
from uamcts.lab.experiments.learners import make_learner
from uamcts.lab.run.agents import AgentRuns
from uamcts.lab.run.online import Runs
from uamcts.lab.run.units import OnlineUnit
from uamcts.presets import search_config
from uamcts.types import BatchedUncertainty
from uamcts.uncertainty import make_estimator
from uamcts.uncertainty.learner import UncertaintyLearner

KINDS = {
    "engine": versions.ENGINE_VERSIONS,
    "rules": versions.RULE_VERSIONS,
    "learner": versions.LEARNER_VERSIONS,
    "domain": versions.DOMAIN_VERSIONS,
    "field": versions.FIELD_VERSIONS,
}
SUBJECTS = [f"{kind} {name}" for kind, table in KINDS.items() for name in table]
WALK = 40
"""Steps of a trajectory."""


def version_of(subject):
    kind, name = subject.split(" ", 1)
    return KINDS[kind][name]


def numbers_of(subject):
    """The behaviour of a subject, like `rules trust`: lists of numbers by name."""
    kind, name = subject.split(" ", 1)
    measure = {"engine": engine, "rules": rules, "learner": learner, "domain": domain, "field": numbers_of_planner}[
        kind
    ]
    return {key: np.asarray(value, float).ravel().tolist() for key, value in measure(name).items()}


@partial(jax.jit, static_argnames="steps")
def walk(world, seed, steps=WALK):
    """States, actions and what came of them along a random walk in the real world, [steps, ...]."""
    start, key = world.reset(jax.random.key(seed)), jax.random.key(seed + 100)
    actions = jax.random.randint(key, (steps,), 0, world.num_actions)
    keys = jax.random.split(jax.random.fold_in(key, 1), steps)  # for random worlds

    def step(state, drawn):
        action, key = drawn
        real = world.world(state, action, key)
        return real.state, (state, action, real)

    return jax.lax.scan(step, start, (actions, keys))[1]


def projected(features):
    """A number for each row of features, [..., n] to [...]: small, and different if anything in the row is."""
    weights = np.random.default_rng(7).uniform(0.5, 1.5, features.shape[-1])
    return np.asarray(features, np.float64) @ weights


def domain(name):
    """Rewards, ends and features of a random walk, and what the model expects of every action on the way."""
    world = uamcts.make(name)
    states, _, real = jax.jit(lambda seeds: jax.vmap(lambda seed: walk(world, seed))(seeds))(jnp.arange(2))
    every = jnp.arange(world.num_actions)

    def expected(state, action):
        model, chances = world.model_outcomes(state, action)
        features = jax.vmap(world.features)(model.state)
        return *(chances @ leaf for leaf in (features, model.reward, model.terminal)), world.uncertainty(state, action)

    def believed(state):
        return jax.vmap(expected, (None, 0))(state, every)

    @jax.jit
    @jax.vmap
    @jax.vmap
    def look(state, following):
        return world.features(following), *believed(state)

    after, features, rewards, ends, wrong = look(states, real.state)
    return {
        "world": projected(after),
        "world rewards": np.sum(real.reward, axis=1),
        "world ends": np.sum(real.terminal, axis=1),
        "model": projected(features).sum(-1),
        "model rewards": np.sum(rewards, axis=(1, 2)),
        "model ends": np.sum(ends, axis=(1, 2)),
        "U": np.sum(wrong, axis=-1),
    }


@jax.jit
@partial(jax.vmap, in_axes=(0, 0, None, None))
def search(key, state, world, config):
    """The domain and the settings are arguments: all searches by one rule set share a program."""
    return uamcts.search(key, state, world.model, uamcts.true_uncertainty(world), config)


def searched(world, configs, starts=3):
    """Visits and values of searches with U known, from states along a walk."""
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[:: WALK // starts][:starts], walk(world, 0)[0])
    keys = jax.random.split(jax.random.key(0), starts)
    found = {}
    for label, config in configs.items():
        result = search(keys, states, world, config)
        found[f"{label}, visits"] = result.visits
        found[f"{label}, values"] = np.where(np.asarray(result.visits) > 0, result.values, 0.0)
    return found


SMALL = {"iterations": 12, "rollouts": 2, "depth": 8}


def rules(name):
    """A search in a wrong model, undiscounted and discounted."""
    world = uamcts.make("two_way_icy")
    return searched(world, {f"gamma {g}": uamcts.SearchConfig(**SMALL, rules=name, gamma=g) for g in (1.0, 0.9)})


def learner(name):
    """The model and U of a learner after two rounds of training on a walk in a gridworld with much ice."""
    world = uamcts.make("two_way_icy", broken=(), ice=tuple((row, column) for row in range(3) for column in (1, 3, 4)))
    parts = {"transition": "transition_8_units", "penalty": "linear+penalty=2", "bonus": "unseen+bonus=0.5"}
    options = {"capacity": 8 * WALK, "minibatches": 300, "most_copies": 1}
    if name == "gate":  # at its usual level it opens after hundreds of samples
        learner = UncertaintyLearner(make_estimator("nearest+gate", jax.random.key(0), world, level=0.2, **options))
    else:
        learner = make_learner(parts.get(name, name), jax.random.key(0), world, options)
    samples = jax.tree.map(np.asarray, walk(world, 3, 4 * WALK))  # NumPy picks rows without compiling

    @jax.jit
    def train(learner, samples, key):
        seen = jax.lax.scan(lambda one, s: (one.observe(world, s[0], s[1], s[2], 1), None), learner, samples)[0]
        return seen.learn(key)

    for number in range(2):
        part = jax.tree.map(lambda leaf, n=number: leaf[n * 2 * WALK : (n + 1) * 2 * WALK], samples)
        learner, loss = train(learner, part, jax.random.key(number))
        learner = learner.finish_on_host()
    states, actions = jax.tree.map(lambda leaf: leaf[::8], samples[:2])

    @jax.jit
    def ask(learner, states, actions):
        model, u = learner.planner(world)
        steps = jax.vmap(model)(states, actions)
        features = jax.vmap(world.features)(steps.state)
        if isinstance(u, BatchedUncertainty):
            doubts, _ = u.predict_batch(u.empty_cache(), states, actions, jnp.ones(len(actions), bool))
        else:
            doubts = jax.vmap(u)(states, actions)
        return features, steps.reward, doubts

    features, rewards, doubts = ask(learner, states, actions)
    return {"U": doubts, "model": projected(features), "rewards": rewards, "loss": loss}


def engine(name):
    """Plain search; an episode offline; runs online; agents that correct; the regret of both bandit strategies."""
    world = uamcts.make("two_way")
    if name == "search":
        off = {"selection": False, "expansion": False, "simulation": False, "backpropagation": False}
        return searched(world, {f"gamma {g}": uamcts.SearchConfig(**SMALL, **off, gamma=g) for g in (1.0, 0.9)})
    if name == "graph":
        config = uamcts.SearchConfig(**SMALL, graph=True, gamma=0.9)
        return searched(uamcts.make("frozen_lake", p=0.7, model_p=0.7), {"graph": config})
    if name == "offline":
        config = search_config(world, "combined", iterations=4, rollouts=2, depth=5)
        score = jax.jit(jax.vmap(lambda key: play(key, world, config)))(jax.random.split(jax.random.key(0), 4))
        return {"reward": score.reward, "steps": score.steps, "ended": score.ended}
    if name == "online":
        runs = Runs(OnlineUnit.with_defaults("two_way", runs=2, steps=60, interval=20, minibatches=10))
        news = list(runs.advance())
        return {"tau": [n.tau for n in news], "loss": [n.loss for n in news],
                "reward": [np.sum(n.said.reward) for n in news]}  # fmt: skip
    if name == "agent":
        runs = AgentRuns(OnlineUnit.with_defaults("two_way_icy", "agent", runs=2, steps=60))
        (news,) = runs.advance()
        return {"reward": news.said.reward[:, ::10], "length": news.said.length[:, ::10],
                "values": [agent.last_plan.values for agent in runs.agents]}  # fmt: skip
    bandit = bernoulli([0.9, 0.5, 0.4], [0.6, 0.5, 0.4])
    both = {"ucb": ucb(jax.random.key(0), bandit, 200, 20), "ua_ucb": ua_ucb(jax.random.key(0), bandit, 200, 20)}
    return {label: regret.mean[::10] for label, regret in both.items()}
