"""What the lab says in a terminal: progress in one line, results as a table, verdicts as a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from uamcts import names
from uamcts.lab.analysis.results import Entry, known, shown, shown_rule_sets, under
from uamcts.lab.experiments.paper import IN_WORDS
from uamcts.lab.report.build import SAID
from uamcts.lab.run.units import Unit, guess

HEAD = ("planner", "c", "mean", "95% interval", "runs", "steps")
WIDEST = 34
"""Characters of a planner's name: with the other columns, a line of 80."""


class TimeLeft(ProgressColumn):
    """The time left, as soon as there is an estimate."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        left = task.time_remaining
        if task.finished or left is None or task.percentage < 1:
            return Text("")
        minutes, seconds = divmod(int(left), 60)
        hours, minutes = divmod(minutes, 60)
        words = f"{hours} h {minutes:02} min" if hours else f"{minutes}:{seconds:02}"
        return Text(f"{words} left")


def progress_bar(console: Console, *columns: ProgressColumn) -> Progress:
    """A line that fits any terminal: some columns, the share, the time left, and words as far as there is room."""
    words = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
    share = TextColumn("{task.percentage:3.0f}%")
    return Progress(*columns, BarColumn(12), share, TimeLeft(), words, console=console, transient=True, expand=True)


class Bars:
    """Progress for a terminal: one bar over all units, with what the present one says."""

    def __init__(self, console: Console, weights: dict[str, float]):
        self.bar = progress_bar(console, TextColumn("{task.fields[units]}"))
        self.weights = weights
        self.done: set[str] = set()
        self.present: tuple[str, float] = ("", 0.0)
        self.task = self.bar.add_task("starting", total=sum(weights.values()), units=self._units())

    def expect(self, units: Sequence[Unit]) -> None:
        """Counts units in that only showed on the way."""
        self.weights |= {unit.name: guess(unit) for unit in units}
        self.bar.update(self.task, total=sum(self.weights.values()), units=self._units())

    def begin(self, name: str, number: int, total: int) -> Any:
        """Another unit is at work, and the one before is done; what is returned is told about its progress."""
        if self.present[0]:
            self.done.add(self.present[0])
        self.present = (name, 0.0)
        self.tell(0.0, "")
        return self.tell

    def tell(self, share: float, words: str) -> None:
        """How far the present unit is, and a few words about it."""
        name = self.present[0]
        finished = sum(self.weights.get(unit, 0.0) for unit in self.done)
        self.bar.update(
            self.task,
            completed=finished + share * self.weights.get(name, 0.0),
            description=": ".join(part for part in (name.rsplit("-", 1)[0], words) if part),
            units=self._units(),
        )

    def _units(self) -> str:
        return f"{len(self.done & self.weights.keys())} of {len(self.weights)} units"


def result_lines(rows: Sequence[Entry], width: int = 80) -> list[str]:
    """Results for a terminal: under each experiment, scenario and rule set a line for every planner."""
    lines = []
    for experiment, scenario in dict.fromkeys((row["experiment"], row["scenario"]) for row in rows):
        own = [row for row in rows if (row["experiment"], row["scenario"]) == (experiment, scenario)]
        title = IN_WORDS.get(experiment) or f"{IN_WORDS.get(own[0]['domain'], own[0]['domain'])} ({experiment})"
        for rules in shown_rule_sets(own):
            planners = _planners(under(own, rules), scenario)
            widest = max(WIDEST, min(max((len(planner) for planner, _ in planners), default=0), width - 80 + WIDEST))
            lines += ["", f"{title}, {scenario}, {names.rules_title(rules)}", _line(HEAD, widest)]
            lines += [_result(planner, row, widest) for planner, row in planners]
    return lines[1:]


def _planners(rows: Sequence[Entry], scenario: str) -> list[tuple[str, Entry]]:
    """The planners of a table, each with its row."""
    if scenario == "offline":
        return [(one.title, one.row) for one in shown(rows)]
    return [(names.planner_title(row["algorithm"], row["learner"]), row) for row in rows]


def _result(planner: str, row: Entry, widest: int) -> str:
    ends = row["ci95"] if row["ci95"] and all(map(known, row["ci95"])) else None
    interval = f"[{ends[0]:.2f}, {ends[1]:.2f}]" if ends else "-"
    c, mean = (f"{row[name]:.2f}" if known(row[name]) else "-" for name in ("c", "mean"))
    steps = f"{row['steps']:.0f}" if known(row["steps"]) else "-"
    return _line((planner, c, mean, interval, str(row["runs"]), steps), widest)


def _line(cells: tuple[str, ...], widest: int) -> str:
    planner, c, mean, interval, runs, steps = cells
    if len(planner) > widest:
        planner = f"{planner[: widest - 1]}…"
    return f"{planner:{widest}} {c:>5} {mean:>7}  {interval:16} {runs:>5} {steps:>6}".rstrip()


def verdict_line(claims: Sequence[Entry]) -> str:
    """How many of the paper's claims hold, as in "14 of 34 claims of the paper hold, 3 are too close to call"."""
    counts = Counter(claim["verdict"] for claim in claims)
    if not len(claims) - counts["not measured"]:
        return ""
    said = [f"{counts['holds']} of {len(claims)} claims of the paper hold"]
    said += [f"{counts[v]} {SAID[v][counts[v] > 1]}" for v in list(SAID)[1:] if counts[v]]
    return ", ".join(said)
