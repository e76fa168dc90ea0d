"""A tilt: outcomes of a random simulator with certain features are more likely than listed, in all states alike.

Rates (`uamcts.corrections.outcome_rates`) go by the place of an outcome in the list. But the same kind of outcome may
have a different place in every state: an opponent that comes nearer steps to the north here and to the west there. So
outcomes are described by numbers phi that mean the same everywhere: how a number of the state changes, how far two
numbers are apart afterwards, whether they are equal, the reward, the end, the place in the list. The listed
probabilities p are multiplied by exp(w . phi),

    p'(o) = p(o) exp(w . phi(o)) / sum over all outcomes,

which is the distribution nearest to the listed one in which phi has the mean that was seen. The weights w maximise the
likelihood of what was seen, with a normal prior around 0, so that nothing changes where nothing was seen to differ.

The weights must also hold in states that were never seen. This is judged by how well weights that were fitted to all
other transitions predict a transition (`without`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from uamcts.arguments import real, whole
from uamcts.corrections.tilt_terms import Listed, Term, Terms
from uamcts.types import PyTree

PRECISION = 1.0
"""The precision of the prior, where one standard deviation of a term multiplies a probability by exp(1)."""
ROUNDS, ENOUGH = 12, 1e-4
"""The most Newton steps of a fit, which ends once weights change by less than `ENOUGH`."""
MOST_KEPT = 20_000
"""How many transitions' probabilities are kept."""
CLEAR = math.log(1.5)
"""A report names terms that multiply probabilities by exp of this or more."""
SHOWN = 3
"""How many terms a report names at most."""

ListsOutcomes: TypeAlias = Any
"""A simulator with `outcomes`, as a planner sees it."""


class Seen(NamedTuple):
    """What is listed for one transition, and how often each outcome was seen: an array for each real outcome.

    Several listed outcomes may be what happened: they share its count.
    """

    listed: Listed
    matches: tuple[np.ndarray, ...]
    """Which of the listed outcomes each real one is."""
    times: tuple[float, ...]
    """How much each real one counts."""

    def counts(self, chances: np.ndarray) -> np.ndarray:
        """How often each listed outcome was seen, if they have these probabilities."""
        total = np.zeros(len(chances))
        for match, times in zip(self.matches, self.times, strict=True):
            share = np.where(match, np.maximum(chances, 1e-12), 0.0)
            total += times * share / share.sum()
        return total


