"""The compiled functions of a JAX simulator.

Parameters, a residual, doubt and facts are arguments of these programs, so that none of them is compiled again when
something was learned.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.agent.backend import Guides
from uamcts.agent.compiled_facts import PlannedFact
from uamcts.agent.compiled_form import Form
from uamcts.agent.compiled_parameters import ParameterTree, Shift, Variant, shifted_step
from uamcts.agent.compiled_rates import rated_outcomes
from uamcts.agent.compiled_words import Fetched
from uamcts.agent.plain_uncertainty import Fitted
from uamcts.agent.simulator_probe import TRIES
from uamcts.agent.state_vectors import flatten_jax
from uamcts.agent.surprise import DRAWS as SURPRISE_DRAWS
from uamcts.agent.surprise import IMPOSSIBLE, LARGEST_OF_REWARD, NORMAL
from uamcts.corrections.fact_patch import identity_of, patch_model, patch_uncertainty
from uamcts.corrections.fact_table import Facts
from uamcts.corrections.mixture import DRAWS
from uamcts.mcts.api import no_uncertainty, run_search
from uamcts.mcts.config import SearchConfig
from uamcts.mcts.graph.graph import Graph
from uamcts.mcts.problem import Problem
from uamcts.mcts.search import SearchResult
from uamcts.mcts.state_hash import word_vector
from uamcts.randomness import pick
from uamcts.runtime.alone import jit_alone
from uamcts.types import PyTree, Transition

Numbers: TypeAlias = Callable[[PyTree], jax.Array]
"""Numbers of a state."""


class Known(NamedTuple):
    """What a search knows besides the simulator."""

    variant: Variant
    uncertainty: Fitted | None = None
    facts: Facts | None = None


class Seen(NamedTuple):
    """Real transitions, [rows] each; NaN where a reward or an end is unknown."""

    state: PyTree
    action: Any
    following: PyTree
    reward: Any
    terminal: Any


class Programs:
    """The compiled functions of a JAX simulator; agents that plan in one of its form, with the same guides, share them.

    Args:
        form: The form of the simulator. Its params are not looked at: they are arguments of every program.
        guides: What the user brings to searches.
    """

    def __init__(self, form: Form, guides: Guides):
        simulator = form.simulator
        self.simulator, self.guides = simulator, guides
        features = simulator.features or flatten_jax
        given = simulator.inputs or features
        self.identity = identity_of(simulator)
        self.features: Numbers = lambda state: jnp.ravel(features(state)).astype(jnp.float32)
        self.numbers: Numbers = lambda state: jnp.ravel(given(state)).astype(jnp.float32)
        self._parameters = ParameterTree(simulator.params)
        self.shift = Shift(self.features, simulator.example)
        self.about = Fetched(lambda state: (self.features(state), self.numbers(state), self.words(state)))
        self.predict = Fetched(self._predict)
        self.predict_rows = jax.jit(jax.vmap(self._one, (None, 0, 0)))
        self.surprise = jax.jit(self._surprise)
        over_rows = jax.vmap(self._trial, (None, None, 0))
        self.trials = jax.jit(jax.vmap(over_rows, (None, 0, None)))
        self.walk = jax.jit(self._walk)
        self.search = jit_alone(self._search, static_argnames=("iterations", "varied"), donate_argnames=("memory",))

    def words(self, state: PyTree) -> jax.Array:
        """What tells a state from others, as words."""
        return word_vector(self.identity(state))

    def step(self, variant: Variant) -> Callable[[PyTree, jax.Array], Transition]:
        """The `step` of a variant of a deterministic simulator."""
        return shifted_step(self.simulator, self.shift, self.features, variant)

    def problem(self, known: Known, samples: int, varied: bool = False) -> Problem:
        """What is planned in: the corrected simulator with facts; `varied` if those of a deterministic one vary."""
        simulator, (variant, fitted, facts) = self.simulator, known
        kind = simulator.kind
        call: Any = self.step(variant) if kind == "step" else simulator.call(kind, variant.params)
        if kind == "outcomes" and variant.rates is not None:
            call = rated_outcomes(call, variant.rates)
        uncertainty: Any = no_uncertainty if fitted is None else fitted.uncertainty(self.numbers, simulator.num_actions)
        if facts is not None:

            def find(state: PyTree, action: jax.Array) -> tuple[PlannedFact, jax.Array]:
                planned, there = facts.find(self.identity(state), action, marked=True)
                return planned, there & planned.active

            def single(state: PyTree, action: jax.Array) -> tuple[Transition, jax.Array]:
                (outcomes, active), there = facts.find(self.identity(state), action, _what_happens, marked=True)
                return jax.tree.map(lambda leaf: leaf[0], outcomes), there & active

            if varied:
                kind, call = "outcomes", self._mixed(lambda *given, step=call: _certain(step(*given)), find)
            elif kind == "step":
                call = patch_model(call, single)
            else:
                call = (self._mixed if kind == "outcomes" else self._drawn)(call, find)
            if fitted is not None:
                uncertainty = patch_uncertainty(uncertainty, single)
        form = {"model": call} if kind == "step" else {"model": None, kind: call}
        return Problem(
            uncertainty=uncertainty, num_actions=simulator.num_actions, legal=simulator.legal, samples=samples,
            **form, **self.guides._asdict(),
        )  # fmt: skip

    def _mixed(self, outcomes: Callable[..., Any], find: Callable[..., Any]) -> Callable[..., Any]:
        """`outcomes` mixed with what was seen: equal ones share a place, others get places of their own."""

        def mixed(state: PyTree, action: jax.Array) -> tuple[Transition, jax.Array]:
            after, chances = outcomes(state, action)
            after = Transition(*after)
            planned, known = find(state, action)
            share = jnp.where(known, planned.share, 1.0)
            added = jnp.where(known, (1.0 - share) * planned.probabilities, 0.0)
            same = self._same(after, planned.outcomes)
            place = jnp.argmax(same, axis=0)
            here = jnp.any(same, axis=0)
            chances = share * jnp.asarray(chances, jnp.float32)
            chances = chances.at[place].add(jnp.where(here, added, 0.0))
            together = jax.tree.map(
                lambda ours, theirs: jnp.concatenate([jnp.asarray(ours), theirs.astype(jnp.asarray(ours).dtype)]),
                after, planned.outcomes,
            )  # fmt: skip
            return together, jnp.concatenate([chances, jnp.where(here, 0.0, added)])

        return mixed

    def _same(self, ours: Transition, theirs: Transition) -> jax.Array:
        """Which outcomes are equal, bool [ours, theirs]."""
        first, second = jax.vmap(self.words)(ours.state), jax.vmap(self.words)(theirs.state)
        states = jnp.all(first[:, None] == second[None], axis=-1)
        ends = ours.terminal.astype(bool)[:, None] == theirs.terminal[None]
        return states & ends & (jnp.abs(ours.reward[:, None] - theirs.reward[None]) <= 1e-6)

    def _drawn(self, sample: Callable[..., Any], find: Callable[..., Any]) -> Callable[..., Any]:
        """`sample`, which draws from what was seen as well."""

        def drawn(state: PyTree, action: jax.Array, key: jax.Array) -> Transition:
            planned, known = find(state, action)
            model = Transition(*sample(state, action, key))
            first, second = jax.random.uniform(jax.random.fold_in(key, 1), (2,))
            running = jnp.cumsum(planned.probabilities)
            slot = jnp.minimum(jnp.sum(running <= second * running[-1]), running.size - 1)
            seen = known & (first >= planned.share)
            return cast(Transition, jax.tree.map(
                lambda ours, theirs: jnp.where(seen, theirs[slot].astype(jnp.asarray(ours).dtype), ours), model,
                planned.outcomes,
            ))  # fmt: skip

        return drawn

    def _search(
        self,
        known: Known,
        key: jax.Array,
        state: PyTree,
        config: SearchConfig,
        memory: PyTree,
        horizon: jax.Array | None,
        previous: Graph | jax.Array | None,
        iterations: int,
        varied: bool,
    ) -> SearchResult:
        config = replace(config, iterations=iterations)
        problem = self.problem(known, config.outcomes, varied)
        return run_search(key, state, problem, config, memory, horizon, previous)

    def _predict(self, variant: Variant, state: PyTree, action: jax.Array) -> tuple[Transition, Any]:
        """The outcomes of a step, a transition over [C]; their probabilities, features and words.

        Draws, if it can only `sample`.
        """
        problem = self.problem(Known(variant), DRAWS)
        after, chances = problem.outcomes_of(state, action, jnp.zeros(2, jnp.uint32), jnp.int32(0))
        return after, (chances, jax.vmap(self.features)(after.state), jax.vmap(self.words)(after.state))

    def _one(self, variant: Variant, state: PyTree, action: jax.Array) -> tuple[PyTree, Any, Any, Any, Any]:
        """The outcome of a step in a deterministic simulator: next state, its features, reward, end, its words."""
        after, reward, terminal = self.step(variant)(state, action)
        numbers = jnp.asarray(reward, jnp.float32), jnp.asarray(terminal).astype(bool)
        return after, self.features(after), *numbers, self.words(after)

    def _trial(self, params: PyTree, vector: jax.Array, seen: Seen) -> Any:
        """What a simulator with other parameters predicts of a transition: its outcome, or how surprising it is."""
        variant = Variant(self._parameters.filled(vector, params))
        if self.simulator.kind != "step":
            return self._surprise(variant, seen)
        return self._one(variant, seen.state, seen.action)[1:4]

    def _surprise(self, variant: Variant, seen: Seen) -> jax.Array:
        """-log of the probability of a real transition in a random simulator; of its density, for a continuum."""
        problem = self.problem(Known(variant), SURPRISE_DRAWS)
        # The same draws everywhere would be off in the same direction everywhere; so many say little about a spread.
        own = self.words(seen.state).astype(jnp.uint32)
        bits = jnp.stack([jnp.sum(own), jnp.sum(own * jnp.arange(1, 2 * own.size, 2, dtype=jnp.uint32))])
        after, chances = problem.outcomes_of(seen.state, seen.action, bits, jnp.int32(0))
        words, rewards = jax.vmap(self.words)(after.state), after.reward.astype(jnp.float32)
        near = jnp.abs(rewards - seen.reward) <= 1e-6 * jnp.maximum(1.0, jnp.abs(rewards))
        ends = jnp.isnan(seen.terminal) | (after.terminal.astype(bool) == (seen.terminal > 0.5))
        same = jnp.all(words == self.words(seen.following), axis=-1) & (jnp.isnan(seen.reward) | near) & ends
        share = jnp.sum(jnp.where(same, chances, 0.0))
        if self.simulator.kind == "outcomes":  # with another value of one probability, the others no longer fit
            fits = jnp.abs(jnp.sum(chances) - 1.0) < 1e-4
            return jnp.where(fits, -jnp.log(jnp.maximum(share, IMPOSSIBLE)), 1.0 - np.log(IMPOSSIBLE))
        equal = jnp.all(words[:, None] == words[None], axis=-1)
        different = jnp.sum(~jnp.any(jnp.tril(equal, -1), axis=1))
        listed = -jnp.log(jnp.maximum(share, 0.5 / SURPRISE_DRAWS))
        features = jax.vmap(self.features)(after.state)
        points = jnp.concatenate([features, rewards[:, None]], axis=1)
        paid = jnp.where(jnp.isnan(seen.reward), jnp.mean(rewards), seen.reward)
        point = jnp.concatenate([self.features(seen.following), paid[None]])
        return jnp.where(different < SURPRISE_DRAWS // 2, listed, _surprise_of_point(point, points))

    def _walk(self, variant: Variant, state: PyTree) -> tuple[PyTree, jax.Array, PyTree, jax.Array, jax.Array]:
        """Steps of random walks from a state: states before and after, actions, rewards, and whether they went on."""
        problem = self.problem(Known(variant), 1)

        def one(here: PyTree, bits: jax.Array) -> tuple[PyTree, Any]:
            legal = self.simulator.legal
            allowed = jnp.ones(self.simulator.num_actions, bool) if legal is None else legal(here)
            action = pick(bits, allowed)
            after: Transition = jax.tree.map(jnp.asarray, problem.advance(here, action, bits))
            going = ~after.terminal.astype(bool) & jnp.any(allowed)
            following = jax.tree.map(lambda new, old: jnp.where(going, new, old), after.state, state)
            return following, (here, action, after.state, after.reward, going)

        words = jax.random.bits(jax.random.key(0), (TRIES,), jnp.uint32)
        steps: tuple[PyTree, jax.Array, PyTree, jax.Array, jax.Array] = jax.lax.scan(one, state, words)[1]
        return steps


def _what_happens(planned: PlannedFact) -> tuple[Transition, jax.Array]:
    """The only outcome of a fact, and whether searches plan with it."""
    return planned.outcomes, planned.active


def _certain(outcome: Transition) -> tuple[Transition, jax.Array]:
    """The one outcome of a deterministic model as a list."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], Transition(*outcome)), jnp.ones(1)


