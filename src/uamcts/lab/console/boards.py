"""Episodes in a terminal: boards, and next to them the plan."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.text import Text

from uamcts.domains.base import Domain
from uamcts.domains.heat import as_digits
from uamcts.domains.pictures import MARK
from uamcts.episodes.offline import Move
from uamcts.types import PyTree

WRONG = "bold red"
GAP = 2
"""Empty columns between two panels, and between a board and its plan."""
DOUBTFUL = "bold yellow"
LEGEND = f"{MARK}, red: the simulator is wrong; 1-9: U of the worst action there, 9 the largest"
LEARNED = "; of an agent, as it has learned so far"
PLAN_HEAD = f"  {'action':6}{'visits':>7}{'value':>8}{'U':>6}"

Lines = list[Text]
Panel = tuple[Lines, Lines, Lines]
"""A head, a board and a plan."""


def legend(domain: Domain, learns: bool) -> str:
    """What the signs on a board mean; nothing if there are none."""
    return "" if domain.wrong_cells() is None else LEGEND + LEARNED * learns


def plan_lines(domain: Domain, move: Move, uncertainty: Sequence[float]) -> Lines:
    """The plan: visits, value and uncertainty of each action; a star marks the action taken."""
    lines = [Text(PLAN_HEAD)]
    for action, name in enumerate(domain.action_names):
        star = "*" if action == move.action else " "
        visits, value = _plan_cells(move.plan, action)
        row = f"{star} {name:6}{visits:>7}{value:>8}{_format_number(uncertainty[action], 6, 3)}"
        lines.append(Text(row, WRONG if uncertainty[action] > 0 else ""))
    chosen = "at random " if move.plan is None else ""
    return [*lines, Text(f"{domain.action_names[move.action]} {chosen}pays {move.reward:g}")]


def _plan_cells(plan: Any, action: int) -> tuple[str, str]:
    """Visits and value of an action."""
    if plan is None:
        return "-", "-"
    visits, exists, value = (np.asarray(part)[action] for part in (plan.visits, plan.exists, plan.values))
    if not exists:
        return str(visits), "deleted"
    return str(visits), _format_number(float(value), 8, 3).strip() if visits else "-"


def _format_number(number: float, width: int, places: int) -> str:
    """A number in `width` characters, with fewer decimal places if it is long."""
    text = f"{number:{width}.{places}f}"
    return text if text.startswith(" ") else f"{number:{width}.2g}"


def board_lines(domain: Domain, state: PyTree, uncertainty: np.ndarray | None = None) -> Lines:
    """A board with its wrong cells marked: empty ones by a sign, all of them by a colour.

    `uncertainty`: U of each action if the player stood in a cell, [rows, columns, actions]; shown in empty cells.
    """
    wrong = domain.wrong_cells()
    marked = wrong
    if uncertainty is not None:
        digits = as_digits(uncertainty)
        marked = np.where((digits == "") & (wrong if wrong is not None else False), MARK, digits)
    lines = [Text(line) for line in domain.text(state, marked).split("\n")]
    if uncertainty is not None:
        for row, column in np.argwhere(digits != ""):
            lines[row + 1].stylize(DOUBTFUL, column + 1, column + 2)
    if wrong is not None:
        for row, column in np.argwhere(wrong):
            lines[row + 1].stylize(WRONG, column + 1, column + 2)
    return lines


def width_of(lines: Lines) -> int:
    """The width of some lines."""
    return max((line.cell_len for line in lines), default=0)


def beside(parts: Sequence[Lines]) -> Lines:
    """Blocks of lines next to each other."""
    widths = [width_of(part) for part in parts]
    rows = []
    for row in itertools.zip_longest(*parts):
        joined = Text()
        for place, (line, width) in enumerate(zip(row, widths, strict=True)):
            cell = line.copy() if line is not None else Text()
            cell.pad_right(width - cell.cell_len + (GAP if place < len(widths) - 1 else 0))
            joined.append_text(cell)
        joined.rstrip()
        rows.append(joined)
    return rows


def flow(panels: Sequence[Lines], width: int) -> Lines:
    """Panels next to each other, as many as fit into `width` columns; the others follow below."""
    rows: list[list[Lines]] = [[]]
    for panel in panels:
        taken = sum(width_of(other) + GAP for other in rows[-1])
        if rows[-1] and taken + width_of(panel) > width:
            rows.append([])
        rows[-1].append(panel)
    return [line for row in rows for line in beside(row)]


def arrange(panels: Sequence[Panel], width: int, height: int) -> Lines:
    """Panels in the first layout that fits: with plans next to the boards, or below them, or without plans."""
    wide = flow([head + beside([board, plan]) for head, board, plan in panels], width)
    tall = flow([head + board + plan for head, board, plan in panels], width)
    small = flow([head + board for head, board, _ in panels], width)
    layouts = sorted((wide, tall), key=len)
    return next((layout for layout in layouts if len(layout) <= height and width_of(layout) <= width), small)
