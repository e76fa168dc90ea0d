"""How much facts about random transitions count beside the model: as much as they have earned.

Counts of what was seen are mixed with a model as if it were worth k transitions. Where the model is right, counts bring
in nothing but noise, and k should be infinite; where it is wrong, a small k learns fastest. Both may hold in different
places of one world. So several k are weighed for every transition, by

- how well each has predicted real transitions lately, before they were counted, anywhere in the world, and
- how probable each makes what was seen of this very transition (the Dirichlet-multinomial distribution).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from uamcts.corrections.mixture import DRAWS, Mixture, mix_by_share, share_possible

LEVELS = (math.inf, 10.0, 2.0, 0.2)
"""How many transitions the model may be worth. The last value is for a world that is less random than the model, such
as an opponent who always gives the same answer."""
PRIOR = (0.792, 0.15, 0.05, 0.008)
"""How probable each of these is at first: a model is right until something speaks against it. The last one starts far
behind, as it gains some 3 nats from a single transition that is seen over and over, which says little about others."""
MEMORY = 200.0
"""Transitions that a score remembers, about."""
OTHER = 0.5
"""By this scores are multiplied whenever the model becomes another one."""
MOST_AHEAD, STEP = 6.0, 0.5
"""Nats by which one level is ahead of another at most: what holds elsewhere need not hold here. They are rounded to
such steps, so that plans do not change with every transition."""
IMPOSSIBLE, NEW = 1e-3, 0.05
"""The probability of an outcome that the model holds impossible, if the model is right, and if it is not."""
USUAL = 10.0
"""What a model is worth where nothing can be learned about that."""
LEAST_WORTH = 0.5
"""What it is worth at least where it considers impossible what was seen: a few transitions tell little about chance."""
NEGLIGIBLE = 0.2
"""Where facts would count less than this, the model is planned in as it is."""


class Told(NamedTuple):
    """What a model says about one outcome that was seen: its probability, the mean reward, and the variance of that."""

    chance: float
    reward: float = 0.0
    variance: float = 0.0


def told_about(
    believed: Sequence[tuple[float, Any]], counts: Sequence[Any], key: Callable[[Any], Hashable], slips: float = 0.0
) -> list[Told]:
    """What a model says about each outcome that was seen; outcomes are equal if their states and ends are.

    In a world where a share of all steps `slips`, a model that does not know of it holds any outcome possible.
    """
    sums: dict[Hashable, list[float]] = {}
    for chance, (state, reward, over) in believed:
        if chance > 0.0:
            found = sums.setdefault((key(state), bool(over)), [0.0, 0.0, 0.0])
            for place, term in enumerate((chance, chance * reward, chance * reward**2)):
                found[place] += term
    answer = []
    for count in counts:
        chance, first, second = sums.get((key(count.following), count.terminal), (0.0, 0.0, 0.0))
        mean = first / chance if chance > 0.0 else 0.0
        variance = max(second / chance - mean**2, 0.0) if chance > 0.0 else 0.0
        answer.append(Told((1.0 - slips) * chance, mean, variance) if chance > 0.0 else Told(slips, count.reward))
    return answer


def log_evidence(
    told: Sequence[Told], counts: Sequence[Any], draws: float = math.inf, undrawn: float = NEW
) -> tuple[float, ...]:
    """How probable each level makes what was seen, in nats.

    The model is known from so many draws; something else than was drawn then has the probability `undrawn`.
    """
    return tuple(_log_evidence(told, counts, min(level, draws), undrawn if level > draws else NEW) for level in LEVELS)


def _log_evidence(told: Sequence[Told], counts: Sequence[Any], level: float, new: float) -> float:
    nats, total, log, lgamma = 0.0, 0, math.log, math.lgamma
    for (chance, reward, variance), count in zip(told, counts, strict=True):
        times = count.times
        total += times
        if level == math.inf:
            nats += times * log(max(chance, IMPOSSIBLE))
        else:
            worth = level * (chance if chance > 0.0 else new)
            nats += lgamma(worth + times) - lgamma(worth)
        if chance <= 0.0:
            continue
        apart = abs(count.reward - reward)
        if variance > 1e-12 * max(1.0, reward**2):
            spread = variance / times + (0.0 if level == math.inf else variance / level)
            nats -= 0.5 * (apart**2 / spread + log(spread * times / variance))
        elif apart > 1e-6 * max(1.0, abs(reward)):
            nats += times * log(IMPOSSIBLE) if level == math.inf else log(NEW)
    return nats if level == math.inf else nats - lgamma(level + total) + lgamma(level)


class Question(NamedTuple):
    """A transition of which something was seen, beside what a model says about it."""

    believed: Sequence[tuple[float, Any]]
    key: Callable[[Any], Hashable]
    kind: str
    slips: float = 0.0
    """The share of steps that go wrong in a world that the model does not know to be random."""

    @property
    def is_continuum(self) -> bool:
        """Whether no two draws are equal: counts say nothing about probabilities then."""
        return self.kind == "sample" and len({self.key(state) for _, (state, _, _) in self.believed}) == DRAWS

    def evidence(self, counts: Sequence[Any]) -> tuple[float, ...]:
        """What speaks for each level, in nats."""
        told = told_about(self.believed, counts, self.key, self.slips)
        if self.kind != "sample":
            return log_evidence(told, counts)
        return log_evidence(told, counts, DRAWS, self.undrawn)

    @property
    def undrawn(self) -> float:
        """How probable it is that a further draw is none of those before (Good and Turing): as many as came once."""
        drawn = Counter((self.key(state), bool(over)) for _, (state, _, over) in self.believed)
        return (list(drawn.values()).count(1) + 0.5) / DRAWS


class Weigher(NamedTuple):
    """What the levels have scored so far, in nats: 0 for the best."""

    scores: tuple[float, ...] = (0.0,) * len(LEVELS)

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each level, in nats, by what holds everywhere."""
        return tuple(STEP * round(max(score, -MOST_AHEAD) / STEP) for score in self.scores)

    def for_other_model(self) -> Weigher:
        """What the scores are worth once the model is another one."""
        return Weigher(tuple(OTHER * score for score in self.scores))

    def add(self, question: Question, before: Sequence[Any], after: Sequence[Any]) -> Weigher:
        """The scores after a transition was seen once more: its counts before and after.

        What the model holds impossible says much about one place and little about others.
        """
        if question.is_continuum or any(
            one.chance <= 0.0 for one in told_about(question.believed, after, question.key)
        ):
            return self
        keep, nats = (
            1.0 - 1.0 / MEMORY,
            zip(self.scores, question.evidence(before), question.evidence(after), strict=True),
        )
        found = [keep * score + new - old for score, old, new in nats]
        return Weigher(tuple(one - max(found) for one in found))

    def mix(self, question: Question, counts: Sequence[Any], more: float = 1.0) -> Mixture | None:
        """What a model predicts and what was seen; None if the model is planned in as it is.

        All levels are multiplied by `more`.
        """
        believed, key, kind, slips = question
        total = sum(count.times for count in counts)
        possible = 1.0 if slips else share_possible(believed, counts, key, kind)
        if question.is_continuum:
            share = USUAL * more / (USUAL * more + total)
        else:
            share = self.model_share(question.evidence(counts), total, possible, more)
        return None if share > 1.0 - NEGLIGIBLE else mix_by_share(believed, counts, key, kind, share)

    def model_share(self, evidence: Sequence[float], total: int, possible: float, more: float = 1.0) -> float:
        """The weight of the model in a mixture with what was seen.

        Args:
            evidence: What speaks for each level here, in nats.
            total: How often the transition was seen.
            possible: The share of this that the model holds possible.
            more: By how much every level is multiplied.
        """
        nats = [math.log(prior) + one + two for prior, one, two in zip(PRIOR, self.weights, evidence, strict=True)]
        odds, found = [math.exp(max(one - max(nats), -50.0)) for one in nats], 0.0
        for level, one in zip(LEVELS, odds, strict=True):
            worth = (level if possible > 1.0 - 1e-9 or level == math.inf else max(level * possible, LEAST_WORTH)) * more
            found += one * (1.0 if level == math.inf else worth / (worth + total))
        return found / sum(odds)