def _surprise_of_point(point: jax.Array, points: jax.Array) -> jax.Array:
    """-log of the density of a point among draws from a continuum, a mean over its numbers."""
    spread = jnp.std(points, axis=0)
    moved = spread > 1e-6 * jnp.maximum(1.0, jnp.abs(points[0]))
    close = jnp.abs(point - points[0]) <= 1e-9 + 1e-6 * jnp.abs(points[0])
    scale = jnp.where(moved, spread, 1.0)
    apart = jnp.where(moved, (point - jnp.mean(points, axis=0)) / scale, 0.0)
    most = jnp.full(apart.shape, 50.0).at[-1].set(LARGEST_OF_REWARD)
    total = jnp.sum(jnp.where(moved, 0.5 * jnp.minimum(apart**2, most) + jnp.log(scale) + NORMAL, 0.0))
    found = total / jnp.maximum(jnp.sum(moved), 1)
    worst = -np.log(IMPOSSIBLE)
    return jnp.where(jnp.all(moved | close) & jnp.isfinite(found), found, worst)


def bytes_of(states: PyTree, place: int) -> bytes:
    """All of one state out of many."""
    return b"".join(np.asarray(leaf[place]).tobytes() for leaf in jax.tree.leaves(states))


programs = functools.lru_cache(maxsize=16)(Programs)
"""The programs of a form; those of the latest sixteen are kept."""
