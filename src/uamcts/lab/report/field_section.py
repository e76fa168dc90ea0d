"""The field's comparisons in the report and on the terminal: scores, a table for each world, and a figure.

Every table and figure has the exact optimum and the exact plan in the old model beside the planners, and what was
published. Cart poles have no exact optimum: the planner that is told takes its place.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from uamcts.colours import PLANNERS as COLOURS
from uamcts.field import Yardsticks, make_grid
from uamcts.lab.analysis.forms import Entry
from uamcts.lab.analysis.results import Summary
from uamcts.lab.analysis.selection import is_number
from uamcts.lab.experiments.field import FIELD, FieldExperiment
from uamcts.lab.experiments.field_worlds import PLANNERS, GridWorld
from uamcts.lab.report import page, style
from uamcts.lab.report.families import FamilyTable
from uamcts.lab.report.page import Block, Cell, Code, Gallery, Heading, Paragraph

PURPOSE = "field"
Cells = dict[FieldExperiment, dict[str, Entry]]
"""The reported row of each planner, by cell."""
EXACT = {"optimum": "Exact optimum", "stale": "Exact plan, old model"}
NEARLY = "Plan, old model"
"""The lines that are computed and not measured, in worlds of a table and on cart poles."""
GRID_COLOURS = {"agent": COLOURS["agent"], "ada_mcts": "#2b6fd6", "rats": "#868686", "mcts": COLOURS["corrupted"],
                "graph_told": COLOURS["true"], "bamcp": "#b8860b", "wasserstein": "#2f95b4"}  # fmt: skip
POLE_COLOURS = {"agent": COLOURS["agent"], "agent_stale": "#7a4fb5", "mcts": COLOURS["corrupted"],
                "mcts_told": "#2b6fd6", "graph_told": COLOURS["true"], "pa_mcts": "#b8860b"}  # fmt: skip
"""Planners that a figure shows, and their colours; the others are in the table."""
NOTE = (
    "Mean of the episodes and 95% interval. A planner that chooses a setting chose it for this cell, on other seeds. "
    "The exact plans know the time limit, and so do the agent and the exact learner."
)

SCORE_NOTE = (
    "The mean over a world's cells of (reward - worst) / (optimum - worst); the worst is -1 for rewards and 0 for "
    "shares. 1 is the exact optimum; on cart poles, the better of MCTS that is told and the plan for the old pole."
)


@lru_cache(maxsize=256)
def yardsticks(experiment: FieldExperiment) -> Yardsticks:
    """The exact rewards of a cell; of shares, without a discount."""
    world = experiment.world
    if not isinstance(world, GridWorld):
        raise TypeError(f"experiment {experiment.name} has no exact rewards")
    grid = make_grid(world.map, world.slips, world.rewards, world.teleport)
    return Yardsticks(grid, world.parameter, world.believed, 1.0 if world.share else world.gamma, world.steps)


def computed_lines(cells: Cells) -> dict[str, list[float]]:
    """What is computed and not measured, by title."""
    family = FIELD[next(iter(cells)).family or ""]
    if not family.is_exact:
        return {NEARLY: [family.stale[_level(cell)] for cell in cells]}
    return {title: [getattr(yardsticks(cell), key) for cell in cells] for key, title in EXACT.items()}


def best_rewards(cells: Cells) -> list[float]:
    """What counts as 1: the optimum; on cart poles, the better of MCTS that is told and the plan for the old pole."""
    lines = computed_lines(cells)
    if EXACT["optimum"] in lines:
        return lines[EXACT["optimum"]]
    told = [row["mcts_told"]["mean"] if "mcts_told" in row else 0.0 for row in cells.values()]
    return [max(pair) for pair in zip(told, *lines.values(), strict=True)]


def field_section(found: Summary, name: str, declared: Sequence[Entry], folder: Path) -> Iterator[Block]:
    """The section of a world. Its figure is also written into `folder`."""
    family = FIELD[name]
    cells = _cells(found.rows, name, {one["name"] for one in declared})
    yield Heading(2, f"The field: {family.title}", style.slug([name]))
    yield Paragraph(family.text)
    figure = style.save(against_parameter(name, cells), folder, style.slug(["field", name]))
    words = f"{family.title}: what planners get, beside the {'exact ' if family.is_exact else ''}plan in the old model."
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
    """Scores as a map: a row for each planner, the best first, a column for each world.

    Planners that play in less than half of the worlds come last: their mean says little beside that of others.
    """
    worlds = list(dict.fromkeys(world for row in scores.values() for world in row))
    order = sorted(
        scores,
        key=lambda title: (2 * len(scores[title]) < len(worlds), -float(np.nanmean(list(scores[title].values())))),
    )
    values = np.array([[scores[title].get(world, np.nan) for world in worlds] for title in order])
    size = (2.9 + 0.85 * len(worlds), 1.3 + 0.3 * len(order))
    figure, axes = style.new_axes("Score: 1 is the exact optimum", "", "", size)
    axes.grid(visible=False)
    axes.imshow(values, cmap="RdYlGn", vmin=0.0, vmax=1.0, aspect="auto")
    for row, column in np.argwhere(np.isfinite(values)):
        ink = "#111111" if 0.1 < values[row, column] < 0.9 else "#fdfdfd"  # the ends of the map are dark
        axes.text(column, row, f"{values[row, column]:.2f}", ha="center", va="center", fontsize=8.5, color=ink)
    axes.set_xticks(range(len(worlds)), [textwrap.fill(FIELD[world].title, 12) for world in worlds], fontsize=8)
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
                title = EXACT["stale"] if line[0].text == NEARLY else line[0].text
                if isinstance(line[-1].value, float) and not title.startswith("published"):
                    scores.setdefault(title, {})[name] = line[-1].value
    return scores


def field_table(name: str, cells: Cells) -> tuple[list[str], list[list[Cell]]]:
    """A row for each planner, a column for each level; first the exact rewards, last what was published."""
    family = FIELD[name]
    heads = ["planner", *(f"{family.axis} {cell.level:g}" for cell in cells), "score"]
    lines = []
    digits = 3 if family.is_exact else 0
    for title, values in computed_lines(cells).items():
        lines.append([Cell(title), *(_number(one, digits) for one in values), _number(_score(name, cells, values))])
    for key, planner in PLANNERS.items():
        rows = [cells[cell].get(key) for cell in cells]
        if any(rows):
            means = [row["mean"] if row else float("nan") for row in rows]
            line = [_mean(row, digits) for row in rows]
            lines.append([Cell(planner.title), *line, _number(_score(name, cells, means))])
    for title, published in family.published.items():
        known = [published.get(level, float("nan")) for level in map(_level, cells)]
        line = [_number(one, digits) for one in known]
        lines.append([Cell(f"published: {title}"), *line, _number(_score(name, cells, known))])
    return heads, lines


def against_parameter(name: str, cells: Cells) -> Figure:
    """Reward against the parameter, beside what is computed."""
    family = FIELD[name]
    words = f"{family.experiments[0].world.measured}, 95% interval"
    figure, axes = style.new_axes(family.title, family.axis, words, (6.2, 4.6))
    levels, bounds = list(map(_level, cells)), computed_lines(cells)
    if family.is_exact:
        axes.fill_between(
            levels, bounds[EXACT["stale"]], bounds[EXACT["optimum"]], color=style.LINE, alpha=0.5, linewidth=0
        )
    else:
        axes.set_xscale("log")
        axes.set_xticks(levels, [f"{level:g}" for level in levels])
        axes.minorticks_off()
    for (title, values), dash in zip(bounds.items(), ("-", (0, (4, 2)))[-len(bounds) :], strict=True):
        axes.plot(levels, values, color=style.INK, linewidth=2.0, linestyle=dash, label=title)
    colours = GRID_COLOURS if family.is_exact else POLE_COLOURS
    for key, colour in colours.items():
        rows = {_level(cell): cells[cell][key] for cell in cells if key in cells[cell]}
        if rows:
            mean = [row["mean"] for row in rows.values()]
            lengths = np.array([style.error_lengths(row) for row in rows.values()])[:, :, 0].T
            strong = {"linewidth": 2.6, "zorder": 4} if key == "agent" else {"linewidth": 1.4}
            style.draw_band(
                axes, list(rows), mean, mean - lengths[0], mean + lengths[1], color=colour, marker="o", markersize=5,
                label=PLANNERS[key].title, **strong,
            )  # fmt: skip
    for title, column in family.published.items():
        for key in (key for key in colours if PLANNERS[key].published == title):
            axes.plot(
                list(column), list(column.values()), color=colours[key], marker="x", linestyle="none",
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


def _cells(rows: Iterable[Entry], name: str, wanted: set[str]) -> Cells:
    """The reported row of each planner in each cell of a family."""
    rows = [row for row in rows if row["scenario"] == "field" and row["purpose"] == PURPOSE and is_number(row["mean"])]
    cells: Cells = {}
    for cell in FIELD[name].experiments:
        found = {row["algorithm"]: row for row in rows if row["experiment"] == cell.name and cell.name in wanted}
        if found:
            cells[cell] = found
    return cells


def _level(cell: FieldExperiment) -> float:
    return float(cell.level or 0.0)


def _score(name: str, cells: Cells, values: Sequence[float]) -> float:
    """The mean over cells of (reward - worst) / (best - worst)."""
    worst, best = FIELD[name].worst, best_rewards(cells)
    return float(np.mean([(value - worst) / (most - worst) for value, most in zip(values, best, strict=True)]))


def _mean(row: Entry | None, digits: int) -> Cell:
    if row is None:
        return Cell("–", "", "number")
    ends = row["ci95"]
    interval = f" [{ends[0]:.{digits}f}, {ends[1]:.{digits}f}]" if ends and all(map(is_number, ends)) else ""
    return Cell(f"{row['mean']:.{digits}f}{interval}", row["mean"], "number")


def _number(value: float, digits: int = 3) -> Cell:
    return Cell(f"{value:.{digits}f}" if np.isfinite(value) else "–", value if np.isfinite(value) else "", "number")


def _short(cell: Cell) -> str:
    return cell.text.partition(" [")[0]
