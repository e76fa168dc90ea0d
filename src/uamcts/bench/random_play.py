"""Random play: how many steps a second the games give, beside gymnax's versions of the same three."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from uamcts.domains import DOMAINS, make
from uamcts.randomness import ROLLOUT, draw, randint, seed_of, stream_word

PEERS = {
    "space_invaders": "SpaceInvaders-MinAtar",
    "freeway": "Freeway-MinAtar",
    "breakout": "Breakout-MinAtar",
}
REPEATS = 5


def ours(name: str, lanes: int, steps: int) -> Callable[[jax.Array], Any]:
    """A compiled program: `lanes` games from their starts, `steps` random steps each, the rewards' sums."""
    domain = make(name)

    def game(key: jax.Array, lane: jax.Array) -> Any:
        stream = draw(seed_of(jax.random.fold_in(key, 1)), ROLLOUT, lane)

        def step(carry, t):
            state, total = carry
            drawn_with = (jax.random.fold_in(lane_key, t),) if domain.random else ()
            after = domain.world(state, randint(stream_word(stream, t), domain.num_actions), *drawn_with)
            return (after.state, total + after.reward), None

        lane_key = jax.random.fold_in(jax.random.fold_in(key, 2), lane)
        start = (domain.reset(jax.random.fold_in(key, lane)), jnp.float32(0))
        return jax.lax.scan(step, start, jnp.arange(steps, dtype=jnp.uint32))[0]

    lane = jnp.arange(lanes, dtype=jnp.uint32)
    return jax.jit(lambda key: jax.vmap(game, (None, 0))(key, lane))


def gymnax_play(name: str, lanes: int, steps: int) -> Callable[[jax.Array], Any]:
    """The same in gymnax: its raw `step_env` and its own sampling of actions."""
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

    return jax.jit(lambda key: jax.vmap(game)(jax.random.split(key, lanes)))


def rate(program: Callable[[jax.Array], Any], work: int, seconds: float) -> tuple[float, float]:
    """Steps a second, the median of several stretches of time, and the seconds the compilation took."""
    start = time.perf_counter()
    jax.block_until_ready(program(jax.random.key(0)))
    compiled = time.perf_counter() - start
    rates = []
    for repeat in range(REPEATS):
        start, runs = time.perf_counter(), 0
        while time.perf_counter() - start < seconds / REPEATS:
            jax.block_until_ready(program(jax.random.key(repeat)))
            runs += 1
        rates.append(work * runs / (time.perf_counter() - start))
    return statistics.median(rates), compiled


def measure(lanes: int, steps: int, seconds: float, peers: bool) -> dict[str, Any]:
    """Steps a second in every domain, gymnax's where it has the game and is installed, and the ratio."""
    rows = []
    for name in DOMAINS:
        speed, compiled = rate(ours(name, lanes, steps), lanes * steps, seconds)
        row: dict[str, Any] = {"domain": name, "steps_per_second": speed, "first_call_seconds": compiled}
        if peers and name in PEERS:
            row["gymnax_steps_per_second"], _ = rate(gymnax_play(name, lanes, steps), lanes * steps, seconds)
            row["times as fast as gymnax"] = speed / row["gymnax_steps_per_second"]
        rows.append(row)
    return {"benchmark": "random_play", "lanes": lanes, "steps": steps, "rows": rows}
