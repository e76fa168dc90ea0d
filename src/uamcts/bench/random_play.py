"""Random play: how many steps a second the games give, beside gymnax's versions of the same three."""

from __future__ import annotations

import importlib.metadata
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from rich.table import Table

from uamcts.domains import DOMAINS, make
from uamcts.randomness import ROLLOUT, below, draw, following, seed_of

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
            after = domain.world(state, below(following(stream, t), domain.num_actions))
            return (after.state, total + after.reward), None

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


def measure(lanes: int, steps: int, seconds: float) -> dict[str, Any]:
    """Steps a second in every domain, gymnax's where it has the game and is installed, and the ratio."""
    try:
        version: str | None = importlib.metadata.version("gymnax")
    except importlib.metadata.PackageNotFoundError:
        version = None
    rows = []
    for name in DOMAINS:
        speed, compiled = rate(ours(name, lanes, steps), lanes * steps, seconds)
        row: dict[str, Any] = {"domain": name, "steps_per_second": speed, "compile_seconds": compiled}
        if version is not None and name in PEERS:
            row["gymnax_steps_per_second"], _ = rate(gymnax_play(name, lanes, steps), lanes * steps, seconds)
            row["ratio"] = speed / row["gymnax_steps_per_second"]
        rows.append(row)
    device = jax.devices()[0]
    return {
        "benchmark": "random_play",
        "lanes": lanes,
        "steps": steps,
        "device": f"{device.platform} ({device.device_kind}), one core",
        "versions": {"jax": jax.__version__, "gymnax": version},
        "rows": rows,
    }


def table(result: dict[str, Any]) -> Table:
    """The result for a terminal."""
    title = f"random play, {result['lanes']} games x {result['steps']} steps, {result['device']}"
    table = Table(title=title, title_justify="left")
    for column in ("domain", "million steps/s", "gymnax", "ratio", "compiled in"):
        table.add_column(column, justify="left" if column == "domain" else "right")
    for row in result["rows"]:
        peer = f"{row['gymnax_steps_per_second'] / 1e6:.2f}" if "ratio" in row else "-"
        ratio = f"{row['ratio']:.0f}x" if "ratio" in row else "-"
        speed = f"{row['steps_per_second'] / 1e6:.1f}"
        table.add_row(row["domain"], speed, peer, ratio, f"{row['compile_seconds']:.2f} s")
    if result["versions"]["gymnax"] is None:
        table.caption = "gymnax is not installed: pip install 'uamcts[bench]' for the comparison"
    return table
