"""The paper's online scenario: plan, act, compare, remember, and every so often learn. Many runs side by side.

Runs advance in lockstep; an episode that ends starts again inside. Rounds of training lie between stretches of steps,
never inside them: under `vmap` a condition would train at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp

from uamcts.domains.base import Domain
from uamcts.episodes.offline import LONGEST
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.search import SearchResult
from uamcts.mcts.tree import UNEXPANDED
from uamcts.presets import refuse_random
from uamcts.types import PyTree
from uamcts.uncertainty.learner import (
    LOOKS,
    RESETS,
    ROUNDS,
    SEARCHES,
    AgentState,
    Learner,
    empty_cache,
    observe,
    plan,
    purpose,
    train,
)
from uamcts.uncertainty.schedule import Schedule
from uamcts.uncertainty.true import true_uncertainty


class Run(eqx.Module):
    """One run: what its agent knows, and where in the real world it is. This, and nothing else, is saved."""

    knowledge: AgentState
    state: PyTree
    episode: jax.Array
    """Episodes that are over."""
    length: jax.Array
    """Steps of the present episode."""
    reward: jax.Array
    """What the present episode has paid."""
    key: jax.Array
    """Never used itself: what it is used for and a counter are folded in."""

    @classmethod
    def fresh(cls, key: jax.Array, domain: Domain, learner: Learner, schedule: Schedule) -> Self:
        refuse_random(domain)
        nothing = jnp.int32(0)
        state = domain.reset(purpose(key, RESETS, 0))
        return cls(AgentState.fresh(learner, schedule), state, nothing, nothing, jnp.float32(0), key)


class Step(NamedTuple):
    """What one real step of a run had to say."""

    reward: jax.Array
    """What the episode has paid up to here."""
    length: jax.Array
    ended: jax.Array
    """Whether the episode is over or was cut."""
    terminal: jax.Array
    flags: jax.Array
    """Those of the search."""
    predicted: jax.Array
    """U-hat of each action, [actions]."""
    true: jax.Array
    """U of each action, [actions]."""


def step(
    run: Run, memory: PyTree, domain: Domain, config: SearchConfig, terminal_copies: int = 1
) -> tuple[Run, PyTree, Step]:
    """One real step of one run."""
    knowledge = run.knowledge
    found = plan(knowledge, purpose(run.key, SEARCHES, knowledge.steps), run.state, domain, config, memory)
    after = domain.world(run.state, found.action)
    copies = jnp.where(after.terminal, terminal_copies, 1)
    knowledge = observe(knowledge, domain, run.state, found.action, after, copies)

    length, reward = run.length + 1, run.reward + after.reward
    ended = after.terminal | (length >= (domain.time_limit or LONGEST))
    episode = run.episode + ended
    start = domain.reset(purpose(run.key, RESETS, episode))
    following = Run(
        knowledge,
        jax.tree.map(lambda new, old: jnp.where(ended, new, old), start, after.state),
        episode,
        jnp.where(ended, 0, length),
        jnp.where(ended, 0.0, reward),
        run.key,
    )
    true = jax.vmap(true_uncertainty(domain), (None, 0))(run.state, jnp.arange(domain.num_actions))
    said = Step(reward, length, ended, after.terminal, found.flags, found.uncertainty, true)
    return following, found.cache, said


def advance(
    run: Run, memory: PyTree, domain: Domain, config: SearchConfig, steps: int, terminal_copies: int = 1
) -> tuple[Run, PyTree, Step]:
    """`steps` real steps of one run, what they had to say [steps], and the memory of its searches."""

    def one(carry: tuple, _: None) -> tuple:
        run, memory = carry
        run, memory, said = step(run, memory, domain, config, terminal_copies)
        return (run, memory), said

    (run, memory), said = jax.lax.scan(one, (run, memory), length=steps)  # type: ignore[var-annotated]
    return run, memory, said


def train_run(run: Run, schedule: Schedule) -> Run:
    """One run after a round of training."""
    knowledge = train(run.knowledge, purpose(run.key, ROUNDS, run.knowledge.steps), schedule)
    return replace(run, knowledge=knowledge)


def online(
    run: Run, domain: Domain, config: SearchConfig, schedule: Schedule, rounds: int, terminal_copies: int = 1
) -> tuple[Run, Step]:
    """`rounds` times `schedule.interval` steps of one run and a round of training, as one program.

    Not for estimators whose rounds need the host (`trees`): these need `finish_on_host` between two programs.
    """

    def one(run: Run, _: None) -> tuple[Run, Step]:
        cache = empty_cache(run.knowledge.learner, domain)
        run, _, said = advance(run, cache, domain, config, schedule.interval, terminal_copies)
        return train_run(run, schedule), said

    run, said = jax.lax.scan(one, run, length=rounds)
    return run, jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), said)


def over_runs(function: Callable) -> Callable:
    """`function` of one run as one of many, [runs] in front of all arguments.

    On a CPU they run one after the other: the searches of a run then compute only what they need (see
    `uncertainty.prediction_cache`), and its numbers do not depend on other runs. On a GPU they run side by side.
    """
    if jax.default_backend() == "cpu":
        return lambda *arguments: jax.lax.map(lambda each: function(*each), arguments)
    return jax.vmap(function)


class Deletions(NamedTuple):
    """Nodes of a search tree that were expanded although the model errs in none of their actions."""

    faultless: jax.Array
    """How many there are."""
    fired: jax.Array
    """In how many of them a child was deleted."""


def deletions(result: SearchResult, domain: Domain) -> Deletions:
    """How often UA-Expansion deleted a child without any reason to."""
    tree = result.tree
    children = tree.children.reshape(-1)
    states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), tree.state)
    uncertainty = true_uncertainty(domain)
    every_action = jnp.arange(domain.num_actions)
    errs = jax.vmap(lambda state: jnp.any(jax.vmap(uncertainty, (None, 0))(state, every_action) > 0))(states)
    faultless = (children != UNEXPANDED) & ~errs
    fired = faultless & ~jnp.all(tree.exists[children], axis=1)
    return Deletions(jnp.sum(faultless), jnp.sum(fired))


def look(run: Run, domain: Domain, config: SearchConfig) -> Deletions:
    """One search of a run from where it is, to see what its tree looks like; the run does not notice."""
    key = purpose(run.key, LOOKS, run.knowledge.steps)
    return deletions(plan(run.knowledge, key, run.state, domain, config), domain)
