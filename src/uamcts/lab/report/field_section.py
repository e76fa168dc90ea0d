"""The field's comparisons in the report and on the terminal: scores, a table for each world, and a figure.

Every table and figure has the exact optimum and the exact plan in the old model beside the planners, and what was
published.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from uamcts.field import Yardsticks, make_grid
from uamcts.lab.analysis.forms import Entry
from uamcts.lab.analysis.results import Summary
from uamcts.lab.analysis.selection import is_number
from uamcts.lab.experiments.field import FIELD, PLANNERS, FieldExperiment
from uamcts.lab.report import page, style
from uamcts.lab.report.families import FamilyTable
from uamcts.lab.report.page import Block, Cell, Code, Gallery, Heading, Paragraph

PURPOSE = "field"
EXACT = {"optimum": "Exact optimum", "stale": "Exact plan, old model"}
BOLD = {"agent": "#d55e00", "ada_mcts": "#0072b2", "rats": "#009e73", "mcts": "#8a8a8a", "graph_told": "#cc79a7",
        "bamcp": "#e69f00", "wasserstein": "#56b4e9"}  # fmt: skip
"""Planners that a figure shows in colour; the others are in the table."""
NOTE = (
    "Mean of the episodes and 95% interval. A planner that chooses a setting chose it for this cell, on other seeds. "
    "The exact plans know the time limit, and so do the agent and the exact learner."
)

SCORE_NOTE = (
    "The mean over a world's cells of (reward - worst) / (optimum - worst); the worst is -1 for rewards and 0 for "
    "shares. 1 is the exact optimum."
)


@lru_cache(maxsize=256)
def yardsticks(experiment: FieldExperiment) -> Yardsticks:
    """The exact rewards of a cell; of shares, without a discount."""
    world = experiment.world
    grid = make_grid(world.map, world.slips, world.rewards, world.teleport)
    return Yardsticks(grid, world.parameter, world.believed, 1.0 if world.share else world.gamma, world.steps)


def field_section(found: Summary, name: str, declared: Sequence[Entry], folder: Path) -> Iterator[Block]:
    """The section of a world. Its figure is also written into `folder`."""
    family = FIELD[name]
    cells = _cells(found.rows, name, {one["name"] for one in declared})
    yield Heading(2, f"The field: {family.title}", style.slug([name]))
    yield Paragraph(family.text)
    figure = style.save(against_parameter(name, cells), folder, style.slug(["field", name]))
    words = f"{family.title}: what planners get, between the exact optimum and the exact plan in the old model."
    yield Gallery("figures", [page.drawing(figure, style.slug(["field", name]), words)])
    heads, lines = field_table(name, cells)
    yield page.Table(family.title, heads, lines)
    yield Paragraph(f"{NOTE} Published: {family.source}.", "soft")
    yield Code(str(found.provenance.get("command", "the command was not recorded")))


def field_overview(found: Summary, folder: Path) -> Iterator[Block]:
    """The scores of all planners in all worlds, as a figure; also written into `folder`."""
    yield Heading(2, "The field at a glance", "field")
    drawn = style.save(score_chart(_scores(found)), folder, "field_scores")
    yield Gallery("figures", [page.drawing(drawn, "field_scores", SCORE_NOTE)])


def field_tables(found: Summary) -> Iterator[FamilyTable]:
    """All tables of the field, for documents."""
    scores = _scores(found)
    if not scores:
        return
    worlds = list(dict.fromkeys(world for row in scores.values() for world in row))
    lines = [
        [Cell(title), *(_number(row.get(world, float("nan"))) for world in worlds)] for title, row in scores.items()
    ]
    yield FamilyTable("field", "Scores", SCORE_NOTE, ["planner", *(FIELD[world].title for world in worlds)], lines)
    for name in worlds:
        heads, rows = field_table(name, _cells(found.rows, name, set(found.declarations())))
        yield FamilyTable(f"field {name}", FIELD[name].title, NOTE, heads, rows)


def score_chart(scores: dict[str, dict[str, float]]) -> Figure:
    """Scores as a map: a row for each planner, the best first, a column for each world."""
    worlds = list(dict.fromkeys(world for row in scores.values() for world in row))
    order = sorted(scores, key=lambda title: -float(np.nanmean([scores[title].get(world, np.nan) for world in worlds])))
    values = np.array([[scores[title].get(world, np.nan) for world in worlds] for title in order])
    size = (2.9 + 0.85 * len(worlds), 1.3 + 0.3 * len(order))
    figure, axes = style.new_axes("Score: 1 is the exact optimum", "", "", size)
    axes.grid(visible=False)
    axes.imshow(values, cmap="RdYlGn", vmin=0.0, vmax=1.0, aspect="auto")
    for row, column in np.argwhere(np.isfinite(values)):
        axes.text(column, row, f"{values[row, column]:.2f}", ha="center", va="center", fontsize=8.5, color="#111111")
    axes.set_xticks(
        range(len(worlds)), [FIELD[world].title.replace(", ", ",\n") for world in worlds], rotation=30, ha="right"
    )
    axes.set_yticks(range(len(order)), order)
    for tick in axes.get_yticklabels():
        tick.set_fontweight("bold" if tick.get_text() == PLANNERS["agent"].title else "normal")
    return figure


def _scores(found: Summary) -> dict[str, dict[str, float]]:
    """The score of each planner in each world, by title and world."""
    scores: dict[str, dict[str, float]] = {}
    for name in FIELD:
        cells = _cells(found.rows, name, set(found.declarations()))
        if cells:
            for line in field_table(name, cells)[1]:
                if isinstance(line[-1].value, float) and not line[0].text.startswith("published"):
                    scores.setdefault(line[0].text, {})[name] = line[-1].value
    return scores


def field_table(name: str, cells: dict[FieldExperiment, dict[str, Entry]]) -> tuple[list[str], list[list[Cell]]]:
    """A row for each planner, a column for each level; first the exact rewards, last what was published."""
    family = FIELD[name]
    heads = ["planner", *(f"{family.axis} {cell.level:g}" for cell in cells), "score"]
    lines = []
    for key, title in EXACT.items():
        values = [getattr(yardsticks(cell), key) for cell in cells]
        lines.append([Cell(title), *map(_number, values), _number(_score(name, cells, values))])
    for key, planner in PLANNERS.items():
        rows = [cells[cell].get(key) for cell in cells]
        if any(rows):
            means = [row["mean"] if row else float("nan") for row in rows]
            lines.append([Cell(planner.title), *map(_mean, rows), _number(_score(name, cells, means))])
    for title, published in family.published.items():
        known = [published.get(level, float("nan")) for level in map(_level, cells)]
        lines.append([Cell(f"published: {title}"), *map(_number, known), _number(_score(name, cells, known))])
    return heads, lines


def against_parameter(name: str, cells: dict[FieldExperiment, dict[str, Entry]]) -> Figure:
    """Reward against the parameter, between the exact optimum and the exact plan in the old model."""
    family = FIELD[name]
    what = "share that reaches the goal" if family.scale[0] == 0 else "discounted reward"
    figure, axes = style.new_axes(family.title, family.axis, f"{what}, 95% interval", (6.2, 4.6))
    levels = list(map(_level, cells))
    bounds = {key: [getattr(yardsticks(cell), key) for cell in cells] for key in EXACT}
    axes.fill_between(levels, bounds["stale"], bounds["optimum"], color=style.LINE, alpha=0.5, linewidth=0)
    for (key, title), dash in zip(EXACT.items(), ("-", (0, (4, 2))), strict=True):
        axes.plot(levels, bounds[key], color=style.INK, linewidth=2.0, linestyle=dash, label=title)
    for key, colour in BOLD.items():
        rows = {_level(cell): cells[cell][key] for cell in cells if key in cells[cell]}
        if rows:
            mean = [row["mean"] for row in rows.values()]
            lengths = np.array([style.error_lengths(row) for row in rows.values()])[:, :, 0].T
            strong = {"linewidth": 2.6, "zorder": 4} if key == "agent" else {"linewidth": 1.4}
            style.draw_band(
                axes, list(rows), mean, mean - lengths[0], mean + lengths[1], color=colour, marker="o", markersize=5,
                label=PLANNERS[key].title, **strong,
            )  # fmt: skip
    for title, values in family.published.items():
        for key in (key for key in BOLD if PLANNERS[key].published == title):
            axes.plot(
                list(values), list(values.values()), color=BOLD[key], marker="x", linestyle="none",
                label=f"{title}, published",
            )  # fmt: skip
    style.legend_below(axes, 3)
    return figure


def terminal_lines(rows: Sequence[Entry]) -> list[str]:
    """The tables of all worlds that have results, for a terminal."""
    lines = []
    for name, family in FIELD.items():
        cells = _cells(rows, name, {row["experiment"] for row in rows})
        if not cells:
            continue
        _, table = field_table(name, cells)
        lines += ["", f"{family.title}, {family.axis} =", f"{'':34}" + "".join(f"{cell.level:8g}" for cell in cells)
                  + "   score"]  # fmt: skip
        lines += [f"{line[0].text[:34]:34}" + "".join(f"{_short(cell):>8}" for cell in line[1:]) for line in table]
    return lines[1:]


def _cells(rows: Iterable[Entry], name: str, wanted: set[str]) -> dict[FieldExperiment, dict[str, Entry]]:
    """The reported row of each planner in each cell of a family."""
    rows = [row for row in rows if row["scenario"] == "field" and row["purpose"] == PURPOSE and is_number(row["mean"])]
    cells: dict[FieldExperiment, dict[str, Entry]] = {}
    for cell in FIELD[name].experiments:
        found = {row["algorithm"]: row for row in rows if row["experiment"] == cell.name and cell.name in wanted}
        if found:
            cells[cell] = found
    return cells


def _level(cell: FieldExperiment) -> float:
    return float(cell.level or 0.0)


def _score(name: str, cells: Iterable[FieldExperiment], values: Sequence[float]) -> float:
    """The mean over cells of (reward - worst) / (optimum - worst)."""
    worst = FIELD[name].scale[0]
    best = [yardsticks(cell).optimum for cell in cells]
    return float(np.mean([(value - worst) / (most - worst) for value, most in zip(values, best, strict=True)]))


def _mean(row: Entry | None) -> Cell:
    if row is None:
        return Cell("–", "", "number")
    ends = row["ci95"]
    interval = f" [{ends[0]:.3f}, {ends[1]:.3f}]" if ends and all(map(is_number, ends)) else ""
    return Cell(f"{row['mean']:.3f}{interval}", row["mean"], "number")


def _number(value: float) -> Cell:
    return Cell(f"{value:.3f}" if np.isfinite(value) else "–", value if np.isfinite(value) else "", "number")


def _short(cell: Cell) -> str:
    return cell.text.partition(" [")[0]
