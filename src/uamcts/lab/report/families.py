"""Families of experiments as tables: planners in several worlds, or over a range of levels; and their sections.

The same tables are in the report and, as Markdown, in the documents (`markdown.py`). Offline each planner counts with
its fresh seeds at the c that was chosen on others, or with the sweep where nothing was chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from uamcts.lab.analysis.results import Entry, Summary, known
from uamcts.lab.experiments.beyond import FAMILIES, Family
from uamcts.lab.report import page, plots
from uamcts.lab.report.page import Cell

SCENARIOS = {"offline": "Offline: U is known", "online": "Online: what it needs is learned on the way"}
USUAL_TAU = 0.1
SURE = 0.05
"""The adjusted p-value up to which a difference is marked."""
NOTE = "Mean reward, 95% interval over runs, mean steps of an episode, and the c of the search."
NOTE_ON_DIFFERENCES = (
    "Trust less the other planner on the same fresh seeds: mean difference in reward and its 95% interval over seeds. "
    "* marks those that remain after Holm's adjustment for all differences of the summary, at 5%."
)


class Planner(NamedTuple):
    """Who plans: a line of a table, or a column."""

    algorithm: str
    learner: str
    tau: float
    """Offline; online it changes, and is 0 here."""

    @property
    def name(self) -> str:
        usual = self.tau in (0.0, USUAL_TAU) or self.algorithm != "combined"
        return plots.who(self.algorithm, self.learner) + ("" if usual else f", tau {self.tau:g}")


@dataclass(frozen=True)
class Table:
    """A table of a family."""

    name: str
    """By which a document asks for it."""
    title: str
    note: str
    heads: list[str]
    lines: list[list[Cell]]


def families_of(found: Summary) -> dict[str, list[Entry]]:
    """The declarations of experiments that belong to families, by family."""
    families: dict[str, list[Entry]] = {}
    for declared in found.declared().values():
        if declared.get("family"):
            families.setdefault(declared["family"], []).append(declared)
    return families


def title_of_family(name: str) -> str:
    """A family in words."""
    return FAMILIES[name].title if name in FAMILIES else plots.name(name)


def family_section(found: Summary, name: str, declared: list[Entry], folder: Path) -> Iterator[str]:
    """Everything about a family; its figures are also written into the folder."""
    family = FAMILIES.get(name, Family(plots.name(name), "", "level"))
    yield page.heading(2, family.title, plots.slug([name]))
    yield page.paragraph(family.text)
    drawn = [
        page.drawing(plots.save(plots.against_level(points, title, family.axis, family.logarithmic), folder, stem),
                     stem, f"{title}: mean reward and 95% interval.")
        for stem, title, points in _figures(found, name, declared)
    ]  # fmt: skip
    if drawn:
        yield '<div class="figures">' + "\n".join(drawn) + "</div>"
    for table in tables_of_family(found, name, declared):
        yield page.heading(3, table.title)
        yield page.table(table.title, table.heads, table.lines)
        yield page.paragraph(table.note, "soft")
    yield page.code(str(found.provenance.get("command", "the command was not recorded")))


def tables_of_family(found: Summary, name: str, declared: list[Entry]) -> Iterator[Table]:
    """All tables of a family, for each rule set that it was run under."""
    axis = FAMILIES[name].axis if name in FAMILIES else "level"
    for suffix, words, rows in _by_rules(found, declared):
        differences = [one for one in found.differences if suffix in ("", one["first_rules"], one["second_rules"])]
        if _has_levels(declared):
            for key, title, own in _worlds(declared, rows):
                level = {one["name"]: one["level"] for one in own}
                label = " ".join(filter(None, (name, key, suffix)))
                yield _over_levels(label, title + words, axis, level, rows)
                yield from _differences(label, title + words, level, differences, axis)
        else:
            for scenario, title in SCENARIOS.items():
                label = " ".join(filter(None, (name, scenario, suffix)))
                yield from _side_by_side(label, title + words, declared, [r for r in rows if r["scenario"] == scenario])
            titles = {one["name"]: one["title"] for one in declared}
            yield from _differences(" ".join(filter(None, (name, suffix))), "Seed by seed" + words, titles, differences)


def reported(rows: Iterable[Entry]) -> dict[Planner, Entry]:
    """The row that counts for each planner of an experiment: fresh seeds at the chosen c, or else the best there is."""
    best: dict[Planner, Entry] = {}

    def rank(row: Entry) -> tuple[bool, bool, float]:
        return row["purpose"] == "fresh", bool(row["best"]), row["mean"]

    for row in rows:
        planner = Planner(row["algorithm"], row["learner"], row["tau"] if row["scenario"] == "offline" else 0.0)
        if known(row["mean"]) and (planner not in best or rank(row) > rank(best[planner])):
            best[planner] = row
    return best


def _by_rules(found: Summary, declared: list[Entry]) -> Iterator[tuple[str, str, list[Entry]]]:
    """The rows of a family for each rule set, with a suffix and words for it where there are several.

    Trust has rules of its own, and stands beside every other rule set.
    """
    names = {one["name"] for one in declared}
    rows = [row for row in found.rows if row["experiment"] in names and known(row["mean"])]
    sets = list(dict.fromkeys(row["rules"] for row in rows if row["rules"] != "trust")) or ["trust"]
    for rules in sets if rows else ():
        several = len(sets) > 1
        yield (
            rules if several else "",
            f", {rules} rules" if several else "",
            [row for row in rows if row["rules"] in (rules, "trust")],
        )


def _has_levels(declared: list[Entry]) -> bool:
    return any(one["level"] is not None for one in declared)


def _worlds(declared: list[Entry], rows: list[Entry]) -> Iterator[tuple[str, str, list[Entry]]]:
    """Experiments that differ in nothing but their level: a key, a title and their declarations."""
    measured = {row["experiment"] for row in rows}
    worlds: dict[tuple[str, str], list[Entry]] = {}
    for one in declared:
        if one["name"] in measured:
            worlds.setdefault((one["domain"], one["title"]), []).append(one)
    domains = [domain for domain, _ in worlds]
    for (domain, title), own in worlds.items():
        without_level = own[0]["name"].rpartition("_")[0].removeprefix(f"{own[0]['family']}_")
        key = domain if domains.count(domain) == 1 else without_level
        yield key, title, sorted(own, key=lambda one: one["level"])


def _figures(
    found: Summary, name: str, declared: list[Entry]
) -> Iterator[tuple[str, str, dict[float, dict[str, Entry]]]]:
    """For each world of a family with levels a file's name, a title and the rows to draw, by level and algorithm."""
    if not _has_levels(declared):
        return
    for suffix, words, rows in _by_rules(found, declared):
        for key, title, own in _worlds(declared, rows):
            points = {
                one["level"]: {
                    planner.algorithm: row
                    for planner, row in reported(r for r in rows if r["experiment"] == one["name"]).items()
                }
                for one in own
            }
            yield plots.slug([name, key, suffix]), title + words, points


