"""Which transitions are doubtful: the corrected model is wrong there, credibly beyond the usual error of this world."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

COMPARED = 512
"""How many of the latest transitions are compared with each other."""
FACTOR, DEVIATIONS = 12.0, 3.0
"""An error is above the usual one if it exceeds the median so many times, and by so many deviations of logarithms."""
NEIGHBOURS, REACH = 5, 1.0
"""How many of the nearest transitions, and how far away, must agree that one is doubtful."""
SCATTERED, AROUND = 0.5, 16
"""Errors are scattered if fewer of their nearest neighbours are wrong as well; 0 is the share that is wrong anyway, and
1 is all of them. An error then counts where more of so many around it are wrong than chance explains."""
FEWEST, FEWEST_SCATTERED = 6, 3
"""Transitions from which one can tell what is usual, and errors from which one can tell whether they are scattered."""
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


def doubtful(
    seen: Evidence, slips: float, usual: tuple[float, float] | None = None, corrected: bool = False
) -> np.ndarray:
    """Which transitions are wrong beyond what is usual in this world, bool [transitions].

    In a world that is predicted exactly, one error is proof. Where small errors are usual, or where the simulator is
    `corrected` by what was fitted, a large one counts only together with others near it: at the edge of what is
    predicted, little decides whether an episode ends, and to avoid its end may be to avoid its goal. In a random
    world, a transition counts if it deviates more often than by chance; `slips` is how often transitions deviate. Where
    states are no cells, errors that are scattered among correct predictions have no place to avoid.
    `usual` are `seen.usual_errors`, where they are known already.
    """
    usual, (points, _, _) = usual or seen.usual_errors, standardise(seen.points)
    found = seen.state_errors > max(usual[0], SMALLEST_OF_STATE)
    found |= seen.other_errors > max(usual[1], SMALLEST_OF_REST)
    if (max(usual) > 0.0 or (corrected and not are_cells(seen.points))) and found.any():
        found &= _supported(seen, points, found, 0.5)
    once = found & (seen.times == 1)
    if once.sum() >= FEWEST_SCATTERED and not are_cells(seen.points) and _is_scattered(seen, points, found, once):
        found &= ~once | _is_concentrated(seen, points, found, once)
    if slips > 0.0:
        found &= _exceeds(seen.deviations, seen.times, min(slips, 0.5), ALONE)
    if len(found) >= (20 if are_cells(seen.points) else FEWEST) and found.mean() > MOST_DOUBTFUL:
        return np.zeros(len(found), bool)
    return found


def are_cells(points: np.ndarray) -> bool:
    """Whether states are described by whole numbers: then each is a place of its own, whatever is next to it."""
    return bool(np.all(points == np.round(points)))


def _supported(seen: Evidence, points: np.ndarray, found: np.ndarray, share: float) -> np.ndarray:
    """Which transitions have others like them nearby: a share of the five nearest, itself included, and two."""
    answer = np.zeros(len(found), bool)
    for action in np.unique(seen.actions[found]):
        same = np.flatnonzero(seen.actions == action)
        like = same[found[same]]
        close = _squares(points, like, like) <= REACH**2
        rows = like[close.sum(axis=1) >= 2]  # the others stand alone
        nearest, near = _nearest(points, rows, same, NEIGHBOURS)
        answer[rows] = (near & found[nearest]).sum(axis=1) >= np.maximum(2, share * near.sum(axis=1))
    return answer


def _is_concentrated(seen: Evidence, points: np.ndarray, found: np.ndarray, once: np.ndarray) -> np.ndarray:
    """Which transitions lie where more are wrong than elsewhere, by more than chance explains for so many."""
    answer = np.zeros(len(found), bool)
    for action in np.unique(seen.actions[once]):
        same = np.flatnonzero(seen.actions == action)
        rows = same[once[same]][-COMPARED:]
        nearest, near = _nearest(points, rows, same, AROUND + 1)
        wrong = (near & found[nearest])[:, 1:].sum(axis=1)  # the first is itself
        rate = float(np.clip(found[same].mean(), 1e-3, 1 - 1e-3))
        answer[rows] = _exceeds(wrong, near[:, 1:].sum(axis=1), rate, ALONE / len(rows))
    return answer


def _is_scattered(seen: Evidence, points: np.ndarray, found: np.ndarray, once: np.ndarray) -> bool:
    """Whether the nearest to wrong transitions that were seen once are wrong hardly more often than others.

    That is chance, or something that no state shows: where half of all transitions are wrong, half of the nearest ones
    are. Transitions that were seen again and were wrong again are a matter of place, whatever is near them.
    """
    latest, wrong, anyway = np.flatnonzero(once)[-COMPARED:], np.zeros(0, bool), np.zeros(0)
    for action in np.unique(seen.actions[latest]):
        same, rows = np.flatnonzero(seen.actions == action), latest[seen.actions[latest] == action]
        if same.size > 1:
            apart = _squares(points, rows, same)
            apart[same == rows[:, None]] = np.inf
            wrong = np.append(wrong, found[same[np.argmin(apart, axis=1)]])
            anyway = np.append(anyway, np.full(len(rows), (found[same].sum() - 1) / (same.size - 1)))
    return len(wrong) >= FEWEST_SCATTERED and float(np.mean(wrong - anyway)) < SCATTERED * float(np.mean(1 - anyway))


def _exceeds(hits: np.ndarray, times: np.ndarray, rate: float, level: float) -> np.ndarray:
    """Whether there are more hits than a rate explains: Chernoff's bound on the binomial tail is below a level."""
    share = np.clip(hits / np.maximum(times, 1), 1e-9, 1 - 1e-9)
    distance = share * np.log(share / rate) + (1 - share) * np.log((1 - share) / (1 - rate))
    return np.asarray((share > rate) & (times * distance > -math.log(level)))


def _nearest(points: np.ndarray, rows: np.ndarray, same: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The transitions nearest to each of some, itself first, [rows, count], and whether they are within reach."""
    apart = _squares(points, rows, same)
    order = np.argsort(np.where(same == rows[:, None], -1.0, apart), axis=1, kind="stable")[:, :count]
    return same[order], np.take_along_axis(apart, order, axis=1) <= REACH**2


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
