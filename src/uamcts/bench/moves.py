"""Moves in Breakout: our search and mctx with the same number of simulations and rollouts."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from uamcts.bench.timing import Timing, time_calls
from uamcts.domains import make
from uamcts.domains.base import Domain
from uamcts.mcts.api import no_uncertainty, search
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.problem import Problem
from uamcts.mcts.rollout import Start
from uamcts.mcts.simulate import leaf_value, simulate
from uamcts.presets import search_config
from uamcts.randomness import seed_of
from uamcts.runtime.alone import jit_alone
from uamcts.types import Model, PyTree, Transition
from uamcts.uncertainty.true import true_uncertainty

Program = Callable[[jax.Array, PyTree], Any]


def our_move(domain: Domain, config: SearchConfig, batch: int, plain: bool) -> Program:
    """A compiled program that searches a move for each state of a batch: actions, visits and flags."""
    uncertainty = None if plain else true_uncertainty(domain)

    def move(key: jax.Array, state: PyTree) -> tuple:
        result = search(key, state, domain.model, uncertainty, config)
        return result.action, result.visits, result.flags

    return jax.jit(jax.vmap(move)) if batch > 1 else jit_alone(move)


def mctx_move(domain: Domain, config: SearchConfig, batch: int, our_rollouts: bool) -> Program:
    """The same in mctx, with as many simulations and rollouts. `recurrent_fn` uses our rollouts, or typical ones."""
    import mctx

    def rollout_value(key: jax.Array, state: PyTree, terminal: jax.Array) -> jax.Array:
        if our_rollouts:
            problem = Problem(domain.model, no_uncertainty, domain.num_actions)
            start = Start(seed_of(key), jnp.int32(0), state, terminal)
            return leaf_value(simulate(start, problem, config), config)

        def rollout(key: jax.Array) -> jax.Array:
            def step(carry: tuple, action: jax.Array) -> tuple:
                state, total = carry
                after = domain.model(state, action)
                return (after.state, total + after.reward), None

            actions = jax.random.randint(key, (config.depth,), 0, domain.num_actions)
            return jax.lax.scan(step, (state, jnp.float32(0)), actions)[0][1]

        return jnp.mean(jax.vmap(rollout)(jax.random.split(key, config.rollouts)))

    def recurrent(_: object, key: jax.Array, actions: jax.Array, states: PyTree) -> tuple:
        def one(key: jax.Array, action: jax.Array, state: PyTree) -> tuple:
            after = domain.model(state, action)
            output = mctx.RecurrentFnOutput(
                reward=after.reward,
                discount=jnp.where(after.terminal, 0.0, 1.0),
                prior_logits=jnp.zeros(domain.num_actions),
                value=rollout_value(key, after.state, after.terminal),
            )
            return output, after.state

        return jax.vmap(one)(jax.random.split(key, batch), actions, states)

    def move(keys: jax.Array, states: PyTree) -> jax.Array:
        if batch == 1:
            keys, states = keys[None], jax.tree.map(lambda leaf: leaf[None], states)
        root = mctx.RootFnOutput(
            prior_logits=jnp.zeros((batch, domain.num_actions)), value=jnp.zeros(batch), embedding=states
        )
        return mctx.muzero_policy(
            params=(), rng_key=keys[0], root=root, recurrent_fn=recurrent, num_simulations=config.iterations,
            dirichlet_fraction=0.0, temperature=0.0,
        ).action_weights  # fmt: skip

    return jax.jit(move) if batch > 1 else jit_alone(move)


def time_program(program: Program, keys: jax.Array, states: PyTree, seconds: float) -> Timing:
    """How long one call of a program takes. On one core, only the time counts in which this process had it."""
    alone = jax.default_backend() == "cpu" and os.environ.get("PJRT_NPROC") == "1"
    clock = time.process_time if alone else time.perf_counter
    return time_calls(lambda number: jax.block_until_ready(program(keys, states)), seconds, clock)


def starts(domain: Domain, batch: int) -> tuple[jax.Array, PyTree]:
    """Keys and start states of a batch of games; without the batch axis for a single one."""
    keys = jax.random.split(jax.random.key(0), batch)
    states = jax.vmap(domain.reset)(keys)
    return (keys, states) if batch > 1 else (keys[0], jax.tree.map(lambda leaf: leaf[0], states))


def measure(batches: list[int], seconds: float, peers: bool) -> dict[str, Any]:
    """Milliseconds per move for each batch size; with `peers` also mctx's, and the ratios."""
    domain = make("breakout")
    plain, combined = search_config(domain, "corrupted"), search_config(domain, "combined")
    rows = []
    for count in batches:
        keys, states = starts(domain, count)
        programs = {"plain": our_move(domain, plain, count, True), "combined": our_move(domain, combined, count, False)}
        if peers:
            programs["mctx"] = mctx_move(domain, plain, count, our_rollouts=False)
            programs["mctx with our rollouts"] = mctx_move(domain, plain, count, our_rollouts=True)
        times = {name: time_program(program, keys, states, seconds) for name, program in programs.items()}
        for name, (each, first) in times.items():
            row = {"batch": count, "search": name, "ms_per_move": 1e3 * each / count, "first_call_seconds": first}
            row["rollout_steps_per_second"] = count * plain.iterations * plain.rollouts * plain.depth / each
            for peer in ("mctx", "mctx with our rollouts"):
                if peer in times and peer != name:
                    row[f"times as fast as {peer}"] = times[peer][0] / each
            rows.append(row)
    return {"benchmark": "moves", "iterations": 100, "rollouts": 10, "depth": 50, "rows": rows}


