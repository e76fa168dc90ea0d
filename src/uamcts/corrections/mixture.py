"""Facts about random transitions: a mixture of what a model predicts and what was seen.

    P = (k * model + counts) / (k + n)

with n the number of times a transition was seen and k the weight of the model's own distribution, which agents learn
(`uamcts.corrections.fact_weights`). Where it is not learned, k = 10: while the model is right, the error that counts
bring in is greatest at n = k, where it is about 1 / (2 sqrt k) of the spread of a single draw, 16 % for k = 10 (50 %
for k = 1, so that one slip would rule a plan); and where the model is wrong it is outvoted after ten visits.

An outcome that the model holds impossible shows that the model is wrong here. k is therefore multiplied by the share of
what was seen that the model holds possible: after one impossible outcome, and nothing else, the fact alone counts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from uamcts.arguments import short_repr

KINDS = ("outcomes", "sample", "step")
"""What a model may offer; it is planned in by the first of these that it has."""
DRAWS = 64
"""How many draws stand for the distribution of a model that can only `sample`."""
PRIOR_WEIGHT = 10.0
"""k: how many real transitions the distribution of a random model is worth."""

Outcome = tuple[Any, float, bool]
"""The next state, the reward and whether the episode is over."""


def model_kind(model: Any) -> str:
    """Which of `outcomes`, `sample` and `step` a model is planned in by."""
    kind = next((name for name in KINDS if callable(getattr(model, name, None))), None)
    if kind is None:
        raise TypeError(
            f"model is {short_repr(model)}, which has none of outcomes(state, action), sample(state, action, rng) and "
            "step(state, action); give it one of them"
        )
    return kind


def predicted_outcomes(model: Any, state: Any, action: int) -> list[tuple[float, Outcome]]:
    """The outcomes that a model predicts, with probabilities: 64 draws, always the same, if it can only `sample`."""
    kind = model_kind(model)
    if kind == "outcomes":
        return [(float(probability), outcome) for probability, outcome in model.outcomes(state, action)]
    if kind == "step":
        return [(1.0, model.step(state, action))]
    rng = np.random.default_rng(0)
    return [(1.0 / DRAWS, model.sample(state, action, rng)) for _ in range(DRAWS)]


def holds_possible(
    model: Any, state: Any, action: int, outcome: tuple[Hashable, bool, float], key: Callable[[Any], Hashable]
) -> bool:
    """Whether a model predicts an outcome: (the key of the next state, the end, the reward)."""
    return are_possible(predicted_outcomes(model, state, action), outcome, key)


def are_possible(
    predicted: list[tuple[float, Outcome]],
    outcome: tuple[Hashable, bool, float],
    key: Callable[[Any], Hashable],
) -> bool:
    """Whether an outcome is among those that a model predicts."""
    return any(share > 0 and (key(after), bool(over), pays) == outcome for share, (after, pays, over) in predicted)


class Mixture(NamedTuple):
    """What is planned with for a transition that was seen."""

    model_share: float
    """The weight of the model; the rest is what was seen."""
    outcomes: list[tuple[float, Outcome]]
    """All outcomes of a model that lists them."""
    seen: list[tuple[float, Outcome]]
    """What was seen, with probabilities that sum to 1."""

    def draw(self, place: float) -> Outcome:
        """The outcome at `place` in [0, 1) among all of them."""
        return outcome_at(self.outcomes, place)

    def draw_seen(self, place: float) -> Outcome:
        """The outcome at `place` in [0, 1) among those seen."""
        return outcome_at(self.seen, place)


def outcome_at(outcomes: Sequence[tuple[float, Outcome]], place: float) -> Outcome:
    """The outcome at `place` of probabilities laid end to end."""
    for probability, outcome in outcomes:
        place -= probability
        if place < 0.0:
            return outcome
    return outcomes[-1][1]


def mix(
    believed: Sequence[tuple[float, Outcome]],
    counts: Sequence[Any],
    key: Callable[[Any], Hashable],
    kind: str,
    weight: float,
    chance: bool = False,
) -> Mixture:
    """Mixes what a model predicts with counts of what was seen (`following`, `terminal`, `times`, mean `reward`).

    Outcomes are equal if their states and ends are; the reward of a mixed one is the mean. Where the world is known to
    be random although the model is not (`chance`), an outcome that the model holds impossible is no proof against it.
    """
    total = sum(count.times for count in counts)
    k = weight * (1.0 if chance else share_possible(believed, counts, key, kind))
    return mix_by_share(believed, counts, key, kind, k / (k + total))


def share_possible(
    believed: Sequence[tuple[float, Outcome]], counts: Sequence[Any], key: Callable[[Any], Hashable], kind: str
) -> float:
    """The share of what was seen that a model holds possible."""
    known = {(key(state), bool(over)) for probability, (state, _, over) in believed if probability > 0.0}
    if kind == "sample" and len(known) == len(believed):
        return 1.0  # no two draws are equal: that a state was not drawn means nothing
    possible = sum(count.times for count in counts if (key(count.following), count.terminal) in known)
    return float(possible / sum(count.times for count in counts))


def mix_by_share(
    believed: Sequence[tuple[float, Outcome]],
    counts: Sequence[Any],
    key: Callable[[Any], Hashable],
    kind: str,
    share: float,
) -> Mixture:
    """Mixes what a model predicts, with this share, and what was seen."""
    total = sum(count.times for count in counts)
    seen = [(count.times / total, (count.following, count.reward, count.terminal)) for count in counts]
    return Mixture(share, merge([(share, believed), (1.0 - share, seen)], key) if kind == "outcomes" else [], seen)


def moments(parts: Sequence[tuple[float, Sequence[tuple[float, Any]]]]) -> tuple[float, float]:
    """Mean and variance of the rewards of weighted distributions of outcomes."""
    rewards = [(weight * chance, float(one[1])) for weight, outcomes in parts for chance, one in outcomes]
    mean = sum(chance * reward for chance, reward in rewards)
    return mean, sum(chance * (reward - mean) ** 2 for chance, reward in rewards)


def merge(
    parts: Sequence[tuple[float, Sequence[tuple[float, Outcome]]]], key: Callable[[Any], Hashable]
) -> list[tuple[float, Outcome]]:
    """Weighted distributions as one; equal outcomes count as one with their mean reward."""
    found: dict[Hashable, tuple[float, Outcome]] = {}
    for weight, outcomes in parts:
        for probability, (state, reward, over) in outcomes:
            place, added = (key(state), bool(over)), weight * probability
            before, (kept, mean, _) = found.get(place, (0.0, (state, reward, over)))
            if before + added > 0.0:
                found[place] = (before + added, (kept, mean + (reward - mean) * added / (before + added), over))
    return list(found.values())
