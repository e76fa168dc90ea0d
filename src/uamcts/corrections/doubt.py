"""Doubt: where the corrected model is still wrong, credibly beyond the usual error of this world.

A doubtful transition is remembered as a ball: all transitions with the same action whose inputs lie within its radius
are doubtful too. A ball reaches half a standard deviation at most, and half the way to the nearest transition with the
same action that was predicted correctly, so that doubt spreads only as far as nothing speaks against it.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from jaxtyping import Float, Int

from uamcts.corrections.evidence import COMPARED, standardise
from uamcts.runtime.lazy_jax import jax, jnp, when_loaded
from uamcts.types import Array, PyTree

RADIUS = 0.5
"""How far a ball reaches at most, in standard deviations of the inputs; inputs that are 0 or 1 are not scaled."""
BALLS = 64
"""The most balls; beyond that, the latest count."""
FEW_BALLS = 16
"""Up to so many are looked at in a smaller compiled program, which takes a fraction of the time."""
MOST_LEVELS = 5000
"""Places whose doubt is kept, so that states that recur are looked up."""


@dataclass(frozen=True, eq=False)
class Doubt:
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

    def trim(self) -> Self:
        """Leaves out most of the places that hold no ball. There are two sizes, so that few programs are compiled."""
        most = len(self.radii) if self.count > FEW_BALLS else FEW_BALLS
        parts = {name: getattr(self, name)[:most] for name in ("centres", "actions", "radii", "levels")}
        return replace(self, **parts)

    def table(self) -> DoubtTable:
        """The same in NumPy, for the plain engine."""
        return DoubtTable(self)


when_loaded(lambda: jax.tree_util.register_dataclass(Doubt))

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
