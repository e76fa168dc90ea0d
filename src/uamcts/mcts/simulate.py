"""Simulation: random rollouts from a leaf, and what they are worth.

g_i     = sum_k gamma^(k-1) r_k                            return of rollout i
sigma_i = sum_k gamma^(k-1) U(s_k, a_k)                    its uncertainty, s_k the state before the step
plain:          G = mean of g
UA-Simulation:  G = sum_i softmax(-sigma / tau)_i g_i
trust:          G = mean of g, less of it after a rollout's first doubtful step (trust.py)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from uamcts.mcts import trust
from uamcts.mcts.lanes import recorded
from uamcts.mcts.tree import softmax
from uamcts.randomness import ROLLOUT, below, draw, following, pick
from uamcts.types import BatchedUncertainty, Legal, Model, PyTree, SearchConfig, Uncertainty


class Rollouts(NamedTuple):
    """Returns and uncertainties of the rollouts, [rollouts] each."""

    returns: jax.Array
    uncertainty: jax.Array
    memory: PyTree = None
    """What the uncertainty remembers after it was asked."""


class Rollout(NamedTuple):
    """One rollout on its way."""

    stream: jax.Array
    """The word its random actions come from."""
    state: PyTree
    over: jax.Array
    returned: jax.Array
    doubt: Any
    discount: jax.Array | None
    beyond: Any
    """trust: the return after the first doubtful step, which is not part of `returned`."""
    onward: Any
    """trust: the discount of the step after that, 0 before it."""


def simulate(
    seed: jax.Array,
    index: jax.Array,
    state: PyTree,
    terminal: jax.Array,
    model: Model,
    uncertainty: Uncertainty | BatchedUncertainty,
    legal: Legal | None,
    num_actions: int,
    config: SearchConfig,
    *,
    memory: PyTree = None,
) -> Rollouts:
    """Rolls out from `state`, at most `config.depth` steps each; `index` numbers the simulations of a search.

    A rollout in a state without legal actions is over. One that is over goes on in place: its state absorbs, its
    reward is 0, and its uncertainty is not counted. An uncertainty that is better asked for many transitions at once
    is asked after the last step, for all that were met.
    """
    parts = (seed, index, state, terminal, model, legal, num_actions, config)
    if config.simulation is False:  # known before the program is built: it leaves the uncertainty out
        return Rollouts(rolled(*parts)[0].returned, jnp.zeros(config.rollouts, float), memory)
    if not isinstance(uncertainty, BatchedUncertainty):
        end, _ = rolled(*parts, doubt=uncertainty)
        return Rollouts(end.returned, end.doubt, memory)

    if memory is None:
        end, met = rolled(*parts, records=True)
        found, memory = summed(met, uncertainty, config, memory)
        return Rollouts(*_as_returned(end.returned, found), memory)

    def remembered(state: PyTree, action: jax.Array) -> jax.Array:
        found, known = uncertainty.glance(memory, state, action)
        return jnp.where(known, found, jnp.nan)

    end, _ = rolled(*parts, doubt=remembered)

    def ask(carry: tuple) -> tuple:
        _, _, memory = carry
        _, met = rolled(*parts, records=True)
        return jnp.bool_(False), *summed(met, uncertainty, config, memory)

    # A loop of at most one round: unlike a condition's, its results take the place of what it was given.
    first: Any = (end.returned, end.doubt) if config.rules == "trust" else end.doubt
    start = (jnp.any(jnp.isnan(end.doubt)), first, memory)
    _, found, memory = jax.lax.while_loop(lambda carry: carry[0], ask, start)
    return Rollouts(*_as_returned(end.returned, found), memory)


def _as_returned(returned: jax.Array, found: Any) -> tuple[jax.Array, jax.Array]:
    """Returns and uncertainties of the rollouts; `found` has new returns where the uncertainties change them."""
    return found if isinstance(found, tuple) else (returned, found)


def rolled(
    seed: jax.Array,
    index: jax.Array,
    state: PyTree,
    terminal: jax.Array,
    model: Model,
    legal: Legal | None,
    num_actions: int,
    config: SearchConfig,
    doubt: Uncertainty | None = None,
    records: bool = False,
) -> tuple[Rollout, tuple]:
    """The rollouts at their ends, and, if asked for, the states, actions and whether they count, [rollouts, depth].

    Under the trust rules their rewards too.
    """
    numbers = index * config.rollouts + jnp.arange(config.rollouts, dtype=jnp.int32)
    trusting = config.rules == "trust"
    weighed = trusting and doubt is not None
    discounted = not (isinstance(config.gamma, (int, float)) and config.gamma == 1)

    def step(k: jax.Array, rollout: Rollout) -> tuple[Rollout, tuple]:
        state, over, doubted = rollout.state, rollout.over, rollout.doubt
        discount, beyond, onward = rollout.discount, rollout.beyond, rollout.onward
        bits = following(rollout.stream, k)
        if legal is None:
            action = below(bits, num_actions)
        else:
            allowed = legal(state)
            action, over = pick(bits, allowed), over | ~jnp.any(allowed)
        after = model(state, action)
        count = 1.0 if discount is None else discount
        onward_count: Any = 1.0 if discount is None else discount * config.gamma
        paid = jnp.where(over, 0.0, count * after.reward)
        if doubt is not None:
            met = checked(doubt(state, action))
            doubted = doubted + jnp.where(over, 0.0, count * met)
            if weighed:
                beyond = beyond + jnp.where(onward > 0, paid, 0.0)
                paid = jnp.where(onward > 0, 0.0, paid)
                begins = ~over & (onward == 0) & (trust.kept(met, config, config.simulation) < 1.0)
                onward = jnp.where(begins, onward_count, onward)
        following_rollout = Rollout(
            stream=rollout.stream,
            state=after.state,
            over=over | after.terminal,
            returned=rollout.returned + paid,
            doubt=doubted,
            discount=None if discount is None else onward_count,
            beyond=beyond,
            onward=onward,
        )
        record = (state, action, ~over, *((after.reward.astype(float),) if trusting else ()))
        return following_rollout, record if records else ()

    one, zero = jnp.ones((), float), jnp.zeros((), float)
    doubtless, nothing = (None if doubt is None else zero), (zero if weighed else None)
    start = Rollout(zero, state, terminal, zero, doubtless, one if discounted else None, nothing, nothing)
    lanes = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (config.rollouts, *jnp.shape(leaf))), start)
    lanes = lanes._replace(stream=draw(seed, ROLLOUT, numbers))
    end, met = recorded(step, lambda rollout: rollout.over, config.depth, lanes)
    if weighed:
        end = end._replace(returned=end.returned + trust.after_doubt(end.beyond, end.onward, config))
    return end, met


def summed(met: tuple, uncertainty: BatchedUncertainty, config: SearchConfig, memory: PyTree) -> tuple[Any, PyTree]:
    """sigma of each rollout, [rollouts], from what was `met`: states, actions, whether they count.

    Under the trust rules, where `met` has rewards too, returns and sigma.
    """
    states, actions, counted = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), met[:3])
    doubt, memory = uncertainty.many(memory, states, actions, counted)
    discount = jnp.power(config.gamma, jnp.arange(config.depth))
    doubt = jnp.where(counted, checked(doubt), 0.0).reshape(config.rollouts, config.depth)
    sigma = jnp.sum(doubt * discount, axis=1)
    if config.rules != "trust":
        return sigma, memory
    rewards = jnp.where(met[2], met[3], 0.0)
    return (trust.returns(rewards, doubt, config), sigma), memory


def checked(doubt: jax.Array) -> jax.Array:
    """An uncertainty, NaN where it is negative or not finite: NaN travels into the sums, and from there into a flag."""
    return jnp.where((doubt >= 0) & (doubt < jnp.inf), doubt, jnp.nan)


def value(rollouts: Rollouts, config: SearchConfig) -> jax.Array:
    """G, the value of the leaf the rollouts started from."""
    if config.rules == "trust":
        return jnp.mean(rollouts.returns)
    everywhere = jnp.ones(config.rollouts, bool)
    weights = softmax(-rollouts.uncertainty, everywhere, config.tau)
    return jnp.where(config.simulation, jnp.sum(weights * rollouts.returns), jnp.mean(rollouts.returns))
