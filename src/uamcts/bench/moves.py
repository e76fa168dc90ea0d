"""Moves in Breakout: our search and mctx with the same number of simulations and rollouts."""

from __future__ import annotations

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
from uamcts.mcts.simulate import Start, leaf_value, simulate
from uamcts.presets import search_config
from uamcts.randomness import seed_of
from uamcts.types import PyTree
from uamcts.uncertainty.true import true_uncertainty

Program = Callable[[jax.Array, PyTree], Any]


def our_move(domain: Domain, config: SearchConfig, batch: int, plain: bool) -> Program:
    """A compiled program that searches a move for each state of a batch: actions, visits and flags."""
    uncertainty = None if plain else true_uncertainty(domain)

    def move(key: jax.Array, state: PyTree) -> tuple:
        result = search(key, state, domain.model, uncertainty, config)
        return result.action, result.visits, result.flags

    return jax.jit(jax.vmap(move)) if batch > 1 else jax.jit(move)


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

    return jax.jit(move)


def time_program(program: Program, keys: jax.Array, states: PyTree, seconds: float) -> Timing:
    """How long one call of a program takes."""
    return time_calls(lambda number: jax.block_until_ready(program(keys, states)), seconds)


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
    """Milliseconds per Breakout move against the number of iterations, and the bytes of the tree."""
    domain = make("breakout")
    rows = []
    for iterations in (10, 30, 100, 300, 1000, 3000, 10000):
        config = search_config(domain, "combined", iterations=iterations)
        program = our_move(domain, config, 1, False)
        tree = jax.eval_shape(
            lambda key, state, config=config: search(key, state, domain.model, None, config).tree, *starts(domain, 1)
        )
        size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
        each, _ = time_program(program, *starts(domain, 1), seconds)
        rows.append({"iterations": iterations, "ms_per_move": 1e3 * each, "tree_bytes": size})
    return {"benchmark": "growth", "rows": rows}
