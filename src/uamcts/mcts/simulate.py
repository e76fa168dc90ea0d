"""Simulation: random rollouts from a leaf, and the value that they give it.

g_i     = sum_k gamma^(k-1) r_k                            return of rollout i
sigma_i = sum_k gamma^(k-1) U(s_k, a_k)                    its uncertainty, s_k the state before the step
plain:  the value of the leaf is the mean of g
UA-Simulation weighs rollouts by their uncertainty: see `Rules.leaf_value` and `Rules.rollout_return`.
"""

from __future__ import annotations

from typing import TypeAlias, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from uamcts.mcts.best_sequence import fade, follow
from uamcts.mcts.charge import Charged
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.lockstep import run_lockstep
from uamcts.mcts.problem import Problem
from uamcts.mcts.rollout import Rollout, Rollouts, Start, Step
from uamcts.mcts.rules import find_rules
from uamcts.randomness import ROLLOUT, draw, stream_word
from uamcts.types import BatchedUncertainty, Number, PyTree, Uncertainty

_Evaluation: TypeAlias = tuple[jax.Array, jax.Array, jax.Array, PyTree, jax.Array | None]
"""Whether to evaluate the uncertainty, the returns, their uncertainties, the prediction cache, and the sequences."""


def simulate(start: Start, problem: Problem, config: SearchConfig, cache: PyTree = None) -> Rollouts:
    """Rolls out from the start, at most `config.depth` steps each.

    A rollout ends at a terminal state and at a state without legal actions. It then stays in place while others go on:
    its state is absorbing, its reward is 0, and its uncertainty is not counted. A `BatchedUncertainty` is evaluated
    after the last step, for all transitions at once.
    """
    uncertainty = problem.uncertainty
    if isinstance(uncertainty, Charged):
        return _simulate_charged(start, problem, uncertainty, config, cache)
    if config.simulation is False:  # known before the program is built: it leaves the uncertainty out
        end, actions = roll_out(start, problem, config)
        return Rollouts(end.returned, jnp.zeros(config.rollouts, float), cache, actions)
    if not isinstance(uncertainty, BatchedUncertainty):
        end, actions = roll_out(start, problem, config, uncertainty)
        return Rollouts(end.returned, cast(jax.Array, end.uncertainty), cache, actions)

    if cache is None:
        end, steps = record_rollouts(start, problem, config)
        return Rollouts(*weigh(end.returned, steps, uncertainty, start, config, cache), _sequences(start, steps))

    def look_up(state: PyTree, action: Int[Array, ""]) -> Float[Array, ""]:
        found, known = uncertainty.lookup(cache, state, action)
        return jnp.where(known, found, jnp.nan)

    end, actions = roll_out(start, problem, config, look_up)

    def evaluate(carry: _Evaluation) -> _Evaluation:
        again, steps = record_rollouts(start, problem, config)
        weighed = weigh(again.returned, steps, uncertainty, start, config, carry[3])
        return jnp.bool_(False), *weighed, _sequences(start, steps)

    # A loop of at most one round: unlike a condition's, its results take the place of what it was given.
    sigma = cast(jax.Array, end.uncertainty)
    unknown = jnp.any(jnp.isnan(sigma))
    first: _Evaluation = (unknown, end.returned, sigma, cache, actions)
    return Rollouts(*jax.lax.while_loop(lambda carry: carry[0], evaluate, first)[1:])


def _simulate_charged(
    start: Start, problem: Problem, charged: Charged, config: SearchConfig, cache: PyTree
) -> Rollouts:
    """Rollouts whose transitions pay for their uncertainty."""

    def evaluate(cache: PyTree) -> tuple[jax.Array, PyTree]:
        _, steps = record_rollouts(start, problem, config, rewards=True)
        states, actions, counts = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), steps[:3])
        found, cache = charged.predict_batch(cache, states, actions, counts)
        price = (charged.weight * found).reshape(config.rollouts, config.depth)
        paid = jnp.where(steps.counts, cast(jax.Array, steps.reward) - price, 0.0)
        discounts = jnp.cumprod(jnp.full(config.depth, config.gamma).at[0].set(1.0))
        # Summed in the order of the steps, as a rollout does.
        total = jax.lax.fori_loop(
            0, config.depth, lambda k, total: total + discounts[k] * paid[:, k], jnp.zeros(config.rollouts, float)
        )
        return total, cache

    certain = jnp.zeros(config.rollouts, float)
    if cache is None:
        returned, cache = evaluate(None)
        return Rollouts(returned, certain, cache)
    returned = roll_out(start, charged.price(problem, charged.known(cache)), config)[0].returned
    first = (jnp.any(jnp.isnan(returned)), returned, cache)
    _, returned, cache = jax.lax.while_loop(
        lambda carry: carry[0], lambda carry: (jnp.bool_(False), *evaluate(carry[-1])), first
    )
    return Rollouts(returned, certain, cache)