def _over_levels(name: str, title: str, axis: str, level: dict[str, float], rows: list[Entry]) -> Table:
    """Levels down, planners across."""
    points = {one: reported(row for row in rows if row["experiment"] == one) for one in level}
    planners = list(dict.fromkeys(planner for found in points.values() for planner in found))
    lines = [
        [Cell(f"{level[one]:,g}", level[one], "number"), *(_score(found.get(planner)) for planner in planners)]
        for one, found in points.items()
    ]
    return Table(name, title, NOTE, [axis, *(planner.name for planner in planners)], lines)


def _side_by_side(name: str, title: str, declared: list[Entry], rows: list[Entry]) -> Iterator[Table]:
    """Planners down, experiments across."""
    points = {one["name"]: reported(row for row in rows if row["experiment"] == one["name"]) for one in declared}
    shown = [one for one in declared if points[one["name"]]]
    planners = list(dict.fromkeys(planner for found in points.values() for planner in found))
    lines = [[Cell(planner.name), *(_score(points[one["name"]].get(planner)) for one in shown)] for planner in planners]
    if shown:
        yield Table(name, title, NOTE, ["planner", *(one["title"] for one in shown)], lines)


def _differences(
    name: str, title: str, places: dict[str, str] | dict[str, float], differences: list[Entry], axis: str = ""
) -> Iterator[Table]:
    """Trust less each other planner: planners down and experiments across, or with an `axis` levels down."""
    found: dict[Planner, dict[str, Entry]] = {}
    for one in differences:
        if one["experiment"] in places and one["first_algorithm"] == "trust":
            other = Planner(one["second_algorithm"], "true", one["second_tau"])
            found.setdefault(other, {})[one["experiment"]] = one
    for one in differences:
        if one["experiment"] in places and one["second_algorithm"] == "trust":
            other = Planner(one["first_algorithm"], "true", one["first_tau"])
            found.setdefault(other, {})[one["experiment"]] = _reverse(one)
    if not found:
        return
    shown = [place for place in places if any(place in row for row in found.values())]
    heads: list[str]
    if axis:
        heads = [axis, *(f"less {planner.name}" for planner in found)]
        lines = [
            [Cell(f"{places[place]:,g}", places[place], "number"),
             *(_difference(found[planner].get(place)) for planner in found)]
            for place in shown
        ]  # fmt: skip
    else:
        heads = ["trust", *(str(places[place]) for place in shown)]
        lines = [
            [Cell(f"less {planner.name}"), *(_difference(found[planner].get(place)) for place in shown)]
            for planner in found
        ]
    yield Table(f"{name} differences", f"{title}: differences", NOTE_ON_DIFFERENCES, heads, lines)


def _reverse(one: Entry) -> Entry:
    """The same difference the other way round."""
    return {**one, "mean": -one["mean"], "ci95": [-one["ci95"][1], -one["ci95"][0]]}


def _score(row: Entry | None) -> Cell:
    """Mean, interval, steps and c in one cell, sorted by the mean."""
    if row is None:
        return Cell("–", "", "number")
    ends = row["ci95"]
    interval = f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends and all(map(known, ends)) else ""
    c = f", c {plots.exploration(row['c'])}" if known(row["c"]) else ""
    return Cell(f"{row['mean']:.2f}{interval} in {row['steps']:.0f}{c}", row["mean"], "number")


def _difference(one: Entry | None) -> Cell:
    """A mean difference with its interval, marked if it remains after the adjustment."""
    if one is None:
        return Cell("–", "", "number")
    low, high = one["ci95"]
    sign = "*" if one["p_holm"] <= SURE else ""
    return Cell(f"{one['mean']:+.2f}{sign} [{low:+.2f}, {high:+.2f}]", one["mean"], "number")
