"""What `uamcts.Agent.report` returns: where the simulator was wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from uamcts.agent.experience import Experience
from uamcts.agent.measure import Measure, Outcome
from uamcts.corrections.python_facts import Recurrence

ENOUGH, NEARLY_ALL = 20, 0.8
"""A report warns of a simulator that was wrong in more than this share of so many different transitions."""


class ModelError(NamedTuple):
    """A transition that the simulator is wrong about."""

    features: np.ndarray
    """The features of the state."""
    action: int
    times: int
    """How often it was seen."""
    believed: Outcome
    """What the corrected model predicts; without corrections, the simulator."""
    real: Outcome
    """What really happened, the last time."""
    error: float
    """The mean observed U."""
    learned: float
    """U-hat, as the estimator predicts it."""
    states: tuple[str, str, str] | None = None
    """State, predicted and real next state in words, where features say less: strings, and sets."""


class Report:
    """Where a simulator was wrong: a sequence of `ModelError`, the largest U first. Print it, or iterate over it.

    Attributes:
        errors: The entries.
        seen: How many different transitions were observed.
        steps: In how many real steps.
        wrong: In how many of the transitions the simulator was wrong.
        corrections: What was learned about the simulator as a whole, a sentence each.
        memory: How many transitions are remembered as facts, how often they were seen, and how many had several
            outcomes; None without a memory.
    """

    def __init__(
        self,
        errors: Sequence[ModelError],
        seen: int,
        steps: int,
        wrong: int,
        action_names: Sequence[str] = (),
        memory: Recurrence | None = None,
        corrections: Sequence[str] = (),
        remaining: int = 0,
        remembered: int = 0,
    ):
        self.remaining, self.remembered = remaining, remembered
        self.corrected = any("corrected" in sentence for sentence in corrections)
        self.corrections = tuple(corrections)
        self.errors, self.seen, self.steps, self.wrong = tuple(errors), seen, steps, wrong
        self.action_names, self.memory = tuple(action_names), memory

    @property
    def lies(self) -> tuple[ModelError, ...]:
        """Deprecated: use `errors`."""
        warnings.warn("Report.lies is deprecated; use Report.errors", DeprecationWarning, stacklevel=2)
        return self.errors

    def __iter__(self) -> Iterator[ModelError]:
        return iter(self.errors)

    def __len__(self) -> int:
        return len(self.errors)

    def __getitem__(self, index: int) -> ModelError:
        return self.errors[index]

    def __str__(self) -> str:
        if not self.seen:
            return "nothing was observed yet: call agent.observe(state, action, next_state) after every real step"
        seen = f"{self.seen} different transitions ({self.steps} real steps)"
        head = f"the simulator was wrong in {self.wrong} of {seen}"
        if not self.wrong:
            head = f"the simulator was wrong in none of {seen}"
            head += ", only in how often things happen" if self.corrected else ""
        if self.remembered and not self.corrected:
            known = "all" if self.remembered >= self.wrong else f"{self.remembered} of them"
            head += ", remembered as a fact" if self.wrong == 1 else f", {known} remembered as facts"
        head += "".join(f"\n{sentence}" for sentence in self.corrections)
        if self.corrected and self.wrong:
            head += f"\nthe corrected model is right about {self._of_the_rest()}"
        if not self.corrected and self.seen >= ENOUGH and self.wrong > NEARLY_ALL * self.seen:
            head += (
                "\nnearly everything is wrong, and no correction explains it: correct the simulator, or leave small "
                "differences out with features= or tolerance="
            )
        head += "".join(f"\n{sentence}" for sentence in self._of_memory())
        if not self.errors:
            return head
        says = "the corrected model says" if self.corrected else "the simulator says"
        table = [("learned U", "seen U", "times", "state", "action", says, "really")]
        for error in self.errors:
            name = self.action_names[error.action] if self.action_names else str(error.action)
            state, *names = error.states or map(_vector, (error.features, error.believed.features, error.real.features))
            figures = f"{error.learned:.3g}", f"{error.error:.3g}", str(error.times)
            table.append((*figures, state, name, *_describe(error.believed, error.real, names)))
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
        return "\n".join([head, *(line.rstrip() for line in lines)])

    def _of_the_rest(self) -> str:
        """What the corrected model is right about, and whether the rest is remembered."""
        rest, known = self.remaining, self.remembered
        if not rest:
            return "all of them"
        if known == rest:
            return f"all but {rest}, which {'is remembered as a fact' if rest == 1 else 'are remembered as facts'}"
        return f"all but {rest}" + (f", {known} of which {'is' if known == 1 else 'are'} remembered" if known else "")

    def _of_memory(self) -> Iterator[str]:
        """Sentences about the memory."""
        memory = self.memory
        if memory is None:
            return
        if memory.varied:
            yield (
                f"{memory.varied} of {memory.facts} remembered transitions had several outcomes, each planned with as "
                "often as it was seen"
            )
        if memory.facts >= ENOUGH and memory.times == memory.facts and not self.corrections and self.wrong:
            yield (
                f"none of the {memory.facts} remembered transitions was ever met again, so the memory was of no use; "
                "if a state holds a clock or a counter, say what tells states apart with identity="
            )

    __repr__ = __str__


def _describe(believed: Outcome, real: Outcome, states: Sequence[str]) -> tuple[str, str]:
    """Two outcomes in words; reward and end only where they differ. One that was wrong earlier is wrong at times."""
    words = [[state] for state in states]
    if real.reward is not None and believed.reward is not None and real.reward != believed.reward:
        words[0].append(f"reward {believed.reward:g}")
        words[1].append(f"reward {real.reward:g}")
    if real.terminal is not None and real.terminal != believed.terminal:
        words[0].append("over" if believed.terminal else "goes on")
        words[1].append("over" if real.terminal else "goes on")
    if len(words[1]) == 1 and np.array_equal(real.features, believed.features):
        words[1].append("not always")
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
    corrections: Sequence[str] = (),
    since: int = 0,
    show: Callable[[int], tuple[str, str, str] | None] = lambda place: None,
    remembers: Callable[[int], bool] = lambda place: False,
) -> Report:
    """A report on the transitions with the largest U, learned or observed; `predicted` gives U-hat of some rows.

    `show` gives the states of a row in words, where features say less; `remembers` says whether it is a fact.

    What was seen before step `since`, when the world was another one, is not held against the corrected model.
    """
    errors = np.where(experience.column("last") > since, experience.uncertainties(measure), 0.0)
    simulator_errors = experience.simulator_errors(measure)
    wrong = np.flatnonzero(errors)
    learned = predicted(wrong)
    order = np.lexsort((-errors[wrong], -learned))[:most]
    entries = [
        ModelError(
            experience.rows["features"][place].copy(),
            int(experience.rows["action"][place]),
            int(experience.rows["times"][place]),
            experience.outcome("used", place),
            experience.outcome("real", place),
            float(errors[place]),
            float(learned[rank]),
            show(place),
        )
        for rank, place in ((rank, wrong[rank]) for rank in order)
    ]
    if not any("corrected" in sentence for sentence in corrections):
        simulator_errors = np.maximum(simulator_errors, errors)  # some were right the last time, and wrong before
    found = int(np.count_nonzero(simulator_errors))
    known = sum(map(remembers, wrong.tolist()))
    return Report(entries, experience.seen, steps, found, action_names, memory, corrections, len(wrong), known)
