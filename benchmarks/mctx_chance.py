"""Random worlds beside mctx: `stochastic_muzero_policy` with our rollouts, and our searches, on the frozen lake.

    python benchmarks/mctx_chance.py [--simulations 100] [--p 0.7] [--keys 20]

Needs mctx, which is in the extra `bench`. All planners know the world, and search in every state with several keys in
one batch. That gives a policy, which is evaluated exactly over the 100 steps (see random_worlds.py).

A simulation of mctx makes one node, by turns an action's or an outcome's. It evaluates both kinds every time, since a
batch has to do both. "rollouts at outcomes": only outcomes are rolled out, and an action starts with the value 0, the
cheapest way. "rollouts everywhere": actions are rolled out from an outcome that is drawn. One iteration of ours makes
all actions of a state with all their outcomes. Times are the least of several, while the process has the core.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from graph_search import least_times

import uamcts
from uamcts.domains.exact import best_plan, evaluate, tabulate
from uamcts.mcts.api import no_uncertainty
from uamcts.mcts.problem import make_problem
from uamcts.mcts.simulate import Start, leaf_value, simulate
from uamcts.randomness import seed_of

GAMMA = 0.998


def ours(domain: Any, config: uamcts.SearchConfig) -> Callable:
    """Actions for keys [n] and states [n]."""

    def move(key: jax.Array, state: Any) -> jax.Array:
        return uamcts.search(key, state, domain.model, None, config).action

    return jax.jit(jax.vmap(move))


def theirs(domain: Any, config: uamcts.SearchConfig, everywhere: bool) -> Callable:
    """The same by mctx."""
    import mctx

    problem = make_problem(domain.model, no_uncertainty, domain.num_actions)

    def rollouts(key: jax.Array, state: Any, terminal: jax.Array) -> jax.Array:
        start = Start(seed_of(key), jnp.int32(0), state, terminal)
        return leaf_value(simulate(start, problem, config), config)

    def act(_: Any, key: jax.Array, actions: jax.Array, states: Any) -> tuple:
        def one(key: jax.Array, action: jax.Array, state: Any) -> tuple:
            after, probabilities = domain.model_outcomes(state, action)
            value = jnp.float32(0)
            if everywhere:
                luck, key = jax.random.split(key)
                slot = jax.random.choice(luck, probabilities.shape[0], p=probabilities)
                outcome = jax.tree.map(lambda leaf: leaf[slot], after)
                value = outcome.reward + GAMMA * rollouts(key, outcome.state, outcome.terminal)
            return mctx.DecisionRecurrentFnOutput(chance_logits=jnp.log(probabilities), afterstate_value=value), after

        return jax.vmap(one)(jax.random.split(key, actions.size), actions, states)

    def happen(_: Any, key: jax.Array, outcomes: jax.Array, after: Any) -> tuple:
        def one(key: jax.Array, slot: jax.Array, after: Any) -> tuple:
            outcome = jax.tree.map(lambda leaf: leaf[slot], after)
            value = rollouts(key, outcome.state, outcome.terminal)
            discount = jnp.where(outcome.terminal, 0.0, GAMMA)
            found = mctx.ChanceRecurrentFnOutput(
                action_logits=jnp.zeros(domain.num_actions), value=value, reward=outcome.reward, discount=discount
            )
            return found, outcome.state

        return jax.vmap(one)(jax.random.split(key, outcomes.size), outcomes, after)

    def move(keys: jax.Array, states: Any) -> jax.Array:
        count = keys.shape[0]
        root = mctx.RootFnOutput(
            prior_logits=jnp.zeros((count, domain.num_actions)), value=jnp.zeros(count), embedding=states
        )
        weights = mctx.stochastic_muzero_policy(
            (), keys[0], root, act, happen, num_simulations=config.iterations, dirichlet_fraction=0.0, temperature=0.0
        ).action_weights
        return jnp.argmax(weights, axis=-1)

    return jax.jit(move)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=100)
    parser.add_argument("--rollouts", type=int, default=10)
    parser.add_argument("--p", type=float, default=0.7)
    parser.add_argument("--keys", type=int, default=20, help="searches per state")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    domain = uamcts.make("frozen_lake", p=given.p, model_p=given.p)
    common: dict[str, Any] = {"rollouts": given.rollouts, "depth": 50, "gamma": GAMMA, "rules": "trust"}
    config = uamcts.SearchConfig(iterations=given.simulations, **common)
    twice = uamcts.SearchConfig(iterations=2 * given.simulations, **common)
    graph = uamcts.SearchConfig(iterations=given.simulations, graph=True, **common)
    planners = {
        "ours, tree": ours(domain, config),
        "ours, graph": ours(domain, graph),
        "mctx, rollouts at outcomes": theirs(domain, config, everywhere=False),
        "mctx, rollouts everywhere": theirs(domain, config, everywhere=True),
        "mctx, rollouts everywhere, twice the simulations": theirs(domain, twice, everywhere=True),
    }
    world, _, states = tabulate(domain)
    count, steps = len(world.legal), domain.time_limit
    keys = jax.random.split(jax.random.key(0), count * given.keys)
    batch = jax.tree.map(lambda leaf: jnp.repeat(leaf, given.keys, axis=0), states)
    programs = [lambda plan=plan: jax.block_until_ready(plan(keys, batch)) for plan in planners.values()]
    found = [np.asarray(program()).reshape(count, given.keys) for program in programs]
    clock = time.process_time if jax.default_backend() == "cpu" else time.perf_counter
    best = evaluate(world, best_plan(world, GAMMA).actions, GAMMA, steps)[0]
    print(f"lake 4x4, p {given.p}, {given.simulations} simulations, {count * given.keys} searches in a batch")
    print(f"{'':50}{'ms a move':>10}{'reward':>8}   (best stationary plan {best:.3f})")
    for name, actions, seconds in zip(planners, found, least_times(programs, given.repeats, clock), strict=True):
        policy = np.stack([np.mean(actions == action, axis=1) for action in range(domain.num_actions)], axis=1)
        reward = evaluate(world, policy, GAMMA, steps)[0]
        print(f"{name:50}{1e3 * seconds / keys.shape[0]:10.3f}{reward:8.3f}", flush=True)


if __name__ == "__main__":
    main()
