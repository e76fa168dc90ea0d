"""The top of the report: what was run, how large and when, and the most important numbers as tiles."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from uamcts.colours import PLANNERS
from uamcts.lab.analysis.forms import Entry
from uamcts.lab.analysis.results import Summary
from uamcts.lab.analysis.selection import is_number, offline_results
from uamcts.lab.experiments.field import FIELD
from uamcts.lab.experiments.field import PLANNERS as FIELD_PLANNERS
from uamcts.lab.report import style
from uamcts.lab.report.families import best_rows, families_of, title_of_family
from uamcts.lab.report.field_section import EXACT, field_tables
from uamcts.lab.report.page import Bar, Block, Files, Heading, Paragraph, Tiles
from uamcts.lab.report.sections import count_runs, join_words, select_entries, title_of
from uamcts.runtime.atomic import write_whole

KINDS = {"reproduce": "The paper, reproduced", "beyond": "Beyond the paper", "field": "The field", "run": "Own runs"}
"""What a command of `uamcts` computes."""
FLOW = {"corrupted": "Wrong model", "combined": "UA-MCTS", "true": "True model"}
"""The planners of a tile: MCTS in the wrong model, UA-MCTS in the same one, and MCTS in the true one."""
MOST_TILES = 4
FEW = 15
"""With fewer runs the page warns that intervals are wide."""


def title_of_page(found: Summary) -> str:
    """What was run: the kind of experiment, and the worlds if they are few."""
    words = str(found.provenance.get("command", "")).split()
    kind = next((KINDS[word] for word in words[:3] if word in KINDS), "Results")
    titles = [title_of_family(name) for name in families_of(found)]
    titles += [title_of(found, *pair) for pair in found.experiments()]
    titles = list(dict.fromkeys(title.removesuffix(", own experiment") for title in titles))
    if not titles or len(titles) > 3:
        return f"{kind}: {len(titles)} experiments" if titles else kind
    return f"{kind}: {join_words(titles)}"


def size_and_date(found: Summary) -> str:
    """How much was run and when, in one line."""
    runs = sorted({row["runs"] for row in found.rows if is_number(row["runs"])})
    parts = ["a quick look"] if found.provenance.get("quick") else []
    if runs:
        parts.append(count_runs(runs[0]) if len(runs) == 1 else f"{runs[0]:,g} to {runs[-1]:,g} runs of each planner")
    episodes = sum(row["episodes"] for row in found.rows if is_number(row["episodes"]))
    parts += [f"{episodes:,.0f} episodes"] if episodes else []
    started = str(found.provenance.get("started", ""))
    try:
        when = datetime.fromisoformat(started)
        parts.append(f"{when.day} {when:%B %Y}")
    except ValueError:
        pass
    return " · ".join(parts)


def head(found: Summary, out: Path) -> Iterator[Block]:
    """Title, size and date, tiles, and links to the data."""
    yield Heading(1, title_of_page(found))
    if line := size_and_date(found):
        yield Paragraph(line, "soft")
    if "interrupted" in found.provenance:
        yield Paragraph(f"This report is not complete: {found.provenance['interrupted']}.", "lead")
    if tiles := list(_tiles(found))[:MOST_TILES]:
        yield Tiles(_caption(found, tiles), tiles)
    runs = [row["runs"] for row in found.rows if is_number(row["runs"])]
    if runs and min(runs) < FEW:
        yield Paragraph(
            f"Some numbers here come from {count_runs(min(runs))} only: read their intervals before their means."
        )
    if found.rows:
        write_whole(out / "summary.csv", as_csv(found.rows).encode())
        files = [("All numbers as CSV", "summary.csv")]
        files += [("summary.json", "summary.json")] if (out / "summary.json").exists() else []
        yield Files(files)


def _caption(found: Summary, tiles: list[tuple[str, list[Bar]]]) -> str:
    if families_of(found).keys() & FIELD.keys():
        return "Score; 1 is the exact optimum."
    words = ["of MCTS in the wrong model", "of UA-MCTS in the same model", "of MCTS in the true one"]
    shown = {bar.name.partition(" (")[0] for _, bars in tiles for bar in bars}
    return (
        f"Mean reward {join_words([part for part, name in zip(words, FLOW.values(), strict=True) if name in shown])}."
    )


def as_csv(rows: list[Entry]) -> str:
    """The rows of a summary as comma-separated values; intervals in two columns."""
    text = io.StringIO()
    fields = [field for field in rows[0] if field not in ("ci95", "iqm_ci95")]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*fields, "ci95_low", "ci95_high", "iqm_ci95_low", "iqm_ci95_high"])
    for row in rows:
        ends = [end for field in ("ci95", "iqm_ci95") for end in (row[field] or (None, None))]
        writer.writerow([*(row[field] for field in fields), *ends])
    return text.getvalue()


def _tiles(found: Summary) -> Iterator[tuple[str, list[Bar]]]:
    """Wrong model, UA-MCTS and true model of each experiment that has at least two of them."""
    for table in field_tables(found):
        if table.name == "field":
            yield from _field_tiles(table.heads, {line[0].text: line for line in table.lines})
    declared = found.declarations()
    for experiment in dict.fromkeys(row["experiment"] for row in found.rows):
        one = declared.get(experiment, {})
        if one.get("level") is not None or one.get("world"):
            continue
        rows = [row for row in found.rows if row["experiment"] == experiment and row["scenario"] == "offline"]
        if not rows:
            continue
        domain = rows[0]["domain"]
        best = (
            _best_of_three(found, experiment, domain)
            if not one.get("family")
            else {
                planner.algorithm: row
                for planner, row in reversed(best_rows(rows).items())
                if planner.algorithm in FLOW
            }
        )
        if len(best) > 1:
            title = one["title"] if one.get("family") else title_of(found, experiment, domain)
            yield title.removesuffix(", own experiment"), _bars(best, domain)


def _best_of_three(found: Summary, experiment: str, domain: str) -> dict[str, Entry]:
    """The rows of the three planners under an experiment's first rule set; of several tau, the better one."""
    chosen = offline_results(select_entries(found.rows, experiment, domain, found.rule_sets(experiment)[0]))
    best: dict[str, Entry] = {}
    for one in chosen:
        if one.algorithm in FLOW and (one.algorithm not in best or one.row["mean"] > best[one.algorithm]["mean"]):
            best[one.algorithm] = one.row
    return best


