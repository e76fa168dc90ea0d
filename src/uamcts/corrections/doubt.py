"""Doubt: where the corrected model is still wrong, credibly beyond the usual error of this world.

A doubtful transition is remembered as a ball: all transitions with the same action whose inputs lie within its radius
are doubtful too. A ball reaches half a standard deviation at most, and half the way to the nearest transition with the
same action that was predicted correctly, so that doubt spreads only as far as nothing speaks against it.
"""

from __future__ import annotations

import functools
import math
from array import array
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from uamcts.types import PyTree

RADIUS = 0.5
"""How far a ball reaches at most, in standard deviations of the inputs; inputs that are 0 or 1 are not scaled."""
BALLS = 64
"""The most balls; beyond that, the latest count."""
COMPARED = 512
"""How many of the latest correct transitions may limit a ball."""
FACTOR, DEVIATIONS = 12.0, 3.0
"""An error is above the usual one if it exceeds the median so many times, and by so many deviations of logarithms."""
NEIGHBOURS, REACH = 5, 1.0
"""How many of the nearest transitions, and how far away, must agree that one is doubtful."""
SCATTERED, MOSTLY = 0.5, 0.75
"""Errors are scattered if fewer of their nearest neighbours are wrong as well; one then counts where so many are."""
MOST_LEVELS = 5000
"""Places whose doubt is kept, so that states that recur are looked up."""
FEWEST = 6
"""Transitions from which one can tell what is usual."""
MOST_DOUBTFUL = 0.5
"""Where a larger share of transitions is doubtful, doubt has nothing to choose between."""
SMALLEST_OF_STATE, SMALLEST_OF_REST = 1e-4, 1e-3
"""Smaller errors are no reason to avoid a transition, not even where everything else is predicted exactly: a hundredth
of the spread of the states, or a thirtieth of that of the rewards."""
ALONE = 0.02
"""How improbable deviations must be as chance, before a transition of a random world is doubtful."""


def usual_error(errors: np.ndarray) -> float:
    """The error up to which a transition counts as usual, by all errors seen; exactly 0 where most of them are 0."""
    if len(errors) < FEWEST or np.median(errors) <= 0.0:
        return 0.0
    logs = np.log(np.maximum(errors, 1e-12))
    middle = float(np.median(logs))
    spread = 1.4826 * float(np.median(np.abs(logs - middle)))
    return math.exp(middle + max(math.log(FACTOR), DEVIATIONS * spread))


class Evidence(NamedTuple):
    """What was seen of each transition: arrays [transitions], the latest last."""

    points: np.ndarray
    """Where it is: its inputs, [transitions, inputs]."""
    actions: np.ndarray
    state_errors: np.ndarray
    """The mean squared error of the next state."""
    other_errors: np.ndarray
    """That of the reward and the end: an end that nobody predicted is an error of another kind than a little noise."""
    times: np.ndarray
    deviations: np.ndarray
    """How often it came out differently from what is predicted."""

    @property
    def usual_errors(self) -> tuple[float, float]:
        """What is usual for errors of the next state, and for others."""
        return usual_error(self.state_errors), usual_error(self.other_errors)


def doubtful(seen: Evidence, slips: float, usual: tuple[float, float] | None = None) -> np.ndarray:
    """Which transitions are wrong beyond what is usual in this world, bool [transitions].

    In a world that is predicted exactly, one error is proof. Where small errors are usual, a large one counts only
    together with others near it: at the edge of what is predicted, noise decides whether an episode ends. In a random
    world, a transition counts if it deviates more often than by chance; `slips` is how often transitions deviate.
    `usual` are `seen.usual_errors`, where they are known already.
    """
    usual, (points, _, _) = usual or seen.usual_errors, standardise(seen.points)
    found = seen.state_errors > max(usual[0], SMALLEST_OF_STATE)
    found |= seen.other_errors > max(usual[1], SMALLEST_OF_REST)
    if max(usual) > 0.0 and found.any():
        found &= _supported(seen, points, found, 0.5)
    once = found & (seen.times == 1)
    if once.sum() >= FEWEST and _is_scattered(seen, points, found, once):
        found &= ~once | _supported(seen, points, found, MOSTLY)
    if slips > 0.0:
        share = np.clip(seen.deviations / np.maximum(seen.times, 1), 1e-9, 1 - 1e-9)
        slips = min(slips, 0.5)
        distance = share * np.log(share / slips) + (1 - share) * np.log((1 - share) / (1 - slips))
        found &= (share > slips) & (seen.times * distance > -math.log(ALONE))  # Chernoff's bound on the binomial tail
    if len(found) >= 20 and found.mean() > MOST_DOUBTFUL:
        return np.zeros(len(found), bool)
    return found


