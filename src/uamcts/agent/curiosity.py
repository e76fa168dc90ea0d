"""Actions that were hardly ever tried: one may pay more than is believed, if the simulator was wrong about others.

A plan never takes what the simulator believes bad, so nothing ever contradicts that. How far off predictions were when
other actions were tried says how far off they may be for one that was not: errors are taken to be drawn from a normal
distribution around 0 with that spread. An action is tried if what is expected to be gained by knowing it, over as many
steps as the agent has lived so far, is more than what trying it is believed to cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from uamcts.arguments import flag, real, whole

ENOUGH = 20
"""After so many tries an action is known: corrections say what it pays."""
SHARE = 0.1
"""The share of an agent's steps, beyond a first one, that may be spent on actions believed to be worse."""
FEW, MOST, CREDIBLE = 5, 60, 2.0
"""The first tries of an action end when corrections change and there were at least so many, or at so many in all. Fewer
are enough if they differ from the prediction by so many standard errors."""
BELIEVED = 2.0
"""Tries that the model's own variance of rewards is worth."""


class Tries(NamedTuple):
    """What an action paid when it was first tried, relative to what was predicted at the time."""

    times: int = 0
    """All tries."""
    early: int = 0
    """The first ones, before corrections have learned from them."""
    mean: float = 0.0
    squares: float = 0.0
    """Of the first ones: the sum of squared deviations from the mean."""
    closed: bool = False
    """Whether corrections have learned from them."""

    def add(self, error: float) -> Tries:
        """The same with another try."""
        count, apart = self.early + 1, error - self.mean
        mean = self.mean + apart / count
        return Tries(self.times + 1, count, mean, self.squares + apart * (error - mean), count >= MOST)

    def noise(self, usual: float) -> float:
        """The variance of its rewards, at least that of other actions."""
        return max(usual, self.squares / max(self.early - 1, 1))

    def error(self, usual: float, chance: float) -> float:
        """The squared mean of its first tries, less what is due to chance.

        Where an action is off in a few places only, its rewards scatter, and it says nothing about other actions.
        """
        noise = self.noise(usual)
        scatter = max(noise - chance, 0.0) + noise / max(self.early, 1)
        return max(self.mean**2 - scatter, 0.0)

    def close(self, usual: float) -> Tries:
        """After corrections have changed: the next tries are no first ones, unless there were too few."""
        credible = self.mean**2 > CREDIBLE**2 * self.noise(usual) / max(self.early, 1)
        return self._replace(closed=self.closed or self.early >= FEW or credible)


class Residual(NamedTuple):
    """What an action paid so far, relative to what corrections predict at present."""

    times: int = 0
    mean: float = 0.0
    certain: bool = False
    """Whether it is known what it pays here."""
    known: float = 0.0
    """How much of this facts about this very state know already."""


class Curiosity(NamedTuple):
    """What was seen of every action, and how often one was tried for the sake of knowing."""

    tries: dict[int, Tries] = {}  # replaced, never changed
    chance: float = 0.0
    """The variance of rewards that was predicted, on average."""
    spent: int = 0

    def is_known(self, action: int) -> bool:
        """Whether an action was taken so often that nothing more is to be learned here."""
        return action in self.tries and self.tries[action].times >= ENOUGH

    def is_closed(self, action: int) -> bool:
        """Whether the next try of an action is no first one any more."""
        return action in self.tries and self.tries[action].closed

    def repeat(self, action: int) -> Curiosity:
        """After an action was taken whose first tries are over."""
        if self.is_known(action):
            return self
        one = self.tries[action]
        return self._replace(tries={**self.tries, action: one._replace(times=one.times + 1)})

    def add(self, action: int, error: float, chance: float) -> Curiosity:
        """After an action was taken: its reward relative to the prediction, and the variance that was predicted."""
        mean = self.chance + (chance - self.chance) / (1 + sum(one.early for one in self.tries.values()))
        return self._replace(tries={**self.tries, action: self.tries.get(action, Tries()).add(error)}, chance=mean)

    def close(self) -> Curiosity:
        """After corrections have changed."""
        usual = self.noise
        return self._replace(tries={action: one.close(usual) for action, one in self.tries.items()})

    @property
    def noise(self) -> float:
        """The variance of rewards around what each action pays on average."""
        squares = sum(one.squares for one in self.tries.values())
        return (squares + BELIEVED * self.chance) / (sum(one.early - 1 for one in self.tries.values()) + BELIEVED)

    @property
    def variance(self) -> float:
        """How far off an action may be that was never tried: the mean squared error of those that were."""
        usual = self.noise
        return sum(one.error(usual, self.chance) for one in self.tries.values()) / max(len(self.tries), 1)

    def as_json(self) -> list[Any]:
        """What `from_json` takes over."""
        return [self.chance, self.spent, [[action, *one] for action, one in self.tries.items()]]

    @classmethod
    def from_json(cls, found: Any, num_actions: int) -> Curiosity:
        """Takes over what a file says; raises a ValueError for anything that is wrong with it."""
        chance, spent, rows = found
        tries = {
            whole("action", action, 0, num_actions - 1): Tries(
                whole("times", times), whole("count", count, 1, times), real("mean", mean), _size("squares", squares),
                flag("closed", closed),
            )
            for action, times, count, mean, squares, closed in rows
        }  # fmt: skip
        return cls(tries, _size("chance", chance), whole("spent", spent, 0))

    def choose(
        self, values: Mapping[int, float], paid: Mapping[int, Residual], best: int, lived: int
    ) -> tuple[int, bool]:
        """The action to take, and whether it is tried although it is believed to be worse.

        Args:
            values: What actions are worth.
            paid: What they paid so far.
            best: The action that is to be taken otherwise.
            lived: Steps so far.
        """
        found = {action: self._estimate(action, paid[action]) for action in values}
        # a plan goes by visits as well: the value of its action need not be the largest
        gaps = {action: min(value - values[best], 0.0) for action, value in values.items()}
        gains = {action: gaps[action] + found[action][0] - found[best][0] for action in values if action != best}
        ahead = max(gains, key=gains.__getitem__)
        if gains[ahead] > 0.0:
            return ahead, False
        if self.spent >= 1.0 + SHARE * lived:
            return best, False
        hopes = {
            action: lived * expected_gain(gain, math.sqrt(found[action][1])) + gain for action, gain in gains.items()
        }
        chosen = max(hopes, key=hopes.__getitem__)
        return (chosen, True) if hopes[chosen] > 0.0 else (best, False)

    def _estimate(self, action: int, paid: Residual) -> tuple[float, float]:
        """By how much the reward of an action may be off: mean and variance."""
        if paid.certain:
            return 0.0, 0.0
        spread = self.variance
        if not paid.times:
            return 0.0, spread
        noise = self.tries.get(action, Tries()).noise(self.noise)
        weight = paid.times * spread / (noise + paid.times * spread)
        return weight * paid.mean - paid.known, 0.0 if self.is_known(action) else spread * (1.0 - weight)


def _size(name: str, number: Any) -> float:
    return real(name, number, "it must be at least 0", lambda size: size >= 0)


def expected_gain(mean: float, spread: float) -> float:
    """The mean of the positive part of a normal distribution."""
    if spread <= 0.0:
        return max(mean, 0.0)
    far = mean / spread
    density = math.exp(-0.5 * far * far) / math.sqrt(2.0 * math.pi)
    return spread * (density + far * 0.5 * math.erfc(-far / math.sqrt(2.0)))
