"""Actions that take effect some steps later than the simulator believes: a slow motor, a command that is sent late.

No state shows what is still to come, so no correction of a state can explain it. The actions taken before do: if a
transition is predicted better with the action before the one taken, and this goes on, actions are late. The agent then
learns from every transition as one of the action that took effect, and plans from the state to which those lead that
are still to come.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from uamcts.arguments import whole

MOST = 3
"""Steps that an action may be late, at most."""
WINDOW, OFTEN, EVERY = 32, 96, 4
"""Transitions by which delays are compared, the latest ones; after so many that have decided nothing, only some are."""
LATELY, FEWEST_WRONG = 16, 3
"""They are compared only if so many of the latest transitions were predicted wrongly."""
FEWEST, MOSTLY, MARGIN, MOST_NATS = 8, 0.9, 12.0, 6.0
"""Transitions that a delay predicts better or worse because the effective action is another one, and the share of them
that it must predict better; the nats by which it must be ahead, and what a single transition says at most."""
SAME, EXPLAINED = 4, 0.75
"""Transitions whose effective action would be the same without the delay; of those between states of whole numbers, the
share that a delay must predict exactly: there, every action leads to one of few states, by chance as well."""
ALIKE = 1.5
"""Nats by which transitions whose action would be the same without the delay may be predicted worse than others. If
actions are swapped rather than late, the action before is often the right one, but not where it was the same."""


class Trial(NamedTuple):
    """How well each delay predicts a transition."""

    actions: tuple[int, ...]
    """The action that takes effect, by the delay."""
    scores: np.ndarray
    """log(u + floor), [delay, 2]: of the simulator alone, and with the corrections in use."""
    exact: float = -np.inf
    """Up to this score a prediction is exact; -infinity unless states are whole numbers."""


class Delays(NamedTuple):
    """What is known about delays. Replaced, never changed."""

    delay: int = 0
    """After how many steps actions take effect, as far as is known."""
    actions: tuple[int, ...] = ()
    """Actions of this episode, the latest last."""
    place: Hashable = None
    """Where the episode is; None if it is over."""
    wrong: tuple[bool, ...] = ()
    """Which of the latest transitions were predicted wrongly."""
    tests: tuple[Trial, ...] = ()
    tested: int = 0
    first: frozenset[int] | None = None
    """Actions that explain how every episode has begun, before the first one took effect; None: there was none yet."""

    def at(self, place: Hashable) -> Self:
        """The same in a place: another one than the last begins an episode."""
        return self if self.place is not None and self.place == place else self._replace(actions=(), place=place)

    def alone(self, delay: int | None = None) -> Self:
        """Where the episode is, with this delay or the present one, but without any comparisons."""
        same = delay is None or delay == self.delay
        return type(self)(self.delay if delay is None else delay, self.actions, self.place,
                          first=self.first if same else None)  # fmt: skip

    @property
    def pending(self) -> tuple[int, ...]:
        """Actions that have not taken effect yet, as far as they are known."""
        known = self.actions[-self.delay :] if self.delay else ()
        return known if not self.first else (min(self.first),) * (self.delay - len(known)) + known

    def effective(self, action: int) -> int | None:
        """The action that takes effect when one is taken; None if that is not known, since the episode has begun."""
        known = (*self.pending, action)
        return known[0] if len(known) > self.delay else None

    def begin(self, explained: Sequence[int]) -> Self:
        """The same after the beginning of an episode, which these actions explain."""
        return self._replace(first=frozenset(explained) if self.first is None else self.first & frozenset(explained))

    def follow(self, action: int, place: Hashable) -> Self:
        """The same after an action that leads to a place, None at the end of an episode."""
        return self._replace(actions=(*self.actions, action)[-MOST:], place=place)

    def watch(self, wrong: bool) -> Self:
        """The same after a transition that was predicted wrongly, or not."""
        return self._replace(wrong=(*self.wrong, wrong)[-LATELY:], tested=self.tested + 1)

    @property
    def is_due(self) -> bool:
        """Whether delays are to be compared by this transition."""
        often = self.tested < OFTEN or self.tested % EVERY == 0
        return often and sum(self.wrong) >= FEWEST_WRONG and len(self.actions) >= max(self.delay, 1)

    def compare(self, test: Trial) -> Self:
        """The same after another comparison."""
        return self._replace(tests=(*self.tests, test)[-WINDOW:])

    def better(self) -> int | None:
        """A delay that is credibly better than the present one; None if there is none."""
        found = [(gain, delay) for delay in range(MOST + 1) if (gain := self._gain(delay)) is not None]
        return max(found)[1] if found else None

    def _gain(self, delay: int) -> float | None:
        """The nats by which a delay is ahead of the present one; None if not credibly."""
        tests = [one for one in self.tests if len(one.actions) > max(delay, self.delay)]
        differs = np.array([one.actions[delay] != one.actions[self.delay] for one in tests], bool)
        if differs.sum() < FEWEST or (~differs).sum() < SAME:
            return None
        scores, exact = np.stack([one.scores[[self.delay, delay]] for one in tests]), tests[-1].exact
        gains = [self._gain_of(scores[:, 0].min(axis=1), ours, differs, exact) for ours in scores[:, 1].T]
        return max((gain for gain in gains if gain is not None), default=None)

    @staticmethod
    def _gain_of(present: np.ndarray, ours: np.ndarray, differs: np.ndarray, exact: float) -> float | None:
        """The nats by which some scores are ahead of the present ones; None if not credibly."""
        ahead = np.clip(present - ours, -MOST_NATS, MOST_NATS)[differs]
        ahead = ahead[np.abs(ahead) > 1e-9]
        if len(ahead) < FEWEST or np.mean(ahead > 0) < MOSTLY or ahead.sum() <= MARGIN:
            return None
        if np.isfinite(exact) and np.mean(ours <= exact) < EXPLAINED:
            return None
        alike = ours[~differs].mean() <= ours[differs].mean() + ALIKE
        return float(ahead.sum()) if alike else None

    def describe(self) -> list[str]:
        """What is corrected, in plain words."""
        steps = "one step" if self.delay == 1 else f"{self.delay} steps"
        return [f"actions take effect {steps} later than believed: corrected"] if self.delay else []

    def as_json(self) -> list[Any]:
        """What has to be saved: comparisons begin anew."""
        return [self.delay, list(self.actions), None if self.first is None else sorted(self.first)]

    @classmethod
    def from_json(cls, found: object, num_actions: int) -> Self:
        """What `as_json` returned; raises a ValueError if it does not fit."""
        if not isinstance(found, list) or len(found) != 3:
            raise ValueError("the delay of actions is missing or does not fit")
        delay, *lists = found
        actions, first = ([whole("action", one, 0, num_actions - 1) for one in part or ()] for part in lists)
        known = None if lists[1] is None else frozenset(first)
        return cls(whole("delay", delay, 0, MOST), tuple(actions[-MOST:]), first=known)


def relabel(log: Sequence[tuple[Any, ...]], delay: int) -> list[tuple[Any, ...]]:
    """Transitions `(state, action, next_state, reward, terminal, first)` with the actions that took effect in them.

    Those at the beginning of an episode, whose effective action is not known, are left out, and so is `first`.
    """
    found: list[tuple[Any, ...]] = []
    taken: list[Any] = []
    for state, action, *rest, first in log:
        taken = [action] if first else [*taken, action]
        if len(taken) > delay:
            found.append((state, taken[-1 - delay], *rest))
    return found
