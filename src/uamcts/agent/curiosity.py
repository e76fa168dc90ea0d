"""Actions that were hardly ever tried: one may pay more than the simulator believes, if it was wrong about others.

A plan never takes what the simulator believes bad, so nothing ever contradicts that. How far off the simulator was about
actions that were tried says how far off it may be about another one: errors are taken to be drawn from a normal
distribution around 0 whose spread is estimated from them. An action is tried if what is expected to be gained by it,
over as many steps as the agent has lived so far, is more than what it is believed to cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

ENOUGH = 20
"""An action that was taken so often is known: corrections say what it pays."""
COUNTED = 100
"""Tries of an action that are counted."""
SHARE = 0.1
"""The share of an agent's steps, beyond a first one, that may be spent on actions believed to be worse."""
CREDIBLE = 2.0
"""An action pays credibly something else than believed if it does so by this many standard errors."""
BELIEVED = 2.0
"""Tries that the simulator's own variance of rewards is worth."""


class Said(NamedTuple):
    """What is said about the reward of an action in a state."""

    alone: float
    """Its mean, by the simulator alone."""
    chance: float
    """Its variance, by the simulator alone."""
    corrected: float
    """Its mean, by all that is known."""

    @property
    def correction(self) -> float:
        return self.corrected - self.alone


class Tries(NamedTuple):
    """What was seen of one action: its rewards relative to what the simulator alone predicts."""

    times: int
    mean: float
    squares: float
    """The sum of squared deviations from the mean."""
    known: float
    """What corrections said about that before the first try."""

    def noise(self, usual: float) -> float:
        """The variance of its rewards, at least that of other actions."""
        return max(usual, self.squares / max(self.times - 1, 1))

    def again(self, error: float) -> Tries:
        """The same with another try."""
        times, apart = self.times + 1, error - self.mean
        mean = self.mean + apart / times
        return Tries(times, mean, self.squares + apart * (error - mean), self.known)


class Curiosity(NamedTuple):
    """What was seen of every action, and how often one was tried for the sake of knowing."""

    tries: dict[int, Tries] = {}  # noqa: RUF012 (replaced, never changed)
    chance: float = 0.0
    """The variance of rewards that the simulator predicts, on average."""
    spent: int = 0

    def is_known(self, action: int) -> bool:
        """Whether an action was taken so often that nothing more is to be learned here."""
        return action in self.tries and self.tries[action].times >= ENOUGH

    def counts(self, action: int) -> bool:
        """Whether what an action pays still says something about the spread of errors."""
        return action not in self.tries or self.tries[action].times < COUNTED

    def add(self, action: int, reward: float, said: Said) -> Curiosity:
        """After an action was taken."""
        total = 1 + sum(one.times for one in self.tries.values())
        found = self.tries.get(action, Tries(0, 0.0, 0.0, said.correction)).again(reward - said.alone)
        chance = self.chance + (said.chance - self.chance) / total
        return Curiosity({**self.tries, action: found}, chance, self.spent)

    @property
    def noise(self) -> float:
        """The variance of rewards around what each action pays on average."""
        found = sum(one.squares for one in self.tries.values()) + BELIEVED * self.chance
        return found / (sum(one.times - 1 for one in self.tries.values()) + BELIEVED)

    @property
    def variance(self) -> float:
        """How far off actions are that were never tried: the mean squared error of those that were, as far as credible.

        Where an action is off in a few places only, that says nothing about other actions: its rewards scatter.
        """
        usual, total = self.noise, 0.0
        for one in self.tries.values():
            noise = one.noise(usual)
            scatter = max(noise - self.chance, 0.0) + CREDIBLE**2 * noise / one.times
            total += max((one.mean - one.known) ** 2 - scatter, 0.0)
        return total / max(len(self.tries), 1)

    def estimate(self, action: int, correction: float) -> tuple[float, float]:
        """By how much the reward of an action is off as it is corrected at present: mean and variance."""
        if self.is_known(action):
            return 0.0, 0.0
        spread, one = self.variance, self.tries.get(action)
        if one is None:
            return 0.0, spread
        weight = one.times * spread / (one.noise(self.noise) + one.times * spread)
        return one.known + weight * (one.mean - one.known) - correction, spread * (1.0 - weight)

    def choose(self, values: Mapping[int, float], said: Mapping[int, Said], best: int, lived: int) -> tuple[int, bool]:
        """The action to take, and whether it is tried although it is believed to be worse.

        Args:
            values: What actions are worth.
            said: What is said about their rewards.
            best: The action that is to be taken otherwise.
            lived: Steps so far.
        """
        found = {action: self.estimate(action, said[action].correction) for action in values}
        most = values[best] + found[best][0]
        gains = {action: values[action] + found[action][0] - most for action in values if action != best}
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


def expected_gain(mean: float, spread: float) -> float:
    """The mean of the positive part of a normal distribution."""
    if spread <= 0.0:
        return max(mean, 0.0)
    far = mean / spread
    density = math.exp(-0.5 * far * far) / math.sqrt(2.0 * math.pi)
    return spread * (density + far * 0.5 * math.erfc(-far / math.sqrt(2.0)))
