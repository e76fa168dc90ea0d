"""`rules="trust"`: what lies beyond a doubtful transition counts less, once.

doubtful(s, a) = U(s, a) > doubt_threshold
kept(s, a)     = 1 - rho where (s, a) is the first doubtful transition on the way from the root, else 1
selection        x_i = r_i + kept_i value(v_i) + (1 - kept_i) worst;  score_i <- score_i - penalty where kept_i < 1;
                 where all x_i are equal, and among children never visited, only the certain ones are looked at
simulation       g = sum_k gamma^(k-1) [prod over j < k of kept(s_j, a_j)] (r_k + gamma (1 - kept(s_k, a_k)) worst);
                 the mean of g
backpropagation  value <- r(v) + gamma (kept(v) value + (1 - kept(v)) worst)
the move         of the most visited the one with the best value
Below a transition that counts less, and everywhere else, this is plain MCTS as released: no child is deleted, and tau
is not used. Where UA-Backpropagation is off, or rho is 0, nothing counts less, and the penalty is for every doubtful
child. docs/trust.md says why.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from uamcts.mcts.tree import Tree, fold
from uamcts.types import SearchConfig

if TYPE_CHECKING:
    from uamcts.mcts.select import Path


def doubtful(uncertainty: jax.Array, config: SearchConfig) -> jax.Array:
    """Where the model is not believed."""
    return uncertainty > config.threshold


def kept(uncertainty: jax.Array, config: SearchConfig, switch: Any) -> jax.Array:
    """What is left of the worth of everything after a transition; 1 where the phase's `switch` is off."""
    return jnp.where(switch & doubtful(uncertainty, config), 1.0 - config.rho, 1.0)


def counts_less(share: jax.Array) -> jax.Array:
    """Whether a node's `share` says that the transition into it was not believed."""
    return share < 1.0


def on_the_way(tree: Tree, path: Path) -> jax.Array:
    """Whether any transition of a path was not believed."""
    return jnp.any(counts_less(tree.share.reshape(-1).at[path.nodes].get(mode="fill", fill_value=1.0)))


def below(config: SearchConfig, doubted: jax.Array) -> SearchConfig:
    """The settings below a transition: if that was `doubted`, what follows is worth less once, not again and again."""
    rho, penalty = (jnp.where(doubted, 0.0, number) for number in (config.rho, config.penalty))
    return replace(config, rho=rho, penalty=penalty)


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
    after = jax.lax.cummin(kept(uncertainty, config, config.simulation), axis=1)
    before = jnp.concatenate([jnp.ones_like(after[:, :1]), after[:, :-1]], axis=1)
    discount = jnp.power(config.gamma, jnp.arange(rewards.shape[1]))
    return jnp.sum(discount * (before * rewards + config.gamma * (before - after) * config.v_min), axis=1)