def measure_rollouts(names: list[str], batch: int, seconds: float) -> dict[str, Any]:
    """Model steps with their uncertainty per second, in a batch of rollouts of 50 steps from the start."""
    rows = []
    for name in names:
        domain = make(name)
        config = SearchConfig(rollouts=batch, depth=50)
        problem = Problem(domain.model, true_uncertainty(domain), domain.num_actions)

        def program(key: jax.Array, state: PyTree, problem: Problem = problem, config: SearchConfig = config) -> tuple:
            found = simulate(Start(seed_of(key), jnp.int32(0), state, jnp.bool_(False)), problem, config)
            return jnp.sum(found.returns), jnp.sum(found.uncertainty)

        each, first = time_program(jax.jit(program), *starts(domain, 1), seconds)
        rows.append(
            {"domain": name, "batch": batch, "steps_per_second": batch * 50 / each, "first_call_seconds": first}
        )
    return {"benchmark": "rollouts", "rows": rows}


def measure_growth(seconds: float) -> dict[str, Any]:
    """Milliseconds per move and the bytes of the tree against iterations, actions and the bytes of a state.

    Iterations in Breakout, with plain MCTS and with all four phases; actions and bytes in a walk through numbers, with
    plain MCTS of 1,000 iterations, and actions on a graph with 200.
    """
    domain, rows = make("breakout"), []
    for iterations in (10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000):
        for name in ("corrupted", "combined"):
            config = search_config(domain, name, iterations=iterations)
            program = our_move(domain, config, 1, name == "corrupted")
            cost = _cost(program, domain.model, domain.num_actions, config, *starts(domain, 1), seconds)
            rows.append({"search": "plain" if name == "corrupted" else name, "iterations": iterations, **cost})
    tree = search_config(domain, "corrupted", iterations=1000)
    graph = SearchConfig(rules="trust", graph=True, iterations=200, rollouts=1, depth=10, gamma=0.99)
    sizes = [(tree, actions, size) for actions, size in ((10, 1), (100, 1), (1000, 1), (10, 32), (10, 256))]
    for config, actions, size in [*sizes, *((graph, actions, 1) for actions in (10, 100, 1000))]:

        def program(key: jax.Array, state: PyTree, config: SearchConfig = config, actions: int = actions) -> tuple:
            result = search(key, state, _walk, None, config, num_actions=actions)
            return result.action, result.visits

        start = (jax.random.key(0), jnp.arange(size, dtype=jnp.int32))
        cost = _cost(jit_alone(program), _walk, actions, config, *start, seconds)
        name = "walk on a graph" if config.graph else "walk"
        made = {"iterations": config.iterations, "actions": actions, "state_bytes": 4 * size}
        rows.append({"search": name, **made, **cost})
    return {"benchmark": "growth", "rows": rows}


def _walk(state: jax.Array, action: jax.Array) -> Transition:
    """A step in a world of any number of actions, with states of any size."""
    state = (state * 31 + action * 7 + 1) % 10007
    return Transition(state, jnp.where(state[0] % 13 == 0, 1.0, 0.0), state[0] % 97 == 0)


def _call(program: Program, key: jax.Array, state: PyTree, number: int) -> None:
    del number
    jax.block_until_ready(program(key, state))


def _cost(
    program: Program,
    model: Model,
    actions: int,
    config: SearchConfig,
    key: jax.Array,
    state: PyTree,
    seconds: float,
) -> dict[str, float]:
    """What a search costs: milliseconds, the seconds of its first call and the bytes of its tree."""
    tree = jax.eval_shape(
        lambda key, state: search(key, state, model, None, config, num_actions=actions).tree, key, state
    )
    call = functools.partial(_call, program, key, state)
    each, first = time_calls(call, seconds, time.process_time)
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
    return {"ms_per_move": 1e3 * each, "first_call_seconds": first, "tree_bytes": size}