def roll_out(
    start: Start, problem: Problem, config: SearchConfig, uncertainty: Uncertainty | None = None
) -> tuple[Rollout, Int[Array, "rollouts depth"] | None]:
    """All rollouts of a simulation at their ends, and their sequences if they follow one.

    `uncertainty` is evaluated at every step, without a batch; None leaves the uncertainty of the rollouts out.
    """
    rules = find_rules(config.rules)

    def step(k: Int[Array, ""], rollout: Rollout) -> tuple[Rollout, jax.Array | None]:
        after, record = _step(k, rollout, start, problem, config, uncertainty)
        return _end_early(k, after, start), _sequences(start, record)

    begin = _begin(start, config, uncertainty is not None)
    end, actions = run_lockstep(step, lambda rollout: rollout.over, config.depth, begin)
    if end.after_doubt is None:
        return end, actions
    returned = rules.rollout_return(end.returned, end.after_doubt, end.doubt_discount, config)
    return end._replace(returned=returned), actions


def _sequences(start: Start, steps: Step) -> Int[Array, "*steps"] | None:
    """What rollouts did, if they follow a sequence: action + 1, and 0 where they were over."""
    return None if start.sequence is None else jnp.where(steps.counts, steps.action + 1, 0).astype(jnp.int32)


def record_rollouts(
    start: Start, problem: Problem, config: SearchConfig, rewards: bool = False
) -> tuple[Rollout, Step]:
    """The same without uncertainty, and a record of every step, [rollouts, depth]; rewards where they are needed."""
    rewards = rewards or find_rules(config.rules).weighs_rollouts

    def step(k: Int[Array, ""], rollout: Rollout) -> tuple[Rollout, Step]:
        after, record = _step(k, rollout, start, problem, config, None)
        return _end_early(k, after, start), record if rewards else record._replace(reward=None)

    return run_lockstep(step, lambda rollout: rollout.over, config.depth, _begin(start, config, False))


def _end_early(k: Int[Array, ""], rollout: Rollout, start: Start) -> Rollout:
    """A rollout after its `k`-th step: over if no steps are left, or if its uncertainty is unknown from here on."""
    over = rollout.over if start.steps is None else rollout.over | (k + 1 >= start.steps)
    return rollout._replace(over=over if rollout.uncertainty is None else over | jnp.isnan(rollout.uncertainty))


def _begin(start: Start, config: SearchConfig, uncertain: bool) -> Rollout:
    """The rollouts before their first step, [rollouts]."""
    own = start.number.ndim == 1
    numbers = start.number if own else start.number * config.rollouts + jnp.arange(config.rollouts, dtype=jnp.int32)
    weighs = find_rules(config.rules).weighs_rollouts and uncertain
    discounts = start.ahead is not None or not (isinstance(config.gamma, (int, float)) and config.gamma == 1)
    one, zero = jnp.ones((), float), jnp.zeros((), float)
    one_rollout = Rollout(
        stream=zero,
        state=start.state,
        over=start.terminal,
        returned=zero,
        uncertainty=zero if uncertain else None,
        discount=one if discounts else None,
        after_doubt=zero if weighs else None,
        doubt_discount=zero if weighs else None,
    )
    begin: Rollout = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (config.rollouts, *jnp.shape(leaf))), one_rollout)
    if own:
        begin = begin._replace(state=start.state, over=start.terminal)
    return begin._replace(stream=draw(start.seed, ROLLOUT, numbers))


