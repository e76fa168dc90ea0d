"""Families of experiments as tables: planners in several worlds, or over a range of levels; and their sections.

The same tables are in the report and, as Markdown, in the documents (`markdown.py`). Offline, a planner is reported on
fresh seeds at the c that was chosen on others, or on the sweep if there was no choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from uamcts import names
from uamcts.colours import OTHERS, PLANNERS
from uamcts.lab.analysis.forms import Entry
from uamcts.lab.analysis.results import Summary
from uamcts.lab.analysis.selection import is_number
from uamcts.lab.experiments.beyond import FAMILIES, Family
from uamcts.lab.report import page, plots, style
from uamcts.lab.report.page import Bar, Block, Cell, Fold, Gallery, Heading, Legend, Paragraph, Tiles

SCENARIOS = {"offline": "Offline: U is known", "online": "Online: U is learned on the way"}
USUAL_TAU = 0.1
SURE = 0.05
"""The largest adjusted p-value at which a difference is marked."""
NOTE = "Mean reward, 95% interval over runs, mean steps of an episode, and the c of the search."
NOTE_ON_DIFFERENCES = (
    "Trust search minus the other planner on the same fresh seeds: mean difference in reward and its 95% interval over "
    "seeds. * marks differences that are significant at 5% after Holm's adjustment for all differences of the summary."
)


class Planner(NamedTuple):
    """A planner: a line or a column of a table."""

    algorithm: str
    learner: str
    tau: float
    """0 online, where tau changes."""

    @property
    def name(self) -> str:
        usual = self.tau in (0.0, USUAL_TAU) or self.algorithm != "combined"
        return names.planner_title(self.algorithm, self.learner) + ("" if usual else f", tau {self.tau:g}")


@dataclass(frozen=True)
class FamilyTable:
    """A table of a family."""

    name: str
    """The name that a document refers to."""
    title: str
    note: str
    heads: list[str]
    lines: list[list[Cell]]


def families_of(found: Summary) -> dict[str, list[Entry]]:
    """The declarations of experiments that belong to families, by family."""
    families: dict[str, list[Entry]] = {}
    for declared in found.declarations().values():
        if declared.get("family"):
            families.setdefault(declared["family"], []).append(declared)
    return families


def title_of_family(name: str) -> str:
    """The title of a family."""
    return FAMILIES[name].title if name in FAMILIES else style.title_of(name)


def family_section(found: Summary, name: str, declared: list[Entry], folder: Path) -> Iterator[Block]:
    """The section of a family. Its figures are also written into `folder`."""
    family = FAMILIES.get(name, Family(style.title_of(name), "", "level"))
    yield Heading(2, family.title, style.slug([name]))
    short, _, rest = family.text.partition(". ")
    yield Paragraph(f"{short}." if rest else short)
    yield from _gallery(found, name, declared, folder)
    yield from _tiles(found, declared)
    tables: list[Block] = [Paragraph(rest)] if rest else []
    for table in tables_of_family(found, name, declared):
        tables += [Heading(3, table.title), page.Table(table.title, table.heads, table.lines)]
        tables.append(Paragraph(table.note, "soft"))
    if tables:
        yield Fold("How it was measured, and all numbers", tables)


def _tiles(found: Summary, declared: list[Entry]) -> Iterator[Block]:
    """A tile for each world of a family without levels, with a bar for each planner."""
    if _has_levels(declared):
        return
    for _, words, rows in _by_rules(found, declared):
        for scenario, title in SCENARIOS.items():
            worlds = {
                one["title"]: best_rows(
                    row for row in rows if row["experiment"] == one["name"] and row["scenario"] == scenario
                )
                for one in declared
            }
            tiles = [(world, _bars(best)) for world, best in worlds.items() if best]
            if tiles:
                yield Tiles(f"{title}{words}. Mean reward.", tiles)


def _bars(best: dict[Planner, Entry]) -> list[Bar]:
    """The bars of a tile, as long as their share of what is possible, or of the greatest."""
    most = style.possible(next(iter(best.values()))["domain"])[1]
    top = most if is_number(most) else max(abs(row["mean"]) for row in best.values()) or 1.0
    return [
        Bar(
            planner.name.replace("_", " "), f"{row['mean']:.2f}", PLANNERS.get(planner.algorithm, OTHERS[3]),
            min(1.0, max(0.0, row["mean"] / top)), style.describe_row(row),
        )
        for planner, row in best.items()
    ]  # fmt: skip


def _gallery(found: Summary, name: str, declared: list[Entry], folder: Path) -> Iterator[Block]:
    """A file with a panel for each world; on the page a figure for each, which fits a phone, and one legend."""
    family = FAMILIES.get(name, Family(style.title_of(name), "", "level"))
    for suffix, (keys, worlds) in _figures(declared, found).items():
        whole = plots.against_level(
            worlds, family.axis, family.logarithmic, heading=plots.heading_of(family.title, worlds)
        )
        style.save(whole, folder, style.slug([name, suffix]))
        planners = dict.fromkeys(key for points in worlds.values() for rows in points.values() for key in rows)
        yield Legend([(PLANNERS.get(key, OTHERS[3]), names.planner_title(key, "true")) for key in planners])
        drawn = []
        for key, (title, points) in zip(keys, worlds.items(), strict=True):
            stem = style.slug([name, key, suffix])
            figure = plots.against_level({title: points}, family.axis, family.logarithmic, legend=False)
            drawn.append(page.drawing(style.save(figure, folder, stem), stem, f"{title}: mean reward, 95% interval."))
        yield Gallery("figures", drawn)


def tables_of_family(found: Summary, name: str, declared: list[Entry]) -> Iterator[FamilyTable]:
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


def best_rows(rows: Iterable[Entry]) -> dict[Planner, Entry]:
    """The row that is reported for each planner of an experiment: fresh seeds at the chosen c, else the best row."""
    best: dict[Planner, Entry] = {}

    def rank(row: Entry) -> tuple[bool, bool, float]:
        return row["purpose"] == "fresh", bool(row["best"]), row["mean"]

    for row in rows:
        planner = Planner(row["algorithm"], row["learner"], row["tau"] if row["scenario"] == "offline" else 0.0)
        if is_number(row["mean"]) and (planner not in best or rank(row) > rank(best[planner])):
            best[planner] = row
    return best


def _by_rules(found: Summary, declared: list[Entry]) -> Iterator[tuple[str, str, list[Entry]]]:
    """The rows of a family for each rule set, with a suffix and a title for it if there are several.

    Trust has rules of its own and is shown with every other rule set.
    """
    own = {one["name"] for one in declared}
    rows = [row for row in found.rows if row["experiment"] in own and is_number(row["mean"])]
    sets = list(dict.fromkeys(row["rules"] for row in rows if row["rules"] != "trust")) or ["trust"]
    for rules in sets if rows else ():
        several = len(sets) > 1
        yield (
            rules if several else "",
            f", {names.rules_title(rules)}" if several else "",
            [row for row in rows if row["rules"] in (rules, "trust")],
        )


def _has_levels(declared: list[Entry]) -> bool:
    return any(one["level"] is not None for one in declared)


def _worlds(declared: list[Entry], rows: list[Entry]) -> Iterator[tuple[str, str, list[Entry]]]:
    """Experiments that differ only in their level: a key, a title and their declarations."""
    present = {row["experiment"] for row in rows}
    worlds: dict[tuple[str, str], list[Entry]] = {}
    for one in declared:
        if one["name"] in present:
            worlds.setdefault((one["domain"], one["title"]), []).append(one)
    domains = [domain for domain, _ in worlds]
    for (domain, title), own in worlds.items():
        without_level = own[0]["name"].rpartition("_")[0].removeprefix(f"{own[0]['family']}_")
        key = domain if domains.count(domain) == 1 else without_level
        yield key, title, sorted(own, key=lambda one: one["level"])


def _figures(declared: list[Entry], found: Summary) -> dict[str, tuple[list[str], dict[str, plots.Levels]]]:
    """The rows to draw of a family with levels: for each rule set, the keys of its worlds, and their rows by title."""
    figures: dict[str, tuple[list[str], dict[str, plots.Levels]]] = {}
    for suffix, words, rows in _by_rules(found, declared) if _has_levels(declared) else ():
        keys, worlds = figures.setdefault(suffix, ([], {}))
        for key, title, own in _worlds(declared, rows):
            keys.append(key)
            worlds[title + words] = {
                one["level"]: {
                    planner.algorithm: row
                    for planner, row in best_rows(r for r in rows if r["experiment"] == one["name"]).items()
                }
                for one in own
            }
    return figures


def _over_levels(name: str, title: str, axis: str, level: dict[str, float], rows: list[Entry]) -> FamilyTable:
    """A row for each level, a column for each planner."""
    points = {one: best_rows(row for row in rows if row["experiment"] == one) for one in level}
    planners = list(dict.fromkeys(planner for found in points.values() for planner in found))
    lines = [
        [Cell(f"{level[one]:,g}", level[one], "number"), *(_score(found.get(planner)) for planner in planners)]
        for one, found in points.items()
    ]
    return FamilyTable(name, title, NOTE, [axis, *(planner.name for planner in planners)], lines)


def _side_by_side(name: str, title: str, declared: list[Entry], rows: list[Entry]) -> Iterator[FamilyTable]:
    """A row for each planner, a column for each experiment."""
    points = {one["name"]: best_rows(row for row in rows if row["experiment"] == one["name"]) for one in declared}
    shown = [one for one in declared if points[one["name"]]]
    planners = list(dict.fromkeys(planner for found in points.values() for planner in found))
    lines = [[Cell(planner.name), *(_score(points[one["name"]].get(planner)) for one in shown)] for planner in planners]
    if shown:
        yield FamilyTable(name, title, NOTE, ["planner", *(one["title"] for one in shown)], lines)


def _differences(
    name: str, title: str, places: dict[str, str] | dict[str, float], differences: list[Entry], axis: str = ""
) -> Iterator[FamilyTable]:
    """Trust minus each other planner: a row for each planner, or with an `axis` for each level."""
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
        heads = [axis, *(f"minus {planner.name}" for planner in found)]
        lines = [
            [Cell(f"{places[place]:,g}", places[place], "number"),
             *(_difference(found[planner].get(place)) for planner in found)]
            for place in shown
        ]  # fmt: skip
    else:
        heads = [names.title("trust"), *(str(places[place]) for place in shown)]
        lines = [
            [Cell(f"minus {planner.name}"), *(_difference(found[planner].get(place)) for place in shown)]
            for planner in found
        ]
    yield FamilyTable(f"{name} differences", f"{title}: differences", NOTE_ON_DIFFERENCES, heads, lines)


def _reverse(one: Entry) -> Entry:
    """The same difference with the planners exchanged."""
    return {**one, "mean": -one["mean"], "ci95": [-one["ci95"][1], -one["ci95"][0]]}


def _score(row: Entry | None) -> Cell:
    """A cell with mean, interval, steps and c, sorted by the mean."""
    if row is None:
        return Cell("–", "", "number")
    ends = row["ci95"]
    interval = f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends and all(map(is_number, ends)) else ""
    c = f", c {style.exploration(row['c'])}" if is_number(row["c"]) else ""
    return Cell(f"{row['mean']:.2f}{interval} in {row['steps']:.0f}{c}", row["mean"], "number")


def _difference(one: Entry | None) -> Cell:
    """A cell with a mean difference and its interval, marked if it is significant after the adjustment."""
    if one is None:
        return Cell("–", "", "number")
    low, high = one["ci95"]
    sign = "*" if one["p_holm"] <= SURE else ""
    return Cell(f"{one['mean']:+.2f}{sign} [{low:+.2f}, {high:+.2f}]", one["mean"], "number")
