"""Simulation: random rollouts from a leaf, and the value that they give it.

g_i     = sum_k gamma^(k-1) r_k                            return of rollout i
sigma_i = sum_k gamma^(k-1) U(s_k, a_k)                    its uncertainty, s_k the state before the step
plain:  the value of the leaf is the mean of g
UA-Simulation weighs rollouts by their uncertainty: see `Rules.leaf_value` and `Rules.rollout_return`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from uamcts.mcts.config import SearchConfig
from uamcts.mcts.lockstep import run_recorded
from uamcts.mcts.problem import Problem
from uamcts.mcts.rules import find_rules
from uamcts.randomness import ROLLOUT, draw, following
from uamcts.types import BatchedUncertainty, PyTree, Uncertainty


class Start(NamedTuple):
    """Where the rollouts of one simulation begin: all in one state, or, if `number` is a vector, each in its own.

    `state` and `terminal` then have an axis [rollouts] too.
    """

    seed: jax.Array
    number: jax.Array
    """Of the simulation, within its search; or [rollouts], the number of each rollout within its search."""
    state: PyTree
    terminal: jax.Array


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
    uncertainty: Any
    discount: jax.Array | None
    after_doubt: Any
    """The return after the first doubtful step, which is not part of `returned`. Only if a rule set weighs rollouts."""
    doubt_discount: Any
    """The discount of the step after that one; 0 before it."""


class Step(NamedTuple):
    """What is recorded of one step of a rollout."""

    state: PyTree
    action: jax.Array
    counts: jax.Array
    """False after the end of the rollout."""
    reward: Any
    """Only if a rule set weighs rollouts."""


def simulate(start: Start, problem: Problem, config: SearchConfig, memory: PyTree = None) -> Rollouts:
    """Rolls out from the start, at most `config.depth` steps each.

    A rollout in a state without legal actions is over. One that is over goes on in place: its state absorbs, its
    reward is 0, and its uncertainty is not counted. A `BatchedUncertainty` is evaluated after the last step, for all
    transitions that were met.
    """
    uncertainty = problem.uncertainty
    if config.simulation is False:  # known before the program is built: it leaves the uncertainty out
        returned = roll_out(start, problem, config)[0].returned
        return Rollouts(returned, jnp.zeros(config.rollouts, float), memory)
    if not isinstance(uncertainty, BatchedUncertainty):
        end, _ = roll_out(start, problem, config, uncertainty)
        return Rollouts(end.returned, end.uncertainty, memory)

    if memory is None:
        end, steps = roll_out(start, problem, config, record=True)
        return Rollouts(*weigh(end.returned, steps, uncertainty, config, memory))

    def remembered(state: PyTree, action: jax.Array) -> jax.Array:
        found, known = uncertainty.glance(memory, state, action)
        return jnp.where(known, found, jnp.nan)

    end, _ = roll_out(start, problem, config, remembered)

    def ask(carry: tuple) -> tuple:
        again, steps = roll_out(start, problem, config, record=True)
        return jnp.bool_(False), *weigh(again.returned, steps, uncertainty, config, carry[-1])

    # A loop of at most one round: unlike a condition's, its results take the place of what it was given.
    unknown = jnp.any(jnp.isnan(end.uncertainty))
    first = (unknown, end.returned, end.uncertainty, memory)
    return Rollouts(*jax.lax.while_loop(lambda carry: carry[0], ask, first)[1:])


def roll_out(
    start: Start,
    problem: Problem,
    config: SearchConfig,
    uncertainty: Uncertainty | None = None,
    record: bool = False,
) -> tuple[Rollout, Any]:
    """The rollouts at their ends, [rollouts], and, if wanted, a `Step` of arrays [rollouts, depth]."""
    rules, own = find_rules(config.rules), jnp.ndim(start.number) == 1
    numbers = start.number if own else start.number * config.rollouts + jnp.arange(config.rollouts, dtype=jnp.int32)
    weighs = rules.weighs_rollouts and uncertainty is not None
    discounts = not (isinstance(config.gamma, (int, float)) and config.gamma == 1)

    def step(k: jax.Array, rollout: Rollout) -> tuple[Rollout, Step | tuple]:
        state, over, total = rollout.state, rollout.over, rollout.uncertainty
        after_doubt, doubt_discount = rollout.after_doubt, rollout.doubt_discount
        bits = following(rollout.stream, k)
        action, stuck = problem.choose(state, bits)
        over = over if stuck is None else over | stuck
        after = problem.advance(state, action, bits)
        discount: Any = 1.0 if rollout.discount is None else rollout.discount
        next_discount: Any = 1.0 if rollout.discount is None else discount * config.gamma
        paid = jnp.where(over, 0.0, discount * after.reward)
        if uncertainty is not None:
            found = nan_if_invalid(uncertainty(state, action))
            total = total + jnp.where(over, 0.0, discount * found)
            if weighs:
                doubted = doubt_discount > 0
                after_doubt = after_doubt + jnp.where(doubted, paid, 0.0)
                paid = jnp.where(doubted, 0.0, paid)
                begins = config.simulation & rules.doubts(found, config) & ~doubted & ~over
                doubt_discount = jnp.where(begins, next_discount, doubt_discount)
        onward = Rollout(
            stream=rollout.stream,
            state=after.state,
            over=over | after.terminal,
            returned=rollout.returned + paid,
            uncertainty=total,
            discount=None if rollout.discount is None else next_discount,
            after_doubt=after_doubt,
            doubt_discount=doubt_discount,
        )
        reward = after.reward.astype(float) if rules.weighs_rollouts else None
        return onward, Step(state, action, ~over, reward) if record else ()

    one, zero = jnp.ones((), float), jnp.zeros((), float)
    begin = Rollout(
        stream=zero,
        state=start.state,
        over=start.terminal,
        returned=zero,
        uncertainty=None if uncertainty is None else zero,
        discount=one if discounts else None,
        after_doubt=zero if weighs else None,
        doubt_discount=zero if weighs else None,
    )
    lanes = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (config.rollouts, *jnp.shape(leaf))), begin)
    if own:
        lanes = lanes._replace(state=start.state, over=start.terminal)
    lanes = lanes._replace(stream=draw(start.seed, ROLLOUT, numbers))
    end, steps = run_recorded(step, lambda rollout: rollout.over, config.depth, lanes)
    if weighs:
        end = end._replace(returned=rules.rollout_return(end.returned, end.after_doubt, end.doubt_discount, config))
    return end, steps


def weigh(
    returned: jax.Array, steps: Step, uncertainty: BatchedUncertainty, config: SearchConfig, memory: PyTree
) -> tuple[jax.Array, jax.Array, PyTree]:
    """Returns and sigma of each rollout, [rollouts], once the uncertainty of all its `steps` has been evaluated."""
    rules, shape = find_rules(config.rules), (config.rollouts, config.depth)
    states, actions, counts = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), steps[:3])
    found, memory = uncertainty.many(memory, states, actions, counts)
    found = jnp.where(counts, nan_if_invalid(found), 0.0).reshape(shape)
    discount = jnp.power(config.gamma, jnp.arange(config.depth))
    sigma = jnp.sum(found * discount, axis=1)
    if rules.weighs_rollouts:
        rewards = jnp.where(steps.counts, steps.reward, 0.0)
        returned = weigh_returns(rewards, found, config)
    return returned, sigma, memory


def weigh_returns(rewards: jax.Array, uncertainty: jax.Array, config: SearchConfig) -> jax.Array:
    """The return of each rollout, [rollouts], out of rewards and uncertainties [rollouts, depth], 0 after its end."""
    rules = find_rules(config.rules)
    doubted = jnp.cumsum(config.simulation & rules.doubts(uncertainty, config), axis=1) > 0
    beyond = jnp.concatenate([jnp.zeros_like(doubted[:, :1]), doubted[:, :-1]], axis=1)
    discount = jnp.power(config.gamma, jnp.arange(rewards.shape[1]))
    before, after = (jnp.sum(jnp.where(part, discount * rewards, 0.0), axis=1) for part in (~beyond, beyond))
    doubt_discount = jnp.max(jnp.where(doubted, discount * config.gamma, 0.0), axis=1)
    return rules.rollout_return(before, after, doubt_discount, config)


def nan_if_invalid(uncertainty: jax.Array) -> jax.Array:
    """An uncertainty, NaN where it is negative or not finite: NaN travels into the sums, and from there into a flag."""
    return jnp.where((uncertainty >= 0) & (uncertainty < jnp.inf), uncertainty, jnp.nan)


def leaf_value(rollouts: Rollouts, config: SearchConfig) -> jax.Array:
    """G, the value of the leaf the rollouts started from."""
    return find_rules(config.rules).leaf_value(rollouts.returns, rollouts.uncertainty, config)
