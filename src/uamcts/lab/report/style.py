"""What all figures share: colours, axes, labels, and how a figure is written to a file.

`save` writes a figure as PNG and SVG, the same bytes for the same numbers. A figure has three colours of its own
besides those of its data, INK, PAPER and LINE; the page replaces them by its own.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from uamcts.colours import INK, LINE, PAPER, PLANNERS
from uamcts.lab.analysis.forms import Entry
from uamcts.lab.analysis.selection import is_number
from uamcts.lab.experiments.paper import IN_WORDS
from uamcts.runtime.atomic import write_whole

COLOURS = PLANNERS
MARKERS = {
    "true": "s",
    "corrupted": "X",
    "backpropagation": "v",
    "selection": "^",
    "expansion": "D",
    "simulation": "P",
    "combined": "o",
    "trust": "*",
    "agent": "h",
}
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (4, 1.2, 1, 1.2)))
SIZE = (5.2, 3.4)
POINTS = 400
"""The largest number of points in a line; more cannot be seen."""


def title_of(experiment: str) -> str:
    """The title of an experiment or a domain."""
    return IN_WORDS.get(experiment, experiment.replace("_", " "))


def exploration(c: object) -> str:
    """c as a label: √2, not 1.4142."""
    if not is_number(c):
        return "?"
    return "√2" if math.isclose(c, math.sqrt(2.0), rel_tol=1e-4) else f"{c:g}"


def slug(parts: Iterable[str]) -> str:
    """A file name or an anchor made of words."""
    return "_".join("".join(letter if letter.isalnum() else "_" for letter in part) for part in parts if part)


def save(figure: Figure, folder: Path, stem: str) -> str:
    """Writes `stem`.png and `stem`.svg into the folder and returns the SVG."""
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": stem}):
        drawn = {}
        for kind in ("png", "svg"):
            buffer = io.BytesIO()
            nothing = ("Software",) if kind == "png" else ("Date", "Creator", "Format", "Type")
            figure.savefig(buffer, format=kind, dpi=150, metadata=dict.fromkeys(nothing))
            drawn[kind] = buffer.getvalue()
    folder.mkdir(parents=True, exist_ok=True)
    for kind, content in drawn.items():
        write_whole(folder / f"{stem}.{kind}", content)
    return drawn["svg"].decode()


def new_axes(title: str, xlabel: str, ylabel: str, size: tuple[float, float] = SIZE) -> tuple[Figure, Axes]:
    """An empty figure in the style of all others."""
    figure = Figure(figsize=size, layout="constrained", facecolor=PAPER)
    axes = figure.add_subplot(facecolor=PAPER)
    axes.set_title(title, color=INK, fontsize=11, loc="left", pad=9, parse_math=False, wrap=True)
    axes.set_xlabel(xlabel, color=INK, fontsize=10)
    axes.set_ylabel(ylabel, color=INK, fontsize=10)
    axes.tick_params(colors=INK, labelsize=9.5)
    axes.grid(axis="y", color=LINE, linewidth=0.7)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)
    return figure, axes


def add_legend(axes: Axes, **options: object) -> None:
    """Adds a legend if there is anything to explain."""
    handles, _ = axes.get_legend_handles_labels()
    if handles:
        settings: dict[str, Any] = {"fontsize": 8.5, "frameon": False, "labelcolor": INK, **options}
        axes.legend(**settings)


def legend_below(axes: Axes, columns: int = 2) -> None:
    """Adds the legend below the figure, where it hides no line."""
    add_legend(axes, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=columns)


def error_lengths(row: Entry) -> list[list[float]]:
    """The lengths of the 95% interval below and above the mean, [2, 1]; zeros if there is no interval."""
    if not row["ci95"] or not all(map(is_number, row["ci95"])):
        return [[0.0], [0.0]]
    low, high = row["ci95"]
    return [[max(row["mean"] - low, 0.0)], [max(high - row["mean"], 0.0)]]


Curve: TypeAlias = Sequence[float] | np.ndarray


def draw_band(axes: Axes, x: Curve, middle: Curve, low: Curve, high: Curve, **line: Any) -> None:
    """Draws a line with a band around it."""
    every = slice(None, None, max(1, len(x) // POINTS))
    x, middle, low, high = (np.asarray(part, np.float64)[every] for part in (x, middle, low, high))
    axes.plot(x, middle, **{"linewidth": 1.8, **line})
    axes.fill_between(x, low, high, color=line["color"], alpha=0.18, linewidth=0)


def use_log_scale(axis: Axis) -> None:
    """Puts plain numbers at the ticks of a logarithmic axis."""
    low, high = axis.get_view_interval()
    steps = (1.0,) if high > 300 * low > 0 else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=steps, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axis.set_minor_locator(NullLocator())
