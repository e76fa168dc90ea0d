"""Random play: steps per second in every domain, compared with gymnax's versions of the three games."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from uamcts.bench.timing import Timing, time_calls
from uamcts.domains import DOMAINS, make
from uamcts.randomness import ROLLOUT, draw, randint, seed_of, stream_word

PEERS = {
    "space_invaders": "SpaceInvaders-MinAtar",
    "freeway": "Freeway-MinAtar",
    "breakout": "Breakout-MinAtar",
}


def our_play(name: str, batch: int, steps: int) -> Callable[[jax.Array], Any]:
    """A compiled program that plays a batch of games from their starts, `steps` random steps each."""
    domain = make(name)

    def game(key: jax.Array, index: jax.Array) -> Any:
        stream = draw(seed_of(jax.random.fold_in(key, 1)), ROLLOUT, index)

        def step(carry, t):
            state, total = carry
            drawn_with = (jax.random.fold_in(step_key, t),) if domain.random else ()
            after = domain.world(state, randint(stream_word(stream, t), domain.num_actions), *drawn_with)
            return (after.state, total + after.reward), None

        step_key = jax.random.fold_in(jax.random.fold_in(key, 2), index)
        start = (domain.reset(jax.random.fold_in(key, index)), jnp.float32(0))
        return jax.lax.scan(step, start, jnp.arange(steps, dtype=jnp.uint32))[0]

    indices = jnp.arange(batch, dtype=jnp.uint32)
    return jax.jit(lambda key: jax.vmap(game, (None, 0))(key, indices))


def gymnax_play(name: str, batch: int, steps: int) -> Callable[[jax.Array], Any]:
    """The same in gymnax, with its raw `step_env` and its own sampling of actions."""
    import gymnax

    environment, parameters = gymnax.make(PEERS[name])
    space = environment.action_space(parameters)

    def game(key: jax.Array) -> Any:
        def step(carry, key):
            state, total = carry
            action_key, step_key = jax.random.split(key)
            _, state, reward, *_ = environment.step_env(step_key, state, space.sample(action_key), parameters)
            return (state, total + reward), None

        state = environment.reset_env(key, parameters)[1]
        return jax.lax.scan(step, (state, jnp.float32(0)), jax.random.split(key, steps))[0]

    return jax.jit(lambda key: jax.vmap(game)(jax.random.split(key, batch)))


def measure(batch: int, steps: int, seconds: float, peers: bool) -> dict[str, Any]:
    """Steps per second in every domain; with `peers` also gymnax's where it has the game, and the ratio."""
    rows = []
    for name in DOMAINS:
        ours = _time(our_play(name, batch, steps), seconds)
        speed = batch * steps / ours.seconds
        row: dict[str, Any] = {"domain": name, "steps_per_second": speed, "first_call_seconds": ours.first}
        if peers and name in PEERS:
            theirs = _time(gymnax_play(name, batch, steps), seconds)
            row["gymnax_steps_per_second"] = batch * steps / theirs.seconds
            row["times as fast as gymnax"] = theirs.seconds / ours.seconds
        rows.append(row)
    return {"benchmark": "random_play", "batch": batch, "steps": steps, "rows": rows}


def _time(program: Callable[[jax.Array], Any], seconds: float) -> Timing:
    return time_calls(lambda number: jax.block_until_ready(program(jax.random.key(number % 8))), seconds)
