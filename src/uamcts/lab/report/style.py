"""What all figures share: colours, axes, labels, and how a figure is written to a file.

`save` writes a figure as PNG and SVG, the same bytes for the same numbers. A figure has three colours of its own
besides those of its data, INK, PAPER and LINE; the page replaces them by its own.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

import numpy as np
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from uamcts.colours import INK, LINE, PAPER
from uamcts.lab.analysis.forms import Entry
from uamcts.lab.analysis.selection import is_number
from uamcts.lab.experiments.paper import IN_WORDS
from uamcts.runtime.atomic import write_whole

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
DPI = 200
"""Twice the density of a usual screen."""
REWARDS = {
    "space_invaders": (0.0, 24.0), "freeway": (0.0, 1.0), "breakout": (0.0, 30.0),
    **dict.fromkeys(("two_way", "two_way_icy", "hidden_obstacles", "slippery", "shortcut"), (0.0, 10.0)),
}  # fmt: skip
"""The least and the greatest reward of an episode in each domain."""
STEPS = dict.fromkeys(("two_way", "two_way_icy"), (0.0, 50.0))
"""The fewest and the most steps of an episode where they are counted."""
POINTS = 400
"""The largest number of points in a line; more cannot be seen."""
TIPS = 16
"""How many points of a line show their values."""


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


def possible(domain: str, quantity: str = "reward") -> tuple[float, float]:
    """The least and the greatest value that a quantity, `reward` or `steps`, can have in a domain."""
    return (REWARDS if quantity == "reward" else STEPS).get(domain, (-math.inf, math.inf))


def add_tips(artist: Artist, texts: Sequence[str]) -> None:
    """Makes an SVG show texts where a reader points at an artist: one for a bar, one for each point of a scatter."""
    artist.set_gid(f"tips-{quote(chr(10).join(texts))}")


def save(figure: Figure, folder: Path, stem: str) -> str:
    """Writes `stem`.png and `stem`.svg into the folder and returns the SVG."""
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": stem}):
        drawn = {}
        for kind in ("png", "svg"):
            buffer = io.BytesIO()
            nothing = ("Software",) if kind == "png" else ("Date", "Creator", "Format", "Type")
            figure.savefig(buffer, format=kind, dpi=DPI, metadata=dict.fromkeys(nothing))
            drawn[kind] = buffer.getvalue()
    drawn["svg"] = _write_tips(drawn["svg"].decode()).encode()
    folder.mkdir(parents=True, exist_ok=True)
    for kind, content in drawn.items():
        write_whole(folder / f"{stem}.{kind}", content)
    return drawn["svg"].decode()


def _write_tips(svg: str) -> str:
    """Turns the names that `add_tips` gives into titles of the shapes that follow."""
    start, *parts = re.split(r'<g id="tips-([^"]*)">', svg)
    for texts, rest in zip(parts[::2], parts[1::2], strict=True):
        tips = iter(f'<g class="tip"><title>{escape(text)}</title>' for text in unquote(texts).split("\n"))
        if "<use" in rest.partition("</g>")[0]:
            count = unquote(texts).count("\n") + 1
            start += "<g>" + re.sub(
                "<use [^>]*/>", lambda use, tips=tips: f"{next(tips)}{use[0]}</g>", rest, count=count
            )
        else:
            start += next(tips) + rest
    return start


def new_axes(title: str, xlabel: str, ylabel: str, size: tuple[float, float] = SIZE) -> tuple[Figure, Axes]:
    """An empty figure in the style of all others."""
    figure = Figure(figsize=size, layout="constrained", facecolor=PAPER)
    axes = figure.add_subplot()
    dress(axes, title, xlabel, ylabel)
    return figure, axes


def dress(axes: Axes, title: str, xlabel: str, ylabel: str) -> None:
    """Gives axes the style of all figures."""
    axes.set_facecolor(PAPER)
    axes.set_title(title, color=INK, fontsize=11, loc="left", pad=9, parse_math=False, wrap=True)
    axes.set_xlabel(xlabel, color=INK, fontsize=10)
    axes.set_ylabel(ylabel, color=INK, fontsize=10)
    axes.tick_params(colors=INK, labelsize=9.5)
    axes.grid(axis="y", color=LINE, linewidth=0.7)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)


def legend_below(
    axes: Axes, columns: int = 2, handles: Sequence[Artist] | None = None, labels: Sequence[str] = ()
) -> None:
    """Adds the legend below the figure, where it hides no line; by default of everything that has a label."""
    if handles is None:
        handles, labels = axes.get_legend_handles_labels()
    figure = axes.get_figure()
    if handles and isinstance(figure, Figure):
        figure.legend(
            list(handles), list(labels), loc="outside lower center", ncols=columns, fontsize=8.5, frameon=False,
            labelcolor=INK,
        )  # fmt: skip


def error_lengths(row: Entry) -> list[list[float]]:
    """The lengths of the 95% interval below and above the mean, [2, 1]; zeros if there is no interval.

    An interval ends where the possible rewards end.
    """
    if not row["ci95"] or not all(map(is_number, row["ci95"])):
        return [[0.0], [0.0]]
    low, high = np.clip(row["ci95"], *possible(row["domain"]))
    return [[max(row["mean"] - low, 0.0)], [max(high - row["mean"], 0.0)]]


def describe_row(row: Entry) -> str:
    """A mean and its interval in words, for a reader who points at it."""
    ends = row["ci95"] if row["ci95"] and all(map(is_number, row["ci95"])) else None
    words = f"{row['mean']:.2f}" + (f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else "")
    return f"{words}, {row['runs']:,} runs" if is_number(row["runs"]) else words


Curve: TypeAlias = Sequence[float] | np.ndarray


def draw_band(axes: Axes, x: Curve, middle: Curve, low: Curve, high: Curve, **line: Any) -> None:
    """Draws a line with a band around it; its values are shown where a reader points at it."""
    every = slice(None, None, max(1, len(x) // POINTS))
    x, middle, low, high = (np.asarray(part, np.float64)[every] for part in (x, middle, low, high))
    axes.plot(x, middle, **{"linewidth": 1.8, **line})
    axes.fill_between(x, low, high, color=line["color"], alpha=0.18, linewidth=0)
    places = np.unique(np.linspace(0, max(len(x) - 1, 0), min(len(x), TIPS)).astype(int))
    label = line.get("label", "")
    words = [f"{label}: {middle[n]:.4g} [{low[n]:.4g}, {high[n]:.4g}] at {x[n]:,.6g}" for n in places]
    add_points(axes, x[places], middle[places], words)


def add_points(axes: Axes, x: Curve, y: Curve, texts: Sequence[str]) -> None:
    """Puts invisible marks on a figure that show texts where a reader points at them."""
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if len(known):
        marks = axes.scatter(np.asarray(x)[known], np.asarray(y)[known], s=90, alpha=0.0, linewidths=0)
        marks.set_in_layout(False)
        add_tips(marks, [texts[place] for place in known.tolist()])


def use_log_scale(axis: Axis) -> None:
    """Puts plain numbers at the ticks of a logarithmic axis."""
    low, high = axis.get_view_interval()
    steps = (1.0,) if high > 300 * low > 0 else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=steps, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axis.set_minor_locator(NullLocator())
