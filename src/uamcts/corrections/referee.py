"""The referee: decides which corrections are in use, by how well each predicts what it has not learned from yet.

Every candidate, the simulator alone included, predicts each real transition before anything is fitted to it. A score is
log(u + u0), u being the squared error (nats of surprise where outcomes are random). Only transitions count in which two
candidates differ, and older ones count less, so that a changed world is noticed. A candidate is preferred to a simpler
one only if it is credibly better: in the logarithm, where being exact almost everywhere counts, and without being worse
in the plain error, where rare large errors count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MEMORY, RANDOM_MEMORY = 60.0, 400.0
"""Transitions that a score remembers, about; the second where outcomes are random, and a single one says little."""
MARGIN = 4.0
"""Nats in all by which a candidate must be ahead of a simpler one."""
MOST_NATS = 6.0
"""What a single transition says at most, so that a few bad predictions, which the next fit mends, do not decide."""
LARGEST = 4.0
"""A larger squared error counts as this, so that a few transitions that nobody predicts do not decide."""

ADDED = 1
"""Candidates that files of older versions may lack, the last ones."""


class Referee:
    """Discounted scores of candidates, in order of preference: the simplest first."""

    def __init__(self, names: Sequence[str], memory: float = MEMORY):
        self.names, self.keep = tuple(names), 1.0 - 1.0 / memory
        size = len(self.names)
        self.weight, self.sums, self.squares, self.errors = (np.zeros((size, size)) for _ in range(4))

    def add(self, scores: dict[str, float], errors: dict[str, float]) -> None:
        """Adds what the candidates that exist scored on a transition: nats, and squared errors; less is better."""
        if len(scores) < 2:
            return
        here = [name in scores for name in self.names]
        score = np.array([scores.get(name, 0.0) for name in self.names])
        error = np.array([min(errors.get(name, 0.0), LARGEST) for name in self.names])
        ahead = np.clip(score[None, :] - score[:, None], -MOST_NATS, MOST_NATS)  # [a, b]: how far a is ahead of b
        both = np.outer(here, here) & (np.abs(ahead) > 1e-9)  # where two agree, nothing is learned about them
        less = error[None, :] - error[:, None]
        for total, new in ((self.weight, both), (self.sums, ahead), (self.squares, ahead**2), (self.errors, less)):
            total *= np.where(both, self.keep, 1.0)
            total += np.where(both, new, 0.0)

    def ahead(self, better: str, other: str) -> float:
        """By how many nats a candidate is ahead of another one, in all; less than 0 if it is behind."""
        a, b = self.names.index(better), self.names.index(other)
        return float(self.sums[a, b])

    def is_better(self, better: str, other: str, margin: float = MARGIN) -> bool:
        """Whether a candidate is credibly better than another one."""
        a, b = self.names.index(better), self.names.index(other)
        weight = self.weight[a, b]
        if weight < 1.0 or self.sums[a, b] <= margin:
            return False
        mean = self.sums[a, b] / weight
        spread = np.sqrt(max(self.squares[a, b] / weight - mean**2, 0.0) / weight)
        return bool(mean > 2.0 * spread and self.errors[a, b] >= -1e-9)

    def choose(self, available: Sequence[str]) -> str:
        """The candidate to use: the simplest one that none of the others is credibly better than."""
        best = self.names[0]
        for name in self.names[1:]:
            if name in available and self.is_better(name, best):
                best = name
        return best

    def clear(self, name: str | None = None) -> None:
        """Forgets the scores of one candidate, or of all."""
        for total in (self.weight, self.sums, self.squares, self.errors):
            if name is None:
                total[:] = 0.0
            else:
                place = self.names.index(name)
                total[place, :] = total[:, place] = 0.0

    def copy(self) -> Referee:
        """A copy that is scored on its own."""
        twin = Referee(self.names)
        twin.keep = self.keep
        for name in ("weight", "sums", "squares", "errors"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def arrays(self) -> dict[str, np.ndarray]:
        """The scores, to be saved."""
        return {name: getattr(self, name) for name in ("weight", "sums", "squares", "errors")}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Takes over what `arrays` returned; raises a ValueError if it does not fit.

        A file may be from before the last candidates were added.
        """
        arrays = {name: self._with_new_candidates(array) for name, array in arrays.items()}
        for name, before in self.arrays().items():
            found = arrays.get(name)
            if found is None or found.shape != before.shape or found.dtype != float or not np.isfinite(found).all():
                raise ValueError(f"the referee's {name} are missing or do not fit")
        for name in self.arrays():
            setattr(self, name, np.array(arrays[name], float))

    def _with_new_candidates(self, found: np.ndarray) -> np.ndarray:
        """Scores of fewer candidates, with zeros for the last ones."""
        missing = len(self.names) - len(found) if found.ndim == 2 and len(found) > 1 else 0
        return np.pad(found, (0, missing)) if 0 < missing <= ADDED and found.shape == (len(found),) * 2 else found