@dataclass(frozen=True, eq=False)
class OutcomeTilt:
    """Weights of terms that describe outcomes."""

    terms: Terms
    weights: np.ndarray
    """[terms]"""
    information: np.ndarray
    """The second derivative of what a fit minimises, [terms, terms]."""

    def tilt(self, listed: Listed) -> np.ndarray:
        """The probabilities of listed outcomes, corrected."""
        return _tilted(listed.chances, self.terms.describe(listed), self.weights)

    def without(self, seen: Seen) -> Self:
        """What a fit to all other transitions would have found, by one Newton step."""
        phi = self.terms.describe(seen.listed)
        chances = _tilted(seen.listed.chances, phi, self.weights)
        gradient, curvature = _derivatives(phi, chances, seen.counts(chances))
        try:
            rest = np.linalg.cholesky(self.information - curvature)
            step = np.linalg.solve(rest.T, np.linalg.solve(rest, gradient))
        except np.linalg.LinAlgError:  # it was not part of the fit
            step = np.linalg.solve(self.information, gradient)
        return type(self)(self.terms, self.weights - step, self.information)

    def is_like(self, other: OutcomeTilt | None, most: float = 0.1) -> bool:
        """Whether it multiplies all probabilities by nearly the same as another tilt."""
        if other is None or other.terms.chosen != self.terms.chosen:
            return False
        scales = self.terms.scales
        return bool(np.abs(self.weights - other.weights * scales / other.terms.scales).max() <= most)

    def describe(self, names: Sequence[str] = (), action_names: Sequence[str] = ()) -> str:
        """What happens more often than listed, in words."""
        effect = self.weights / self.terms.scales  # of one unit
        order = np.argsort(-np.abs(self.weights), kind="stable")
        said: list[str] = []
        for place in order[:SHOWN].tolist():
            if abs(effect[place]) >= CLEAR or not said:
                words = self.terms.chosen[place].describe(names, action_names, bool(effect[place] > 0))
                said.append(f"{words} are {math.exp(min(abs(effect[place]), 7.0)):.2g} times as likely as listed")
        return "; ".join(said)

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that was learned, to be saved."""
        words = json.dumps([list(term) for term in self.terms.chosen]).encode()
        return {
            "tilt.terms": np.frombuffer(words, np.uint8), "tilt.scales": self.terms.scales,
            "tilt.weights": self.weights, "tilt.information": self.information,
        }  # fmt: skip

    @classmethod
    def of(cls, arrays: dict[str, np.ndarray]) -> Self:
        """Restores what `arrays` returned; raises a ValueError if it does not fit."""
        names = {"tilt.terms", "tilt.scales", "tilt.weights", "tilt.information"}
        if arrays.keys() != names or arrays["tilt.terms"].dtype != np.uint8:
            raise ValueError("the weights of outcomes are missing or do not fit")
        chosen = tuple(
            Term(str(kind), *(whole("term", number, -1) for number in numbers))
            for kind, *numbers in json.loads(arrays["tilt.terms"].tobytes().decode())
        )
        scales, weights, information = (arrays[f"tilt.{name}"] for name in ("scales", "weights", "information"))
        size = len(chosen)
        for array, shape in ((scales, (size,)), (weights, (size,)), (information, (size, size))):
            if array.shape != shape or array.dtype != float or not np.isfinite(array).all():
                raise ValueError("the weights of outcomes do not fit")
        real("scale", float(scales.min()), "it must be above 0", lambda scale: scale > 0)
        return cls(Terms(chosen, scales), weights, information)


def fit_tilt(seen: Sequence[Seen], names: Sequence[str], before: OutcomeTilt | None = None) -> OutcomeTilt | None:
    """Fits weights to what was seen; None if listed outcomes do not differ in anything.

    `names`: what the numbers of a state are called. Numbers that share a name are not used.
    """
    terms = Terms.choose([one.listed for one in seen], names)
    if terms is None:
        return None
    phi, listed = _stack([terms.describe(one.listed) for one in seen], [one.listed.chances for one in seen])
    weights = np.zeros(len(terms.chosen))
    if before is not None:  # the weights per unit of terms that stay
        known = dict(zip(before.terms.chosen, before.weights / before.terms.scales, strict=True))
        weights = np.array([known.get(term, 0.0) for term in terms.chosen]) * terms.scales
    chances = _tilted(listed, phi, weights)
    counts = np.zeros(listed.shape)
    for row, one in enumerate(seen):
        size = len(one.listed.chances)
        counts[row, :size] = one.counts(chances[row, :size])
    return _newton(terms, phi, listed, counts, weights)


def _newton(terms: Terms, phi: np.ndarray, listed: np.ndarray, counts: np.ndarray, weights: np.ndarray) -> OutcomeTilt:
    loss, information = _loss(phi, listed, counts, weights), np.eye(len(weights))
    for _ in range(ROUNDS):
        gradient, curvature = _derivatives(phi, _tilted(listed, phi, weights), counts)
        information = curvature + PRECISION * np.eye(len(weights))
        step = np.linalg.solve(information, gradient - PRECISION * weights)
        for _ in range(6):
            better = _loss(phi, listed, counts, weights + step)
            if better <= loss + 1e-9:
                weights, loss = weights + step, better
                break
            step = 0.5 * step
        else:
            break
        if np.abs(step).max() < ENOUGH:
            break
    return OutcomeTilt(terms, weights, information)


def _loss(phi: np.ndarray, listed: np.ndarray, counts: np.ndarray, weights: np.ndarray) -> float:
    chances = _tilted(listed, phi, weights)
    nats = np.where(counts > 0.0, counts * np.log(np.maximum(chances, 1e-30)), 0.0)
    return float(0.5 * PRECISION * weights @ weights - nats.sum())


def _tilted(listed: np.ndarray, phi: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Probabilities [..., outcomes] with terms [..., outcomes, terms]."""
    nats = np.where(listed > 0.0, phi @ weights, -np.inf)
    found = listed * np.exp(nats - nats.max(axis=-1, keepdims=True))
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


def _derivatives(phi: np.ndarray, chances: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The gradient of the likelihood, and its second derivative with the other sign."""
    size, times = phi.shape[-1], counts.sum(axis=-1, keepdims=True)
    gradient = ((counts - times * chances)[..., None] * phi).reshape(-1, size).sum(axis=0)
    apart = phi - np.einsum("...o,...ot->...t", chances, phi)[..., None, :]
    weighted = (apart * (times * chances)[..., None]).reshape(-1, size)
    return gradient, weighted.T @ apart.reshape(-1, size)


def _stack(phi: Sequence[np.ndarray], chances: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Lists of outcomes of any length as arrays, padded with outcomes of probability 0."""
    most = max(map(len, chances))
    stacked, listed = np.zeros((len(phi), most, phi[0].shape[1])), np.zeros((len(phi), most))
    for row, (terms, one) in enumerate(zip(phi, chances, strict=True)):
        stacked[row, : len(one)], listed[row, : len(one)] = terms, one
    return stacked, listed


class TiltedSimulator:
    """A random simulator with `outcomes` whose probabilities are corrected by a tilt."""

    kind = "outcomes"

    def __init__(self, simulator: ListsOutcomes, tilt: OutcomeTilt):
        self.simulator, self.applied = simulator, tilt
        self.num_actions, self.name = simulator.num_actions, simulator.name
        self.identity = self.key = simulator.key
        self._kept: dict[tuple[Hashable, int], list[tuple[float, Any]]] = {}
        if hasattr(simulator, "legal_actions"):
            self.legal_actions = simulator.legal_actions

    def outcomes(self, state: PyTree, action: int) -> list[tuple[float, Any]]:
        """All outcomes of a step."""
        place = self.key(state), action
        found = self._kept.get(place)
        if found is None:
            found = self._tilt(state, action)
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[place] = found
        return found

    def _tilt(self, state: PyTree, action: int) -> list[tuple[float, Any]]:
        found: list[tuple[float, Any]] = self.simulator.outcomes(state, action)
        if len(found) < 2:
            return found
        listed = Listed.of(self.simulator.features, state, action, found)
        tilted = self.applied.tilt(listed).tolist()
        return [(chance, outcome) for chance, (_, outcome) in zip(tilted, found, strict=True)]