def _bars(best: dict[str, Entry], domain: str) -> list[Bar]:
    most = style.possible(domain)[1]
    top = most if is_number(most) else max(abs(row["mean"]) for row in best.values()) or 1.0
    shown = [(key, name, best[key]) for key, name in FLOW.items() if key in best]
    return [
        _bar(name + _tau(row), row["mean"], key, row["mean"] / top, style.describe_row(row)) for key, name, row in shown
    ]


def _bar(name: str, value: float, planner: str, share: float, words: str = "") -> Bar:
    return Bar(name, f"{value:.2f}", PLANNERS[planner], min(1.0, max(0.0, share)), words)


def _tau(row: Entry) -> str:
    return f" (tau {row['tau']:g})" if row["algorithm"] == "combined" and row["tau"] != 0.1 else ""


def _field_tiles(heads: list[str], lines: dict[str, list]) -> Iterator[tuple[str, list[Bar]]]:
    """The exact plan in the old model, the agent and the exact optimum of each world."""
    flow = {EXACT["stale"]: "corrupted", FIELD_PLANNERS["agent"].title: "agent", EXACT["optimum"]: "true"}
    for place, world in enumerate(heads[1:], 1):
        found = {title: lines[title][place].value for title in flow if title in lines}
        bars = [_bar(title, value, flow[title], value) for title, value in found.items() if is_number(value)]
        if len(bars) > 1:
            yield world, bars
