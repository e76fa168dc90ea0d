"""Where a simulator was wrong, in words: what `uamcts.Agent.report` returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from uamcts.agent.experience import Experience, Measure, Outcome
from uamcts.corrections.facts import Recurrence

ENOUGH, NEARLY_ALL = 20, 0.8
"""A report warns of a simulator that was wrong in more than this share of so many different transitions."""


class ModelError(NamedTuple):
    """One transition that the simulator is wrong about."""

    features: np.ndarray
    """Of the state it started from."""
    action: int
    times: int
    """How often it was seen."""
    believed: Outcome
    real: Outcome
    """The last one seen."""
    error: float
    """U as it was seen, on average."""
    learned: float
    """U-hat."""


class Report:
    """Where a simulator lies: the transitions it is wrong about, the worst first. Print it, or go through it.

    An entry is a `Lie`. `seen` different transitions were met in `steps` real steps; `wrong` of them were lies.
    `memory` says how many transitions are remembered, how often they were seen, and how many had several outcomes; it
    is None without a memory.
    """

    def __init__(
        self,
        lies: Sequence[ModelError],
        seen: int,
        steps: int,
        wrong: int,
        action_names: Sequence[str] = (),
        memory: Recurrence | None = None,
    ):
        self.lies, self.seen, self.steps, self.wrong = tuple(lies), seen, steps, wrong
        self.action_names, self.memory = tuple(action_names), memory

    def __iter__(self) -> Iterator[ModelError]:
        return iter(self.lies)

    def __len__(self) -> int:
        return len(self.lies)

    def __getitem__(self, index: int) -> ModelError:
        return self.lies[index]

    def __str__(self) -> str:
        if not self.seen:
            return "nothing was observed yet: call agent.observe(state, action, next_state) after every real step"
        head = f"the simulator was wrong in {self.wrong} of {self.seen} different transitions ({self.steps} real steps)"
        if self.seen >= ENOUGH and self.wrong > NEARLY_ALL * self.seen:
            head += (
                "; where nearly all is doubtful there is no elsewhere, and doubt may harm: correct the simulator, "
                "or leave small differences out with features=, discrepancy= or tolerance="
            )
        head += "".join(f"\n{sentence}" for sentence in self._of_memory())
        if not self.lies:
            return head
        table = [("learned U", "seen U", "times", "state", "action", "the simulator says", "really")]
        for lie in self.lies:
            name = self.action_names[lie.action] if self.action_names else str(lie.action)
            table.append(
                (f"{lie.learned:.3g}", f"{lie.error:.3g}", str(lie.times), _vector(lie.features), name,
                 *_describe(lie.believed, lie.real))
            )  # fmt: skip
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
        return "\n".join([head, *(line.rstrip() for line in lines)])

    def _of_memory(self) -> Iterator[str]:
        """What is worth saying about the memory."""
        memory = self.memory
        if memory is None:
            return
        if memory.varied:
            yield (
                f"{memory.varied} of {memory.facts} remembered transitions had several outcomes: the agent plans with "
                "the most frequent one and its mean reward; in a world with much chance leave the memory out "
                "(memory=False)"
            )
        if memory.facts >= ENOUGH and memory.times == memory.facts:
            yield (
                f"none of the {memory.facts} remembered transitions was ever met again, so the memory was of no use; "
                "if a state holds a clock or a counter, say what tells states apart with identity="
            )

    __repr__ = __str__


def _describe(believed: Outcome, real: Outcome) -> tuple[str, str]:
    """Two outcomes in words; reward and end only where they differ."""
    words = [[_vector(believed.features)], [_vector(real.features)]]
    if real.reward is not None and believed.reward is not None and real.reward != believed.reward:
        words[0].append(f"reward {believed.reward:g}")
        words[1].append(f"reward {real.reward:g}")
    if real.terminal is not None and real.terminal != believed.terminal:
        words[0].append("over" if believed.terminal else "goes on")
        words[1].append("over" if real.terminal else "goes on")
    return ", ".join(words[0]), ", ".join(words[1])


def _vector(numbers: np.ndarray) -> str:
    shown = " ".join(f"{number:.3g}" for number in numbers[:8])
    return f"[{shown}{' ...' if len(numbers) > 8 else ''}]"


def build_report(
    experience: Experience,
    measure: Measure,
    predicted: Callable[[np.ndarray], np.ndarray],
    most: int,
    steps: int,
    action_names: Sequence[str],
    memory: Recurrence | None = None,
) -> Report:
    """A report on the transitions with the largest U, learned or seen; `predicted` gives U-hat by their places."""
    errors = experience.uncertainties(measure)
    wrong = np.flatnonzero(errors)
    learned = predicted(wrong)
    order = np.lexsort((-errors[wrong], -learned))[:most]
    lies = [
        ModelError(
            experience.rows["features"][place].copy(),
            int(experience.rows["action"][place]),
            int(experience.rows["times"][place]),
            experience.outcome("believed", place),
            experience.outcome("real", place),
            float(errors[place]),
            float(learned[rank]),
        )
        for rank, place in ((rank, wrong[rank]) for rank in order)
    ]
    return Report(lies, experience.count, steps, len(wrong), action_names, memory)
