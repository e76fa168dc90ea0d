"""Policy iteration: the values of the policy that is best by the present values, without sweeping for long.

Of the action that is best in a row, V = b + w V' is linear in the values V' of the rows it leads to. In a deterministic
model there is one of them, and doubling (V = b + w b' + w w' V'', and so on) looks 2^20 steps ahead in 20 rounds.
Otherwise the equations are solved by BiCGSTAB (van der Vorst, 1992); a solution that is not one is left out.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.graph.equations import Equations, add_up, take, values_below, worths

DOUBLINGS = 20
MOST_ROUNDS = 200
ACCURACY = 1e-6
"""By how much, relative to where it started, BiCGSTAB reduces the residual."""
USEFUL = 0.1
"""A solution whose residual is not below this, relative to the start, is left out."""


class _Linear(NamedTuple):
    """V = constant + sum of weight * V[onward], over [rows] and [rows, slots]."""

    constant: Float[Array, " rows"]
    weight: Float[Array, "rows slots"]
    onward: Int[Array, "rows slots"]


def solve(equations: Equations, now: jax.Array, wanted: jax.Array, config: SearchConfig) -> jax.Array:
    """The values [rows] of the policy that is best by the values `now`, solved for; `now` if that is not `wanted`."""
    linear = _best_policy(equations, now, config)
    slots = equations.onward.shape[-1]
    solution = _double(linear, wanted) if slots == 1 else _correct(linear, now, wanted)
    return jnp.where(wanted & jnp.all(jnp.isfinite(solution)), solution, now)


def _best_policy(equations: Equations, now: jax.Array, config: SearchConfig) -> _Linear:
    below = values_below(equations, now)
    found, slope = jax.jvp(lambda values: worths(equations, values, config), (below,), (jnp.ones_like(below),))
    quality = jnp.where(equations.exists, add_up(equations.probability * found), -jnp.inf)
    best = jnp.argmax(quality, axis=1)[:, None, None]
    total, weight, onward, inside = (
        jnp.take_along_axis(part, best, axis=1)[:, 0]
        for part in (
            equations.probability * found,
            equations.probability * slope,
            equations.onward,
            equations.inside,
        )
    )
    weight = jnp.where(inside, weight, 0.0)  # where no action exists the probabilities are 0
    constant = add_up(total - weight * take(now, onward))
    return _Linear(jnp.where(jnp.any(equations.exists, axis=1), constant, 0.0), weight, onward)


def _double(linear: _Linear, wanted: jax.Array) -> jax.Array:
    def step(_: jax.Array, carry: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        constant, weight, onward = carry
        return constant + weight * take(constant, onward), weight * take(weight, onward), take(onward, onward)

    start = (linear.constant, linear.weight[:, 0], linear.onward[:, 0])
    return cast(jax.Array, jax.lax.fori_loop(0, jnp.where(wanted, DOUBLINGS, 0), step, start)[0])


class _Krylov(NamedTuple):
    round: jax.Array
    solution: jax.Array
    residual: jax.Array
    direction: jax.Array
    product: jax.Array


def _correct(linear: _Linear, now: jax.Array, wanted: jax.Array) -> jax.Array:
    """`now` plus the solution of the equations for what is missing."""

    def apply(numbers: jax.Array) -> jax.Array:
        return numbers - add_up(linear.weight * take(numbers, linear.onward))

    missing = linear.constant - apply(now)
    largest = jnp.max(jnp.abs(missing))
    shadow = missing / jnp.where(largest > 0, largest, 1.0)

    def active(krylov: _Krylov) -> jax.Array:
        return (krylov.round < MOST_ROUNDS) & wanted & (jnp.max(jnp.abs(krylov.residual)) > ACCURACY)

    def step(krylov: _Krylov) -> _Krylov:
        through = apply(krylov.direction)
        alpha = krylov.product / jnp.vdot(shadow, through)
        half = krylov.residual - alpha * through
        again = apply(half)
        omega = jnp.vdot(again, half) / jnp.maximum(jnp.vdot(again, again), 1e-30)
        residual = half - omega * again
        product = jnp.vdot(shadow, residual)
        beta = product / krylov.product * alpha / omega
        direction = residual + beta * (krylov.direction - omega * through)
        solution = krylov.solution + alpha * krylov.direction + omega * half
        return _Krylov(krylov.round + 1, solution, residual, direction, product)

    begin = _Krylov(jnp.int32(0), jnp.zeros_like(shadow), shadow, shadow, jnp.vdot(shadow, shadow))
    end = jax.lax.while_loop(active, step, begin)
    solved = jnp.max(jnp.abs(shadow - apply(end.solution))) < USEFUL
    return now + jnp.where(solved, end.solution * largest, 0.0)
