"""Cart poles that have changed: other gravity, or a pole that gains mass; and the field's planners on them.

The dynamics are those of Gymnasium's CartPole-v1. States are [4]: position, speed, angle and turn of the pole. States
are continuous, so that there is no exact optimum; the planner that is told and the cap of steps take its place.

Assumptions: PA-MCTS's authors train a DQN in the old world; here value iteration on a grid of states, interpolated
between its points, takes its place (`StalePlan`). It is also the plan in the old model that figures show.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from uamcts.agent.agent import Agent
from uamcts.agent.jax_simulator import JaxSimulator
from uamcts.field.episodes import Score
from uamcts.mcts.api import search
from uamcts.mcts.config import SearchConfig
from uamcts.types import Model, Transition

SECONDS, FAR, TILTED = 0.02, 2.4, 12 * 2 * np.pi / 360
OFF: dict[str, Any] = dict.fromkeys(("selection", "expansion", "simulation", "backpropagation"), False)
EDGES = (FAR, 3.0, TILTED, 3.5)
POINTS = (13, 13, 15, 15)
"""Of the grid of states: how far it reaches from 0 in each number, and how many points it has there."""
SWEEPS, STALE_GAMMA = 400, 0.99
STALE_WEIGHT = 0.5
"""How much the old plan counts beside rollouts, for an agent that has it."""


class Pole(NamedTuple):
    """The numbers that a cart pole depends on."""

    gravity: float | jax.Array = 9.8
    masspole: float | jax.Array = 0.1
    masscart: float | jax.Array = 1.0
    length: float | jax.Array = 0.5
    force: float | jax.Array = 10.0


def has_fallen(state: jax.Array) -> jax.Array:
    """Whether the episode is over: the pole has tilted, or the cart has left the track."""
    return (jnp.abs(state[0]) > FAR) | (jnp.abs(state[2]) > TILTED)


def push(state: jax.Array, action: jax.Array, pole: Pole) -> Transition:
    """A step of 0.02 seconds; every step pays 1. Nothing changes after a fall."""
    _, speed, angle, turn = state
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    mass = pole.masscart + pole.masspole
    pushed = (jnp.where(action == 1, pole.force, -pole.force) + pole.masspole * pole.length * turn**2 * sine) / mass
    swing = (pole.gravity * sine - cosine * pushed) / (pole.length * (4 / 3 - pole.masspole * cosine**2 / mass))
    pull = pushed - pole.masspole * pole.length * swing * cosine / mass
    over = has_fallen(state)
    after = jnp.where(over, state, state + SECONDS * jnp.stack([speed, pull, turn, swing]))
    return Transition(after, jnp.where(over, 0.0, 1.0), has_fallen(after))


class Change(NamedTuple):
    """What has become of a pole: its gravity, and the mass that it gains in every step."""

    gravity: float | jax.Array = 9.8
    gain: float | jax.Array = 0.0

    def pole(self, step: int | jax.Array) -> Pole:
        """The pole in a step of an episode."""
        return Pole(gravity=self.gravity, masspole=0.1 + self.gain * step)


class StalePlan(eqx.Module):
    """What each action is worth in the old model, by value iteration on a grid of states."""

    table: jax.Array
    """Values of states, [13, 13, 15, 15]."""

    @classmethod
    def of(cls, pole: Pole) -> StalePlan:
        """The plan for a pole."""
        axes = [np.linspace(-edge, edge, count) for edge, count in zip(EDGES, POINTS, strict=True)]
        states = jnp.asarray(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 4), jnp.float32)

        return cls(_solve(states, pole).reshape(POINTS))

    def values(self, state: jax.Array, pole: Pole) -> jax.Array:
        """What each action is worth in a state, [2]."""

        def worth(action: jax.Array) -> jax.Array:
            after = push(state, action, pole)
            return after.reward + STALE_GAMMA * jnp.where(after.terminal, 0.0, self.value(after.state))

        return jax.vmap(worth)(jnp.arange(2))

    def value(self, state: jax.Array) -> jax.Array:
        """What a state is worth, between the points of the grid."""
        places, weights = _corners(state)
        return jnp.sum(self.table.reshape(-1)[places] * weights)


@jax.jit
def _solve(states: jax.Array, pole: Pole) -> jax.Array:
    """The values of the grid's states, by value iteration."""
    after = jax.vmap(jax.vmap(push, (None, 0, None)), (0, None, None))(states, jnp.arange(2), pole)
    places, weights = jax.vmap(jax.vmap(_corners))(after.state)

    def sweep(_: int, values: jax.Array) -> jax.Array:
        onward = jnp.where(after.terminal, 0.0, jnp.sum(values[places] * weights, axis=-1))
        return jnp.max(after.reward + STALE_GAMMA * onward, axis=-1)

    return jax.lax.fori_loop(0, SWEEPS, sweep, jnp.zeros(len(states)))