def _supported(seen: Evidence, points: np.ndarray, found: np.ndarray, share: float) -> np.ndarray:
    """Which transitions have others like them nearby: a share of the five nearest, itself included, and two."""
    answer = np.zeros(len(found), bool)
    for action in np.unique(seen.actions[found]):
        same = np.flatnonzero(seen.actions == action)
        like = same[found[same]]
        close = _squares(points, like, like) <= REACH**2
        rows = like[close.sum(axis=1) >= 2]  # the others stand alone
        apart = _squares(points, rows, same)
        apart[apart > REACH**2] = np.inf
        nearest = np.argsort(apart, axis=1, kind="stable")[:, :NEIGHBOURS]
        near = np.take_along_axis(apart, nearest, axis=1) < np.inf
        answer[rows] = (near & found[same[nearest]]).sum(axis=1) >= np.maximum(2, share * near.sum(axis=1))
    return answer


def _is_scattered(seen: Evidence, points: np.ndarray, found: np.ndarray, once: np.ndarray) -> bool:
    """Whether most wrong transitions that were seen once have one as their nearest that is right: that is chance.

    Transitions that were seen again and were wrong again are a matter of place, whatever is near them.
    """
    latest, wrong = np.flatnonzero(once)[-COMPARED:], np.zeros(0, bool)
    for action in np.unique(seen.actions[latest]):
        same, rows = np.flatnonzero(seen.actions == action), latest[seen.actions[latest] == action]
        if same.size > 1:
            apart = _squares(points, rows, same)
            apart[same == rows[:, None]] = np.inf
            wrong = np.append(wrong, found[same[np.argmin(apart, axis=1)]])
    return len(wrong) >= FEWEST and float(np.mean(wrong)) < SCATTERED


