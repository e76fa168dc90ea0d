"""The report's sections about families of experiments: a table of planners, or planners over a range of levels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from uamcts.lab import page, plots
from uamcts.lab.beyond import FAMILIES, Family
from uamcts.lab.findings import Entry, Findings, best_rows, known, shown_rule_sets, under
from uamcts.lab.page import Cell

SCENARIOS = {"offline": "Offline: U is known", "online": "Online: what it needs is learned on the way"}


def families_of(found: Findings) -> dict[str, list[Entry]]:
    """The declarations of experiments that belong to families, by family."""
    families: dict[str, list[Entry]] = {}
    for declared in found.declared().values():
        if declared.get("family"):
            families.setdefault(declared["family"], []).append(declared)
    return families


def title_of_family(name: str) -> str:
    """A family in words."""
    return FAMILIES[name].title if name in FAMILIES else plots.name(name)


def family_section(found: Findings, name: str, declared: list[Entry], folder: Path) -> Iterator[str]:
    """Everything about a family; its figures are also written into the folder."""
    family = FAMILIES.get(name, Family(plots.name(name), ""))
    names = {one["name"] for one in declared}
    rows = [row for row in found.rows if row["experiment"] in names and known(row["mean"])]
    yield page.heading(2, family.title, plots.slug([name]))
    yield page.paragraph(family.text)
    for rules in shown_rule_sets(rows):
        same = under(rows, rules)
        if len(shown_rule_sets(rows)) > 1:
            yield page.heading(3, f"{rules.capitalize()} rules")
        if any(one["level"] is not None for one in declared):
            yield from _over_levels(name, family, declared, same, rules, folder)
        else:
            yield from _side_by_side(name, declared, same)
    yield page.code(str(found.provenance.get("command", "the command was not recorded")))


def _over_levels(
    name: str, family: Family, declared: list[Entry], rows: list[Entry], rules: str, folder: Path
) -> Iterator[str]:
    """For each domain a figure with a line a planner, and the table behind it."""
    level = {one["name"]: one["level"] for one in declared}
    drawn, tables = [], []
    for domain in dict.fromkeys(row["domain"] for row in rows):
        own = [row for row in rows if row["domain"] == domain]
        points: dict[float, dict[str, Entry]] = {}
        for at in sorted({level[row["experiment"]] for row in own}):
            points[at] = best_rows(row for row in own if level[row["experiment"]] == at)
        title = f"{plots.name(domain)}, {rules} rules"
        stem = plots.slug([name, domain, "" if rules == "released" else rules])
        figure = plots.against_level(points, title, family.axis, family.logarithmic)
        drawn.append(page.drawing(plots.save(figure, folder, stem), stem, f"{title}: mean reward and 95% interval."))
        planners = list(dict.fromkeys(planner for found in points.values() for planner in found))
        lines = [
            [Cell(f"{at:,g}", at, "number"), *(_score(found.get(planner)) for planner in planners)]
            for at, found in points.items()
        ]
        heads = [family.axis, *(plots.who(planner, "true") for planner in planners)]
        tables += [page.heading(3, title), page.table(title, heads, lines)]
    yield '<div class="figures">' + "\n".join(drawn) + "</div>"
    yield from tables


def _side_by_side(name: str, declared: list[Entry], rows: list[Entry]) -> Iterator[str]:
    """Planners down, experiments across: offline, and online."""
    for scenario, words in SCENARIOS.items():
        own = [row for row in rows if row["scenario"] == scenario]
        shown = [one for one in declared if any(row["experiment"] == one["name"] for row in own)]
        if not own:
            continue
        lines = []
        for planner in dict.fromkeys((row["algorithm"], row["learner"]) for row in own):
            scores = {row["experiment"]: row for row in own if (row["algorithm"], row["learner"]) == planner}
            lines.append([Cell(plots.who(*planner)), *(_score(scores.get(one["name"])) for one in shown)])
        yield page.heading(3, words)
        yield page.table(f"{name}, {scenario}", ["planner", *(one["title"] for one in shown)], lines)
        yield page.paragraph("Mean reward, 95% interval over runs, and mean steps of an episode.", "soft")


def _score(row: Entry | None) -> Cell:
    """Mean, interval and steps in one cell, sorted by the mean."""
    if row is None:
        return Cell("–", "", "number")
    ends = row["ci95"]
    interval = f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends and all(map(known, ends)) else ""
    return Cell(f"{row['mean']:.2f}{interval} in {row['steps']:.0f}", row["mean"], "number")