def _corners(state: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The points of the grid around a state, as places in its table, and their weights, [16] each."""
    edges, counts = jnp.array(EDGES), jnp.array(POINTS)
    where = jnp.clip((state + edges) / (2 * edges) * (counts - 1), 0.0, counts - 1.0)
    low = jnp.minimum(where.astype(int), counts - 2)
    rest = where - low
    sides = jnp.array(list(itertools.product((0, 1), repeat=4)))
    weights = jnp.prod(jnp.where(sides == 1, rest, 1 - rest), axis=-1)
    strides = jnp.array([int(np.prod(POINTS[place + 1 :])) for place in range(4)])
    return (low + sides) @ strides, weights


class PolePlanner(eqx.Module):
    """MCTS with random rollouts (UCT), mixed with the values of a stale plan as PA-MCTS mixes them.

    Args:
        iterations: Of a search.
        depth: Moves of a rollout, at most.
        gamma: The discount of the search.
        c: How much it explores; values are steps, and not scaled. None: our own search, with its defaults.
        alpha: The weight of the stale plan: 0 is MCTS, 1 the plan alone.
        stale: That plan.
    """

    iterations: int = eqx.field(default=100, static=True)
    depth: int = eqx.field(default=50, static=True)
    gamma: float | jax.Array = 0.999
    c: float | jax.Array | None = 15.0
    alpha: float | jax.Array = 0.0
    stale: StalePlan | None = None

    def act(self, key: jax.Array, state: jax.Array, believed: Pole) -> jax.Array:
        """The action it takes, if it believes the pole to be this one."""
        plain: dict[str, Any] = {"rules": "trust"} if self.c is None else {"rules": "pseudocode", "c": self.c, **OFF}
        config = SearchConfig(
            iterations=self.iterations, rollouts=1, depth=self.depth, tree_depth=64, gamma=self.gamma, **plain
        )
        found = search(key, state, lambda state, action: push(state, action, believed), None, config, num_actions=2)
        if self.c is None:
            return found.action
        values = jnp.where(found.visits > 0, found.values, -jnp.inf)
        if self.stale is not None:
            values = self.alpha * self.stale.values(state, Pole()) + (1 - self.alpha) * values
        return jnp.argmax(values)


def draw_starts(seed: int, first: int, episodes: int) -> jax.Array:
    """The states in which episodes begin, [episodes, 4]: all numbers within 0.05 of 0, as in Gymnasium."""
    drawn = [np.random.default_rng([seed, first + number]).uniform(-0.05, 0.05, 4) for number in range(episodes)]
    return jnp.asarray(np.array(drawn), jnp.float32)


@functools.partial(jax.jit, static_argnames=("steps", "told"))
def play_pole(
    keys: jax.Array, starts: jax.Array, planner: PolePlanner | StalePlan, change: Change, steps: int, told: bool
) -> Score:
    """Plays episodes of a planner, all at once; `told`: it knows the pole of each step, else only the old one."""

    def episode(key: jax.Array, start: jax.Array) -> tuple[jax.Array, jax.Array]:
        def move(carry: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
            state, _, count = carry
            real = change.pole(count)
            if isinstance(planner, StalePlan):
                action = jnp.argmax(planner.values(state, Pole()))
            else:
                action = planner.act(jax.random.fold_in(key, count), state, real if told else Pole())
            after = push(state, action, real)
            return after.state, after.terminal, count + 1

        first = (start, jnp.asarray(False), jnp.asarray(0))
        _, over, count = jax.lax.while_loop(lambda carry: ~carry[1] & (carry[2] < steps), move, first)
        return count, over

    lengths, ended = jax.vmap(episode)(keys, starts)
    return Score(lengths.astype(float), lengths, ended)


def play_pole_agent(
    starts: jax.Array,
    change: Change,
    steps: int,
    iterations: int,
    depth: int,
    gamma: float,
    seed: int,
    progress: Callable[[float], None] = lambda share: None,
    stale: StalePlan | None = None,
) -> Score:
    """Plays episodes of a new `uamcts.Agent` each, one after the other; it is not told which number has changed.

    With a `stale` plan, a leaf is worth the mean of a rollout and of what that plan says, with the plan's discount.
    """
    guides: dict[str, Any] = {}
    if stale is not None:
        guides, gamma = {"value": stale.value, "value_weight": STALE_WEIGHT}, STALE_GAMMA
    move = jax.jit(lambda state, action, step: push(state, action, change.pole(step)))
    simulator = JaxSimulator(
        cast(Model, push), 2, jnp.zeros(4), name="cart pole", action_names=("left", "right"), params=Pole(),
        terminal=lambda state, pole: has_fallen(state),
    )  # fmt: skip
    lengths, ended = np.zeros(len(starts), int), np.zeros(len(starts), bool)
    for number, state in enumerate(np.asarray(starts)):
        agent = Agent(
            simulator, seed=seed + number, iterations=iterations, rollouts=1, depth=depth, gamma=gamma, **guides
        )
        while not ended[number] and lengths[number] < steps:
            action = agent.act(state)
            after = move(state, action, int(lengths[number]))
            following, over = np.asarray(after.state), bool(after.terminal)
            agent.observe(state, action, following, reward=float(after.reward), terminal=over)
            state, ended[number] = following, over
            lengths[number] += 1
        progress((number + 1) / len(starts))
    return Score(lengths.astype(float), lengths, ended)
