"""Terminal output of the lab: a progress bar, a table of results, a sentence of verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich import progress
from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from uamcts import names
from uamcts.lab.analysis.forms import Entry
from uamcts.lab.analysis.selection import is_number, offline_results, rule_sets_to_show, under_rules
from uamcts.lab.experiments.paper import IN_WORDS
from uamcts.lab.report.claims_section import VERDICT_PHRASES
from uamcts.lab.run.units import Progress, Unit, estimate_seconds

HEAD = ("planner", "c", "mean", "95% interval", "runs", "steps")
WIDEST = 34
"""Characters of a planner's name in a line of 80."""


class TimeLeft(ProgressColumn):
    """The estimated time left."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        left = task.time_remaining
        if task.finished or left is None or task.percentage < 1:
            return Text("")
        minutes, seconds = divmod(int(left), 60)
        hours, minutes = divmod(minutes, 60)
        words = f"{hours} h {minutes:02} min" if hours else f"{minutes}:{seconds:02}"
        return Text(f"{words} left")


def progress_bar(console: Console, *columns: ProgressColumn) -> progress.Progress:
    """A progress bar that fits any terminal: `columns`, the share, the time left, and as much text as fits."""
    words = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
    share = TextColumn("{task.percentage:3.0f}%")
    return progress.Progress(
        *columns, BarColumn(12), share, TimeLeft(), words, console=console, transient=True, expand=True
    )


class Bars:
    """One progress bar over all units, with the status of the present one."""

    def __init__(self, console: Console, weights: dict[str, float]):
        self.bar = progress_bar(console, TextColumn("{task.fields[units]}"))
        self.weights = weights
        self.done: set[str] = set()
        self.present: tuple[str, float] = ("", 0.0)
        self.task = self.bar.add_task("starting", total=sum(weights.values()), units=self._units())

    def expect(self, units: Sequence[Unit]) -> None:
        """Adds units that were not known at the start."""
        self.weights |= {unit.name: estimate_seconds(unit) for unit in units}
        self.bar.update(self.task, total=sum(self.weights.values()), units=self._units())

    def begin(self, name: str, number: int, total: int) -> Progress:
        """Marks the present unit as done and starts another one; call what is returned with its progress."""
        if self.present[0]:
            self.done.add(self.present[0])
        self.present = (name, 0.0)
        self.tell(0.0, "")
        return self.tell

    def tell(self, share: float, words: str) -> None:
        """Shows the share of the present unit that is done, and a status text."""
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
    """A table of results: for each experiment, scenario and rule set, a line for every planner."""
    lines = []
    for experiment, scenario in dict.fromkeys((row["experiment"], row["scenario"]) for row in rows):
        own = [row for row in rows if (row["experiment"], row["scenario"]) == (experiment, scenario)]
        title = IN_WORDS.get(experiment) or f"{IN_WORDS.get(own[0]['domain'], own[0]['domain'])} ({experiment})"
        for rules in rule_sets_to_show(own):
            planners = _planners(under_rules(own, rules), scenario)
            widest = max(WIDEST, min(max((len(planner) for planner, _ in planners), default=0), width - 80 + WIDEST))
            lines += ["", f"{title}, {scenario}, {names.rules_title(rules)}", _line(HEAD, widest)]
            lines += [_result(planner, row, widest) for planner, row in planners]
    return lines[1:]


def _planners(rows: Sequence[Entry], scenario: str) -> list[tuple[str, Entry]]:
    """The titles of the planners in a table, each with its row."""
    if scenario == "offline":
        return [(one.title, one.row) for one in offline_results(rows)]
    return [(names.planner_title(row["algorithm"], row["learner"]), row) for row in rows]


def _result(planner: str, row: Entry, widest: int) -> str:
    ends = row["ci95"] if row["ci95"] and all(map(is_number, row["ci95"])) else None
    interval = f"[{ends[0]:.2f}, {ends[1]:.2f}]" if ends else "-"
    c, mean = (f"{row[name]:.2f}" if is_number(row[name]) else "-" for name in ("c", "mean"))
    steps = f"{row['steps']:.0f}" if is_number(row["steps"]) else "-"
    return _line((planner, c, mean, interval, str(row["runs"]), steps), widest)


def _line(cells: tuple[str, ...], widest: int) -> str:
    planner, c, mean, interval, runs, steps = cells
    if len(planner) > widest:
        planner = f"{planner[: widest - 1]}…"
    return f"{planner:{widest}} {c:>5} {mean:>7}  {interval:16} {runs:>5} {steps:>6}".rstrip()


def verdict_line(claims: Sequence[Entry]) -> str:
    """A sentence like "14 of 34 claims of the paper hold, 3 are too close to call"."""
    counts = Counter(claim["verdict"] for claim in claims)
    if not len(claims) - counts["not measured"]:
        return ""
    said = [f"{counts['holds']} of {len(claims)} claims of the paper hold"]
    said += [f"{counts[v]} {VERDICT_PHRASES[v][counts[v] > 1]}" for v in list(VERDICT_PHRASES)[1:] if counts[v]]
    return ", ".join(said)
