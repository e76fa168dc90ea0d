"""Exact plans where states are few: tables of all reachable states, value iteration, backward induction, evaluation.

The yardstick for planners: what the best plan earns, what the best plan in a wrong model earns in the real world, and
what any given policy earns. Rewards are discounted from the first step on: r_0 + gamma r_1 + gamma^2 r_2 + ...
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.domains.base import Domain
from uamcts.types import PyTree

LIMIT = 100_000
"""States of a table, at most."""
BATCHES = (64, 1024)
"""States whose outcomes are computed at once: few sizes, so that few programs are compiled."""
SWEEPS = 1_000_000
TOLERANCE = 1e-12
"""Sweeps go on until no value changes by more, relative to the largest value or to 1."""
TIE = 1e-9
"""Actions whose values differ by less are equally good; the first of them is taken."""


@dataclass(frozen=True, eq=False)
class Table:
    """Every outcome of every action in every state, by number: arrays [states, actions, outcomes]."""

    following: np.ndarray
    """The number of the next state; without meaning where the outcome ends the episode or has no probability."""
    probability: np.ndarray
    reward: np.ndarray
    ends: np.ndarray
    legal: np.ndarray
    """Conditions [states, actions]."""

    def action_values(self, values: np.ndarray, gamma: float) -> np.ndarray:
        """Q [states, actions] if the next states are worth `values` [states]; illegal actions are worth -inf."""
        onward = np.where(self.ends, 0.0, values[self.following])
        return np.where(self.legal, np.sum(self.probability * (self.reward + gamma * onward), axis=-1), -np.inf)


class Tables(NamedTuple):
    """The world and the model of a domain as tables of the same states, numbered in the order they were found.

    State 0 is the start.
    """

    world: Table
    model: Table
    states: PyTree
    """All of them, [states, ...]."""


class Plan(NamedTuple):
    """The best actions, and what they are worth in the table they were planned in."""

    values: np.ndarray
    """Of each state, [states]."""
    actions: np.ndarray
    """In each state, [states]; with a horizon [horizon, states], row k with k + 1 steps left."""


def best_plan(table: Table, gamma: float = 1.0, horizon: int | None = None) -> Plan:
    """The best plan: stationary, by value iteration, or for `horizon` steps, by backward induction.

    With gamma = 1 and no horizon the values are the limit of those for ever more steps, if there is one.
    """
    values = np.zeros(len(table.legal))
    if horizon is None:
        values = _converge(lambda values: table.action_values(values, gamma).max(axis=1), values, gamma)
        return Plan(values, _best(table.action_values(values, gamma)))
    rows = []
    for _ in range(_steps(horizon)):
        q = table.action_values(values, gamma)
        values = q.max(axis=1)
        rows.append(_best(q))
    return Plan(values, np.stack(rows))


def evaluate(table: Table, policy: np.ndarray, gamma: float = 1.0, horizon: int | None = None) -> np.ndarray:
    """What following `policy` earns from each state, [states]: for ever, or in `horizon` steps.

    A policy is an array of actions [states] or [horizon, states] (a `Plan`'s `actions`), or of the probabilities of
    actions [states, actions].
    """
    policy = np.asarray(policy)
    taken = _probabilities(policy, table.legal, horizon)

    def worth(values: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        q = np.where(table.legal, table.action_values(values, gamma), np.nan)  # an illegal action that is taken shows
        return np.asarray(np.sum(np.where(chosen > 0, chosen * q, 0.0), axis=1))

    values = np.zeros(len(table.legal))
    if horizon is None:
        values = _converge(lambda values: worth(values, taken), values, gamma)
    else:
        for step in range(_steps(horizon)):
            values = worth(values, taken[step] if taken.ndim == 3 else taken)
    if np.isnan(values).any():
        raise ValueError(f"policy takes an illegal action on the way from state {np.flatnonzero(np.isnan(values))[0]}")
    return values


def tabulate(domain: Domain, start: PyTree | None = None, limit: int = LIMIT) -> Tables:
    """The world and the model of `domain`, with all states that can be reached from `start` in either of them.

    Without a `start`, from the domain's own (where it draws one, the one of seed 0).
    """
    start = domain.reset(jax.random.key(0)) if start is None else start
    structure = jax.tree.structure(start)
    found = _Numbers(limit, [np.asarray(leaf) for leaf in jax.tree.leaves(start)])
    parts: list[tuple[Table, ...]] = []
    while sum(len(part[0].legal) for part in parts) < len(found.states):
        begin = sum(len(part[0].legal) for part in parts)
        some = found.states[begin : begin + BATCHES[-1]]
        size = next(size for size in BATCHES if size >= len(some))
        padded = some + [some[-1]] * (size - len(some))
        states = jax.tree.unflatten(structure, [np.stack(leaf) for leaf in zip(*padded, strict=True)])
        legal = np.asarray(jax.vmap(domain.legal)(states)) if hasattr(domain, "legal") else None
        parts.append(tuple(_part(outcomes, legal, len(some), found) for outcomes in _expand(domain, states)))
    world, model = (_join([part[place] for part in parts]) for place in (0, 1))
    leaves = [np.stack(leaf) for leaf in zip(*found.states, strict=True)]
    return Tables(world, model, jax.tree.unflatten(structure, leaves))


def tabulate_simulator(simulator: Any, start: Hashable, limit: int = LIMIT) -> tuple[Table, list[Any]]:
    """A plain Python simulator as a table, and its states in their order; `start` is state 0.

    It has `num_actions`, and `outcomes(state, action)` or `step(state, action)`, and may have `legal_actions(state)`;
    states are hashable.
    """
    count = simulator.num_actions
    numbers, states, rows = {start: 0}, [start], []
    for state in states:  # grows on the way
        allowed = simulator.legal_actions(state) if hasattr(simulator, "legal_actions") else range(count)
        row: list[list[tuple[float, int, float, bool]]] = [[] for _ in range(count)]
        for action in allowed:
            for probability, (following, reward, terminal) in _outcomes_of(simulator, state, action):
                if not terminal and probability > 0 and following not in numbers:
                    _check_room(len(states), limit)
                    numbers[following] = len(states)
                    states.append(following)
                row[action].append((probability, numbers.get(following, 0), reward, bool(terminal)))
        rows.append(row)
    slots = max(len(outcomes) for row in rows for outcomes in row)
    empty = (0.0, 0, 0.0, True)
    filled = [[outcomes + [empty] * (slots - len(outcomes)) for outcomes in row] for row in rows]
    fields = np.array(filled, float).reshape(len(states), count, slots, 4)
    legal = np.array([[bool(outcomes) for outcomes in row] for row in rows])
    chances, places, paid, ends = np.moveaxis(fields, -1, 0)
    return Table(places.astype(int), chances, paid, ends.astype(bool), legal), states


class _Numbers:
    """Numbers for states, in the order in which they are found."""

    def __init__(self, limit: int, start: list[np.ndarray]):
        self.limit = limit
        self.states = [start]
        self._numbers = {self._pack(start): 0}

    def of(self, leaves: list[np.ndarray]) -> int:
        """The number of a state, which is a new one if the state is new."""
        packed = self._pack(leaves)
        if packed not in self._numbers:
            _check_room(len(self.states), self.limit)
            self._numbers[packed] = len(self.states)
            self.states.append(leaves)
        return self._numbers[packed]

    @staticmethod
    def _pack(leaves: list[np.ndarray]) -> bytes:
        return b"".join(leaf.tobytes() for leaf in leaves)


@jax.jit
def _expand(domain: Domain, states: PyTree) -> tuple[Any, ...]:
    """The outcomes of all actions in `states`, in the world and in the model."""
    every = jnp.arange(domain.num_actions)
    both = domain.world_outcomes, domain.model_outcomes
    return tuple(jax.vmap(jax.vmap(outcomes, (None, 0)), (0, None))(states, every) for outcomes in both)


def _part(outcomes: PyTree, legal: np.ndarray | None, count: int, found: _Numbers) -> Table:
    """The table of the first `count` states of a batch; new states are added to those `found`."""
    transitions, probability = jax.tree.map(lambda leaf: np.asarray(leaf)[:count], outcomes)
    probability = probability.astype(float)
    legal = np.ones(probability.shape[:2], bool) if legal is None else legal[:count]
    leaves = jax.tree.leaves(transitions.state)
    following = np.zeros(probability.shape, int)
    for place in np.argwhere((probability > 0) & ~transitions.terminal & legal[..., None]):
        where = tuple(place)
        following[where] = found.of([leaf[where] for leaf in leaves])
    probability /= probability.sum(axis=-1, keepdims=True)  # float32 is some 1e-8 off
    return Table(following, probability, transitions.reward.astype(float), transitions.terminal, legal)


def _join(parts: list[Table]) -> Table:
    return Table(*(np.concatenate(arrays) for arrays in zip(*(vars(part).values() for part in parts), strict=True)))


def _outcomes_of(simulator: Any, state: object, action: int) -> list[tuple[float, tuple[Any, float, bool]]]:
    if hasattr(simulator, "outcomes"):
        return list(simulator.outcomes(state, action))
    return [(1.0, simulator.step(state, action))]


def _check_room(count: int, limit: int) -> None:
    if count >= limit:
        raise ValueError(f"more than {limit:,} states can be reached; exact plans are for small worlds (limit={limit})")


def _steps(horizon: int) -> int:
    if horizon < 1:
        raise ValueError(f"horizon is {horizon}; give at least one step, or None to go on for ever")
    return horizon


def _best(q: np.ndarray) -> np.ndarray:
    """The first action of the best ones."""
    top = q.max(axis=1, keepdims=True)
    return np.asarray(np.argmax(q >= top - TIE * np.maximum(np.abs(top), 1.0), axis=1))


def _probabilities(policy: np.ndarray, legal: np.ndarray, horizon: int | None) -> np.ndarray:
    """A policy as probabilities, [states, actions] or [horizon, states, actions]."""
    states, actions = legal.shape
    if np.issubdtype(policy.dtype, np.integer) and policy.shape in ((states,), (horizon, states)):
        return np.asarray(np.eye(actions)[policy])
    if np.issubdtype(policy.dtype, np.floating) and policy.shape == (states, actions):
        return policy
    raise ValueError(
        f"policy has shape {policy.shape} and dtype {policy.dtype}; give actions [{states}] or [horizon, {states}] as "
        f"whole numbers, or probabilities [{states}, {actions}]"
    )


def _converge(sweep: Callable[[np.ndarray], np.ndarray], values: np.ndarray, gamma: float) -> np.ndarray:
    """`values` after as many sweeps as change anything."""
    for _ in range(SWEEPS):
        values, before = sweep(values), values
        change = np.max(np.abs(values - before), initial=0.0)
        if np.isnan(change) or change <= TOLERANCE * max(1.0, float(np.max(np.abs(values)))):
            return values
    raise ValueError(f"gamma is {gamma} and the values still grow after {SWEEPS:,} sweeps; give a horizon or gamma < 1")