def _step(
    k: Int[Array, ""], rollout: Rollout, start: Start, problem: Problem, config: SearchConfig,
    uncertainty: Uncertainty | None,
) -> tuple[Rollout, Step]:  # fmt: skip
    """The `k`-th step of one rollout, and its record."""
    rules = find_rules(config.rules)
    state, over, total = rollout.state, rollout.over, rollout.uncertainty
    after_doubt, doubt_discount = rollout.after_doubt, rollout.doubt_discount
    bits = stream_word(rollout.stream, k)
    action, stuck = problem.choose(state, bits)
    if start.sequence is not None:
        action = follow(start.sequence[k], action, state, bits, problem, config)
    over = over if stuck is None else over | stuck
    after = problem.advance(state, action, bits)
    discount: Number = 1.0 if rollout.discount is None else rollout.discount
    next_discount: Number = 1.0 if rollout.discount is None else discount * _factor(start, k, config)
    paid = jnp.where(over, 0.0, discount * after.reward)
    if uncertainty is not None and total is not None:
        found = nan_if_invalid(uncertainty(state, action))
        total = total + jnp.where(over, 0.0, discount * found)
        if after_doubt is not None and doubt_discount is not None:
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
    return onward, Step(state, action, ~over, after.reward.astype(float))


def _factor(start: Start, k: Int[Array, "*steps"], config: SearchConfig) -> Number:
    """By how much a reward counts less than that of step `k` before it."""
    return config.gamma if start.ahead is None else config.gamma * fade(start.ahead + k + 1, config)


def _discounts(start: Start, config: SearchConfig) -> Float[Array, " discounts"]:
    """The discount of every step, and, behind the last one, of what would come after it."""
    if start.ahead is None:
        return jnp.power(config.gamma, jnp.arange(config.depth + 1))
    factors = jnp.asarray(_factor(start, jnp.arange(config.depth), config), float)
    return jnp.cumprod(jnp.concatenate([jnp.ones(1, float), factors]))


def weigh(
    returned: Float[Array, " rollouts"],
    steps: Step,
    uncertainty: BatchedUncertainty,
    start: Start,
    config: SearchConfig,
    cache: PyTree,
) -> tuple[Float[Array, " rollouts"], Float[Array, " rollouts"], PyTree]:
    """Evaluates the uncertainty of all `steps`: the return and sigma of each rollout, and the cache."""
    shape = (config.rollouts, config.depth)
    states, actions, counts = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), steps[:3])
    found, cache = uncertainty.predict_batch(cache, states, actions, counts)
    found = jnp.where(counts, nan_if_invalid(found), 0.0).reshape(shape)
    discounts = _discounts(start, config)
    sigma = jnp.sum(found * discounts[:-1], axis=1)
    if steps.reward is not None:
        rewards = jnp.where(steps.counts, steps.reward, 0.0)
        returned = weigh_returns(rewards, found, config, discounts)
    return returned, sigma, cache


def weigh_returns(
    rewards: Float[Array, "rollouts depth"],
    uncertainty: Float[Array, "rollouts depth"],
    config: SearchConfig,
    discounts: Float[Array, " discounts"],
) -> Float[Array, " rollouts"]:
    """The return of each rollout from its rewards and uncertainties, which are 0 after its end."""
    rules = find_rules(config.rules)
    doubted = jnp.cumsum(config.simulation & rules.doubts(uncertainty, config), axis=1) > 0
    beyond = jnp.concatenate([jnp.zeros_like(doubted[:, :1]), doubted[:, :-1]], axis=1)
    discount = discounts[:-1]
    before, after = (jnp.sum(jnp.where(part, discount * rewards, 0.0), axis=1) for part in (~beyond, beyond))
    doubt_discount = jnp.max(jnp.where(doubted, discounts[1:], 0.0), axis=1)
    return cast(jax.Array, rules.rollout_return(before, after, doubt_discount, config))


def nan_if_invalid(uncertainty: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Replaces a negative or infinite uncertainty by NaN, which travels into the sums and from there into a flag."""
    return jnp.where((uncertainty >= 0) & (uncertainty < jnp.inf), uncertainty, jnp.nan)


def leaf_value(rollouts: Rollouts, config: SearchConfig) -> Float[Array, ""]:
    """G, the value of the leaf the rollouts started from."""
    return find_rules(config.rules).leaf_value(rollouts.returns, rollouts.uncertainty, config)