def _squares(points: np.ndarray, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Squared distances, [rows, others]; row by row, because points may have many coordinates."""
    there, found = points[others], np.empty((len(rows), len(others)))
    for place, row in enumerate(rows):
        found[place] = ((there - points[row]) ** 2).sum(axis=1)
    return found


def standardise(inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs in standard deviations, with the offset and the scale; inputs that are 0 or 1 stay as they are."""
    inputs = inputs.astype(np.float64)
    names = np.all((inputs == 0) | (inputs == 1), axis=0)
    deviation = inputs.std(axis=0)
    offset = np.where(names, 0.0, inputs.mean(axis=0))
    scale = np.where(names | (deviation < 1e-9), 1.0, deviation)
    return (inputs - offset) / scale, offset, scale


class Doubt(eqx.Module):
    """Balls of doubtful transitions."""

    centres: Float[Array, "balls inputs"]
    actions: Int[Array, " balls"]
    radii: Float[Array, " balls"]
    """Less than 0 where there is no ball."""
    levels: Float[Array, " balls"]
    """The mean U of the transition."""
    offset: Float[Array, " inputs"]
    scale: Float[Array, " inputs"]

    @classmethod
    def fit(cls, inputs: np.ndarray, actions: np.ndarray, errors: np.ndarray, wrong: np.ndarray) -> Self | None:
        """Balls around the transitions that are `wrong`; None without any. The latest transitions are the last."""
        if not wrong.any():
            return None
        points, offset, scale = standardise(inputs)
        right, numbers = np.flatnonzero(~wrong)[-COMPARED:], actions.tolist()
        others = {action: points[right[actions[right] == action]] for action in set(actions[wrong].tolist())}
        balls: list[tuple[int, float]] = []
        for row in np.flatnonzero(wrong)[::-1].tolist():
            apart = np.sqrt(((others[numbers[row]] - points[row]) ** 2).sum(axis=1))
            radius = min(RADIUS, 0.5 * float(apart.min())) if apart.size else RADIUS
            if radius == 0.0 and (apart == 0).sum() > 1:
                continue  # the same inputs were right more often
            covered = any(
                ((points[other] - points[row]) ** 2).sum() < (reach - radius) ** 2
                for other, reach in balls
                if reach > radius and numbers[other] == numbers[row]
            )
            if not covered:
                balls.append((row, max(radius, 1e-6)))
            if len(balls) == BALLS:
                break
        if not balls:
            return None
        rows, radii = np.array([row for row, _ in balls]), np.array([radius for _, radius in balls])
        spare = BALLS - len(rows)
        parts: list[Any] = [  # of NumPy: they are compared and looked up on the host before a search takes them
            np.pad(points[rows], ((0, spare), (0, 0))).astype(np.float32),
            np.pad(actions[rows], (0, spare)).astype(np.int32),
            np.pad(radii, (0, spare), constant_values=-1.0).astype(np.float32),
            np.pad(errors[rows], (0, spare)).astype(np.float32),
            offset.astype(np.float32),
            scale.astype(np.float32),
        ]
        return cls(*parts)

    @property
    def count(self) -> int:
        """The number of balls."""
        return int(np.sum(np.asarray(self.radii) >= 0))

    def __call__(self, inputs: Float[Array, " inputs"], action: Int[Array, ""]) -> Float[Array, ""]:
        """U of a transition."""
        apart = jnp.sum((self.centres - (inputs - self.offset) / self.scale) ** 2, axis=1)
        inside = (self.actions == action) & (apart <= self.radii**2) & (self.radii >= 0)
        return jnp.max(jnp.where(inside, self.levels, 0.0))

    def uncertainty(self, inputs: Callable[[PyTree], Any], num_actions: int) -> Any:
        """The uncertainty that the compiled search is given."""
        del num_actions
        return lambda state, action: self(inputs(state), action)

    def table(self) -> DoubtTable:
        """The same in NumPy, for the plain engine."""
        return DoubtTable(self)


NO_BALLS: tuple[list[tuple[float, float]], list[Any]] = ([], [])


class DoubtTable:
    """Balls in NumPy: U of all actions for rows of inputs."""

    def __init__(self, doubt: Doubt):
        here = np.asarray(doubt.radii) >= 0
        self.centres = np.asarray(doubt.centres, np.float64)[here]
        self.squares = np.asarray(doubt.radii, np.float64)[here] ** 2
        self.actions, self.levels = np.asarray(doubt.actions)[here], np.asarray(doubt.levels, np.float64)[here]
        self.offset, self.scale = np.asarray(doubt.offset, np.float64), np.asarray(doubt.scale, np.float64)
        self.doubted = frozenset(self.actions.tolist())
        """The actions that have balls."""
        self._starts, self._sizes = self.offset.tolist(), self.scale.tolist()
        self._levels_by_place: dict[tuple[tuple[float, ...], int], float] = {}

    def level(self, values: tuple[float, ...], action: int) -> float:
        """U of one transition, for inputs as Python numbers; a TypeError if they are none."""
        box, balls = self._lists.get(action, NO_BALLS)
        if not balls:
            return 0.0
        for value, (low, high) in zip(values, box, strict=True):
            if not low <= value <= high:
                return 0.0
        found = self._levels_by_place.get((values, action))
        if found is None:
            found = self._levels_by_place[values, action] = self._level(values, balls)
            if len(self._levels_by_place) > MOST_LEVELS:
                self._levels_by_place.clear()
        return found

    def _level(self, values: tuple[float, ...], balls: list[Any]) -> float:
        """The highest level of the balls around a place."""
        rounded = array("f", values)  # as all inputs are
        point = [(value - start) / size for value, start, size in zip(rounded, self._starts, self._sizes, strict=True)]
        best = 0.0
        for centre, square, level in balls:
            if level > best:
                apart = 0.0
                for one, other in zip(point, centre, strict=True):
                    apart += (one - other) ** 2
                if apart <= square:
                    best = level
        return best

    @functools.cached_property
    def _lists(self) -> dict[int, tuple[list[tuple[float, float]], list[Any]]]:
        """For each action a box around its balls, a little larger, and (centre, square, level) of each ball."""
        found = {}
        for action in self.doubted:
            own = self.actions == action
            reach = np.sqrt(self.squares[own] + 1e-9)[:, None]
            low, high = (self.offset + self.scale * (self.centres[own] + sign * reach) for sign in (-1, 1))
            spare = 1e-6 * (np.abs(low) + np.abs(high))
            box = zip((low - spare).min(axis=0).tolist(), (high + spare).max(axis=0).tolist(), strict=True)
            columns = (self.centres[own].tolist(), (self.squares[own] + 1e-9).tolist(), self.levels[own].tolist())
            found[action] = (list(box), list(zip(*columns, strict=True)))
        return found

    def __call__(self, inputs: np.ndarray, num_actions: int) -> list[list[float]]:
        """U of every action, [rows][actions]."""
        points = (inputs - self.offset) / self.scale
        apart = np.sum((points[:, None] - self.centres[None]) ** 2, axis=-1)
        rows, balls = np.nonzero(apart <= self.squares + 1e-9)
        found = np.zeros((len(inputs), num_actions))
        known = self.actions[balls] < num_actions
        np.maximum.at(found, (rows[known], self.actions[balls[known]]), self.levels[balls[known]])
        answer: list[list[float]] = found.tolist()
        return answer
