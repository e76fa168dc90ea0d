"""`rules="trust"`: what lies beyond a doubtful transition counts less, once.

doubtful(s, a) = U(s, a) > doubt_threshold
kept(s, a)     = 1 - rho where (s, a) is the first doubtful transition on the way from the root, else 1
P(V, kept)     = min(V, kept V + (1 - kept) V_min)   the worst case over a total-variation ball around the model
selection        x_i = r_i + gamma P(value(v_i), kept_i);  score_i <- score_i - penalty where kept_i < 1;
                 where all x_i are equal, and among children never visited, only the certain ones are looked at
simulation       g = r_1 + ... + gamma^(d-1) r_d + gamma^d P(return after step d, kept_d), d the first doubtful step;
                 the mean of g
backpropagation  value <- r(v) + gamma P(value, kept(v))
the move         of the most visited the one with the best value
V_min is `worst`, or the worst return of random rollouts from the root (`search.worst_return`), at most 0. It is an
estimate, so P takes the minimum: a transition never gains by being doubtful.
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


def pessimistic(value: jax.Array, kept: jax.Array, worst: Any) -> jax.Array:
    """P(V, kept): what a value is worth behind a transition of which `kept` is believed; never more than itself."""
    return jnp.minimum(value, kept * value + (1.0 - kept) * worst)


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
    doubted = jnp.cumsum(kept(uncertainty, config, config.simulation) < 1.0, axis=1)
    beyond = jnp.concatenate([jnp.zeros_like(doubted[:, :1]), doubted[:, :-1]], axis=1) > 0
    discount = jnp.power(config.gamma, jnp.arange(rewards.shape[1]))
    paid = discount * rewards
    # gamma^d: of the first step beyond doubt, or of the one after the last; 0 where there was no doubt.
    onward = jnp.max(jnp.where(doubted > 0, discount * config.gamma, 0.0), axis=1)
    before, after = (jnp.sum(jnp.where(part, paid, 0.0), axis=1) for part in (~beyond, beyond))
    return before + after_doubt(after, onward, config)


def after_doubt(returned: jax.Array, discount: jax.Array, config: SearchConfig) -> jax.Array:
    """What counts of the discounted return after a rollout's first doubtful step; `discount` is 0 without doubt."""
    share = jnp.where(discount > 0, 1.0 - config.rho, 1.0)
    return pessimistic(returned, share, discount * config.v_min)
