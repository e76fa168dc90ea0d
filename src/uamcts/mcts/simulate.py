"""Simulation: random rollouts from a leaf, and what they are worth.

g_i     = sum_k gamma^(k-1) r_k                            return of rollout i
sigma_i = sum_k gamma^(k-1) U(s_k, a_k)                    its uncertainty, s_k the state before the step
plain:          G = mean of g
UA-Simulation:  G = sum_i softmax(-sigma / tau)_i g_i
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from uamcts.mcts.lanes import lockstep
from uamcts.mcts.tree import softmax
from uamcts.randomness import ROLLOUT, below, draw, following, pick
from uamcts.types import Legal, Model, PyTree, SearchConfig, Uncertainty


class Rollouts(NamedTuple):
    """Returns and uncertainties of the rollouts, [rollouts] each."""

    returns: jax.Array
    uncertainty: jax.Array


class Rollout(NamedTuple):
    """One rollout on its way."""

    stream: jax.Array
    """The word its random actions come from."""
    state: PyTree
    over: jax.Array
    returned: jax.Array
    doubt: jax.Array | None
    discount: jax.Array | None


def simulate(
    seed: jax.Array,
    index: jax.Array,
    state: PyTree,
    terminal: jax.Array,
    model: Model,
    uncertainty: Uncertainty,
    legal: Legal | None,
    num_actions: int,
    config: SearchConfig,
) -> Rollouts:
    """Rolls out from `state`, at most `config.depth` steps each; `index` numbers the simulations of a search.

    A rollout in a state without legal actions is over. One that is over goes on in place: its state absorbs, its
    reward is 0, and its uncertainty is not counted.
    """
    numbers = index * config.rollouts + jnp.arange(config.rollouts, dtype=jnp.int32)

    # What is known before the program is built to be of no effect is left out of it.
    discounted = not (isinstance(config.gamma, (int, float)) and config.gamma == 1)
    doubted = config.simulation is not False

    def step(k: jax.Array, rollout: Rollout) -> Rollout:
        state, over, doubt, discount = rollout.state, rollout.over, rollout.doubt, rollout.discount
        bits = following(rollout.stream, k)
        if legal is None:
            action = below(bits, num_actions)
        else:
            allowed = legal(state)
            action, over = pick(bits, allowed), over | ~jnp.any(allowed)
        after = model(state, action)
        count = 1.0 if discount is None else discount
        if doubt is not None:
            doubt = doubt + jnp.where(over, 0.0, count * checked(uncertainty(state, action)))
        return Rollout(
            stream=rollout.stream,
            state=after.state,
            over=over | after.terminal,
            returned=rollout.returned + jnp.where(over, 0.0, count * after.reward),
            doubt=doubt,
            discount=None if discount is None else discount * config.gamma,
        )

    one, zero = jnp.ones((), float), jnp.zeros((), float)
    start = Rollout(zero, state, terminal, zero, zero if doubted else None, one if discounted else None)
    lanes = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (config.rollouts, *jnp.shape(leaf))), start)
    end = lockstep(
        step, lambda rollout: rollout.over, config.depth, lanes._replace(stream=draw(seed, ROLLOUT, numbers))
    )
    return Rollouts(end.returned, end.doubt if doubted else jnp.zeros_like(end.returned))


def checked(doubt: jax.Array) -> jax.Array:
    """An uncertainty, NaN where it is negative or not finite: NaN travels into the sums, and from there into a flag."""
    return jnp.where((doubt >= 0) & (doubt < jnp.inf), doubt, jnp.nan)


def value(rollouts: Rollouts, config: SearchConfig) -> jax.Array:
    """G, the value of the leaf the rollouts started from."""
    everywhere = jnp.ones(config.rollouts, bool)
    weights = softmax(-rollouts.uncertainty, everywhere, config.tau)
    return jnp.where(config.simulation, jnp.sum(weights * rollouts.returns), jnp.mean(rollouts.returns))
