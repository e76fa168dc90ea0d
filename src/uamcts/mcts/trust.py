"""`rules="trust"`: what lies beyond a doubtful transition counts less, and nothing else changes.

doubtful(s, a) = U(s, a) > doubt_threshold
kept(s, a)     = 1 - rho where doubtful, else 1
selection        x_i = r_i + kept_i value(v_i) + (1 - kept_i) worst;  score_i <- score_i - penalty where doubtful;
                 where all x_i are equal, and among children never visited, only the certain ones are looked at
simulation       g = sum_k gamma^(k-1) [prod over j < k of kept(s_j, a_j)] (r_k + gamma (1 - kept(s_k, a_k)) worst);
                 the mean of g
backpropagation  value <- r(v) + gamma (kept(v) value + (1 - kept(v)) worst)
Everything else is plain MCTS as released: no child is deleted, and tau is not used. docs/trust.md says why.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from uamcts.mcts.tree import fold
from uamcts.types import SearchConfig


def doubtful(uncertainty: jax.Array, config: SearchConfig) -> jax.Array:
    """Where the model is not believed."""
    return uncertainty > config.doubt_threshold


def kept(uncertainty: jax.Array, config: SearchConfig, switch: Any) -> jax.Array:
    """What is left of the worth of everything after a transition; 1 where the phase's `switch` is off."""
    return jnp.where(switch & doubtful(uncertainty, config), 1.0 - config.rho, 1.0)


def lowered(uncertainty: jax.Array, config: SearchConfig) -> jax.Array:
    """What is taken from a child's score."""
    return jnp.where(config.selection & doubtful(uncertainty, config), config.penalty, 0.0)


def certain(candidates: jax.Array, penalty: jax.Array) -> jax.Array:
    """Those of the `candidates` with the least penalty: the certain ones, or all. Conditions [actions]."""
    return candidates & (penalty == fold(jnp.minimum, jnp.where(candidates, penalty, jnp.inf)))


def looked_at(exists: jax.Array, values: jax.Array, penalty: jax.Array) -> jax.Array:
    """The siblings that selection chooses among: where their values are all equal, the certain ones."""
    low = fold(jnp.minimum, jnp.where(exists, values, jnp.inf))
    equal = low == fold(jnp.maximum, jnp.where(exists, values, -jnp.inf))
    return exists & (~equal | certain(exists, penalty))


def returns(rewards: jax.Array, uncertainty: jax.Array, config: SearchConfig) -> jax.Array:
    """g of each rollout, [rollouts], out of rewards and uncertainties [rollouts, depth], both 0 after its end."""
    left = kept(uncertainty, config, config.simulation)
    weights = jnp.cumprod(config.gamma * left, axis=1)
    weights = jnp.concatenate([jnp.ones_like(weights[:, :1]), weights[:, :-1]], axis=1)
    return jnp.sum(weights * (rewards + config.gamma * (1.0 - left) * config.v_min), axis=1)
